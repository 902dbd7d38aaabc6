package bus

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Subscription is what an extension wants to handle, and how.
type Subscription struct {
	Pattern    string
	Ordered    bool          // events with a key form lanes
	AckWait    time.Duration // a handler's context ends then
	MaxDeliver int           // errors and crashes while handling
	MaxAge     time.Duration // of the event
	// Hold keeps a failure's outcome uncertain from being repeated: the delivery
	// dies instead.
	Hold bool
}

// class says what the kernel itself knows of a subscription.
type class int

const (
	classPlain class = iota
	classSend        // channel.send.<id>: repeating may be visible
	classInput       // agent.input.<id>: a turn
)

// parkedFor is how long a subscription that is not in force collects.
const parkedFor = 24 * time.Hour

type subscription struct {
	journal.Subscription
	class class
	spec  atomic.Pointer[Subscription]

	// Guarded by Bus.mu.
	sink    *Sink // nil: nobody is attached
	held    bool  // the channel is not ready
	lanes   map[string]*lane
	ready   laneQueue // lanes whose head can be handed out
	flying  leaseList // in order of their start
	loose   int       // loaded items without a lane of their own
	loaded  int64     // highest rank of a loose item that is or was loaded
	further bool      // there are loose ones in the store behind loaded
	// acking holds the events whose acknowledgement is not durable yet.
	acking map[int64]struct{}
}

// table is the immutable set of subscriptions that accept events.
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

func classOf(extension, pattern string) class {
	switch {
	case pattern == contract.TopicChannelSend+extension:
		return classSend
	case strings.HasPrefix(pattern, contract.TopicAgentInput):
		return classInput
	}
	return classPlain
}

var defaultSubscription = Subscription{Ordered: true, AckWait: 30 * time.Second, MaxDeliver: 4, MaxAge: 24 * time.Hour}

func (b *Bus) newSubscription(s journal.Subscription) *subscription {
	sub := &subscription{Subscription: s, class: classOf(s.Extension, s.Pattern), lanes: map[string]*lane{}, acking: map[int64]struct{}{}}
	spec := defaultSubscription
	spec.Pattern = s.Pattern
	sub.spec.Store(&spec)
	return sub
}

// Subscribe makes these the subscriptions of an extension. Those that it had
// under the same pattern keep their deliveries, new ones begin with the next
// event, and the others are parked: they collect for a day, in case they come
// back, and go with their deliveries then.
func (b *Bus) Subscribe(extension string, wanted []Subscription) error {
	var stored []journal.Subscription
	return journal.Do(context.Background(), b.store, func(tx journal.Tx) error {
		stored = stored[:0]
		now := nowUS()
		known, err := tx.Subscriptions()
		if err != nil {
			return err
		}
		for _, k := range known {
			if k.Extension != extension {
				continue
			}
			want := slices.ContainsFunc(wanted, func(s Subscription) bool { return s.Pattern == k.Pattern })
			parked := k.ParkedAt
			switch {
			case want:
				k.ParkedAt = 0
			case parked == 0:
				k.ParkedAt = now
			}
			if k.ParkedAt != parked {
				if err := tx.PutSubscription(&k); err != nil {
					return err
				}
			}
			stored = append(stored, k)
		}
		for _, s := range wanted {
			if slices.ContainsFunc(stored, func(k journal.Subscription) bool { return k.Pattern == s.Pattern }) {
				continue
			}
			k := journal.Subscription{Extension: extension, Pattern: s.Pattern}
			if err := tx.PutSubscription(&k); err != nil {
				return err
			}
			stored = append(stored, k)
		}
		// In force from here on: the writer applies what follows after this.
		b.mu.Lock()
		defer b.mu.Unlock()
		b.install(stored, wanted)
		return nil
	})
}

// Subscribers returns the extensions that have subscriptions, parked ones
// included.
func (b *Bus) Subscribers() (ids []string) {
	for _, s := range b.table.Load().all {
		if s.Extension != contract.KernelSource && !slices.Contains(ids, s.Extension) {
			ids = append(ids, s.Extension)
		}
	}
	return ids
}

func (b *Bus) install(stored []journal.Subscription, wanted []Subscription) {
	for _, k := range stored {
		sub := b.subs[k.ID]
		if sub == nil {
			sub = b.newSubscription(k)
			b.subs[k.ID] = sub
		}
		sub.ParkedAt = k.ParkedAt
		if i := slices.IndexFunc(wanted, func(s Subscription) bool { return s.Pattern == k.Pattern }); i >= 0 {
			spec := wanted[i]
			sub.spec.Store(&spec)
			if sink := b.sinks[k.Extension]; sink != nil && sub.sink == nil {
				sub.sink = sink
				sink.subs = append(sink.subs, sub)
			}
		} else if sub.sink != nil {
			sub.sink.drop(sub)
			sub.sink = nil
		}
	}
	b.table.Store(newTable(b.subs))
	for _, s := range b.sinks {
		b.dispatch(s)
	}
}

// Hold stops (or resumes) handing out the sends of a channel that is not ready.
func (b *Bus) Hold(channel string, held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.subs {
		if s.class == classSend && s.Extension == channel && s.held != held {
			s.held = held
			if !held && s.sink != nil {
				b.dispatch(s.sink)
			}
		}
	}
}
