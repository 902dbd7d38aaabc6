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

// defaultGrace is the grace period of a shutdown that sets none.
const defaultGrace = 5 * time.Second

// activation is one run of an extension, from Init to Shutdown.
//
// At shutdown it takes no more work and interrupts the tools that allow it. Other
// handlers may finish during three quarters of the grace; then their contexts end.
// The last eighth is for Stop.
type activation struct {
	instance *instance
	kernel   *Kernel
	conn     *link
	log      hclog.Logger

	sendTopic, inputTopic, resultTopic string

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
	ran      chan struct{} // closed when Run has ended
	ending   sync.Once
}

// activate connects to the kernel and runs Start.
func (x *instance) activate(ctx context.Context, init *extensionv1.InitRequest, lost func()) (*activation, error) {
	conn, err := dial(ctx, init, lost)
	if err != nil {
		return nil, err
	}
	log := x.log
	if x.ext.ID == "" {
		log = log.Named(init.GetId())
	}
	a := &activation{
		instance: x, conn: conn, log: log,
		kernel:      NewKernel(conn, init, log),
		sendTopic:   contract.TopicChannelSend + init.GetId(),
		inputTopic:  contract.TopicAgentInput + init.GetId(),
		resultTopic: contract.TopicToolResult + init.GetId(),
		idle:        make(chan struct{}),
		streams:     make(map[*deliveries]struct{}),
		ended:       make(chan struct{}),
		ran:         make(chan struct{}),
	}
	a.kernel.describe = x.describeAgain
	a.background, a.stop = context.WithCancel(context.Background())
	a.handlers, a.interrupt = context.WithCancelCause(context.Background())
	if err := a.start(ctx); err != nil {
		a.interrupt(errShutdown)
		a.release()
		return nil, fmt.Errorf("start extension %s: %w", init.GetId(), err)
	}
	return a, nil
}

// start runs Start, which may take as long as the kernel waits for Init.
func (a *activation) start(ctx context.Context) (err error) {
	if a.instance.ext.Start == nil {
		return nil
	}
	defer context.AfterFunc(ctx, a.stop)()
	defer guard(a.log, "start", &err)
	return a.instance.ext.Start(a.background, a.kernel) //nolint:contextcheck // its work outlives Init
}

// enter counts a call or stream as running. The returned context also ends with the
// handlers' context. The caller must call leave.
func (a *activation) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining {
		return nil, nil, fmt.Errorf("extension %s is shutting down: %w", a.kernel.ID(), contract.ErrUnavailable)
	}
	a.running++
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(a.handlers, func() { cancel(context.Cause(a.handlers)) })
	return ctx, func() {
		unlink()
		cancel(context.Canceled)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.running--; a.running == 0 && a.draining {
			close(a.idle)
		}
	}, nil
}

// deliver serves one Deliver stream.
func (a *activation) deliver(stream deliverServer) error {
	_, leave, err := a.enter(stream.Context())
	if err != nil {
		return err
	}
	defer leave()
	base, cancel := context.WithCancelCause(a.handlers)
	defer cancel(errBroken)
	s := newDeliveries(base, a.log, a.dispatch)
	a.mu.Lock()
	a.streams[s] = struct{}{}
	draining := a.draining
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.streams, s)
		a.mu.Unlock()
	}()
	if draining {
		s.end()
	}
	return s.serve(stream, cancel)
}

// shutdown ends the activation within the grace and waits for that. A second call
// waits for the first.
func (a *activation) shutdown(grace time.Duration) {
	a.ending.Do(func() {
		defer close(a.ended)
		deadline := time.Now().Add(grace)
		a.drain()
		if !a.wait(grace * 3 / 4) {
			a.interrupt(errShutdown)
			if !a.wait(grace / 8) {
				a.log.Warn("handlers ignore the end of their context", "grace", grace)
			}
		}
		a.interrupt(errShutdown)
		a.stop()
		a.awaitRun()
		a.finish(deadline)
		a.release()
	})
	<-a.ended
}

// drain takes no more work.
func (a *activation) drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.draining = true
	a.kernel.drain()
	for s := range a.streams {
		s.end()
	}
	if a.running == 0 {
		close(a.idle)
	}
}

func (a *activation) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-a.idle:
		return true
	case <-timer.C:
		return false
	}
}

// finish runs Stop, but does not wait longer than its deadline.
func (a *activation) finish(deadline time.Time) {
	if a.instance.ext.Stop == nil {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		err := func() (err error) {
			defer guard(a.log, "stop", &err)
			return a.instance.ext.Stop(ctx)
		}()
		if err != nil {
			a.log.Warn("stop failed", "error", err)
		}
	}()
	select {
	case <-stopped:
	case <-ctx.Done():
		a.log.Warn("stop took longer than the grace")
	}
}

// release closes the connection to the kernel.
func (a *activation) release() {
	a.stop()
	a.kernel.close()
	a.conn.Close()
}
