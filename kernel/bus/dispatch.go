package bus

import (
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// grace is how long a handler may go on after its context has ended.
const grace = 10 * time.Second

// dispatch hands out what is ready as long as there is credit that is not reserved,
// one lane of each subscription in turn. The caller holds b.mu.
func (b *Bus) dispatch(s *Sink) {
	if s == nil || s.closed || s.paused || b.closing {
		return
	}
	sent := false
	for idle := 0; s.credit > s.reserved && idle < len(s.subs); {
		s.next = (s.next + 1) % len(s.subs)
		sub := s.subs[s.next]
		if sub.held || sub.ready.head == nil {
			idle++
			continue
		}
		idle = 0
		l := sub.ready.pop()
		l.queued = false
		if len(l.items) == 0 && !b.lacks(l) || l.fetching || l.lease != nil || sub.isEnding(l) {
			continue // it is offered again after that
		}
		if b.prepared(s, l) {
			b.handOut(s, l)
			sent = true
		}
	}
	if sent {
		s.signal()
	}
}

// isEnding reports whether a commit that is not durable yet settles the head.
func (s *subscription) isEnding(l *lane) bool {
	if len(s.ending) == 0 || len(l.items) == 0 {
		return false
	}
	_, ending := s.ending[l.items[0].Seq]
	return ending
}

// prepared reports whether the head of a lane can be handed out. If not, it asks for
// the missing part, or ends the head as dead.
func (b *Bus) prepared(s *Sink, l *lane) bool {
	if len(l.items) == 0 {
		b.fetch(l, s)
		return false
	}
	it := l.items[0]
	switch class := l.sub.class(); {
	case l.sub.spec.Load().Hold && b.visible(l.sub, it.Delivery):
		b.buryHead(l, reasonHeld)
	case b.tooOld(it):
		b.buryHead(l, it.tooOldReason(it.Reason))
	case it.event == nil, class == classInput && it.turn == nil:
		b.fetch(l, s)
	case class.marked() && it.State != journal.InFlight:
		b.mark(l, s, journal.InFlight)
	default:
		return true
	}
	return false
}

// visible reports whether people may see a send twice if it is handed out now.
func (b *Bus) visible(s *subscription, d journal.Delivery) bool {
	if !d.Uncertain || s.class() != classSend {
		return false
	}
	age := time.Duration(b.clock.Now()-d.StartedAt) * time.Microsecond
	return d.StartedAt == 0 || age < 0 || age >= s.spec.Load().Dedupe
}

const reasonHeld = "it is unknown whether it was sent, and the configuration says not to repeat it then"

// tooOld reports whether a delivery is older than its max age. One whose age is not
// known yet is not.
func (b *Bus) tooOld(it *item) bool {
	age := it.lane.sub.spec.Load().MaxAge
	return age > 0 && it.created > 0 && b.clock.Age(max(it.created, it.Resubmitted)) > age
}

func (it *item) tooOldReason(last string) string {
	reason := "it was not handled within " + it.lane.sub.spec.Load().MaxAge.String()
	if last != "" {
		reason += "; the last reason was: " + last
	}
	return reason
}

func (b *Bus) handOut(s *Sink, l *lane) {
	it := l.items[0]
	now, steady := b.clock.Both()
	spec := l.sub.spec.Load()
	handed := &struct { // in one allocation
		lease    Lease
		delivery busv1.Delivery
	}{
		Lease{
			Token: b.newToken(), Extension: s.actor.ID, Generation: s.actor.Generation, Event: it.event,
			item: it, sink: s, started: now, clock: steady,
		},
		busv1.Delivery{
			Event: it.event, Subscription: l.sub.Pattern, Attempt: int32(it.Attempts) + 1, Uncertain: it.Uncertain,
			DeadlineUs: now + spec.AckWait.Microseconds(), Turn: it.turn,
		},
	}
	lease, d := &handed.lease, &handed.delivery
	d.Token = lease.Token
	if b.hooks.Repeat != nil && b.visible(l.sub, it.Delivery) {
		d.Event = b.hooks.Repeat(l.sub.Extension, it.event)
	}
	if l.sub.class() == classInput {
		lease.Agent = l.sub.Extension
		lease.Session = journal.ParseSessionID(it.turn.GetSession())
		d.DeadlineUs = 0 // the kernel cancels: the clock of a turn can stop
		it.turn.Waiting = int32(len(l.items) - 1)
		it.turn = nil // it is read again for the next attempt
	}
	b.leases[lease.Token] = lease
	l.lease = lease
	s.untaken = append(s.untaken, lease)
	s.deliveries = append(s.deliveries, d)
	s.credit--
	b.expireAt(steady + spec.AckWait.Microseconds())
}

// wakeLater has a lane offered again at its wake time. The caller holds b.mu.
func (b *Bus) wakeLater(l *lane) {
	b.at(&l.alarm, l.wake, func() {
		b.offer(l)
		b.dispatch(l.sub.sink)
		b.notHandedOut(l)
	})
}

// at has a timer run f at the steady time. The caller holds b.mu.
func (b *Bus) at(timer **time.Timer, steady int64, f func()) {
	wait := time.Duration(steady-b.clock.Steady()) * time.Microsecond
	if *timer == nil {
		*timer = b.afterFunc(wait, f)
	} else {
		(*timer).Reset(wait)
	}
}

// expireAt has expire look at the leases at the time, or earlier. The caller holds
// b.mu.
func (b *Bus) expireAt(at int64) {
	if b.nextExpiry != 0 && b.nextExpiry <= at {
		return
	}
	b.nextExpiry = at
	b.at(&b.expiry, at, b.expire)
}

// expire ends the contexts of handlers that took too long, and reports those that
// ignore that. One that has answered is done, however long the commit of its
// answer takes.
func (b *Bus) expire() {
	b.nextExpiry = 0
	now := b.clock.Steady()
	for _, l := range b.leases {
		if l.item == nil || l.answered || l.stops > 0 {
			continue
		}
		sub := l.item.lane.sub
		wait := sub.spec.Load().AckWait
		due := l.clock + wait.Microseconds()
		if l.over != 0 {
			due = l.over + grace.Microseconds()
		}
		switch {
		case due > now:
		case l.over == 0:
			l.over, due = now, now+grace.Microseconds()
			l.sink.cancel(l)
		default:
			l.over, due = now+time.Hour.Microseconds(), now+time.Hour.Microseconds() // not again soon
			extension, generation := l.Extension, l.Generation
			reason := "a handler of " + sub.Pattern + " went on after its time (" + wait.String() + ") was over"
			b.spawn(func() { b.stuck(extension, generation, reason) })
		}
		b.expireAt(due)
	}
}

// backoff is the time before attempt n+1.
func (b *Bus) backoff(failures int) time.Duration {
	d := 500 * time.Millisecond << min(max(failures-1, 0), 7)
	return min(d, time.Minute)*3/4 + time.Duration(b.random.Uint64()%uint64(d/2+1))
}
