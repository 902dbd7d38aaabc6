package bus

import (
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// windows bounds what is kept in memory. The prepare loop reads the rest from the
// store when it is needed.
type windows struct {
	lane   int // items of a lane
	loose  int // items of a subscription without a key
	events int // items of a subscription that keep their event
}

var defaultWindows = windows{lane: 64, loose: 8192, events: 4096}

// eventBytes is the largest payload of an event that is kept in memory.
const eventBytes = 8 << 10

// item is a pending delivery in memory.
type item struct {
	journal.Delivery
	lane    *lane
	event   *busv1.Event // nil: in the store
	created int64        // of the event, Unix microseconds; 0: not known yet
	turn    *busv1.TurnContext
	waits   int64 // the NotBefore that its lane waits for, or waited for
}

// lane is the deliveries of a subscription with one key, or a single one without a
// key. Its head is handed out when nothing else of it is. The lane subscription.loose
// has no items: it is what the store has of the deliveries without a key.
type lane struct {
	sub       *subscription
	key       string
	items     []*item            // head first: everything pending up to the rank loaded
	loaded    int64              // highest rank that is or was in memory
	further   bool               // the store has more after loaded
	missed    bool               // one of them was accepted while the store was being read
	gone      map[int64]struct{} // settled while the store was being read; nil: it is not
	queued    bool               // in sub.ready
	fetching  bool               // its head is being prepared, or ended
	keeps     *Sink              // that keeps a credit for it meanwhile
	lease     *Lease
	wake      int64       // of the steady clock, before which the head waits
	alarm     *time.Timer // then; nil: it has never waited
	conflicts int         // in a row
	next      *lane       // in sub.ready

	// Most lanes have one item as long as they live: it needs no more room.
	first [1]*item
	only  item
}

// laneKey finds a lane of a subscription.
type laneKey struct {
	key    string
	single int64 // the event of a delivery without a key
}

func laneOf(key string, seq int64) laneKey {
	if key != "" {
		seq = 0
	}
	return laneKey{key, seq}
}

// newLane is an empty lane.
func newLane(s *subscription, key string) *lane {
	l := &lane{sub: s, key: key}
	l.items = l.first[:0]
	return l
}

// newItem returns an item for the lane without adding it.
func (l *lane) newItem(it item) *item {
	it.lane = l
	if l.only.lane != nil {
		return &it
	}
	l.only = it
	return &l.only
}

// lane is the lane of a delivery, if it is in memory.
func (s *subscription) lane(key string, seq int64) *lane {
	if s == nil {
		return nil
	}
	return s.lanes[laneOf(key, seq)]
}

// window is how many deliveries of a lane are in memory, with how few of them further
// ones are read, and how many there may be.
func (b *Bus) window(l *lane) (held, low, most int) {
	if l == l.sub.loose {
		return l.sub.singles, b.windows.loose / 2, b.windows.loose
	}
	return len(l.items), 0, b.windows.lane
}

// lacks reports whether further deliveries of the lane have to be read.
func (b *Bus) lacks(l *lane) bool {
	held, low, _ := b.window(l)
	return l.further && held <= low
}

// add puts a delivery in memory that has just become durable, or was found at the
// start.
func (b *Bus) add(a added) {
	s, d := a.sub, a.delivery
	if s.ending[d.Seq] == acked {
		return
	}
	l := s.loose
	if d.Key != "" {
		if l = s.lane(d.Key, 0); l == nil {
			l = newLane(s, d.Key)
			s.lanes[laneKey{key: d.Key}] = l
		}
	}
	if held, _, most := b.window(l); d.Rank > l.loaded && (l.further || held >= most) {
		l.further, l.missed = true, l.missed || l.gone != nil
	} else {
		b.insert(l, item{Delivery: d, event: b.keep(s, a.event), created: a.event.GetCreatedAtUs(), turn: a.turn})
	}
	b.offer(l)
}

// insert puts an item in the lane, or in one of its own if it has no key. A read may
// have put it there already.
func (b *Bus) insert(l *lane, it item) {
	l.loaded = max(l.loaded, it.Rank)
	if s := l.sub; l == s.loose {
		key := laneKey{single: it.Seq}
		if s.lanes[key] != nil {
			return
		}
		l = newLane(s, "")
		s.lanes[key] = l
		s.singles++
	}
	i := len(l.items)
	for i > 0 && l.items[i-1].Rank >= it.Rank {
		if i--; l.items[i].Seq == it.Seq {
			return
		}
	}
	l.items = slices.Insert(l.items, i, l.newItem(it))
	b.offer(l)
}

// keep is the event if there is room for it in memory.
func (b *Bus) keep(s *subscription, e *busv1.Event) *busv1.Event {
	if len(s.lanes) > b.windows.events || len(e.GetPayload()) > eventBytes {
		return nil
	}
	return e
}

// remove takes a settled delivery out of its lane, which goes on.
func (b *Bus) remove(s *subscription, key string, seq int64) {
	if s == nil {
		return
	}
	delete(s.ending, seq)
	l, stored := s.lane(key, seq), s.loose
	if key != "" {
		stored = l
	}
	if stored != nil && stored.gone != nil {
		stored.gone[seq] = struct{}{} // the read under way may be older
	}
	if l == nil {
		return
	}
	i := slices.IndexFunc(l.items, func(it *item) bool { return it.Seq == seq })
	if i < 0 {
		return
	}
	l.items = slices.Delete(l.items, i, i+1)
	if i == 0 {
		l.conflicts, l.wake = 0, 0
	}
	if key == "" {
		s.singles--
		b.offerFirst(s.loose)
	}
	s.forget(l, seq)
	b.offer(l)
}

// forget drops a lane that has no deliveries left. seq is that of the last one.
func (s *subscription) forget(l *lane, seq int64) {
	if len(l.items) == 0 && !l.further {
		delete(s.lanes, laneOf(l.key, seq))
	}
}

// offer queues a lane whose head can be handed out.
func (b *Bus) offer(l *lane) { b.offerAt(l, (*laneQueue).push) }

// offerFirst is offer in front of the others.
func (b *Bus) offerFirst(l *lane) { b.offerAt(l, (*laneQueue).pushFront) }

func (b *Bus) offerAt(l *lane, push func(*laneQueue, *lane)) {
	if l.lease != nil || l.queued || l.fetching || len(l.items) == 0 && !b.lacks(l) {
		return
	}
	if len(l.items) > 0 && l.items[0].NotBefore != l.items[0].waits {
		head := l.items[0]
		head.waits = head.NotBefore
		l.wake = max(l.wake, b.clock.Due(head.StartedAt, head.NotBefore))
	}
	if l.wake > 0 && l.wake > b.clock.Steady() {
		b.wakeLater(l)
		return
	}
	l.wake = 0
	l.queued = true
	push(&l.sub.ready, l)
}

// laneQueue is a FIFO of lanes. A lane is in one queue at most, and once.
type laneQueue struct{ head, tail *lane }

func (q *laneQueue) push(l *lane) {
	if q.tail == nil {
		q.head = l
	} else {
		q.tail.next = l
	}
	q.tail = l
}

func (q *laneQueue) pushFront(l *lane) {
	if l.next, q.head = q.head, l; q.tail == nil {
		q.tail = l
	}
}

func (q *laneQueue) pop() *lane {
	l := q.head
	if l == nil {
		return nil
	}
	if q.head, l.next = l.next, nil; q.head == nil {
		q.tail = nil
	}
	return l
}
