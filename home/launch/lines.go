package launch

import (
	"bytes"
	"context"
	"io"
	"sync"

	"golang.org/x/time/rate"
)

const (
	maxLine = 64 << 10 // a longer line is cut into pieces

	// The rate at which a stream is read: a burst, and bytes per second. A process
	// that writes faster blocks, as on a full pipe.
	outputBurst = 4 << 20
	outputRate  = 512 << 10
)

// lines passes on what is written to it line by line, at a limited rate until ctx
// ends.
type lines struct {
	ctx   context.Context
	limit *rate.Limiter
	take  func(line []byte)

	mu     sync.Mutex
	part   []byte // of a line
	closed bool
}

func newLines(ctx context.Context, take func([]byte)) *lines {
	return &lines{ctx: ctx, limit: rate.NewLimiter(outputRate, outputBurst), take: take}
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, io.ErrClosedPipe
	}
	_ = l.limit.WaitN(l.ctx, len(p))
	l.part = append(l.part, p...)
	for {
		line, rest, whole := bytes.Cut(l.part, []byte("\n"))
		if len(line) > maxLine || len(line) == maxLine && !whole {
			line, rest, whole = l.part[:maxLine], l.part[maxLine:], true
		}
		if !whole {
			return len(p), nil
		}
		l.take(line)
		l.part = rest
	}
}

// Close takes the last line, which may not be whole.
func (l *lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && len(l.part) > 0 {
		l.take(l.part)
	}
	l.closed = true
	return nil
}

// copy takes all of a stream.
func (l *lines) copy(r io.Reader) {
	_, _ = io.Copy(l, r)
	_ = l.Close()
}
