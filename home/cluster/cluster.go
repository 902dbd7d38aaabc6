// Package cluster makes a home one of several nodes that serve the same cell. All follow
// the cell's commit log in PostgreSQL with a copy of its state; one, the owner, runs the
// kernel over it. The others hold their extensions' processes ready and wait.
//
// # Promises
//
// A node becomes the owner when the owner's process has ended, or has not renewed its
// lease for postgres.LeaseTime. An owner whose lease has ended, or that another node has
// replaced, stops at once. The log's fence, not the lease, keeps a late owner from
// changing anything.
//
// The guard, a process of its own, kills the processes of the owner's extensions when the
// lease has ended and the kernel could not do so, because a signal had stopped it. That
// needs Linux.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/postgres"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// Options configure a node.
type Options struct {
	DSN     string // of the database
	Name    string // of the node, unique in the cluster
	Cell    string
	Version string
	Copy    string // path of the copy of the cell's state
	Log     hclog.Logger
	// Window returns how far back the cell can be restored; nil: DefaultWindow.
	Window func() time.Duration
	// Guard is the command of the guard.
	Guard []string
	Reach Reach
}

// Node is this process in the cluster.
type Node struct {
	options  Options
	database *postgres.Database
	cell     *postgres.Cell
	node     *postgres.Node
	guard    *guard
	reach    *reach
	end      context.CancelFunc
	running  sync.WaitGroup

	mu     sync.Mutex
	turn   *postgres.Turn
	tenure commitlog.Tenure
	over   context.CancelCauseFunc
	lost   context.Context // ends when the ownership does
}

// followEvery is how often a copy is brought up to date.
const followEvery = 200 * time.Millisecond

// Open enters the cluster.
func Open(ctx context.Context, o Options) (_ *Node, err error) {
	n := &Node{options: o}
	n.lost, n.over = context.WithCancelCause(context.Background())
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if n.database, err = postgres.Open(ctx, postgres.Options{DSN: o.DSN, Name: postgres.NodeName(o.Name)}); err != nil {
		return nil, err
	}
	if n.cell, err = n.database.Create(ctx, o.Cell); err != nil {
		return nil, err
	}
	if n.node, err = n.database.Enter(ctx, o.Name, o.Version); err != nil {
		return nil, err
	}
	n.cell.Lease = n.node.Until
	if n.reach, err = n.openReach(ctx); err != nil {
		return nil, err
	}
	if n.guard, err = startGuard(o.Guard); err != nil {
		return nil, err
	}
	background, end := context.WithCancel(context.Background())
	n.end = end
	n.running.Go(func() {
		if err := n.node.Run(background, n.renewed); err != nil {
			n.over(err)
		}
	})
	return n, nil
}

func (n *Node) renewed(until time.Time) {
	n.mu.Lock()
	owner := n.tenure != nil
	n.mu.Unlock()
	if owner {
		n.guard.arm(until)
	}
}

// Files keeps the files that come with messages where each node can read them; dir is for
// copies of them.
func (n *Node) Files(dir string) *Files { return &Files{local: localFiles(dir), blobs: n.cell} }

// Lost ends when this node was the owner, and is not any more; its cause says why. What
// the node did last may have failed, and it must not go on.
func (n *Node) Lost() context.Context { return n.lost }

// Store waits until this node is the owner, and returns the store of the cell.
func (n *Node) Store(ctx context.Context) (journal.Store, error) {
	n.node.Say("standby")
	follower, err := n.follow()
	if err != nil {
		return nil, err
	}
	relay, err := n.reach.relay(n.cell)
	if err != nil {
		return nil, errors.Join(err, follower.Close())
	}
	defer relay.Close()
	turns := make(chan *postgres.Turn, 1)
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(turns)
		if t, err := n.node.AwaitTurn(waiting, n.cell); err == nil {
			turns <- t
		}
	}()
	var lost *commitlog.Position // of this copy: entries that PostgreSQL had reported are gone
	for {
		progress, err := follower.CatchUp(ctx)
		if progress.Lost != nil {
			lost = progress.Lost
		}
		if err != nil && ctx.Err() == nil {
			n.options.Log.Warn("following the log failed; this is tried again", "error", err)
		}
		select {
		case turn, ok := <-turns:
			if !ok {
				return nil, errors.Join(context.Cause(ctx), follower.Close())
			}
			return n.own(ctx, turn, follower, lost)
		case <-n.lost.Done():
			return nil, errors.Join(context.Cause(n.lost), follower.Close())
		case <-time.After(followEvery):
		}
	}
}

