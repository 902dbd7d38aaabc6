package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/blobfiles"
	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/postgres"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// Leaving is how a home leaves its cell.
type Leaving struct {
	// Keep makes the cell's state that of the home, and ends the cell.
	Keep bool
	// Sure goes on where other nodes serve the cell, or no node would have its state.
	Sure bool
}

// Left is what Leave has done.
type Left struct {
	Undone bool     // the joining, which had not moved the state yet
	Files  int      // of messages that the home has now
	Lost   []string // files that the cell had lost
	// Aside is where the copy of the cell's state is now; empty: there was none.
	Aside string
}

// ErrOthers means that other nodes serve the cell.
var ErrOthers = errors.New("other nodes serve the cell")

// ErrLast means that the state of the cell would be left to no node.
var ErrLast = errors.New("no other node has entered the cluster")

// ErrPinned means that the data of extensions would be left behind.
var ErrPinned = errors.New("data that other nodes don't have would be left behind")

// Leave takes a home out of its cell. With Keep it takes the state along: all of it,
// checked, and the cell has ended, or nothing has changed. It may be killed at any instant
// and repeated. The caller holds the lock of the home.
func Leave(ctx context.Context, s Seat, o Leaving) (Left, error) {
	l := &leaving{Seat: s, Leaving: o}
	err := l.run(ctx)
	if err != nil {
		err = fmt.Errorf("leave the cell %s: %w", s.Cell, err)
	}
	return l.done, err
}

type leaving struct {
	Seat
	Leaving
	database *postgres.Database
	cell     *postgres.Cell
	done     Left
}

func (l *leaving) run(ctx context.Context) (err error) {
	if l.database, l.cell, err = l.open(ctx, "leave"); err != nil {
		return err
	}
	defer l.database.Close()
	if m, err := readMark(l.Home); err != nil || m != nil {
		return errors.Join(err, l.undo(ctx, m))
	}
	token, err := l.token()
	if err != nil {
		return err
	}
	if l.cell == nil {
		if l.Keep {
			return fmt.Errorf("%w: leave without --keep-data", postgres.ErrNoCell)
		}
		l.note("The cluster has no such cell any more.")
		return l.goes(ctx)
	}
	why, err := l.cell.Ended(ctx)
	switch {
	case err != nil:
		return err
	case why != "" && strings.Contains(why, token):
		return l.finish(ctx)
	case postgres.ReservedBy(why) == l.Node: // joining was interrupted before it had a mark
		return errors.Join(l.unreserve(ctx), l.goes(ctx))
	case postgres.ReservedBy(why) != "":
		return postgres.EndedError(l.Cell, why)
	case why != "":
		l.note("The cell has ended: %s.", why)
		return l.goes(ctx)
	}
	if err := l.allowed(ctx); err != nil {
		return err
	}
	if l.Keep {
		return l.keep(ctx, token)
	}
	return l.goes(ctx)
}

// undo makes the store of a home that began to join one of its own again.
func (l *leaving) undo(ctx context.Context, m *mark) error {
	if m == nil {
		return nil
	}
	if m.Cell != l.Cell {
		return fmt.Errorf("this home began to join the cell %s: name that with --cell", m.Cell)
	}
	if l.cell == nil {
		return l.takeBack(m)
	}
	// A statement that is late is fenced by this, or has happened before it.
	tenure, err := l.cell.Acquire(ctx, l.Node)
	if err != nil {
		return err
	}
	defer func() { _ = tenure.Release(context.WithoutCancel(ctx)) }()
	if tenure.State().Head > 0 {
		happened, err := moved(ctx, l.cell, m)
		if err != nil {
			return err
		}
		if happened {
			return errors.New("its state is in the cell already: finish that with `switchboard cluster join`, and then leave " +
				"with --keep-data")
		}
	}
	if err := l.takeBack(m); err != nil || tenure.State().Head > 0 {
		return err
	}
	return l.unreserve(ctx)
}

// takeBack makes the store of the home its own again.
func (l *leaving) takeBack(m *mark) error {
	db := l.Home.Database()
	if !present(db) && present(m.Kept) {
		if err := rename(m.Kept, db); err != nil {
			return err
		}
	}
	if err := sqlite.Detach(db); err != nil {
		return err
	}
	l.done.Undone = true
	return os.Remove(l.Home.Joining())
}

// unreserve deletes the cell that was made for the state of this home.
func (l *leaving) unreserve(ctx context.Context) error {
	v, err := l.database.Look(ctx)
	if err != nil {
		return err
	}
	for _, c := range v.Cells {
		if c.Name == l.Cell && c.Head == 0 && postgres.ReservedBy(c.Ended) == l.Node {
			if err := l.database.Retire(ctx, c.Name); err != nil {
				return err
			}
			return l.database.Erase(ctx, c)
		}
	}
	return nil
}

