// Package cluster makes a home one of several nodes that serve the same cells. A cell is
// one household: one journal, one kernel, one home. All nodes follow the commit log of each
// cell in PostgreSQL with a copy of its state; one, the owner, runs the kernel over it.
//
// A node's own cell has the node's home. Each further cell has a home below it, at
// cells/NAME. All of them are in one process, with one lease.
//
// # Promises
//
// A node becomes the owner of a cell when the owner's process has ended, or has not renewed
// its lease for postgres.LeaseTime, or hands the cell over. The cells of a node that ends
// are spread over the others. An owner whose lease has ended stops at once, with all its
// cells; one that another node has replaced stops that cell alone. The log's fence, not the
// lease, keeps a late owner from changing anything.
//
// The guard, a process of its own, kills the processes of the owner's extensions when the
// lease has ended and the kernel could not do so, because a signal had stopped it. That
// needs Linux.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/blobs"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/postgres"
)

// Options configure a node.
type Options struct {
	DSN     string // of the database
	Name    string // of the node, unique in the cluster
	Version string
	Home    *config.Home // of the node and its own cell
	Cell    string       // the node's own cell
	// Standbys is the number of further cells for which the node holds extensions ready
	// while another node owns them. Without that a takeover starts them.
	Standbys int
	// Open opens a kernel. It is called for several cells at once.
	Open func(context.Context, Place) (Kernel, error)
	Log  hclog.Logger
	// Window returns how far back the cell with a home can be restored; nil: DefaultWindow.
	Window func(*config.Home) time.Duration
	// Guard is the command of the guard.
	Guard []string
	Reach Reach
}

// Place is what a kernel is opened on.
type Place struct {
	Cell string
	Node string
	Own  bool // it is the node's own cell
	Home *config.Home
	// Store waits until this node owns the cell, and returns its store.
	Store func(context.Context) (journal.Store, error)
	Files blobs.Files
	// Changed counts the changes of the home's files that other nodes made.
	Changed func() int64
	// Ready must be called when the processes of extensions run.
	Ready func()
}

// Kernel is a kernel on a cell.
type Kernel interface {
	// Run runs it until ctx ends.
	Run(ctx context.Context) error
	// Close closes it and its store.
	Close() error
}

// Node is this process in the cluster.
type Node struct {
	options  Options
	database *postgres.Database
	node     *postgres.Node
	guard    *guard
	reach    *reach
	opening  chan struct{} // holds one for each cold start
	closing  chan struct{} // and for each kernel that ends with the node

	lost    context.Context // ends when the lease does, or the node has failed
	over    context.CancelCauseFunc
	seating sync.WaitGroup

	mu       sync.Mutex
	seats    map[int64]*seat
	armed    bool
	ended    bool // no seats are added any more
	reported time.Time
}

