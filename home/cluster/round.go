package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchboard-run/switchboard/home/cluster/link"
	"github.com/switchboard-run/switchboard/home/cluster/shared"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/pin"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/postgres"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// round is the time from following a cell to the end of its kernel here.
type round struct {
	*seat
	home     *config.Home
	follower *sqlite.Follower
	log      *seenLog
	kernel   *opening // nil: no extensions are held ready
	relay    *link.Relay
	via      atomic.Pointer[link.Relay] // the same, for others
	files    *shared.Files              // nil: this node shares none
	// lost is what the log lost while this node followed it: entries that PostgreSQL had
	// reported.
	lost    *commitlog.Position
	told    bool   // lost is in PostgreSQL
	opened  func() // frees the place of a cold start; nil: it has none
	at      commitlog.Position
	problem string // of following, as it was logged last
}

// opening is a kernel that waits for its store.
type opening struct {
	cancel context.CancelFunc
	store  chan journal.Store
	ready  chan struct{} // something comes when the extensions are
	done   chan struct{}
	kernel Kernel
	err    error
}

// followAgain is the wait after following failed.
const followAgain = time.Second

func (r *round) serve(ctx context.Context) (err error) {
	defer r.unrelay()
	if err := pin.Begin(ctx, r.home); err != nil {
		return err
	}
	if r.files, err = r.node.reach.share(r.name, r.home); err != nil {
		return err
	}
	if r.files != nil {
		running, stop := context.WithCancel(ctx)
		defer r.files.Leave()
		defer stop()
		go r.files.Run(running)
	}
	for first := true; ; first = false {
		o := r.last()
		if o.gone || o.absent {
			return nil
		}
		behind := first || o.seen.Position != r.at || r.lost != nil && !r.told
		if behind {
			err := r.follow(ctx)
			if errors.Is(err, postgres.ErrEnded) || errors.Is(err, postgres.ErrReserved) ||
				errors.Is(err, journal.ErrClosed) || errors.Is(err, journal.ErrNewer) || errors.Is(err, commitlog.ErrEmpty) {
				return failure{err} // above all, it is not taken
			}
			behind = err != nil
		}
		if o.relay && r.relay == nil {
			if r.relay, err = r.node.reach.relay(r.name, r.home, r.owner); err != nil {
				return err
			}
			r.via.Store(r.relay)
		}
		switch {
		case o.take:
			owner, err := r.take(ctx, o)
			if owner || err != nil {
				return err
			}
		case o.warm && r.kernel == nil:
			r.kernel = r.open(ctx)
		case !o.warm:
			r.cool()
		}
		if err := r.await(ctx, o, behind); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// owner returns the owner of the cell; empty: there is none now.
func (r *round) owner() (node string, err error) {
	o := r.last()
	if o.pinned != "" {
		return "", fmt.Errorf("%w: %s", link.ErrNoOwner, o.pinned)
	}
	return o.seen.Node, nil
}

// failure is an error that ends the node if its own cell never was served.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// follow brings the copy up to date.
func (r *round) follow(ctx context.Context) error {
	progress, err := r.follower.CatchUp(ctx)
	if progress.Lost != nil {
		r.lost, r.told = progress.Lost, false
		r.node.options.Log.Error("PostgreSQL has lost commits that it had reported; the next owner of the cell marks what "+
			"they may have done", "cell", r.name, "position", r.lost.Head)
	}
	if r.lost != nil && !r.told {
		told := r.cell.ReportLost(ctx, *r.lost)
		r.told = told == nil
		err = errors.Join(err, told)
	}
	if progress.Rebuilt != "" {
		r.node.options.Log.Warn("the copy of a cell was discarded and built again", "cell", r.name,
			"reason", progress.Rebuilt)
	}
	text := ""
	if err != nil && ctx.Err() == nil {
		text = err.Error()
		if text != r.problem {
			r.node.options.Log.Warn("following the log failed; this is tried again", "cell", r.name, "error", err)
		}
	}
	if err == nil && (progress.Entries > 0 || r.at == (commitlog.Position{})) {
		err = followFiles(ctx, r.files, r.follower, &r.via)
	}
	r.problem = text
	r.note(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.position = progress.Position, progress.Position.Head
	return err
}

// await waits for news.
func (r *round) await(ctx context.Context, o order, behind bool) error {
	var ready, done <-chan struct{}
	if r.kernel != nil {
		ready, done = r.kernel.ready, r.kernel.done
	}
	var again <-chan time.Time
	if behind {
		again = time.After(followAgain)
	}
	if r.isReady() && o.tell {
		if err := r.node.node.Ready(ctx, o.seen); err != nil && !errors.Is(err, postgres.ErrTaken) {
			again = time.After(followAgain)
		}
	}
	select {
	case <-r.news:
	case <-again:
	case <-ready:
		r.setReady(true)
	case <-done:
		r.setReady(false)
		err := r.kernel.err
		r.kernel = nil
		if err == nil {
			err = errors.New("the kernel was opened without a store")
		}
		return failure{err}
	case <-ctx.Done():
	}
	return nil
}

func (r *round) isReady() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready
}

func (r *round) setReady(ready bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready = ready
}

// open begins to open a kernel, which holds its extensions ready until it has a store.
func (r *round) open(ctx context.Context) *opening {
	ctx, cancel := context.WithCancel(ctx)
	o := &opening{cancel: cancel, store: make(chan journal.Store, 1), ready: make(chan struct{}, 1),
		done: make(chan struct{})}
	go func() {
		defer close(o.done)
		o.kernel, o.err = r.node.options.Open(ctx, Place{
			Cell: r.name, Node: r.node.options.Name, Own: r.own, Home: r.home, Files: newFiles(r.home.Files(), r.cell),
			Changed: func() int64 {
				if r.files == nil {
					return 0
				}
				return r.files.Changed()
			},
			Store: func(ctx context.Context) (journal.Store, error) {
				select {
				case s := <-o.store:
					return s, nil
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			},
			Ready: func() {
				select {
				case o.ready <- struct{}{}:
				default:
				}
			},
		})
	}()
	return o
}

// cool ends the extensions that are held ready.
func (r *round) cool() {
	if r.kernel == nil {
		return
	}
	r.kernel.cancel()
	<-r.kernel.done
	if r.kernel.err == nil {
		_ = r.kernel.kernel.Close()
	}
	r.kernel = nil
	r.setReady(false)
}

func (r *round) unrelay() {
	if r.relay != nil {
		r.via.Store(nil)
		r.relay.Close()
		r.relay = nil
	}
}

// take makes this node the owner, and runs the kernel until its end. false: another node
// was faster.
func (r *round) take(ctx context.Context, o order) (owner bool, err error) {
	if r.kernel == nil { // a cold start takes its time: meanwhile others may step in
		select {
		case r.node.opening <- struct{}{}:
			r.opened = sync.OnceFunc(func() { <-r.node.opening })
			defer r.opened()
		case <-ctx.Done():
			return false, nil
		}
		if now := r.last(); !now.take || now.seen.Epoch != o.seen.Epoch {
			return false, nil
		}
	}
	// Whose turn it is depends on the secrets and the data that the nodes have now.
	if news, err := r.node.reach.listen(ctx); err != nil || news {
		r.waitForTurn()
		r.node.node.Look()
		return false, nil
	}
	began := time.Now()
	t, err := r.cell.Take(ctx, r.node.options.Name, o.seen.Epoch)
	if errors.Is(err, postgres.ErrTaken) {
		r.node.node.Look()
		select {
		case <-r.news:
		case <-time.After(followAgain):
		case <-ctx.Done():
		}
		return false, nil
	}
	if postgres.Unreachable(err) { // its extensions stay ready
		r.note(err)
		pause(ctx, openEvery)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	held := &tenure{Tenure: t}
	held.lost, held.over = context.WithCancelCause(context.Background())
	defer held.over(nil)
	state := t.State()
	r.log.head = &state
	var progress sqlite.Progress
	lost, err := r.cell.Lost(ctx)
	if err == nil {
		held.store, progress, err = r.follower.Own(ctx, t, cmp.Or(r.lost, lost), sqlite.Options{Ended: held.over})
	}
	if err != nil {
		release(t)
		if errors.Is(err, journal.ErrFenced) {
			err = nil
		}
		return true, err
	}
	if progress.Lost != nil {
		r.node.options.Log.Error("PostgreSQL has lost commits that it had reported; what they did may have happened, "+
			"and replies are marked", "cell", r.name, "position", progress.Lost.Head)
		if err := r.cell.Doubted(ctx, t); err != nil { // the next owner marks them again
			r.node.options.Log.Warn("the marks could not be noted", "cell", r.name, "error", err)
		}
	}
	r.mu.Lock()
	r.tenure = held
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tenure = nil
	}()
	r.node.renewed(r.node.node.Until()) // arms the guard
	r.node.options.Log.Info("this node owns the cell", "cell", r.name, "epoch", state.Epoch,
		"entries", progress.Entries, "after", time.Since(began))
	if names := r.node.reach.missing(r.name); len(names) > 0 {
		r.node.options.Log.Warn("this node owns the cell without secrets that another node has, or had when it ran last: "+
			"set them in secrets.env of the cell's home", "cell", r.name, "missing", names)
	}
	var keeping sync.WaitGroup
	keeping.Go(func() {
		(&keeper{
			cell: r.cell, store: held.store, tenure: t, window: r.window, least: smallLog, log: r.node.options.Log,
		}).run(held.lost)
	})
	defer keeping.Wait()
	err = r.run(ctx, held)
	held.over(nil)
	return true, err
}

func (r *round) window() time.Duration {
	if r.node.options.Window == nil {
		return DefaultWindow
	}
	return r.node.options.Window(r.home)
}

// run runs the kernel until the cell is handed over or lost, or ctx ends.
func (r *round) run(ctx context.Context, t *tenure) error {
	if err := r.tellOwner(ctx, t); err != nil {
		closing := (&owned{t.store, t.Tenure}).Close()
		if ctx.Err() != nil || t.lost.Err() != nil {
			return nil
		}
		return failure{errors.Join(err, closing)}
	}
	if r.kernel == nil {
		r.kernel = r.open(ctx)
	}
	k := r.kernel
	r.kernel = nil
	defer k.cancel()
	r.setReady(false)
	r.unrelay() // its sockets are the kernel's
	if err := ownFiles(t.lost, r.files, t.store); err != nil && t.lost.Err() == nil {
		r.node.options.Log.Warn("the shared files of a cell could not be settled; this is tried again", "cell", r.name,
			"error", err)
	}
	defer r.node.reach.serve(r.name, r.home, r.files)()
	k.store <- &owned{t.store, t.Tenure}
	<-k.done
	if r.opened != nil {
		r.opened()
	}
	if k.err != nil {
		select {
		case s := <-k.store: // nothing has taken it
			_ = s.Close()
		default:
		}
		if ctx.Err() != nil || t.lost.Err() != nil {
			return nil
		}
		return failure{k.err}
	}
	r.mu.Lock()
	r.served = true
	r.mu.Unlock()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan struct{})
	defer close(ended)
	go r.attend(ctx, t, stop, ended)
	err := k.kernel.Run(running)
	if errors.Is(err, journal.ErrFenced) || running.Err() != nil {
		err = nil
	}
	t.over(errors.New("the kernel has ended")) // attend bounds what follows
	err = errors.Join(err, k.kernel.Close())
	if ctx.Err() != nil || errors.Is(err, journal.ErrFenced) {
		return nil
	}
	return err
}

// attend ends the kernel when the cell is to be handed over or is lost, and the process if
// that does not end.
func (r *round) attend(ctx context.Context, t *tenure, stop context.CancelFunc, ended <-chan struct{}) {
	for {
		o := r.last()
		if o.ask != "" && o.seen.Wanted != o.ask {
			asking, cancel := context.WithTimeout(ctx, postgres.LeaseTime)
			_ = r.node.node.HandOver(asking, o.seen, o.ask)
			cancel()
		}
		if o.over || o.gone || o.absent || ctx.Err() != nil {
			break
		}
		select {
		case <-r.news:
			continue
		case <-t.lost.Done():
		case <-ctx.Done():
		case <-ended:
			return
		}
		break
	}
	if cause := context.Cause(t.lost); cause != nil && errors.Is(cause, journal.ErrFenced) {
		r.node.options.Log.Warn("this node does not own the cell any more", "cell", r.name, "reason",
			strings.TrimPrefix(cause.Error(), journal.ErrFenced.Error()+": "))
	}
	if ctx.Err() != nil { // all cells end: some at a time, so that the lease goes on
		select {
		case r.node.closing <- struct{}{}:
			defer func() { <-r.node.closing }()
		case <-ended:
			return
		}
	}
	stop()
	select {
	case <-ended:
	case <-time.After(closingTime):
		r.node.over(fmt.Errorf("%w: the kernel of the cell %s did not end within %s", journal.ErrFenced, r.name, closingTime))
	}
}

// owned is a store that releases the cell when it is closed.
type owned struct {
	*sqlite.Store
	tenure commitlog.Tenure
}

// Close implements journal.Store.
func (s *owned) Close() error {
	err := s.Store.Close()
	release(s.tenure)
	return err
}

// release lets another node take over.
func release(t commitlog.Tenure) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = t.Release(ctx)
}
