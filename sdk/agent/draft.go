package agent

import (
	"context"
	"sync"
	"time"
)

const (
	// draftAfter is how long an answer may take before what there is of it is shown.
	draftAfter = 100 * time.Millisecond
	// typingAfter is how long a turn without text waits before it shows "typing":
	// under load many turns wait for each other, and need not all say so.
	typingAfter = 300 * time.Millisecond
	// draftEvery is the least time between two updates.
	draftEvery = 150 * time.Millisecond
	// sameEvery is how often the same is shown again: a channel whose process was
	// not there for the last time has missed it.
	sameEvery = 4 * time.Second
)

// draft shows what is being written, off the path of the turn: what is shown
// too late is not shown at all. A nil draft shows nothing.
type draft struct {
	kernel kernel
	ctx    context.Context
	cancel context.CancelFunc
	timer  *time.Timer
	fresh  chan struct{} // capacity 1: there is a new text

	mu   sync.Mutex
	text string
}

func newDraft(ctx context.Context, k kernel) *draft {
	d := &draft{kernel: k, fresh: make(chan struct{}, 1)}
	d.ctx, d.cancel = context.WithCancel(ctx)
	d.timer = time.AfterFunc(draftAfter, d.run)
	return d
}

// show takes the text so far. It never waits.
func (d *draft) show(text string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	d.text = text
	d.mu.Unlock()
	select {
	case d.fresh <- struct{}{}:
	default:
	}
}

// stop ends the draft. It never waits.
func (d *draft) stop() {
	if d == nil {
		return
	}
	d.timer.Stop()
	d.cancel()
}

func (d *draft) latest() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text
}

// run sends until the turn ends or the channel does not take it.
func (d *draft) run() {
	if d.ctx.Err() != nil {
		return
	}
	if d.latest() == "" && !d.wait(typingAfter-draftAfter, d.fresh) {
		return
	}
	stream, err := d.kernel.Drafts(d.ctx)
	if err != nil {
		return
	}
	for {
		text := d.latest()
		if stream.Show(text) != nil {
			return
		}
		if !d.wait(draftEvery, nil) {
			return
		}
		if !d.wait(sameEvery, d.fresh) {
			return
		}
	}
}

// wait waits for the time or for a signal; false: the turn is over.
func (d *draft) wait(most time.Duration, signal <-chan struct{}) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-d.ctx.Done():
		return false
	case <-timer.C:
	case <-signal:
	}
	return d.ctx.Err() == nil
}
