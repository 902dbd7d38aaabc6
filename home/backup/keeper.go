package backup

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/home/config"
)

const (
	look    = time.Minute     // the wall clock may jump, and machines sleep
	settle  = 2 * time.Minute // after a start, which has other things to do
	retryIn = time.Hour       // after one that failed
)

// Keeper makes a backup each night and keeps the newest. A night that was missed
// because the machine was off is made up for once, soon after the next start.
type Keeper struct {
	Home *config.Home
	// Settings are asked each time: they may change.
	Settings func() (config.Backup, *time.Location)
	Make     func(ctx context.Context, file string) (Info, error)
	Log      hclog.Logger

	made   time.Time // the night of which there is one, as far as Run knows
	mu     sync.Mutex
	failed *Failure // since Run began
}

// State is how the nightly backups are.
type State struct {
	Nightly  bool       `json:"nightly"` // switched on
	Next     *time.Time `json:"next,omitempty"`
	Newest   *Found     `json:"newest,omitempty"` // of any kind
	Kept     int        `json:"kept"`             // nightly ones
	Failure  string     `json:"failure,omitempty"`
	FailedAt *time.Time `json:"failed_at,omitempty"`
}

// Run makes backups until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	timer := time.NewTimer(settle)
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
		timer.Reset(look)
	}
}

// due says whether a backup has to be made now.
func (k *Keeper) due(now time.Time) bool {
	settings, zone := k.Settings()
	if !settings.Nightly {
		return false
	}
	k.mu.Lock()
	failed := k.failed
	k.mu.Unlock()
	if failed != nil && now.Before(failed.At.Add(retryIn)) && !now.Before(failed.At) {
		return false
	}
	last := lastNight(now.In(zone), settings.At)
	if last.Equal(k.made) {
		return false
	}
	if newest := k.newest(now); newest == nil || newest.At.Before(last) {
		return true
	}
	k.made = last
	return false
}

// newest is the newest nightly backup. One of the future was made under a wrong
// clock.
func (k *Keeper) newest(now time.Time) *Found {
	for _, f := range List(k.Home) {
		if f.Kind == KindNightly && !f.At.After(now) {
			return &f
		}
	}
	return nil
}

// lastNight is the newest time not after now at which a backup is due.
func lastNight(now time.Time, at string) time.Time {
	t, err := time.Parse(config.TimeOfDay, at)
	if err != nil { // the configuration does not let it through
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
		k.Log.Info("the nightly backup is made", "file", info.File, "bytes", info.Bytes, "events", info.Events, "took", time.Since(now).Round(time.Millisecond).String())
		err = k.prune(info.File, now)
	}
	var failed *Failure
	if err != nil {
		k.Log.Error("the nightly backup failed", "error", err)
		failed = &Failure{At: now, Reason: err.Error()}
	}
	if err := note(k.Home, failed); err != nil {
		k.Log.Warn("how the nightly backup went is forgotten when the kernel ends", "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed = failed
}

// prune removes the nightly backups that are too many, never the one just made.
// Those of the future, made under a wrong clock, do not count.
func (k *Keeper) prune(made string, now time.Time) error {
	settings, _ := k.Settings()
	kept := 1
	var errs []error
	for _, f := range List(k.Home) {
		if f.Kind != KindNightly || f.File == made || f.At.After(now) {
			continue
		}
		if kept++; kept > settings.Keep {
			errs = append(errs, os.Remove(f.File))
		}
	}
	return errors.Join(errs...)
}

// State says how the nightly backups are.
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
		if f := cmp.Or(k.failed, LastFailure(k.Home)); f != nil { // the first also where it could not be written down
			s.Failure, s.FailedAt = f.Reason, &f.At
		}
		last := lastNight(now.In(zone), settings.At)
		next := time.Date(last.Year(), last.Month(), last.Day()+1, last.Hour(), last.Minute(), 0, 0, last.Location())
		s.Next = &next
	}
	return s
}