func (n *Node) sqliteOptions() sqlite.Options { return sqlite.Options{Ended: n.over} }

func (n *Node) follow() (*sqlite.Follower, error) {
	return sqlite.Follow(n.options.Copy, n.cell, n.sqliteOptions())
}

// own takes the cell over. lost is what the log lost while this node followed it.
func (n *Node) own(
	ctx context.Context, turn *postgres.Turn, f *sqlite.Follower, lost *commitlog.Position,
) (journal.Store, error) {
	began := time.Now()
	tenure, err := n.cell.Acquire(ctx, n.options.Name)
	if err != nil {
		turn.End()
		return nil, errors.Join(err, f.Close())
	}
	s, done, err := f.Own(ctx, tenure, lost, n.sqliteOptions())
	if err != nil {
		turn.End()
		return nil, errors.Join(err, tenure.Release(ctx))
	}
	if done.Lost != nil {
		n.options.Log.Error("PostgreSQL has lost commits that it had reported; what they did may have happened, "+
			"and replies are marked", "position", done.Lost.Head)
	}
	n.mu.Lock()
	n.turn, n.tenure = turn, tenure
	n.mu.Unlock()
	n.guard.arm(n.node.Until()) // the next renewal may never come
	n.reach.serve(n.cell)
	n.node.Say(fmt.Sprintf("owner of %s, epoch %d", n.options.Cell, tenure.State().Epoch))
	n.options.Log.Info("this node owns the cell", "cell", n.options.Cell, "epoch", tenure.State().Epoch,
		"entries", done.Entries, "after", time.Since(began))
	n.running.Go(func() { n.watch(tenure.State().Epoch) })
	n.running.Go(func() {
		(&keeper{
			cell: n.cell, store: s, tenure: tenure, window: n.window, least: smallLog, log: n.options.Log,
		}).run(n.lost)
	})
	return s, nil
}

func (n *Node) window() time.Duration {
	if n.options.Window == nil {
		return DefaultWindow
	}
	return n.options.Window()
}

// watchEvery is how often the owner looks whether it still is.
const watchEvery = 100 * time.Millisecond

// watch ends the ownership when the lease has ended or another node has the cell.
func (n *Node) watch(epoch int64) {
	looked := time.Now()
	for {
		select {
		case <-time.After(watchEvery):
		case <-n.lost.Done():
			return
		}
		if until := n.node.Until(); time.Now().After(until) {
			n.over(fmt.Errorf("%w or may do so: the lease of this node ended %s ago", journal.ErrFenced,
				time.Since(until).Round(time.Millisecond)))
			return
		}
		if time.Since(looked) < 5*watchEvery {
			continue
		}
		looked = time.Now()
		ctx, cancel := context.WithTimeout(n.lost, 5*watchEvery)
		head, err := n.cell.Head(ctx)
		if err == nil && head.Epoch != epoch {
			n.over(fmt.Errorf("%w: node %q has epoch %d", journal.ErrFenced, head.Node, head.Epoch))
		}
		if err == nil && !n.turn.Held(ctx) { // PostgreSQL has started again
			n.turn.End()
			if turn, err := n.node.AwaitTurn(ctx, n.cell); err == nil {
				n.turn = turn
			}
		}
		cancel()
	}
}

// Close ends the ownership, if the kernel has ended in order, and leaves the cluster.
func (n *Node) Close() {
	n.over(errors.New("this node has ended"))
	if n.end != nil {
		n.end()
	}
	n.running.Wait()
	if n.reach != nil {
		n.reach.close()
	}
	if n.tenure != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = n.tenure.Release(ctx)
		cancel()
	}
	if n.turn != nil {
		n.turn.End()
	}
	if n.guard != nil {
		n.guard.close()
	}
	if n.database != nil {
		n.database.Close()
	}
}
