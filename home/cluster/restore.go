package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/postgres"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// Point is the state of a cell after one entry of its log.
type Point struct {
	Position int64
	Time     time.Time
	Contents sqlite.Contents
}

// Plan is what a restore would do.
type Plan struct {
	Cell      string
	Owner     string // empty: no node owns it
	To, Now   Point
	Available [2]Point // the oldest and the newest, without contents
}

// Restoring is how Restore restores a cell.
type Restoring struct {
	// Position is that of the entry after whose commit the state is restored; 0: the newest
	// one that is not after At.
	Position int64
	At       time.Time
	// Confirm is shown what would be lost; false: nothing is changed.
	Confirm func(Plan) (bool, error)
}

// Restored is what Restore has done.
type Restored struct {
	Done bool
	Plan
	Entry int64    // that brought the old state
	Lost  []string // files of messages that are not there any more
}

// Restore makes the state of a cell what it was at an earlier point: a new entry of its
// log brings it, so that the nodes, which may run, all have it, and a later restore can
// take it back. What waits in it may have been done since, and is marked. The seat's node
// is a name for this command; the home only lends room.
func Restore(ctx context.Context, s Seat, o Restoring) (r Restored, err error) {
	d, err := postgres.Open(ctx, postgres.Options{DSN: s.DSN, Name: "switchboard-restore " + s.Node})
	if err == nil {
		defer d.Close()
		r, err = restore(ctx, d, s, o)
	}
	if err != nil {
		err = fmt.Errorf("restore the cell %s: %w", s.Cell, err)
	}
	return r, err
}

func restore(ctx context.Context, d *postgres.Database, s Seat, o Restoring) (r Restored, err error) {
	cell, err := d.Cell(ctx, s.Cell)
	if err != nil {
		return r, err
	}
	head, err := cell.Head(ctx)
	if err != nil {
		return r, err
	}
	r.Cell, r.Owner = s.Cell, head.Node
	if r.To.Position, err = r.find(ctx, cell, head, o); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp(s.Home.Path(), sqlite.InspectPrefix+"restore-*")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	then := filepath.Join(dir, "then")
	r.Now.Position = head.Head
	for path, p := range map[string]*Point{then: &r.To, filepath.Join(dir, "now"): &r.Now} {
		s.note("Building the state at commit %d.", p.Position)
		if err := p.build(ctx, cell, path); err != nil {
			return r, err
		}
	}
	if sure, err := o.Confirm(r.Plan); err != nil || !sure {
		return r, err
	}
	if r.Lost, err = cell.KeepBlobs(ctx, slices.Sorted(maps.Keys(r.To.Contents.Blobs))); err != nil {
		return r, err
	}
	var tenure commitlog.Tenure
	at, err := sqlite.Seed(ctx, then, cell, func() (t commitlog.Tenure, err error) {
		tenure, err = cell.Acquire(ctx, s.Node)
		return tenure, err
	}, sqlite.Seeding{Replace: true, Doubt: true})
	if tenure != nil {
		err = errors.Join(err, tenure.Release(context.WithoutCancel(ctx)))
	}
	r.Done, r.Entry = err == nil, at.Head
	return r, err
}

// find returns the position of the state that is wanted.
func (r *Restored) find(ctx context.Context, cell *postgres.Cell, head commitlog.State, o Restoring) (int64, error) {
	if head.Head == 0 {
		return 0, errors.New("it has no state yet")
	}
	kept, err := cell.Snapshots(ctx)
	if err != nil {
		return 0, err
	}
	oldest := head.First
	if oldest > 1 && len(kept) > 0 {
		oldest = max(oldest, kept[len(kept)-1].Head)
	}
	for i, position := range []int64{oldest, head.Head} {
		e, err := cell.Entry(ctx, position)
		if err != nil {
			return 0, err
		}
		r.Available[i] = Point{Position: position, Time: entryTime(e)}
	}
	first, last := r.Available[0], r.Available[1]
	between := fmt.Sprintf("it can be restored to commits %d (%s) to %d; the newest is %d (%s)", first.Position,
		first.Time.UTC().Format(time.RFC3339), last.Position-1, last.Position, last.Time.UTC().Format(time.RFC3339))
	position := o.Position
	if position == 0 {
		var failed error
		n := sort.Search(int(last.Position-first.Position+1), func(i int) bool { // the first one that is later
			e, err := cell.Entry(ctx, first.Position+int64(i))
			failed = errors.Join(failed, err)
			return err == nil && entryTime(e).After(o.At)
		})
		if failed != nil {
			return 0, failed
		}
		position = first.Position + int64(n) - 1
	}
	switch {
	case position < first.Position:
		return 0, fmt.Errorf("that is before what is kept: %s", between)
	case position >= last.Position:
		return 0, fmt.Errorf("nothing has changed since then: %s", between)
	}
	return position, nil
}

// build builds the state of a point, and reads what is in it.
func (p *Point) build(ctx context.Context, cell *postgres.Cell, path string) error {
	at, snapshot, err := cell.SnapshotAt(ctx, p.Position)
	switch {
	case errors.Is(err, commitlog.ErrNone):
		_, err = sqlite.Build(ctx, path, cell, commitlog.Position{}, nil, p.Position)
	case err == nil:
		_, err = sqlite.Build(ctx, path, cell, at, snapshot, p.Position)
		err = errors.Join(err, snapshot.Close())
	}
	if err != nil {
		return err
	}
	e, err := cell.Entry(ctx, p.Position)
	if err != nil {
		return err
	}
	p.Time = entryTime(e)
	p.Contents, err = sqlite.Examine(ctx, path)
	return err
}

func entryTime(e commitlog.Entry) time.Time { return time.UnixMicro(e.Time) }
