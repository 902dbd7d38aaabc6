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
// One extension that commits without pause delays the others by about as much as
// the disk does, and no more: it waits itself.
//
// Who holds a lane has its token. A commit or call with a token that is not
// valid any more is refused.
//
// # Not promised
//
// Exactly-once handling: a handler that has an effect outside of the kernel may
// repeat it after a crash, and is told so (Uncertain). An order between lanes,
// or between subscriptions.
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
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Router is the kernel's own subscription: it turns an event into further
// effects inside of the accepting commit. It reads and writes only through tx,
// neither waits nor calls out, and returns an error only when the store does.
type Router interface {
	Accept(tx *Tx, e *busv1.Event) error
	// Died runs in the commit in which a delivery dies.
	Died(tx *Tx, d *journal.Delivery, e *busv1.Event, extension string) error
	// Unask withdraws the question of an event of system.user.ask; false: it has
	// ended before.
	Unask(tx *Tx, e *busv1.Event) (bool, error)
	// Delivered runs in the commit of a receipt of a channel.
	Delivered(tx *Tx, e *busv1.Event, r *busv1.Receipt) (handle string, err error)
	// Marked is a send as the channel gets it when people may have seen it before.
	Marked(channel string, e *busv1.Event) *busv1.Event
	// Answered runs in the commit that acknowledges a command: content is what the
	// extension says to who gave it.
	Answered(tx *Tx, e *busv1.Event, extension, content string) error
}

// Sessions applies the effects that concern sessions.
type Sessions interface {
	Ensure(tx *Tx, e *busv1.SessionEnsure) (*busv1.EffectResult, error)
	Input(tx *Tx, e *busv1.Input) (*busv1.EffectResult, error)
	Append(tx *Tx, e *busv1.Append) (*busv1.EffectResult, error)
	Cancel(tx *Tx, e *busv1.TurnCancel) (*busv1.EffectResult, error)
	// Steer begins a turn above the running one of the lane.
	Steer(tx *Tx, e *busv1.Steer) (*busv1.EffectResult, error)
	// Output ends the turn of the lane. The result names the event that says so,
	// and the turn that goes on, if it had interrupted one.
	Output(tx *Tx, payload []byte) (*busv1.EffectResult, error)
	// WhenIdle has the actor told when a session has nothing to do.
	WhenIdle(tx *Tx, e *busv1.SessionIdle) (*busv1.EffectResult, error)
	// Rested runs at the end of a commit that has settled an input of the session.
	Rested(tx *Tx, session int64) error
	// Begun reports whether a turn that has not ended is about the input.
	Begun(r journal.Reader, e *busv1.Event) (bool, error)
	// Acked refuses the acknowledgement of an input whose turn has not ended.
	Acked(tx *Tx) error
	// Context is what the run loop needs to begin or resume the turn.
	Context(r journal.Reader, e *busv1.Event) (*busv1.TurnContext, error)
}

// Options are what a bus is made of.
type Options struct {
	Store    journal.Store
	Router   Router
	Sessions Sessions
	Log      hclog.Logger
	// Stuck is told that a handler of the extension ignored the end of its
	// context for the grace time: its process has to be restarted.
	Stuck func(extension string, generation int64, reason string)
	// Events and Dead say how long settled events and dead letters are kept.
	Events, Dead time.Duration

	windows windows          // zero: defaultWindows
	wall    func() time.Time // nil: time.Now
}

// Bus is the event bus. All methods are safe for concurrent use.
type Bus struct {
	store    journal.Store
	router   Router
	sessions Sessions
	log      hclog.Logger
	stuck    func(extension string, generation int64, reason string)
	retain   [2]time.Duration
	pruning  pruning
	windows  windows
	clock    *steadyClock
	restored int64 // the newest event of the backup that the store comes from

	table atomic.Pointer[table] // all subscriptions; changed by the writer, under mu
	share *share

	mu       sync.Mutex       // guards what follows, and every lane, lease and sink
	sinks    map[string]*Sink // by extension
	leases   map[string]*Lease
	wakeups  wakeups
	wants    []*want         // what dispatching needs of the store
	held     map[string]bool // channels whose sends are held
	watchers map[*Watcher]struct{}
	settling map[int64][]func(journal.Delivery) // by event
	closing  bool

	random    *rand.ChaCha8
	prepare   chan struct{}
	nextAlarm int64 // of the steady clock; 0: not set; guarded by mu
	alarm     *time.Timer
	stop      context.CancelFunc
	running   sync.WaitGroup
}

// New starts a bus on a store. Deliveries that were pending there wait for
// their extensions to attach.
func New(ctx context.Context, o Options) (*Bus, error) {
	b := &Bus{
		store: o.Store, router: o.Router, sessions: o.Sessions, log: o.Log, stuck: o.Stuck, retain: [2]time.Duration{o.Events, o.Dead}, pruning: pruning{batch: pruneMost}, windows: cmp.Or(o.windows, defaultWindows), clock: newSteadyClock(o.wall),
		sinks: map[string]*Sink{}, leases: map[string]*Lease{},
		watchers: map[*Watcher]struct{}{}, settling: map[int64][]func(journal.Delivery){},
		held: map[string]bool{}, share: newShare(), random: newRandom(), prepare: make(chan struct{}, 1), alarm: time.NewTimer(time.Hour),
	}
	if b.stuck == nil {
		b.stuck = func(string, int64, string) {}
	}
	b.table.Store(&table{})
	if err := b.recover(ctx); err != nil {
		return nil, fmt.Errorf("recovering the bus: %w", err)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	for _, loop := range []func(context.Context){b.prepareLoop, b.alarmLoop, b.retentionLoop} {
		b.running.Go(func() { loop(run) })
	}
	return b, nil
}

// Close stops handing out. What is in flight stays what it is; the store stays
// open.
func (b *Bus) Close() {
	b.mu.Lock()
	b.closing = true
	for w := range b.watchers {
		w.close(nil)
	}
	for _, s := range b.sinks {
		s.close()
	}
	b.mu.Unlock()
	b.stop()
	b.running.Wait()
	b.alarm.Stop()
}

// View reads the store.
func (b *Bus) View(ctx context.Context, read func(journal.Reader) error) error {
	return b.store.View(ctx, read)
}

// Kernel is the actor of everything that the kernel does by itself.
var Kernel = &Actor{ID: contract.KernelSource, kernel: true}
