package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/home/orphans"
	"github.com/switchboard-run/switchboard/home/output"
)

// patience bounds waiting for what must happen; no test depends on how long it
// takes.
const patience = 2 * time.Minute

// event is a call of the observer.
type event struct {
	kind       string // active, gone, changed
	id         string
	generation int64
	reason     string
	instance   *Instance
	status     Status
}

func (e event) String() string {
	return fmt.Sprintf("%s %s/%d %s%s", e.kind, e.id, e.generation, e.reason, e.status.State)
}

// recorder is an Observer that keeps everything, and checks the order.
type recorder struct {
	t       testing.TB
	mu      sync.Mutex
	events  []event
	more    chan struct{}
	current map[string]int64 // active generation
	calling map[string]bool
}

func newRecorder(tb testing.TB) *recorder {
	tb.Helper()
	return &recorder{t: tb, more: make(chan struct{}), current: map[string]int64{}, calling: map[string]bool{}}
}

func (r *recorder) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calling[e.id] {
		r.t.Errorf("two calls of the observer at once for %s", e.id)
	}
	switch e.kind {
	case "active":
		if r.current[e.id] != 0 {
			r.t.Errorf("%s: generation %d is active before %d is gone", e.id, e.generation, r.current[e.id])
		}
		r.current[e.id] = e.generation
	case "gone":
		if at := r.current[e.id]; at != 0 && at != e.generation {
			r.t.Errorf("%s: generation %d is gone while %d is active", e.id, e.generation, at)
		}
		r.current[e.id] = 0
	}
	r.events = append(r.events, e)
	close(r.more)
	r.more = make(chan struct{})
}

func (r *recorder) Active(i *Instance) {
	r.add(event{kind: "active", id: i.ID, generation: i.Generation, instance: i})
}

func (r *recorder) Gone(id string, generation int64, reason string) {
	r.add(event{kind: "gone", id: id, generation: generation, reason: reason})
}

func (r *recorder) Changed(s Status) {
	r.add(event{kind: "changed", id: s.ID, generation: s.Generation, status: s})
}

// await returns the first event from the given one on that fits.
func (r *recorder) await(tb testing.TB, from int, what string, fits func(event) bool) (event, int) {
	tb.Helper()
	timeout := time.After(patience)
	for {
		r.mu.Lock()
		for i := from; i < len(r.events); i++ {
			if fits(r.events[i]) {
				e := r.events[i]
				r.mu.Unlock()
				return e, i + 1
			}
		}
		more := r.more
		r.mu.Unlock()
		select {
		case <-more:
		case <-timeout:
			tb.Fatalf("waited in vain for %s; seen:\n%s", what, r)
		}
	}
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, e := range r.events {
		fmt.Fprintln(&b, " ", e)
	}
	return b.String()
}

func (r *recorder) mark() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

// active waits for an extension to become active after the mark.
func (r *recorder) active(tb testing.TB, from int, id string) *Instance {
	tb.Helper()
	e, _ := r.await(tb, from, id+" to be active", func(e event) bool { return e.kind == "active" && e.id == id })
	return e.instance
}

func (r *recorder) gone(tb testing.TB, from int, id string) event {
	tb.Helper()
	e, _ := r.await(tb, from, id+" to be gone", func(e event) bool { return e.kind == "gone" && e.id == id })
	return e
}

func (r *recorder) state(tb testing.TB, from int, id string, state State) Status {
	tb.Helper()
	e, _ := r.await(tb, from, id+" to be "+string(state), func(e event) bool {
		return e.kind == "changed" && e.id == id && e.status.State == state
	})
	return e.status
}

// logs collects what extensions write.
type logs struct {
	mu sync.Mutex
	by map[string]*bytes.Buffer
}

func (l *logs) sink(id string) io.Writer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by[id] == nil {
		l.by[id] = &bytes.Buffer{}
	}
	return writerFunc(func(p []byte) (int, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.by[id].Write(p)
	})
}

func (l *logs) of(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by[id] == nil {
		return ""
	}
	return l.by[id].String()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// bench is a supervisor with its observer.
type bench struct {
	*Supervisor
	*recorder
	logs *logs
	dir  string
}

// shortDir is a directory whose path leaves room for sockets.
func shortDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/tmp", "sv") //nolint:usetesting // its paths are too long
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// firstGeneration is the last generation of the kernel before a test.
const firstGeneration = 41

func (l *logs) output(ids []string) Output { return output.New(ids, l.sink) }

// observed are processes of which the system is asked. The test's own children are not
// taken for orphans.
type observed struct{ orphans.Unwatched }

func (observed) KillMarked(mark string) []int { return (&orphans.Processes{}).KillMarked(mark) }
func (observed) Stopped(pid int) bool         { return (&orphans.Processes{}).Stopped(pid) }

func setup(tb testing.TB, change ...func(*Options)) *bench {
	tb.Helper()
	b := &bench{recorder: newRecorder(tb), logs: &logs{by: map[string]*bytes.Buffer{}}, dir: shortDir(tb)}
	o := Options{Observer: b.recorder, RunDir: b.dir, Output: b.logs.output, Processes: observed{}}
	for _, f := range change {
		f(&o)
	}
	s, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	s.Begin(firstGeneration)
	b.Supervisor = s
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			tb.Errorf("stopping: %v", err)
		}
	})
	return b
}

// self is the test binary.
func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// spec is an extension played by the test binary.
func spec(id, mode string, b behavior) Spec {
	config, err := json.Marshal(b)
	if err != nil {
		panic(err)
	}
	return Spec{
		ID: id, Name: strings.ToUpper(id), Command: []string{self()},
		Env:          []string{"PATH=" + os.Getenv("PATH"), modeEnv + "=" + mode, "GOCOVERDIR=/tmp"},
		StartTimeout: patience, ShutdownGrace: patience,
		Restart:     Restart{Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond},
		Fingerprint: mode + string(config),
		Init: func(generation int64) (*extensionv1.InitRequest, error) {
			return &extensionv1.InitRequest{Id: id, Generation: generation, Config: config}, nil
		},
	}
}

func (b *bench) apply(tb testing.TB, specs ...Spec) {
	tb.Helper()
	if err := b.Apply(specs); err != nil {
		tb.Fatal(err)
	}
}

// settle waits until nothing is under way.
func (b *bench) settle(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.Wait(ctx); err != nil {
		tb.Fatalf("%v\n%s", err, b.recorder)
	}
}

func (b *bench) status(tb testing.TB, id string) Status {
	tb.Helper()
	all := b.Statuses()
	i := slices.IndexFunc(all, func(s Status) bool { return s.ID == id })
	if i < 0 {
		tb.Fatalf("no status of %s", id)
	}
	return all[i]
}

// call has the extension do something.
func call(tb testing.TB, i *Instance, name, argument string) (string, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := extensionv1.NewToolsClient(
		i.Conn,
	).Call(
		ctx,
		&extensionv1.CallRequest{Name: name, Arguments: []byte(argument)},
	)
	return r.GetContent(), err
}

func mustCall(tb testing.TB, i *Instance, name, argument string) string {
	tb.Helper()
	content, err := call(tb, i, name, argument)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return content
}

// dead says that a process has ended, whether or not somebody has reaped it.
func dead(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	if err != nil {
		return runtime.GOOS == "linux"
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(rest, []byte("Z")) || bytes.HasPrefix(rest, []byte("X"))
}

// awaitDead waits for a process that has been killed, which takes the system a
// moment.
func awaitDead(tb testing.TB, pid int) {
	tb.Helper()
	for end := time.Now().Add(patience); !dead(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("process %d is alive", pid)
		}
	}
}
