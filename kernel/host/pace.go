package host

import (
	"context"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/fair"
)

// How many requests of one extension are worked on at a time, of those that only
// read, and how many it may make a second while others make some, too: the agents
// of the binary have several for each of hundreds of turns a second.
const (
	readsAtOnce  = 4
	sharedRate   = 1000
	builtinRate  = 16_000
	sharedBurst  = 1000
	shortestWait = time.Millisecond
)

// waits are the requests that may take long by themselves.
var waits = map[string]bool{
	kernelv1.Tools_Call_FullMethodName: true,
}

// pace divides the kernel's time for requests between extensions.
type pace struct {
	mu       sync.Mutex
	of       map[*bus.Actor]*allowance
	activity fair.Activity // work of any kind
}

// allowance is what an extension may ask for.
type allowance struct {
	reading chan struct{}
	saved   float64 // requests
	at      time.Time
}

func newPace() *pace { return &pace{of: map[*bus.Actor]*allowance{}} }

// begin waits until a request may be worked on; the request ends with the function that
// it returns.
func (p *pace) begin(ctx context.Context, a *bus.Actor, method string) (end func(), err error) {
	mine, wait := p.take(a)
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if waits[method] {
		return func() {}, nil
	}
	select {
	case mine.reading <- struct{}{}:
		return func() { <-mine.reading }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take notes a request, and says how long it has to wait.
func (p *pace) take(a *bus.Actor) (*allowance, time.Duration) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := p.of[a]
	if mine == nil {
		mine = &allowance{reading: make(chan struct{}, readsAtOnce), saved: sharedBurst, at: now}
		p.of[a] = mine
	}
	p.activity.Note(a.ID, now)
	rate := float64(sharedRate)
	if a.Builtin {
		rate = builtinRate
	}
	mine.saved = min(sharedBurst, mine.saved+now.Sub(mine.at).Seconds()*rate)
	mine.at = now
	if p.activity.Alone(a.ID, now) {
		return mine, 0
	}
	mine.saved--
	if wait := time.Duration(-mine.saved / rate * float64(time.Second)); wait > shortestWait {
		return mine, wait
	}
	return mine, 0
}

// seen notes that an extension is at work, in another way than by a request.
func (p *pace) seen(a *bus.Actor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.activity.Note(a.ID, time.Now())
}

// forget drops an extension that has ended.
func (p *pace) forget(a *bus.Actor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, a)
}
