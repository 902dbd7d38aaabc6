package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/postgres"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

const (
	// retryAfter is the wait after a failure of a cell that is not the node's own.
	retryAfter = 5 * time.Second
	// closingTime bounds the end of a kernel whose cell another node has: its extensions
	// have at most 20 seconds.
	closingTime = 30 * time.Second
)

// seat is one cell on this node.
type seat struct {
	node *Node
	id   int64
	name string
	own  bool // the node's own cell
	news chan struct{}
	cell *postgres.Cell

	// Owned by Node.place.
	vacant time.Time // when the cell was seen without an owner first; zero: it has one
	asked  time.Time // when the next owner was asked last
	asks   int
	told   bool // that it has no owner because of a pin

	mu       sync.Mutex
	order    order
	home     *config.Home // during a round
	tenure   *tenure
	position int64 // of the copy
	ready    bool  // the extensions are
	served   bool  // a kernel ran on it
	problem  string
	data     map[string]bool // Holding.Data; nil: not known yet
}

// tenure is the ownership of a cell.
type tenure struct {
	commitlog.Tenure
	store *sqlite.Store
	lost  context.Context // ends when another node has the cell
	over  context.CancelCauseFunc
}

// seat adds a seat; n.mu is held.
func (n *Node) seat(ctx context.Context, c postgres.Seen) *seat {
	s := &seat{node: n, id: c.ID, name: c.Name, own: c.Name == n.options.Cell, news: make(chan struct{}, 1),
		cell: n.node.Cell(c)}
	n.seats[c.ID] = s
	n.seating.Go(func() { s.run(ctx) })
	return s
}

// owned returns the tenure; nil: the node does not own the cell.
func (s *seat) owned() *tenure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tenure
}

func (s *seat) last() order {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.order
}

func (s *seat) settle(home *config.Home) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.home = home
}

// waitForTurn takes back the order to take the cell, so that the next one is news.
func (s *seat) waitForTurn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order.take = false
}

// give sets the orders.
func (s *seat) give(o order) {
	s.mu.Lock()
	same := s.order.same(o)
	s.order = o
	t := s.tenure
	s.mu.Unlock()
	if t != nil && o.seen.Epoch != t.State().Epoch && (o.seen.Epoch > t.State().Epoch || o.absent) {
		t.over(fmt.Errorf("%w: the node %s has taken the cell", journal.ErrFenced, cmp.Or(o.seen.Node, "of a command")))
	} else if t != nil && o.seen.Lost >= t.State().Epoch {
		t.over(fmt.Errorf("%w: another node had newer commits, which PostgreSQL has lost", journal.ErrFenced))
	}
	if !same {
		select {
		case s.news <- struct{}{}:
		default:
		}
	}
}

func (s *seat) standing() (x Standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x = Standing{Role: "follows", Position: s.position, Own: s.own, Problem: s.problem}
	switch {
	case s.tenure != nil:
		f := postgres.FiguresOf(s.tenure.Tenure)
		x.Role, x.Position, x.Appends = "owner", s.tenure.store.Head(), f.Appends
		x.P99Micros, x.Standby, x.Unknown = f.P99.Microseconds(), f.Standby, f.Unknown
	case s.problem != "":
		x.Role = "failed"
	case s.ready:
		x.Role = "ready"
	}
	return x
}

// run serves the cell until ctx ends or the cell is deleted.
func (s *seat) run(ctx context.Context) {
	failed := "" // as it was logged last
	for ctx.Err() == nil {
		err := s.round(ctx)
		if o := s.last(); o.gone || o.absent {
			s.remove(o)
			return
		}
		if err == nil || ctx.Err() != nil {
			failed = ""
			continue
		}
		s.note(err)
		var fatal failure
		if s.own && errors.As(err, &fatal) && !s.served {
			s.node.over(err)
			return
		}
		wait := retryAfter
		if postgres.Unreachable(err) {
			wait = openEvery
		}
		if text := err.Error(); text != failed {
			s.node.options.Log.Error("a cell failed on this node; this is tried again", "cell", s.name, "error", err)
			failed = text
		}
		pause(ctx, wait)
	}
}

