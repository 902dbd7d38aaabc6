package supervisor_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract/sandbox"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/kernel/supervisor/supervisortest"
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

func (w *world) start(ctx context.Context, l supervisor.Launch) (*supervisor.Process, error) {
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
	p := &fakeProcess{world: w, ids: l.IDs, limits: l.Limits}
	ctx, cancel := context.WithCancelCause(context.Background())
	p.cancel = cancel
	p.Process = supervisor.Process{
		PID: pid, Conn: p, Context: ctx, Done: make(chan struct{}), Output: silent{},
		Stopped: func() bool { return false },
		Kill:    func(reason string) { p.end(supervisor.Exit{Killed: true, Reason: reason}) },
		Quit:    func() { p.end(supervisor.Exit{Clean: true, Reason: "exit status 0"}) },
		Release: func() {},
	}
	w.live[p] = true
	return &p.Process, nil
}

func (w *world) processes() []*fakeProcess {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Keys(w.live), func(a, b *fakeProcess) int { return a.PID - b.PID })
}

// silent is the output of a process that writes nothing.
type silent struct{}

func (silent) Conceal(iter.Seq[string]) {}
func (silent) Clean(text string) string { return text }

type fakeProcess struct {
	supervisor.Process
	world  *world
	ids    []string
	cancel context.CancelCauseFunc
	once   sync.Once
	limits sandbox.Limits
}

func (p *fakeProcess) end(e supervisor.Exit) {
	p.once.Do(func() {
		p.world.mu.Lock()
		delete(p.world.live, p)
		p.world.mu.Unlock()
		p.Exit = e
		p.cancel(supervisor.GoneError{Reason: errors.New(e.Reason)})
		close(p.Done)
	})
}

func (p *fakeProcess) Invoke(ctx context.Context, method string, _, reply any, _ ...grpc.CallOption) error {
	md, _ := metadata.FromOutgoingContext(ctx)
	id := strings.Join(md.Get(contract.ExtensionHeader), ",")
	if p.Context.Err() != nil {
		return status.Error(codes.Unavailable, "transport is closing")
	}
	var err error
	if p.world.call != nil {
		result := make(chan error, 1)
		go func() { result <- p.world.call(ctx, id, path.Base(method)) }()
		select {
		case err = <-result:
		case <-p.Context.Done():
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
	*supervisor.Supervisor
	*supervisortest.Recorder
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
		r := supervisortest.NewRecorder(t)
		b := &fakeBench{supervisor.New(supervisor.Options{Observer: r, Launcher: w.start}), r, w}
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

func fakeSpec(id string) supervisor.Spec {
	return supervisor.Spec{
		ID: id, Command: []string{"x"},
		Init: func(generation int64) (*extensionv1.InitRequest, error) {
			return &extensionv1.InitRequest{Id: id, Generation: generation}, nil
		},
	}
}

func (b *fakeBench) status(id string) supervisor.Status {
	all := b.Statuses()
	if i := slices.IndexFunc(all, func(s supervisor.Status) bool { return s.ID == id }); i >= 0 {
		return all[i]
	}
	return supervisor.Status{}
}
