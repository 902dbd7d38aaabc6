package bus

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Subscription selects events for an extension, and sets how they are delivered.
type Subscription struct {
	Pattern    string
	Ordered    bool          // events with a key form lanes
	AckWait    time.Duration // a handler's context ends then
	MaxDeliver int           // errors and crashes while handling
	MaxAge     time.Duration // of the event
	// Dedupe is how long a channel's platform drops a repetition of a send, counted
	// from the first attempt that may have reached it.
	Dedupe time.Duration
	// Hold ends a send as dead instead of repeating it where people may see it twice.
	Hold bool
	// Own leaves out every agent.output of a session whose outbound is not this
	// extension.
	Own bool
	// Commands are those that the extension provides: with the pattern command.*,
	// the only ones that it gets. They share their lanes, so that those which are
	// given in one conversation keep their order.
	Commands []string

	class      class
	undeclared bool // only its pattern is known yet
}

// class is what the kernel treats differently in a subscription.
type class int

const (
	classPlain   class = iota
	classSend          // channel.send.<id>: repeating may be visible
	classInput         // agent.input.<id>: a turn
	classCommand       // command.<name>: its acknowledgement may answer who gave it
)

// marked reports whether a delivery is stored as in flight before it is handed out:
// after a crash it must be known whether a handler may have had it.
func (c class) marked() bool { return c == classSend || c == classCommand }

// parkedFor is how long a parked subscription collects.
const parkedFor = 24 * time.Hour

type subscription struct {
	journal.Subscription
	spec atomic.Pointer[Subscription]

	// Guarded by Bus.mu.
	sink    *Sink             // nil: its extension is not attached
	held    bool              // the channel is not ready
	lanes   map[laneKey]*lane // one that is about to be started is empty
	singles int               // lanes of deliveries without a key
	loose   *lane             // what the store has of those
	ready   laneQueue         // lanes whose head can be handed out
	ending  map[int64]*Tx     // settled, or about to be, by a commit that is not durable yet; or acked
}

// table is the immutable set of subscriptions.
type table struct {
	byID map[int64]*subscription
	all  []*subscription
	// unroutable is the id of the subscription of patternUnroutable.
	unroutable int64
	cache      sync.Map // topic -> []*subscription
}

func newTable(subs map[int64]*subscription) *table {
	t := &table{byID: map[int64]*subscription{}}
	for id, s := range subs {
		if t.byID[id] = s; isUnroutable(s.Subscription) {
			t.unroutable = id
		}
		t.all = append(t.all, s)
	}
	slices.SortFunc(t.all, func(a, b *subscription) int { return int(a.ID - b.ID) })
	return t
}

// named is the subscription of an extension to a pattern; nil: there is none.
func (t *table) named(extension, pattern string) *subscription {
	i := slices.IndexFunc(t.all, func(s *subscription) bool { return s.Extension == extension && s.Pattern == pattern })
	if i < 0 {
		return nil
	}
	return t.all[i]
}

// match are those that accept the events of a topic.
func (t *table) match(name string) []*subscription {
	if known, ok := t.cache.Load(name); ok {
		return known.([]*subscription)
	}
	var matching []*subscription
	for _, s := range t.all {
		if topic.Match(s.Pattern, name) {
			matching = append(matching, s)
		}
	}
	t.cache.Store(name, matching)
	return matching
}

// class is the class in force. Only that of commands can change.
func (s *subscription) class() class { return s.spec.Load().class }

// use puts a specification in force.
func (s *subscription) use(spec Subscription) {
	switch {
	case s.Pattern == contract.TopicChannelSend+s.Extension:
		spec.class = classSend
	case s.Pattern == inputPattern(s.Extension):
		spec.class = classInput
	case len(spec.Commands) > 0:
		spec.class = classCommand
	default:
		spec.class = classPlain
	}
	s.spec.Store(&spec)
}

func inputPattern(agent string) string { return contract.TopicAgentInput + agent }

var defaultSubscription = Subscription{
	Ordered: true, AckWait: 30 * time.Second, MaxDeliver: 4, MaxAge: 24 * time.Hour, undeclared: true,
}

