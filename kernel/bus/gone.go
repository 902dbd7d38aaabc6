package bus

import "github.com/switchboard-run/switchboard/kernel/journal"

// Gone ends a generation of an extension: its tokens are void, and its
// deliveries are given out again. An attempt that a handler had taken is
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

func (b *Bus) abandoned(l *Lease, reason string, onPurpose bool) {
	class := l.item.lane.sub.class()
	b.conclude(l.item.Seq, func(tx *Tx) error {
		if err := tx.hold(l); err != nil {
			return err
		}
		b.mu.Lock()
		taken, answered := l.taken, l.answered
		// Whether a handler took it may have been lost with a process that was
		// killed, and a send that is called new must be one.
		taken = taken || class.marked() && !onPurpose
		b.mu.Unlock()
		if answered {
			return nil
		}
		if taken && !onPurpose {
			return tx.fail(l, reason, class.marked())
		}
		d := b.delivery(l)
		if !d.Uncertain {
			d.StartedAt, d.Uncertain = l.started, taken && class.marked()
		}
		if !d.Uncertain {
			d.State = journal.Pending
		}
		if !class.marked() { // nothing to write down
			if err := tx.void(l); err != nil {
				return err
			}
			tx.then = append(tx.then, func() { b.requeue(l, 0) })
			return nil
		}
		return tx.postpone(l, d, 0)
	}, func(err error) {
		if err != nil {
			b.mu.Lock()
			uncertain := class.marked() && (l.taken || !onPurpose)
			b.mu.Unlock()
			go b.retryLater(l, uncertain, err)
		}
	})
}
