package bus

import (
	"context"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// Sink is the way to one running generation of an extension. The host sends the
// frames of Next, and reports credit, outcomes and the end.
type Sink struct {
	actor *Actor
	bus   *Bus

	// Guarded by Bus.mu.
	subs       []*subscription
	next       int // the subscription that is served first
	credit     int // deliveries that may be sent
	reserved   int // of them, those kept for what is being accepted or fetched
	granted    bool
	paused     bool // the extension is stopping
	closed     bool
	untaken    []*Lease // sent, oldest first; no handler has them yet
	deliveries []*busv1.Delivery
	cancels    []string
	wake       chan struct{}
}

// Frame is one message to an extension.
type Frame struct {
	Deliveries []*busv1.Delivery
	Cancels    []string
}

// Attach connects a running extension to its subscriptions, and ends an older
// generation.
func (b *Bus) Attach(a *Actor) *Sink {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.sinks[a.ID]; old != nil {
		generation := old.actor.Generation
		b.mu.Unlock()
		b.Gone(a.ID, generation, "a newer generation was started", true)
		b.mu.Lock()
	}
	s := &Sink{actor: a, bus: b, wake: make(chan struct{}, 1)}
	b.sinks[a.ID] = s
	if b.closing {
		s.close()
	}
	b.connect()
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

const (
	// frameBytes is about the size of a frame, which one delivery may exceed: far from
	// the largest message.
	frameBytes = contract.MaxMessage / 4
	// otherBytes is more than a delivery has beside the payload and the keys of its event.
	otherBytes = 1 << 10
)

// frame takes what waits, as far as it fits. The caller holds Bus.mu.
func (s *Sink) frame() Frame {
	n, size := 0, 0
	for n < len(s.deliveries) && size < frameBytes {
		e := s.deliveries[n].GetEvent()
		size += len(e.GetPayload()) + len(e.GetKey()) + len(e.GetDedupeKey()) + otherBytes
		n++
	}
	f := Frame{s.deliveries[:n:n], s.cancels}
	s.cancels = nil
	if s.deliveries = s.deliveries[n:]; len(s.deliveries) == 0 {
		s.deliveries = nil
	}
	return f
}

// Next waits for the next frame. It returns false when the sink is closed or
// ctx ends.
func (s *Sink) Next(ctx context.Context) (Frame, bool) {
	for {
		s.bus.mu.Lock()
		f := s.frame()
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

// Credit allows n more deliveries. Each grant after the first one means that
// handlers took the n oldest of those sent.
func (s *Sink) Credit(n int) {
	if n <= 0 {
		return
	}
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	for _, l := range s.untaken[:min(n, len(s.untaken))] {
		l.taken = true
	}
	s.untaken = s.untaken[min(n, len(s.untaken)):]
	s.granted = true
	s.credit += n
	s.bus.dispatch(s)
}

// Take gives back the credit of a delivery that was sent: its handler has it.
func (s *Sink) Take(token string) {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	if i := slices.IndexFunc(s.untaken, func(l *Lease) bool { return l.Token == token }); i >= 0 {
		s.untaken[i].taken = true
		s.untaken = slices.Delete(s.untaken, i, i+1)
		s.credit++
		s.bus.dispatch(s)
	}
}

// mute reports whether a running extension has not granted anything yet.
func (s *Sink) mute() bool { return s != nil && !s.granted }

func (s *Sink) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// cancel ends the context of the handler of a lease. The caller holds Bus.mu.
func (s *Sink) cancel(l *Lease) {
	s.cancels = append(s.cancels, l.Token)
	s.signal()
}

func (s *Sink) close() {
	s.closed = true
	s.signal()
}