// allowed returns an error if leaving would take the state from others, or from all.
func (l *leaving) allowed(ctx context.Context) error {
	head, err := l.cell.Head(ctx)
	if err != nil {
		return err
	}
	connected, err := l.database.Connected(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(connected, l.Node) {
		return fmt.Errorf("a node with the name %s is running, not on this home: stop it first", l.Node)
	}
	if l.Keep && len(connected) > 0 && !l.Sure {
		return fmt.Errorf("%w (%s): stop them first", ErrOthers, strings.Join(connected, ", "))
	}
	seen, err := l.database.Look(ctx)
	if err != nil {
		return err
	}
	told, err := l.database.Told(ctx)
	if err != nil {
		return err
	}
	for cell, p := range Pins(told, seen.Cells) {
		along := l.Keep && cell == l.Cell // the cell comes along
		if along != (p.Node == l.Node) && !l.Sure {
			return fmt.Errorf("%w: of the cell %s, %s", ErrPinned, cell, p)
		}
	}
	if l.Keep {
		return nil
	}
	others := slices.ContainsFunc(seen.Members, func(m postgres.Member) bool { return m.Name != l.Node })
	if !others && head.Head > 0 && !l.Sure {
		return fmt.Errorf("%w, so its state would stay in PostgreSQL with no node to serve it: take it along with "+
			"--keep-data", ErrLast)
	}
	return nil
}

// tokenFile holds what tells this attempt to leave from others.
func (l *leaving) tokenFile() string { return filepath.Join(l.Home.Path(), "cluster-leave.json") }

func (l *leaving) token() (token string, err error) {
	text, err := os.ReadFile(l.tokenFile())
	if errors.Is(err, fs.ErrNotExist) {
		token = rand.Text()[:12]
		return token, write(l.tokenFile(), token)
	}
	if err == nil {
		err = json.Unmarshal(text, &token)
	}
	return token, err
}

func (l *leaving) taken() string { return l.Home.Database() + ".leaving" }

// keep makes a store of its own from the cell's newest state, and ends the cell.
func (l *leaving) keep(ctx context.Context, token string) error {
	tenure, err := l.cell.Acquire(ctx, l.Node)
	if err != nil {
		return err
	}
	defer func() { _ = tenure.Release(context.WithoutCancel(ctx)) }()
	head := tenure.State()
	if head.Head == 0 {
		return errors.New("the cell has no state: leave without --keep-data")
	}
	l.note("Taking the state of the cell.")
	lost, err := l.copyState(ctx, head)
	if err != nil {
		return err
	}
	if err := sqlite.Detach(l.taken()); err != nil {
		return err
	}
	if lost { // PostgreSQL has lost commits that this node knows of
		if err := sqlite.MarkUncertain(l.taken()); err != nil {
			return err
		}
	}
	c, err := sqlite.Examine(ctx, l.taken())
	if err != nil {
		return err
	}
	if l.done.Lost, err = fetchFiles(ctx, l.Home, l.cell, c.Blobs); err != nil {
		return err
	}
	l.done.Files = len(c.Blobs) - len(l.done.Lost)
	if err := tenure.Confirm(ctx); err != nil {
		return err
	}
	// From here on the truth is this store: nothing is appended any more.
	why := fmt.Sprintf("the node %s took its state along at %s (%s)", l.Node, time.Now().UTC().Format(time.RFC3339), token)
	if err := l.cell.End(ctx, tenure, why); err != nil {
		return fmt.Errorf("%w; whether the cell has ended is not known: try it again", err)
	}
	return l.finish(ctx)
}

// copyState writes the newest state beside the copy, which stays as it is.
func (l *leaving) copyState(ctx context.Context, head commitlog.State) (lost bool, err error) {
	f, err := sqlite.Follow(l.Home.Database(), l.cell, sqlite.Options{})
	if err != nil {
		return false, err
	}
	p, err := f.CatchUp(ctx)
	if err := errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	if p.Position != head.Position {
		return false, fmt.Errorf("%w: the log is at %d, and was at %d", journal.ErrFenced, p.Position.Head, head.Head)
	}
	if err := os.Remove(l.taken()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return p.Lost != nil, sqlite.Copy(ctx, l.Home.Database(), l.taken())
}

// fetchFiles stores the files of messages in a home, and returns those that are lost.
func fetchFiles(ctx context.Context, h *config.Home, blobs commitlog.Blobs, sizes map[string]int64) ([]string, error) {
	dir := blobfiles.Dir(h.Files())
	missing, err := dir.Lost(sizes)
	if err != nil {
		return nil, err
	}
	for _, hash := range missing {
		r, err := blobs.Blob(ctx, hash)
		if errors.Is(err, commitlog.ErrNone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f, err := dir.Create()
		if err == nil {
			if _, err = io.Copy(f, r); err == nil {
				err = f.Keep(hash)
			}
			f.Discard()
		}
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
	}
	return dir.Lost(maps.Collect(func(yield func(string, int64) bool) {
		for _, hash := range missing {
			if !yield(hash, sizes[hash]) {
				return
			}
		}
	}))
}

// finish puts the state in the place of the home's copy, when the cell has ended.
func (l *leaving) finish(ctx context.Context) error {
	if present(l.taken()) {
		if err := rename(l.taken(), l.Home.Database()); err != nil {
			return err
		}
	}
	return l.unseat(ctx)
}

// goes leaves the state to the others.
func (l *leaving) goes(ctx context.Context) error {
	db := l.Home.Database()
	if present(db) {
		if copied, err := sqlite.IsCopy(db); err != nil || !copied {
			return errors.Join(err, l.unseat(ctx)) // a store of its own stays
		}
		l.done.Aside = db + ".left"
		if err := rename(db, l.done.Aside); err != nil {
			return err
		}
	}
	return l.unseat(ctx)
}

func (l *leaving) unseat(ctx context.Context) error {
	if err := l.database.Forget(ctx, l.Node); err != nil {
		return err
	}
	if err := os.Remove(l.tokenFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.Unconfigure()
}