func (s *seat) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem = ""
	if err != nil {
		s.problem = err.Error()
	}
}

// round follows the cell until this node owns it, and runs its kernel until that ends.
func (s *seat) round(ctx context.Context) error {
	home, err := s.openHome()
	if err != nil {
		return failure{err}
	}
	if present(home.Joining()) {
		return failure{errors.New("this home is joining a cluster: finish that with `switchboard cluster join`, or take it " +
			"back with `switchboard cluster leave`")}
	}
	s.settle(home)
	defer s.settle(nil)
	log := &seenLog{Cell: s.cell, seat: s}
	f, err := sqlite.Follow(home.Database(), log, sqlite.Options{})
	if err != nil {
		return failure{err}
	}
	defer func() { _ = f.Close() }()
	r := &round{seat: s, home: home, follower: f, log: log}
	log.at = &r.at
	defer r.cool()
	return r.serve(ctx)
}

// cellMark is the file with the mark of the cell that a home belongs to.
const cellMark = "cell"

// openHome opens the home of the cell. One that belongs to an earlier cell with the name
// is moved away.
func (s *seat) openHome() (*config.Home, error) {
	if s.own {
		return s.node.options.Home, nil
	}
	path, mark := s.node.options.Home.Cell(s.name), s.last().seen.Mark
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open the home of the cell %s: %w", s.name, err)
	}
	found, err := os.ReadFile(filepath.Join(path, cellMark))
	old := strings.TrimSpace(string(found))
	if err == nil && old != mark {
		if err := os.Rename(path, path+".deleted-"+filepath.Base(old)); err != nil {
			return nil, fmt.Errorf("move the home of an earlier cell %s away: %w", s.name, err)
		}
	}
	home, openErr := config.OpenHomeAt(path)
	if openErr == nil && (old != mark || errors.Is(err, fs.ErrNotExist)) {
		openErr = os.WriteFile(filepath.Join(path, cellMark), []byte(mark+"\n"), 0o600)
	}
	if openErr != nil {
		return nil, fmt.Errorf("open the home of the cell %s: %w", s.name, openErr)
	}
	return home, nil
}

// remove deletes what this node has of a deleted cell. The home of one whose row is gone
// without a word stays, under another name: PostgreSQL may have lost the row.
func (s *seat) remove(o order) {
	path := s.node.options.Home.Cell(s.name)
	aside := path + ".deleted-" + filepath.Base(o.seen.Mark)
	mark, err := os.ReadFile(filepath.Join(path, cellMark))
	itself := err == nil && strings.TrimSpace(string(mark)) == o.seen.Mark // else it is one of a new cell with the name
	switch {
	case s.own:
		s.node.over(fmt.Errorf("the cell %s of this node was deleted", s.name))
	case o.gone && itself:
		err = os.RemoveAll(path)
	case o.gone:
		err = os.RemoveAll(aside)
	case itself:
		err = os.Rename(path, aside)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.node.options.Log.Error("removing the home of a deleted cell failed", "cell", s.name, "error", err)
	}
}

// seenLog is the log of a cell whose head the node has seen: followers ask PostgreSQL only
// for entries, unless what was seen is not newer than their copy.
type seenLog struct {
	*postgres.Cell
	seat *seat
	head *commitlog.State    // once this node is the owner
	at   *commitlog.Position // of the copy
}

// Head implements commitlog.Log.
func (l *seenLog) Head(ctx context.Context) (commitlog.State, error) {
	if l.head != nil {
		return *l.head, nil
	}
	o := l.seat.last()
	if err := postgres.EndedError(l.Name(), o.seen.Ended); err != nil {
		return commitlog.State{}, err
	}
	// The copy may be ahead of what was seen, and then nothing is lost; at first it is not known.
	if l.at.Head == 0 || o.seen.Head <= l.at.Head {
		return l.Cell.Head(ctx)
	}
	return o.seen.State, nil
}
