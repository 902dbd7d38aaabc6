// Package bus is the durable event bus: it accepts events and other effects in
// atomic commits, and hands each event to its subscriptions.
//
// # Promises
//
// An accepted event is on disk. Every subscription gets it at least once: a
// delivery is pending until its handler acknowledges it, and a handler's effects
// are committed together with the acknowledgement, or not at all. Deliveries of
// one subscription with the same key form a lane: one at a time, in order of
// acceptance; lanes run concurrently, and none delays another. A delivery that
// keeps failing, or gets too old, becomes a dead letter, which is kept, listed
// and can be resubmitted. Nothing disappears without such a row.
//
// The holder of a lane has its token. A commit or call with a token that is not
// valid any more is refused. An extension that commits without pause waits itself
// and delays the others by about as much as the disk does.
//
// # Not promised
//
// Exactly-once handling: a handler that has an effect outside of the kernel may
// repeat it after a crash, and the delivery says so (Uncertain). An order between
// lanes, or between subscriptions.
//
// # What is in memory
//
// The store has every delivery; memory has what can be handed out soon:
//
//   - lane: the pending deliveries of a subscription with one key, up to a window,
//     or a single one without a key. Its head is handed out when nothing else of
//     it is.
//   - item: a delivery that is in a lane, with its event if that is small.
//   - lease: a delivery that was handed out, with the token of its handler. A tool
//     call has a lease without a delivery.
//   - sink: the way to a running extension, with its credit: how many deliveries
//     it may be sent.
//   - fetch: a read from the store that a lane needs before its head can be handed out.
//     The prepare loop does it; the commit that accepts an event does it at once when
//     the delivery can be handed out as soon as it is durable.
//
// A commit records what it adds and settles. Memory follows once it is durable:
// see commit.go, which reads from top to bottom.
package bus

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/clock"
	"github.com/switchboard-run/switchboard/kernel/fair"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Options configure a bus.
type Options struct {
	Store   journal.Store
	Effects []Effect // besides those of the bus itself
	Hooks   Hooks
	Log     hclog.Logger
	// Stuck is called when a handler of the extension ignored the end of its
	// context for the grace time: its process has to be restarted.
	Stuck func(extension string, generation int64, reason string)
	// Fenced is called when a commit shows that another process writes to the store:
	// the program has to end. It must not block. nil: nothing is called.
	Fenced func(error)
	// Events and Dead are how long settled events and dead letters are kept.
	Events, Dead time.Duration

	windows windows          // zero: defaultWindows
	wall    func() time.Time // nil: time.Now
}

// Bus is the event bus. All methods are safe for concurrent use.
type Bus struct {
	store    journal.Store
	effects  registry
	hooks    Hooks
	log      hclog.Logger
	stuck    func(extension string, generation int64, reason string)
	fenced   func(error)
	retain   [2]time.Duration
	pruning  pruning
	windows  windows
	clock    *clock.Clock
	restored int64 // the newest event of the backup that the store comes from

	table atomic.Pointer[table] // all subscriptions; changed by the writer, under mu
	share *fair.Share

	mu       sync.Mutex       // guards what follows, and every lane, lease and sink
	sinks    map[string]*Sink // by extension
	leases   map[string]*Lease
	fetches  []*fetch                           // for the prepare loop
	held     map[string]bool                    // channels whose sends are held
	news     chan struct{}                      // closed once there are further events; nil: nobody waits
	settling map[int64][]func(journal.Delivery) // by event
	closing  bool

	random     *rand.ChaCha8
	prepare    chan struct{}
	nextExpiry int64 // steady time at which expire runs; 0: it does not; guarded by mu
	expiry     *time.Timer
	stop       context.CancelFunc
	running    sync.WaitGroup // every goroutine of the bus
}

// New starts a bus on a store. Deliveries that were pending there wait for
// their extensions to attach.
func New(ctx context.Context, o Options) (*Bus, error) {
	if s, ok := o.Store.(interface{ Wall() func() time.Time }); ok && o.wall == nil {
		o.wall = s.Wall() // a store that several nodes share has a clock of its own
	}
	b := &Bus{
		store: o.Store, effects: newRegistry(o.Effects), hooks: o.Hooks, log: o.Log, stuck: o.Stuck, fenced: o.Fenced,
		retain: [2]time.Duration{o.Events, o.Dead}, pruning: pruning{batch: pruneMost},
		windows: cmp.Or(o.windows, defaultWindows), clock: clock.New(o.wall), share: fair.NewShare(),
		sinks: map[string]*Sink{}, leases: map[string]*Lease{}, held: map[string]bool{},
		settling: map[int64][]func(journal.Delivery){}, random: newRandom(), prepare: make(chan struct{}, 1),
	}
	if b.stuck == nil {
		b.stuck = func(string, int64, string) {}
	}
	b.table.Store(&table{})
	if err := b.recover(ctx); err != nil {
		return nil, fmt.Errorf("recover the bus: %w", err)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	for _, loop := range []func(context.Context){b.prepareLoop, b.retentionLoop} {
		b.running.Go(func() { loop(run) })
	}
	return b, nil
}

// Close stops handing out, and waits for every goroutine of the bus. Deliveries
// keep their state; the store stays open.
func (b *Bus) Close() {
	b.mu.Lock()
	b.closing = true
	b.tellNews()
	for _, s := range b.sinks {
		s.close()
	}
	b.mu.Unlock()
	b.stop()
	b.running.Wait()
}

// spawn runs f on a goroutine that Close waits for. A bus that is closing does
// not start it any more. The caller holds b.mu.
func (b *Bus) spawn(f func()) {
	if !b.closing {
		b.running.Go(f)
	}
}

// later spawns f after retryPrepare.
func (b *Bus) later(f func()) { b.afterFunc(retryPrepare, func() { b.spawn(f) }) }

// afterFunc runs f under b.mu after a while, and after each Reset of the timer.
func (b *Bus) afterFunc(wait time.Duration, f func()) *time.Timer {
	return time.AfterFunc(wait, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.closing {
			f()
		}
	})
}

// View reads the store.
func (b *Bus) View(ctx context.Context, read func(journal.Reader) error) error {
	return b.store.View(ctx, read)
}

// Kernel is the actor of everything that the kernel does by itself.
var Kernel = &Actor{ID: contract.KernelSource, kernel: true}
