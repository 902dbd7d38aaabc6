package backup

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/home/config"
)

const (
	pollEvery  = time.Minute     // no longer timer: the wall clock may jump, and machines sleep
	startDelay = 2 * time.Minute // keeps the disk free for the start
	retryAfter = time.Hour       // after a failure
)

// Keeper makes a backup each night and keeps the newest ones. If the machine was
// off at night, it makes one soon after the next start.
type Keeper struct {
	Home *config.Home
	// Settings is called each time: they may change.
	Settings func() (config.Backup, *time.Location)
	Make     func(ctx context.Context, file string) (Info, error)
	Log      hclog.Logger

	done   time.Time // the newest night that Run knows has a backup
	mu     sync.Mutex
	failed *Failure // of the newest attempt since Run began
}

// State describes the nightly backups.
type State struct {
	Nightly  bool       `json:"nightly"` // enabled
	Next     *time.Time `json:"next,omitempty"`
	Newest   *Found     `json:"newest,omitempty"` // of any kind
	Kept     int        `json:"kept"`             // nightly ones
	Failure  string     `json:"failure,omitempty"`
	FailedAt *time.Time `json:"failed_at,omitempty"`
}

// Run makes backups until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	timer := time.NewTimer(startDelay)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if now := time.Now(); k.due(now) {
			k.night(ctx, now)
		}
		timer.Reset(pollEvery)
	}
}

// due reports whether to make a backup now.
func (k *Keeper) due(now time.Time) bool {
	settings, zone := k.Settings()
	if !settings.Nightly {
		return false
	}
	k.mu.Lock()
	failed := k.failed
	k.mu.Unlock()
	if failed != nil && now.Before(failed.At.Add(retryAfter)) && !now.Before(failed.At) {
		return false
	}
	last := lastNight(now.In(zone), settings.At)
	if last.Equal(k.done) {
		return false
	}
	if newest := k.newest(now); newest == nil || newest.At.Before(last) {
		return true
	}
	k.done = last
	return false
}

// newest returns the newest nightly backup. It ignores backups of the future,
// which a wrong clock made.
func (k *Keeper) newest(now time.Time) *Found {
	for _, f := range List(k.Home) {
		if f.Kind == KindNightly && !f.At.After(now) {
			return &f
		}
	}
	return nil
}

// lastNight returns the newest due time that is not after now.
func lastNight(now time.Time, at string) time.Time {
	t, err := time.Parse(config.TimeOfDay, at)
	if err != nil { // cannot happen: the configuration checks it
		return time.Time{}
	}
	due := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location())
	if due.After(now) {
		due = time.Date(now.Year(), now.Month(), now.Day()-1, t.Hour(), t.Minute(), 0, 0, now.Location())
	}
	return due
}

func (k *Keeper) night(ctx context.Context, now time.Time) {
	info, err := k.Make(ctx, nightlyName(k.Home, now))
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		k.Log.Info("nightly backup done", "file", info.File, "bytes", info.Bytes, "events", info.Events,
			"took", time.Since(now).Round(time.Millisecond).String())
		if len(info.Lost) > 0 {
			k.Log.Warn("files of messages are missing or damaged: `switchboard doctor` names them", "files", len(info.Lost))
		}
		if err = k.prune(info.File, now); err == nil {
			if err := sweepFiles(k.Home); err != nil {
				k.Log.Warn("remove the files of removed backups", "error", err)
			}
		}
	}
	var failed *Failure
	if err != nil {
		k.Log.Error("nightly backup failed", "error", err)
		failed = &Failure{At: now, Reason: err.Error()}
	}
	if err := saveFailure(k.Home, failed); err != nil {
		k.Log.Warn("save the result of the nightly backup", "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed = failed
}

// prune removes the nightly backups beyond Keep, never the one just made. It
// ignores those of the future, which a wrong clock made.
func (k *Keeper) prune(made string, now time.Time) error {
	settings, _ := k.Settings()
	kept := 1
	var errs []error
	for _, f := range List(k.Home) {
		if f.Kind != KindNightly || f.File == made || f.At.After(now) {
			continue
		}
		if kept++; kept > settings.Keep {
			errs = append(errs, remove(f.File))
		}
	}
	return errors.Join(errs...)
}

// State returns the state of the nightly backups.
func (k *Keeper) State(now time.Time) State {
	settings, zone := k.Settings()
	s := State{Nightly: settings.Nightly}
	for i, f := range List(k.Home) {
		if i == 0 {
			s.Newest = &f
		}
		if f.Kind == KindNightly {
			s.Kept++
		}
	}
	if settings.Nightly {
		k.mu.Lock()
		defer k.mu.Unlock()
		if f := cmp.Or(k.failed, LastFailure(k.Home)); f != nil { // k.failed also if it could not be saved
			s.Failure, s.FailedAt = f.Reason, &f.At
		}
		last := lastNight(now.In(zone), settings.At)
		next := time.Date(last.Year(), last.Month(), last.Day()+1, last.Hour(), last.Minute(), 0, 0, last.Location())
		s.Next = &next
	}
	return s
}
