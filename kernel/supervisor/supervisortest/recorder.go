// Package supervisortest records what a Supervisor reports, for tests with played and
// with real processes.
package supervisortest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

// Patience bounds waiting for what must happen; no test depends on how long it takes.
const Patience = 2 * time.Minute

// Event is a call of the Observer.
type Event struct {
	Kind       string // active, gone, changed
	ID         string
	Generation int64
	Reason     string
	Instance   *supervisor.Instance
	Status     supervisor.Status
}

func (e Event) String() string {
	return fmt.Sprintf("%s %s/%d %s%s", e.Kind, e.ID, e.Generation, e.Reason, e.Status.State)
}

// Recorder is an Observer that keeps everything, and checks the order.
type Recorder struct {
	t       testing.TB
	mu      sync.Mutex
	events  []Event
	more    chan struct{}
	current map[string]int64 // active generation
	calling map[string]bool
}

// NewRecorder returns a Recorder that reports what is out of order to a test.
func NewRecorder(tb testing.TB) *Recorder {
	tb.Helper()
	return &Recorder{t: tb, more: make(chan struct{}), current: map[string]int64{}, calling: map[string]bool{}}
}

func (r *Recorder) add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calling[e.ID] {
		r.t.Errorf("two calls of the observer at once for %s", e.ID)
	}
	switch e.Kind {
	case "active":
		if r.current[e.ID] != 0 {
			r.t.Errorf("%s: generation %d is active before %d is gone", e.ID, e.Generation, r.current[e.ID])
		}
		r.current[e.ID] = e.Generation
	case "gone":
		if at := r.current[e.ID]; at != 0 && at != e.Generation {
			r.t.Errorf("%s: generation %d is gone while %d is active", e.ID, e.Generation, at)
		}
		r.current[e.ID] = 0
	}
	r.events = append(r.events, e)
	close(r.more)
	r.more = make(chan struct{})
}

// Active implements supervisor.Observer.
func (r *Recorder) Active(i *supervisor.Instance) {
	r.add(Event{Kind: "active", ID: i.ID, Generation: i.Generation, Instance: i})
}

// Gone implements supervisor.Observer.
func (r *Recorder) Gone(id string, generation int64, reason string) {
	r.add(Event{Kind: "gone", ID: id, Generation: generation, Reason: reason})
}

// Changed implements supervisor.Observer.
func (r *Recorder) Changed(s supervisor.Status) {
	r.add(Event{Kind: "changed", ID: s.ID, Generation: s.Generation, Status: s})
}

// Await returns the first event from the given one on that fits, and the number of the
// next.
func (r *Recorder) Await(tb testing.TB, from int, what string, fits func(Event) bool) (Event, int) {
	tb.Helper()
	timeout := time.After(Patience)
	for {
		r.mu.Lock()
		for i := from; i < len(r.events); i++ {
			if fits(r.events[i]) {
				e := r.events[i]
				r.mu.Unlock()
				return e, i + 1
			}
		}
		more := r.more
		r.mu.Unlock()
		select {
		case <-more:
		case <-timeout:
			tb.Fatalf("waited in vain for %s; seen:\n%s", what, r)
		}
	}
}

func (r *Recorder) String() string {
	var b strings.Builder
	for _, e := range r.Since(0) {
		fmt.Fprintln(&b, " ", e)
	}
	return b.String()
}

// Mark is the number of the next event.
func (r *Recorder) Mark() int { return len(r.Since(0)) }

// Since returns the events from the given one on.
func (r *Recorder) Since(from int) []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events[from:])
}

// AwaitActive waits for an extension to become active after the mark.
func (r *Recorder) AwaitActive(tb testing.TB, from int, id string) *supervisor.Instance {
	tb.Helper()
	e, _ := r.Await(tb, from, id+" to be active", func(e Event) bool { return e.Kind == "active" && e.ID == id })
	return e.Instance
}

// AwaitGone waits for a generation of an extension to be gone after the mark.
func (r *Recorder) AwaitGone(tb testing.TB, from int, id string) Event {
	tb.Helper()
	e, _ := r.Await(tb, from, id+" to be gone", func(e Event) bool { return e.Kind == "gone" && e.ID == id })
	return e
}

// AwaitState waits for a state of an extension after the mark.
func (r *Recorder) AwaitState(tb testing.TB, from int, id string, state supervisor.State) supervisor.Status {
	tb.Helper()
	e, _ := r.Await(tb, from, id+" to be "+string(state), func(e Event) bool {
		return e.Kind == "changed" && e.ID == id && e.Status.State == state
	})
	return e.Status
}
