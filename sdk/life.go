package sdk

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// defaultGrace is the time for shutting down when nobody names one.
const defaultGrace = 5 * time.Second

// life is one activation of an extension, from Init to Shutdown.
//
// At shutdown it takes nothing more, and tools that may be interrupted are. What
// else runs may finish for three quarters of the grace; then its contexts end;
// the last eighth belongs to Stop.
type life struct {
	instance *instance
	kernel   *Kernel
	conn     *link
	log      hclog.Logger

	sendTopic, inputTopic string

	background context.Context // of Start
	stop       context.CancelFunc
	handlers   context.Context // base of every handler
	interrupt  context.CancelCauseFunc

	mu       sync.Mutex
	draining bool
	running  int // calls and streams
	idle     chan struct{}
	streams  map[*deliveries]struct{}
	ended    chan struct{} // closed when shutdown is complete
	ran      chan struct{} // closed when Run is over
	ending   sync.Once
}

// begin starts an activation. The connection is up when it returns, and Start
// has run.
func (x *instance) begin(ctx context.Context, init *extensionv1.InitRequest, lost func()) (*life, error) {
	conn, err := dial(ctx, init, lost)
	if err != nil {
		return nil, err
	}
	log := x.log
	if x.ext.ID == "" {
		log = log.Named(init.GetId())
	}
	l := &life{
		instance: x, conn: conn, log: log,
		kernel:     NewKernel(conn, init, log),
		sendTopic:  contract.TopicChannelSend + init.GetId(),
		inputTopic: contract.TopicAgentInput + init.GetId(),
		idle:       make(chan struct{}),
		streams:    make(map[*deliveries]struct{}),
		ended:      make(chan struct{}),
		ran:        make(chan struct{}),
	}
	l.background, l.stop = context.WithCancel(context.Background())
	l.handlers, l.interrupt = context.WithCancelCause(context.Background())
	if err := l.start(ctx); err != nil {
		l.interrupt(errShutdown)
		l.release()
		return nil, fmt.Errorf("start of extension %s: %w", init.GetId(), err)
	}
	return l, nil
}

// start runs Start, which may take as long as the kernel waits for Init.
func (l *life) start(ctx context.Context) (err error) {
	if l.instance.ext.Start == nil {
		return nil
	}
	defer context.AfterFunc(ctx, l.stop)()
	defer guard(l.log, "start", &err)
	return l.instance.ext.Start(l.background, l.kernel) //nolint:contextcheck // its work outlives Init
}

// enter counts a call or stream in; its context also ends when the handlers'
// does. The caller calls leave.
func (l *life) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return nil, nil, fmt.Errorf("extension %s is shutting down: %w", l.kernel.ID(), contract.ErrUnavailable)
	}
	l.running++
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(l.handlers, func() { cancel(context.Cause(l.handlers)) })
	return ctx, func() {
		unlink()
		cancel(context.Canceled)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.running--; l.running == 0 && l.draining {
			close(l.idle)
		}
	}, nil
}

// deliver serves one Deliver stream.
func (l *life) deliver(stream deliverServer) error {
	_, leave, err := l.enter(stream.Context())
	if err != nil {
		return err
	}
	defer leave()
	base, cancel := context.WithCancelCause(l.handlers)
	defer cancel(errBroken)
	s := newDeliveries(base, l.log, l.dispatch)
	l.mu.Lock()
	l.streams[s] = struct{}{}
	draining := l.draining
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.streams, s)
		l.mu.Unlock()
	}()
	if draining {
		s.end()
	}
	return s.serve(stream, cancel)
}

// shutdown ends the activation within the grace and returns when it has. A
// second call waits for the first.
func (l *life) shutdown(grace time.Duration) {
	l.ending.Do(func() {
		defer close(l.ended)
		deadline := time.Now().Add(grace)
		l.drain()
		if !l.wait(grace * 3 / 4) {
			l.interrupt(errShutdown)
			if !l.wait(grace / 8) {
				l.log.Warn("handlers ignore the end of their context", "grace", grace)
			}
		}
		l.interrupt(errShutdown)
		l.stop()
		l.awaitRun()
		l.finish(deadline)
		l.release()
	})
	<-l.ended
}

// drain takes nothing more.
func (l *life) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	l.kernel.leave()
	for s := range l.streams {
		s.end()
	}
	if l.running == 0 {
		close(l.idle)
	}
}

func (l *life) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.idle:
		return true
	case <-timer.C:
		return false
	}
}

// finish runs Stop, and does not wait for one that ignores its deadline.
func (l *life) finish(deadline time.Time) {
	if l.instance.ext.Stop == nil {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		err := func() (err error) {
			defer guard(l.log, "stop", &err)
			return l.instance.ext.Stop(ctx)
		}()
		if err != nil {
			l.log.Warn("stop failed", "error", err)
		}
	}()
	select {
	case <-stopped:
	case <-ctx.Done():
		l.log.Warn("stop took longer than the grace")
	}
}

// release closes the connection to the kernel.
func (l *life) release() {
	l.stop()
	l.kernel.close()
	l.conn.Close()
}
