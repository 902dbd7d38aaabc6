package bus

import (
	"container/heap"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Bounds of what is kept in memory. What is beyond them is read from the store
// when its turn comes.
const (
	laneWindow  = 64   // items of a lane
	looseWindow = 8192 // items of a subscription that have no order
	eventWindow = 4096 // items of a subscription that keep their event
)

// item is a pending delivery that is loaded.
type item struct {
	journal.Delivery
	lane  *lane
	event *busv1.Event // nil: in the store
	turn  *busv1.TurnContext
}

// lane is the deliveries of a subscription with one key, or a single one that
// has none. Its head is handed out when nothing else of it is.
type lane struct {
	sub      *subscription
	key      string
	items    []*item // head first
	further  bool    // there are more in the store behind the last
	queued   bool    // in sub.ready
	fetching bool    // the store is being asked for the head
	lease    *Lease
	wake     int64 // Unix microseconds before which the head waits
	alarm    int   // index in the heap; -1: none
	conflict int   // conflicts in a row
}

// wouldHandOut says whether a new delivery would be handed out at once.
func (b *Bus) wouldHandOut(s *subscription, key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.sink == nil || s.held || s.sink.credit <= 0 || s.sink.paused {
		return false
	}
	return key == "" || s.lanes[key] == nil
}

// add loads a delivery that has just become durable, or was found at the start.
func (b *Bus) add(a added) {
	s, d, e := a.sub, a.delivery, a.event
	if d.Key == "" {
		if s.further || s.loose >= looseWindow {
			s.further = true
			return
		}
		l := &lane{sub: s, alarm: -1}
		l.items = append(l.items, &item{Delivery: d, lane: l, event: s.keep(e)})
		s.loose++
		s.loaded = max(s.loaded, d.Rank)
		b.offer(l)
		return
	}
	l := s.lanes[d.Key]
	if l == nil {
		l = &lane{sub: s, key: d.Key, alarm: -1}
		s.lanes[d.Key] = l
	}
	switch {
	case len(l.items) > 0 && d.Rank < l.items[len(l.items)-1].Rank: // replaces one further in front
		i := 0
		for i < len(l.items) && l.items[i].Rank < d.Rank {
			i++
		}
		it := &item{Delivery: d, lane: l, event: s.keep(e)}
		l.items = append(l.items[:i], append([]*item{it}, l.items[i:]...)...)
	case l.further || len(l.items) >= laneWindow:
		l.further = true
	default:
		it := &item{Delivery: d, lane: l, event: s.keep(e)}
		if len(l.items) == 0 {
			it.turn = a.turn
		}
		l.items = append(l.items, it)
	}
	b.offer(l)
}

// keep is the event if there is room to keep it in memory.
func (s *subscription) keep(e *busv1.Event) *busv1.Event {
	if s.loose+len(s.lanes) > eventWindow {
		return nil
	}
	return e
}

// remove takes a settled delivery out of its lane.
func (b *Bus) remove(p place) {
	if p.sub == nil || p.key == "" {
		if p.sub != nil {
			b.removeLoose(p.sub, p.seq)
		}
		return
	}
	l := p.sub.lanes[p.key]
	if l == nil {
		return
	}
	for i, it := range l.items {
		if it.Seq == p.seq {
			l.items = append(l.items[:i], l.items[i+1:]...)
			b.settled(l)
			return
		}
	}
}

func (b *Bus) removeLoose(s *subscription, seq int64) {
	for l := s.ready.head; l != nil; l = l.next {
		if l.lane.key == "" && len(l.lane.items) == 1 && l.lane.items[0].Seq == seq {
			l.lane.items = nil
			s.loose--
			return
		}
	}
	for _, l := range b.wakeups {
		if l.sub == s && l.key == "" && len(l.items) == 1 && l.items[0].Seq == seq {
			l.items = nil
			s.loose--
			heap.Remove(&b.wakeups, l.alarm)
			return
		}
	}
}

// settled continues a lane whose head has gone.
func (b *Bus) settled(l *lane) {
	l.conflict, l.wake = 0, 0
	if l.alarm >= 0 {
		heap.Remove(&b.wakeups, l.alarm)
	}
	if len(l.items) == 0 && !l.further && l.key != "" {
		delete(l.sub.lanes, l.key)
		return
	}
	b.offer(l)
}

// offer queues a lane whose head can be handed out.
func (b *Bus) offer(l *lane) {
	if l.lease != nil || l.queued || l.fetching || (len(l.items) == 0 && !l.further) {
		return
	}
	if l.wake > 0 {
		if l.wake > nowUS() {
			b.wakeAt(l)
			return
		}
		l.wake = 0
	}
	l.queued = true
	l.sub.ready.push(l)
}

// laneQueue is a FIFO of lanes.
type laneQueue struct{ head, tail *laneNode }

type laneNode struct {
	lane *lane
	next *laneNode
}

func (q *laneQueue) push(l *lane) {
	n := &laneNode{lane: l}
	if q.tail == nil {
		q.head = n
	} else {
		q.tail.next = n
	}
	q.tail = n
}

func (q *laneQueue) pop() *lane {
	n := q.head
	if n == nil {
		return nil
	}
	if q.head = n.next; q.head == nil {
		q.tail = nil
	}
	return n.lane
}

// leaseList is the leases of a subscription, oldest first; ended ones are
// skipped when they come to the front.
type leaseList struct{ leases []*Lease }

func (f *leaseList) push(l *Lease) {
	if len(f.leases) == cap(f.leases) {
		f.trim()
	}
	f.leases = append(f.leases, l)
}

// trim forgets ended leases at the front.
func (f *leaseList) trim() {
	for len(f.leases) > 0 && f.leases[0].revoked {
		f.leases[0] = nil
		f.leases = f.leases[1:]
	}
	if len(f.leases) == 0 {
		f.leases = nil
	}
}

// wakeups is a heap of lanes by the time they wait for.
type wakeups []*lane

func (w wakeups) Len() int           { return len(w) }
func (w wakeups) Less(i, j int) bool { return w[i].wake < w[j].wake }
func (w wakeups) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].alarm, w[j].alarm = i, j
}

func (w *wakeups) Push(x any) {
	l := x.(*lane)
	l.alarm = len(*w)
	*w = append(*w, l)
}

func (w *wakeups) Pop() any {
	old := *w
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*w = old[:len(old)-1]
	l.alarm = -1
	return l
}