// Open enters the cluster, and waits for that while PostgreSQL can't be reached. An error of
// class postgres.ErrNameTaken means that another process runs as this node.
func Open(ctx context.Context, o Options) (*Node, error) {
	for said := false; ; said = true {
		n, err := open(ctx, o)
		if !postgres.Unreachable(err) {
			return n, err
		}
		if !said {
			o.Log.Warn("PostgreSQL can't be reached; the node starts when it can", "error", err)
		}
		select {
		case <-time.After(openEvery):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// openEvery is how often a node tries to reach PostgreSQL at its start.
const openEvery = 200 * time.Millisecond

func open(ctx context.Context, o Options) (_ *Node, err error) {
	atOnce := 2 * runtime.GOMAXPROCS(0)
	n := &Node{
		options: o, seats: map[int64]*seat{},
		opening: make(chan struct{}, atOnce), closing: make(chan struct{}, 2*atOnce),
	}
	n.lost, n.over = context.WithCancelCause(context.Background())
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if n.database, err = postgres.Open(ctx, postgres.Options{DSN: o.DSN, Name: o.Name}); err != nil {
		return nil, err
	}
	if err = n.emptied(ctx); err != nil {
		return nil, err
	}
	if n.node, err = n.database.Enter(ctx, o.Name, o.Version); err != nil {
		return nil, err
	}
	if _, err = n.database.Create(ctx, o.Cell); err != nil {
		return nil, err
	}
	if n.guard, err = startGuard(o.Guard); err != nil {
		return nil, err
	}
	n.reach, err = n.openReach(ctx)
	return n, err
}

// emptied returns an error if the node has a copy of its own cell, and the database has none
// or an empty one. Nothing was stored in the database before: it may be the wrong one.
func (n *Node) emptied(ctx context.Context) error {
	cell, err := n.database.Cell(ctx, n.options.Cell)
	var head commitlog.State
	if err == nil {
		head, err = cell.Head(ctx)
	}
	if err != nil && !errors.Is(err, postgres.ErrNoCell) || head.Head > 0 {
		return nil //nolint:nilerr // what is wrong shows later
	}
	if _, err := copyOf(n.options.Home.Database(), head); errors.Is(err, commitlog.ErrEmpty) {
		return err
	}
	return nil // what is wrong with the file shows later
}

// Run serves cells until ctx ends, and hands them over then. An error of class
// journal.ErrFenced means that the node has lost its lease, or a kernel that it could not
// end: nothing of this process may go on.
func (n *Node) Run(ctx context.Context) error {
	seated, leave := context.WithCancel(ctx)
	defer leave()
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		err := n.node.Run(renewing, n.renewed, func(v postgres.View) { n.place(seated, v) })
		if err != nil {
			n.over(fmt.Errorf("%w: %w", journal.ErrFenced, err))
		}
	})
	running.Go(func() { n.watch(renewing) })
	running.Go(func() { n.compare(renewing) })
	n.node.Say("running")
	select {
	case <-ctx.Done():
		n.node.Say(postgres.Stopping)
	case <-n.lost.Done():
	}
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
	leave()
	left := make(chan struct{})
	go func() {
		n.seating.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-n.lost.Done():
		if errors.Is(context.Cause(n.lost), journal.ErrFenced) {
			stop()
			return context.Cause(n.lost) // without waiting for what may hang
		}
		<-left
	}
	stop()
	running.Wait()
	return context.Cause(n.lost)
}

// Close leaves the cluster, after Run.
func (n *Node) Close() {
	if n.node != nil {
		n.node.Leave()
	}
	if n.guard != nil {
		n.guard.close()
	}
	if n.reach != nil {
		n.reach.close()
	}
	if n.database != nil {
		n.database.Close()
	}
}

// owners counts the cells that this node owns.
func (n *Node) owners() (count int) {
	n.mu.Lock()
	seats := n.all()
	n.mu.Unlock()
	for _, s := range seats {
		if s.owned() != nil {
			count++
		}
	}
	return count
}

// all returns the seats; n.mu is held.
func (n *Node) all() []*seat {
	seats := make([]*seat, 0, len(n.seats))
	for _, s := range n.seats {
		seats = append(seats, s)
	}
	slices.SortFunc(seats, func(a, b *seat) int { return int(a.id - b.id) })
	return seats
}

func (n *Node) renewed(until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	owner := slices.ContainsFunc(n.all(), func(s *seat) bool { return s.owned() != nil })
	armed := n.armed
	n.armed = owner
	switch {
	case owner:
		n.guard.arm(until)
	case armed:
		n.guard.arm(time.Time{})
	}
}

// watchEvery is how often an owner looks whether its lease goes on.
const watchEvery = 100 * time.Millisecond

// watch ends the node when its lease has ended while it owned a cell.
func (n *Node) watch(ctx context.Context) {
	for {
		select {
		case <-time.After(watchEvery):
		case <-ctx.Done():
			return
		}
		if until := n.node.Until(); time.Now().After(until) && n.owners() > 0 {
			n.over(fmt.Errorf("%w or may do so: the lease of this node ended %s ago", journal.ErrFenced,
				time.Since(until).Round(time.Millisecond)))
			return
		}
	}
}