func (b *Bus) newSubscription(s journal.Subscription) *subscription {
	sub := &subscription{Subscription: s, lanes: map[laneKey]*lane{}, ending: map[int64]*Tx{}}
	sub.loose = newLane(sub, "")
	spec := defaultSubscription
	spec.Pattern = s.Pattern
	sub.use(spec)
	sub.held = sub.class() == classSend && b.held[s.Extension]
	return sub
}

// Subscribe makes these the subscriptions of an extension. Those that it had
// under the same pattern keep their deliveries, new ones begin with the next
// event, and the others are parked: they collect for a day, in case they come
// back, and go with their deliveries then.
func (b *Bus) Subscribe(extension string, wanted []Subscription) error {
	return b.Do(func(tx *Tx) error {
		known, err := tx.Subscriptions()
		if err != nil {
			return err
		}
		known = slices.DeleteFunc(known, func(k journal.Subscription) bool { return k.Extension != extension })
		for _, s := range wanted {
			if !slices.ContainsFunc(known, func(k journal.Subscription) bool { return k.Pattern == s.Pattern }) {
				known = append(known, journal.Subscription{Extension: extension, Pattern: s.Pattern})
			}
		}
		for i := range known {
			k := &known[i]
			stored := *k
			if want := find(wanted, k.Pattern); want == nil {
				k.ParkedAt = cmp.Or(k.ParkedAt, tx.Now)
			} else if k.ParkedAt = 0; k.ID != 0 {
				if err := tx.dropUnwanted(*k, *want); err != nil {
					return err
				}
			}
			if k.ID == 0 || *k != stored {
				if err := tx.PutSubscription(k); err != nil {
					return err
				}
			}
		}
		tx.changeSubscriptions(func(subs map[int64]*subscription) { tx.install(subs, known, wanted) })
		return nil
	})
}

// find is the one of the subscriptions with the pattern; nil: none has it.
func find(subs []Subscription, pattern string) *Subscription {
	i := slices.IndexFunc(subs, func(s Subscription) bool { return s.Pattern == pattern })
	if i < 0 {
		return nil
	}
	return &subs[i]
}

// changeSubscriptions changes the table for the commits after this one, and
// restores it if this one fails. Only the writer changes it.
func (t *Tx) changeSubscriptions(change func(map[int64]*subscription)) {
	b := t.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.table.Load()
	t.undo = append(t.undo, func() {
		b.table.Store(before)
		b.connect()
	})
	subs := maps.Clone(before.byID)
	change(subs)
	b.table.Store(newTable(subs))
	b.connect()
}

// install adds stored subscriptions and puts the wanted specifications in force.
// The caller holds Bus.mu.
func (t *Tx) install(subs map[int64]*subscription, stored []journal.Subscription, wanted []Subscription) {
	for _, k := range stored {
		sub := subs[k.ID]
		if sub == nil {
			sub = t.bus.newSubscription(k)
			subs[k.ID] = sub
		}
		spec, parked := sub.spec.Load(), sub.ParkedAt
		t.undo = append(t.undo, func() {
			sub.spec.Store(spec)
			sub.ParkedAt = parked
		})
		sub.ParkedAt = k.ParkedAt
		if want := find(wanted, k.Pattern); want != nil {
			sub.use(*want)
		}
	}
}

// connect gives every sink the subscriptions of its extension that are in force.
// The caller holds b.mu.
func (b *Bus) connect() {
	for _, s := range b.sinks {
		for _, sub := range s.subs {
			sub.sink = nil
		}
		s.subs = s.subs[:0]
	}
	for _, sub := range b.table.Load().all {
		if s := b.sinks[sub.Extension]; s != nil && sub.ParkedAt == 0 {
			sub.sink = s
			s.subs = append(s.subs, sub)
		}
	}
	for _, s := range b.sinks {
		b.dispatch(s)
	}
}

// Hold stops (or resumes) handing out the sends of a channel that is not ready.
func (b *Bus) Hold(channel string, held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held[channel] = held
	for _, s := range b.table.Load().all {
		if s.class() == classSend && s.Extension == channel && s.held != held {
			s.held = held
			if !held && s.sink != nil {
				b.dispatch(s.sink)
			}
		}
	}
}
