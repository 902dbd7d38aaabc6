package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/kernel/blobs"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/postgres"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

const (
	// DefaultWindow is how far back a cell can be restored.
	DefaultWindow = 7 * 24 * time.Hour

	keepEvery = time.Minute // how often an owner looks whether a snapshot is due
	sweepEach = time.Hour   // how often it removes what the window does not need
	// snapshotAge is the age of the newest snapshot at which another one is made, if there
	// were changes.
	snapshotAge = 24 * time.Hour
	// smallLog is how much the log may have since the newest snapshot, also where the state
	// is smaller.
	smallLog = 16 << 20
	// partPause is the pause before each MiB of a snapshot that is sent, so that commits do
	// not wait for it: 20 MiB/s at most.
	partPause = 50 * time.Millisecond
)

// keeper keeps the log of a cell short while this node owns it: it publishes snapshots, and
// removes what no restore within the window needs.
type keeper struct {
	cell   *postgres.Cell
	store  *sqlite.Store
	tenure commitlog.Tenure
	window func() time.Duration
	least  int64 // bytes of log for which no snapshot is made
	log    hclog.Logger

	before int64 // bytes that the log had after the newest snapshot when the tenure began
	at     int64 // position of that snapshot
	base   int64 // of store.Appended when the newest snapshot was made
	known  bool  // before is known
}

// run ends with ctx, or when the ownership does.
func (k *keeper) run(ctx context.Context) {
	swept := time.Time{}
	for ticks := time.Tick(keepEvery); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		err := k.once(ctx)
		if err == nil && time.Since(swept) >= sweepEach {
			if err = k.sweep(ctx); err == nil {
				swept = time.Now()
			}
		}
		switch {
		case ctx.Err() != nil, errors.Is(err, journal.ErrFenced), errors.Is(err, journal.ErrClosed):
			return
		case err != nil:
			k.log.Warn("keeping the log short failed; this is tried again", "error", err)
		}
	}
}

// once publishes a snapshot if one is due.
func (k *keeper) once(ctx context.Context) error {
	due, err := k.due(ctx)
	if err != nil || !due {
		return err
	}
	return k.publish(ctx)
}

func (k *keeper) publish(ctx context.Context) error {
	appended := k.store.Appended()
	began := time.Now()
	at, err := k.store.Snapshot(ctx, k.cell, func() {
		select {
		case <-time.After(partPause):
		case <-ctx.Done():
		}
	})
	if err != nil {
		return err
	}
	k.at, k.before, k.base, k.known = at.Head, 0, appended, true
	k.log.Info("published a snapshot of the state", "entry", at.Head, "after", time.Since(began).Round(time.Millisecond))
	return k.cell.Keep(ctx, k.tenure, k.window())
}

// due reports whether the log since the newest snapshot is larger than the state, or the
// snapshot is old.
func (k *keeper) due(ctx context.Context) (bool, error) {
	kept, err := k.cell.Snapshots(ctx)
	if err != nil {
		return false, err
	}
	var newest postgres.Kept
	if len(kept) > 0 {
		newest = kept[0]
	}
	if !k.known || k.at != newest.Head {
		base := k.store.Appended()
		_, bytes, err := k.cell.Since(ctx, newest.Head)
		if err != nil {
			return false, err
		}
		k.before, k.base, k.at, k.known = bytes, base, newest.Head, true
	}
	bytes := k.before + k.store.Appended() - k.base
	if len(kept) == 0 { // as old as the log
		first, err := k.cell.Entry(ctx, 1)
		if err != nil {
			return errors.Is(err, commitlog.ErrNone), nil //nolint:nilerr // without its beginning one is due
		}
		newest.Age = time.Since(entryTime(first))
	}
	return bytes >= max(k.least, k.store.Size()) || newest.Age >= snapshotAge && k.store.Head() > newest.Head, nil
}

// sweep removes the snapshots, entries and files that the window does not need.
func (k *keeper) sweep(ctx context.Context) error {
	if err := k.cell.Keep(ctx, k.tenure, k.window()); err != nil {
		return err
	}
	swept, err := k.cell.SweepBlobs(ctx, 2*blobs.Hold, k.window(), func(hash string) (known bool, err error) {
		err = k.store.View(ctx, func(r journal.Reader) error {
			b, err := r.Blob(hash)
			known = b != nil
			return err
		})
		return known, err
	})
	if swept != (postgres.Swept{}) {
		k.log.Info("swept the files that nothing names", "dropped", swept.Dropped, "deleted", swept.Deleted)
	}
	return err
}
