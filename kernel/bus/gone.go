package bus

import "cmp"

// Gone ends a generation of an extension: its tokens are revoked, and its
// deliveries are handed out again. An attempt that a handler had taken is
// counted, unless the extension was stopped on purpose.
func (b *Bus) Gone(extension string, generation int64, reason string, onPurpose bool) {
	leases := map[*Lease]bool{} // whether a handler took it
	b.mu.Lock()
	s := b.sinks[extension]
	if s != nil && s.actor.Generation == generation {
		s.close()
		delete(b.sinks, extension)
		for _, sub := range s.subs {
			sub.sink = nil
		}
	}
	for _, l := range b.leases {
		switch {
		case l.Extension != extension || l.Generation != generation:
		case l.item == nil:
			b.release(l)
		case !l.answered: // else the answer decides
			l.answered = true // it comes too late now
			leases[l] = l.taken
		}
	}
	b.mu.Unlock()
	for l, taken := range leases {
		b.abandoned(l, taken, reason, onPurpose)
	}
}

// abandoned ends the attempt of a handler that is gone.
func (b *Bus) abandoned(l *Lease, taken bool, reason string, onPurpose bool) {
	marked := l.item.lane.sub.class().marked()
	// Whether a handler took it may have been lost with a process that was killed, and
	// a send that is called new must be new.
	taken = taken || marked && !onPurpose
	b.conclude(l, nil, false, func(tx *Tx) error {
		switch d := b.delivery(l); {
		case taken && !onPurpose:
			return tx.fail(l, reason, marked)
		case !marked: // nothing to store
			return tx.free(l, 0)
		default:
			d.Reason, d.Uncertain = cmp.Or(d.Reason, reason), d.Uncertain || taken
			return tx.postpone(l, d, 0)
		}
	})
}

// Lost notes that the last frames of an extension were not read: handlers may have taken
// what was sent. A send that is called new must be new.
func (s *Sink) Lost() {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	for _, l := range s.untaken[:max(0, len(s.untaken)-len(s.deliveries))] { // without those not sent yet
		l.taken = l.taken || l.item.lane.sub.class() == classSend
	}
}
