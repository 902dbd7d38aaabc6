package supervisor

import (
	"context"
	"time"
)

// The rate at which the output of a process is read: a burst, and bytes per second.
// A process that writes faster blocks, as on a full pipe.
const (
	outputBurst = 4 << 20
	outputRate  = 512 << 10
)

// pacedWriter receives output that does not come through the pipes.
type pacedWriter struct {
	to   *lineWriter
	pace pace
}

// Write implements io.Writer.
func (w *pacedWriter) Write(p []byte) (int, error) {
	w.pace.read(len(p))
	return w.to.Write(p)
}

// pace limits a reader to that rate. It is used by one goroutine.
type pace struct {
	ctx   context.Context // of the process: once it has ended, the rest is read at once
	spent float64
	since time.Time
}

// read counts n bytes, and waits if they exceed the rate.
func (p *pace) read(n int) {
	now := time.Now()
	p.spent = max(0, p.spent-now.Sub(p.since).Seconds()*outputRate) + float64(n)
	p.since = now
	over := p.spent - outputBurst
	if over <= 0 || p.ctx == nil {
		return
	}
	timer := time.NewTimer(time.Duration(over / outputRate * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
}
