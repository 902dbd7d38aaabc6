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
	errSlow   = errors.New("the terminal does not read what it is sent")
	errClosed = errors.New("the connection is closed")
)

// queue is what waits to be written to one terminal. It is bounded: a terminal
// that falls behind loses its connection, not the patience of the others.
type queue struct {
	mu     sync.Mutex
	frames []wire.Frame
	bytes  int
	err    error
	more   chan struct{}
}

func newQueue() *queue { return &queue{more: make(chan struct{}, 1)} }

// put adds a frame. A draft replaces what it stands directly behind, if that is
// an older state of it.
func (q *queue) put(f wire.Frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return
	}
	if n := len(q.frames); f.Type == wire.Draft && n > 0 && q.frames[n-1].Type == wire.Draft && q.frames[n-1].ID == f.ID {
		q.bytes -= len(q.frames[n-1].Text)
		q.frames = q.frames[:n-1]
	}
	if len(q.frames) >= maxQueued || q.bytes+len(f.Text) > maxQueuedBytes && len(q.frames) > 0 {
		q.end(errSlow)
		return
	}
	q.frames, q.bytes = append(q.frames, f), q.bytes+len(f.Text)
	q.wake()
}

// take waits for frames and returns all of them. After close it returns what
// is left, then the reason.
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

// close lets take return what is left and then end.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = errClosed
	}
	q.wake()
}

// end drops what is queued; q.mu is held.
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
