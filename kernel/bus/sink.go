package bus

import (
	"context"
	"slices"

	"github.com/switchboard-run/switchboard/contract/busv1"
)

// Sink is the way to one running generation of an extension. The host sends
// what Next returns, and reports credit, outcomes and the end.
type Sink struct {
	actor *Actor
	bus   *Bus

	// Guarded by Bus.mu.
	subs       []*subscription
	next       int // the subscription that is served first
	credit     int // deliveries that may be sent
	granted    bool
	paused     bool // the extension is stopping
	closed     bool
	leases     map[*Lease]struct{}
	untaken    []*Lease // sent, oldest first; no handler has them yet
	deliveries []*busv1.Delivery
	cancels    []string
	wake       chan struct{}
}

// Frame is what is waiting for an extension.
type Frame struct {
	Deliveries []*busv1.Delivery
	Cancels    []string
}

// Attach connects a running extension to its subscriptions. An older generation
// must be Gone before.
func (b *Bus) Attach(a *Actor) *Sink {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Sink{actor: a, bus: b, leases: map[*Lease]struct{}{}, wake: make(chan struct{}, 1)}
	b.sinks[a.ID] = s
	for _, sub := range b.subs {
		if sub.Extension == a.ID && sub.ParkedAt == 0 {
			sub.sink = s
			s.subs = append(s.subs, sub)
		}
	}
	return s
}

// Pause stops handing out to an extension that is about to stop.
func (b *Bus) Pause(extension string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.sinks[extension]; s != nil {
		s.paused = true
	}
}

// Next waits for the next frame. It returns false when the sink is closed or
// ctx ends.
func (s *Sink) Next(ctx context.Context) (Frame, bool) {
	for {
		s.bus.mu.Lock()
		f := Frame{s.deliveries, s.cancels}
		s.deliveries, s.cancels = nil, nil
		closed := s.closed
		s.bus.mu.Unlock()
		if len(f.Deliveries) > 0 || len(f.Cancels) > 0 {
			return f, true
		}
		if closed {
			return Frame{}, false
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Frame{}, false
		}
	}
}

// Credit lets n more deliveries be sent. Beyond the first grant it says that
// handlers took the n oldest of those sent.
func (s *Sink) Credit(n int) {
	if n <= 0 {
		return
	}
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	if s.granted {
		for _, l := range s.untaken[:min(n, len(s.untaken))] {
			l.taken = true
		}
		s.untaken = s.untaken[min(n, len(s.untaken)):]
	}
	s.granted = true
	s.credit += n
	s.bus.dispatch(s)
}

func (s *Sink) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Sink) close() {
	s.closed = true
	s.signal()
}

func (s *Sink) drop(sub *subscription) {
	s.subs = slices.DeleteFunc(s.subs, func(x *subscription) bool { return x == sub })
}
