package agent

import (
	"context"
	"sync"
	"time"
)

const (
	// draftDelay is the time after which an unfinished answer is shown.
	draftDelay = 100 * time.Millisecond
	// typingDelay is the time after which a turn without text shows "typing". It is
	// longer, to save work under load.
	typingDelay = 300 * time.Millisecond
	// draftInterval is the minimum time between two updates.
	draftInterval = 150 * time.Millisecond
	// refreshInterval is the time after which an unchanged text is sent again, since a
	// channel that was restarted has missed it.
	refreshInterval = 4 * time.Second
)

// draft shows the text of an answer while it is written, without delaying the turn.
// It skips outdated texts. A nil draft shows nothing.
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
	d.timer = time.AfterFunc(draftDelay, d.run)
	return d
}

// show sets the text so far. It never blocks.
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

// stop ends the draft. It never blocks.
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

// run sends updates until the turn ends or sending fails.
func (d *draft) run() {
	if d.ctx.Err() != nil {
		return
	}
	if d.latest() == "" && !d.wait(typingDelay-draftDelay, d.fresh) {
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
		if !d.wait(draftInterval, nil) {
			return
		}
		if !d.wait(refreshInterval, d.fresh) {
			return
		}
	}
}

// wait waits for a signal, at most for timeout; false: the turn is over.
func (d *draft) wait(timeout time.Duration, signal <-chan struct{}) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-d.ctx.Done():
		return false
	case <-timer.C:
	case <-signal:
	}
	return d.ctx.Err() == nil
}
