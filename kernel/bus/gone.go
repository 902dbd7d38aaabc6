package bus

import "github.com/switchboard-run/switchboard/kernel/journal"

// Gone ends a generation of an extension: its tokens are revoked, and its
// deliveries are handed out again. An attempt that a handler had taken is
// counted, unless the extension was stopped on purpose.
func (b *Bus) Gone(extension string, generation int64, reason string, onPurpose bool) {
	b.mu.Lock()
	var leases []*Lease
	if s := b.sinks[extension]; s != nil && s.actor.Generation == generation {
		s.close()
		delete(b.sinks, extension)
		for _, sub := range s.subs {
			sub.sink = nil
		}
		for _, l := range b.leases {
			if l.sink == s && !l.answered { // else the answer decides
				leases = append(leases, l)
			}
		}
	}
	for _, l := range b.leases {
		if l.item == nil && l.Extension == extension && l.Generation == generation {
			b.release(l)
		}
	}
	b.mu.Unlock()
	for _, l := range leases {
		b.abandoned(l, reason, onPurpose)
	}
}

// abandoned ends the attempt of a handler that is gone.
func (b *Bus) abandoned(l *Lease, reason string, onPurpose bool) {
	marked := l.item.lane.sub.class().marked()
	b.conclude(l, marked && !onPurpose, func(tx *Tx, silent bool) error {
		b.mu.Lock()
		// Whether a handler took it may have been lost with a process that was
		// killed, and a send that is called new must be new.
		taken, answered := l.taken || marked && !onPurpose, l.answered
		b.mu.Unlock()
		switch d := b.delivery(l); {
		case answered:
			return nil
		case taken && !onPurpose:
			return tx.fail(l, reason, marked, silent)
		case !marked: // nothing to store
			if err := tx.revoke(l); err != nil {
				return err
			}
			tx.then = append(tx.then, func() { b.requeue(l, 0) })
			return nil
		default:
			if d.Uncertain = d.Uncertain || taken; !d.Uncertain {
				d.State = journal.Pending
			}
			return tx.postpone(l, d, 0)
		}
	})
}
