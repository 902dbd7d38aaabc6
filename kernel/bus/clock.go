package bus

// NextTurn starts another turn of the session under the same delivery: its ack wait
// and its count of completions restart.
func (t *Tx) NextTurn() {
	l := t.Lease
	if l == nil || l.item == nil {
		return
	}
	t.then = append(t.then, func() {
		l.asked.Store(0)
		t.bus.restart(l, t.bus.clock.Steady())
	})
}

// Asks counts a completion that is asked for under the lease, and returns how
// many there were in its turn.
func (l *Lease) Asks() int64 { return l.asked.Add(1) }

// StopClock stops the ack wait of a delivery while its handler waits for something
// without a bound: a person, or another agent. Each call needs one of StartClock.
func (b *Bus) StopClock(l *Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.stops++; l.stops == 1 {
		l.stopped = b.clock.Steady()
	}
}

// StartClock lets the ack wait go on where it stopped.
func (b *Bus) StartClock(l *Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.stops--; l.stops == 0 {
		b.restart(l, l.clock+b.clock.Steady()-l.stopped)
	}
}

// restart sets from when the ack wait of a lease counts. The caller holds b.mu.
func (b *Bus) restart(l *Lease, clock int64) {
	if l.item == nil || l.released || l.over != 0 {
		return
	}
	l.clock = clock
	b.expireAt(clock + l.item.lane.sub.spec.Load().AckWait.Microseconds())
}
