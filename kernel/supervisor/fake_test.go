package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/sandbox"
)

// world stands for the operating system in tests about time.
type world struct {
	t *testing.T
	// call answers a request to an extension: "Describe", "Init", "Health",
	// "Shutdown". Nil: all is well.
	call func(ctx context.Context, id, method string) error
	// launch may delay or fail a start.
	launch func(ctx context.Context, ids []string) error

	mu       sync.Mutex
	live     map[*fakeProcess]bool
	launches []time.Time
	pids     int
}

func (w *world) start(ctx context.Context, l launch) (*process, error) {
	w.mu.Lock()
	w.launches = append(w.launches, time.Now())
	if w.pids++; w.pids > 5000 {
		panic("processes are started for ever")
	}
	pid := w.pids
	w.mu.Unlock()
	if w.launch != nil {
		if err := w.launch(ctx, l.IDs); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for other := range w.live {
		for _, id := range l.IDs {
			if slices.Contains(other.ids, id) {
				w.t.Errorf("%s runs in two processes", id)
			}
		}
	}
	p := &fakeProcess{world: w, ids: l.IDs}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	p.process = process{
		pid: pid, conn: p, ctx: p.ctx, done: make(chan struct{}), output: unheard{},
		kill:    func(reason string) { p.end(exit{Killed: true, Reason: reason}) },
		quit:    func() { p.end(exit{Clean: true, Reason: "exit status 0"}) },
		release: func() {},
	}
	w.live[p] = true
	return &p.process, nil
}

func (w *world) processes() []*fakeProcess {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Keys(w.live), func(a, b *fakeProcess) int { return a.pid - b.pid })
}

type fakeProcess struct {
	process
	world  *world
	ids    []string
	cancel context.CancelCauseFunc
	once   sync.Once
	memory atomic.Int64
}

// guard ends a process whose memory is over the limit.
func (w *world) guard(pid int, l sandbox.Limits, _ bool) error {
	for _, p := range w.processes() {
		if p.pid == pid && p.memory.Load() > l.Memory && l.Memory > 0 {
			return fmt.Errorf("run.memory allows %d MiB", l.Memory>>20)
		}
	}
	return nil
}

func (p *fakeProcess) end(e exit) {
	p.once.Do(func() {
		p.world.mu.Lock()
		delete(p.world.live, p)
		p.world.mu.Unlock()
		p.exit = e
		p.cancel(goneError{errors.New(e.Reason)})
		close(p.done)
	})
}

func (p *fakeProcess) Invoke(ctx context.Context, method string, _, reply any, _ ...grpc.CallOption) error {
	md, _ := metadata.FromOutgoingContext(ctx)
	id := strings.Join(md.Get(contract.ExtensionHeader), ",")
	if p.ctx.Err() != nil {
		return status.Error(codes.Unavailable, "transport is closing")
	}
	var err error
	if p.world.call != nil {
		result := make(chan error, 1)
		go func() { result <- p.world.call(ctx, id, path.Base(method)) }()
		select {
		case err = <-result:
		case <-p.ctx.Done():
			return status.Error(codes.Unavailable, "transport is closing")
		}
	}
	if err != nil && ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if r, ok := reply.(*extensionv1.Readiness); ok {
		r.State = extensionv1.Readiness_STATE_READY
	}
	return err
}

func (p *fakeProcess) NewStream(
	context.Context,
	*grpc.StreamDesc,
	string,
	...grpc.CallOption,
) (grpc.ClientStream, error) {
	return nil, errors.ErrUnsupported
}

// fakeBench is a supervisor in a world of its own, within a synctest bubble.
type fakeBench struct {
	*Supervisor
	*recorder
	world *world
}

func inBubble(t *testing.T, f func(*testing.T, *fakeBench)) {
	t.Helper()
	inHeldBubble(t, func(t *testing.T, b *fakeBench) {
		t.Helper()
		b.Begin(0)
		f(t, b)
	})
}

// inHeldBubble is inBubble before Begin.
func inHeldBubble(t *testing.T, f func(*testing.T, *fakeBench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, live: map[*fakeProcess]bool{}}
		r := newRecorder(t)
		b := &fakeBench{newSupervisor(Options{Observer: r, Guard: w.guard}, w.start), r, w}
		defer func() {
			if err := b.Stop(context.Background()); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute) // for what the world still has to answer
			if live := w.processes(); len(live) > 0 {
				t.Errorf("%d processes are left", len(live))
			}
		}()
		f(t, b)
	})
}

func fakeSpec(id string) Spec {
	return Spec{
		ID: id, Command: []string{"x"},
		Init: func(generation int64) (*extensionv1.InitRequest, error) {
			return &extensionv1.InitRequest{Id: id, Generation: generation}, nil
		},
	}
}

func (b *fakeBench) status(id string) Status {
	all := b.Statuses()
	if i := slices.IndexFunc(all, func(s Status) bool { return s.ID == id }); i >= 0 {
		return all[i]
	}
	return Status{}
}
