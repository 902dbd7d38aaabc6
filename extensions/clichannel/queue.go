package clichannel

import (
	"errors"
	"sync"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

const (
	maxQueued      = 1024
	maxQueuedBytes = 4 << 20
)

var (
	errSlow   = errors.New("the terminal reads too slowly")
	errClosed = errors.New("the connection is closed")
)

// queue holds the frames for one terminal. It is bounded: a terminal that falls
// behind is disconnected.
type queue struct {
	mu     sync.Mutex
	frames []wire.Frame
	bytes  int
	err    error
	more   chan struct{}
}

func newQueue() *queue { return &queue{more: make(chan struct{}, 1)} }

// put adds a frame. A draft replaces an older state of itself at the end.
func (q *queue) put(f wire.Frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return
	}
	if n := len(q.frames) - 1; f.Type == wire.Draft && n >= 0 && q.frames[n].Type == wire.Draft && q.frames[n].ID == f.ID {
		q.bytes -= len(q.frames[n].Text)
		q.frames = q.frames[:n]
	}
	if len(q.frames) >= maxQueued || q.bytes+len(f.Text) > maxQueuedBytes && len(q.frames) > 0 {
		q.end(errSlow)
		return
	}
	q.frames, q.bytes = append(q.frames, f), q.bytes+len(f.Text)
	q.wake()
}

// take waits for frames and returns all of them. After close it returns the
// remaining frames, then the reason.
func (q *queue) take() ([]wire.Frame, error) {
	for {
		q.mu.Lock()
		frames, err := q.frames, q.err
		q.frames, q.bytes = nil, 0
		q.mu.Unlock()
		if len(frames) > 0 {
			return frames, nil
		}
		if err != nil {
			q.wake()
			return nil, err
		}
		<-q.more
	}
}

// close ends the queue once the remaining frames were taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = errClosed
	}
	q.wake()
}

// end ends the queue and drops its frames; q.mu is held.
func (q *queue) end(err error) {
	q.frames, q.bytes, q.err = nil, 0, err
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}
