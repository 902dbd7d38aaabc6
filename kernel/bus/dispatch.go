package bus

import (
	"container/heap"
	"context"
	"errors"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// grace is how long a handler may go on after its context has ended.
const grace = 10 * time.Second

// dispatch hands out what is ready, as long as there is credit, one lane of each
// subscription in turn. The caller holds b.mu.
func (b *Bus) dispatch(s *Sink) {
	if s.closed || s.paused || b.closing {
		return
	}
	sent := false
	for idle := 0; s.credit > 0 && idle < len(s.subs); {
		s.next = (s.next + 1) % len(s.subs)
		sub := s.subs[s.next]
		if sub.held || sub.ready.head == nil {
			idle++
			continue
		}
		idle = 0
		l := sub.ready.pop()
		l.queued = false
		if len(l.items) == 0 && !l.further {
			continue
		}
		if !b.prepared(l) {
			continue
		}
		b.handOut(s, l)
		sent = true
	}
	if sent {
		s.signal()
	}
}

// prepared says whether the head can be handed out; if not, it has the store
// asked for what is missing.
func (b *Bus) prepared(l *lane) bool {
	if len(l.items) > 0 {
		it := l.items[0]
		marked := l.sub.class != classSend || it.State == journal.InFlight
		if it.event != nil && marked && (l.sub.class != classInput || it.turn != nil) {
			return true
		}
		b.unready = append(b.unready, it)
	} else {
		b.unready = append(b.unready, &item{lane: l})
	}
	l.fetching = true
	select {
	case b.prepare <- struct{}{}:
	default:
	}
	return false
}

func (b *Bus) handOut(s *Sink, l *lane) {
	it := l.items[0]
	now := nowUS()
	lease := &Lease{
		Token: b.newToken(), Extension: s.actor.ID, Generation: s.actor.Generation, Event: it.event,
		item: it, sink: s, started: now,
	}
	spec := l.sub.spec.Load()
	d := &busv1.Delivery{
		Token: lease.Token, Event: it.event, Subscription: l.sub.Pattern, Attempt: int32(it.Attempts) + 1, Uncertain: it.Uncertain,
		DeadlineUs: now + spec.AckWait.Microseconds(), Turn: it.turn,
	}
	if l.sub.class == classInput {
		lease.Agent = l.sub.Extension
		lease.Session = journal.ParseSessionID(it.turn.GetSession())
		it.turn.Waiting = int32(len(l.items) - 1)
		it.turn = nil // read again for the next attempt
	}
	b.leases[lease.Token] = lease
	s.leases[lease] = struct{}{}
	l.lease = lease
	l.sub.flying.push(lease)
	s.untaken = append(s.untaken, lease)
	s.deliveries = append(s.deliveries, d)
	s.credit--
	b.ring(now + spec.AckWait.Microseconds())
}

// prepareLoop asks the store for heads that are not in memory, and marks sends
// as in flight before they are.
func (b *Bus) prepareLoop(ctx context.Context) {
	for {
		select {
		case <-b.prepare:
		case <-ctx.Done():
			return
		}
		b.mu.Lock()
		heads := b.unready
		b.unready = nil
		b.mu.Unlock()
		if len(heads) == 0 {
			continue
		}
		if err := b.fetch(ctx, heads); err != nil {
			if ctx.Err() != nil || errors.Is(err, journal.ErrClosed) {
				return
			}
			b.log.Error("reading pending deliveries failed; trying again", "error", err)
			b.mu.Lock()
			for _, it := range heads {
				it.lane.fetching = false
				it.lane.wake = nowUS() + time.Second.Microseconds()
				b.offer(it.lane)
			}
			b.mu.Unlock()
		}
	}
}

func (b *Bus) fetch(ctx context.Context, heads []*item) error {
	var marks []*item
	var refill []*lane
	for _, it := range heads {
		if it.Seq == 0 {
			refill = append(refill, it.lane)
		} else if it.lane.sub.class == classSend && it.State == journal.Pending {
			marks = append(marks, it)
		}
	}
	if len(marks) > 0 {
		err := journal.Do(ctx, b.store, func(tx journal.Tx) error {
			for _, it := range marks {
				b.mu.Lock()
				d, current := it.Delivery, it.lane.holds(it)
				b.mu.Unlock()
				if !current {
					continue
				}
				d.State = journal.InFlight
				if err := tx.UpdateDelivery(d); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	events := make([]*busv1.Event, len(heads))
	turns := make([]*busv1.TurnContext, len(heads))
	more := make(map[*lane][]journal.Delivery, len(refill))
	err := b.store.View(ctx, func(r journal.Reader) (err error) {
		for i, it := range heads {
			if it.Seq == 0 {
				continue
			}
			if events[i] = it.event; events[i] == nil {
				if events[i], err = r.Event(it.Seq); err != nil {
					return err
				}
			}
			if it.lane.sub.class == classInput && events[i] != nil {
				if turns[i], err = b.sessions.Context(r, events[i]); err != nil {
					return err
				}
			}
		}
		for _, l := range refill {
			if more[l], err = r.PendingLane(l.sub.ID, l.key, -1<<62, laneWindow+1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, it := range heads {
		l := it.lane
		l.fetching = false
		if it.Seq == 0 {
			b.refill(l, more[l])
			continue
		}
		it.event, it.turn = events[i], turns[i]
		if l.sub.class == classSend {
			it.State = journal.InFlight
		}
		b.offer(l)
	}
	for _, s := range b.sinks {
		b.dispatch(s)
	}
	return nil
}

func (l *lane) holds(it *item) bool {
	for _, x := range l.items {
		if x == it {
			return true
		}
	}
	return false
}

func (b *Bus) refill(l *lane, ds []journal.Delivery) {
	if l.further = len(ds) > laneWindow; l.further {
		ds = ds[:laneWindow]
	}
	l.items = l.items[:0]
	for _, d := range ds {
		if _, acked := l.sub.acking[d.Seq]; !acked {
			l.items = append(l.items, &item{Delivery: d, lane: l})
		}
	}
	if len(l.items) == 0 && !l.further {
		delete(l.sub.lanes, l.key)
		return
	}
	b.offer(l)
}

// refillLoose loads further deliveries without an order.
func (b *Bus) refillLoose(s *subscription) {
	after := s.loaded
	b.running.Go(func() {
		var ds []journal.Delivery
		err := b.store.View(context.Background(), func(r journal.Reader) (err error) {
			ds, err = r.PendingLane(s.ID, "", after, looseWindow/2)
			return err
		})
		b.mu.Lock()
		defer b.mu.Unlock()
		if err != nil {
			s.further = true
			return
		}
		for _, d := range ds {
			b.add(added{sub: s, delivery: d})
		}
		s.further = s.further || len(ds) == looseWindow/2
		if s.sink != nil {
			b.dispatch(s.sink)
		}
	})
}

// wakeAt has a lane offered again at its time.
func (b *Bus) wakeAt(l *lane) {
	if l.alarm >= 0 {
		heap.Fix(&b.wakeups, l.alarm)
	} else {
		heap.Push(&b.wakeups, l)
	}
	b.ring(l.wake)
}

// ring makes the alarm go off at the time, or earlier.
func (b *Bus) ring(at int64) {
	if b.nextAlarm != 0 && b.nextAlarm <= at {
		return
	}
	b.nextAlarm = at
	b.alarm.Reset(time.Duration(max(at-nowUS(), 0)) * time.Microsecond)
}

// alarmLoop offers lanes whose waiting is over, and ends the contexts of
// handlers that took too long.
func (b *Bus) alarmLoop(ctx context.Context) {
	for {
		select {
		case <-b.alarm.C:
		case <-ctx.Done():
			return
		}
		b.mu.Lock()
		b.nextAlarm = 0
		now := nowUS()
		for len(b.wakeups) > 0 && b.wakeups[0].wake <= now {
			l := heap.Pop(&b.wakeups).(*lane)
			l.wake = 0
			b.offer(l)
		}
		for _, s := range b.subs {
			b.expire(s, now)
		}
		if len(b.wakeups) > 0 {
			b.ring(b.wakeups[0].wake)
		}
		for _, s := range b.sinks {
			b.dispatch(s)
		}
		b.mu.Unlock()
	}
}

func (b *Bus) expire(s *subscription, now int64) {
	wait := s.spec.Load().AckWait.Microseconds()
	s.flying.trim()
	for _, l := range s.flying.leases {
		if l.revoked {
			continue
		}
		if l.over == 0 && l.started+wait > now {
			b.ring(l.started + wait) // those behind it started later
			return
		}
		if due := l.over + grace.Microseconds(); l.over > 0 && due > now {
			b.ring(due)
			continue
		}
		if l.over == 0 {
			l.over = now
			l.sink.cancels = append(l.sink.cancels, l.Token)
			l.sink.signal()
			b.ring(now + grace.Microseconds())
			continue
		}
		l.over = now + time.Hour.Microseconds() // once is enough
		extension, generation := l.Extension, l.Generation
		reason := "a handler of " + s.Pattern + " went on after its time (" + s.spec.Load().AckWait.String() + ") was over"
		go b.stuck(extension, generation, reason)
	}
}

// backoff is the time before attempt n+1.
func (b *Bus) backoff(failures int) time.Duration {
	d := 500 * time.Millisecond << min(max(failures-1, 0), 7)
	return min(d, time.Minute)*3/4 + time.Duration(b.random.Uint64()%uint64(d/2+1))
}
