package launch

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

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/home/limits"
	"github.com/switchboard-run/switchboard/home/orphans"
	"github.com/switchboard-run/switchboard/home/output"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/kernel/supervisor/supervisortest"
)

// patience bounds waiting for what must happen.
const patience = supervisortest.Patience

// logs collects what extensions write.
type logs struct {
	mu sync.Mutex
	by map[string]*bytes.Buffer
}

func newLogs() *logs { return &logs{by: map[string]*bytes.Buffer{}} }

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
	*supervisor.Supervisor
	*supervisortest.Recorder
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

// options are those of both, as far as tests change them.
type options struct {
	supervisor.Options
	RunDir string
	check  func(int, sandbox.Limits, bool) error // nil: there are no limits
}

func setup(tb testing.TB, change ...func(*options)) *bench {
	tb.Helper()
	b := &bench{Recorder: supervisortest.NewRecorder(tb), logs: newLogs(), dir: shortDir(tb)}
	o := options{RunDir: b.dir}
	for _, f := range change {
		f(&o)
	}
	l, err := New(Options{
		RunDir: o.RunDir, Output: b.logs.output, Processes: observed{}, Log: hclog.NewNullLogger(),
	})
	if err != nil {
		tb.Fatal(err)
	}
	o.Observer, o.Launcher = b.Recorder, l.Launch
	if o.check != nil {
		o.Launcher = limits.Guarded(l.Launch, o.check)
	}
	s := supervisor.New(o.Options)
	s.Begin(firstGeneration)
	b.Supervisor = s
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			tb.Errorf("stopping: %v", err)
		}
		l.Close()
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
func spec(id, mode string, b behavior) supervisor.Spec {
	config, err := json.Marshal(b)
	if err != nil {
		panic(err)
	}
	return supervisor.Spec{
		ID: id, Name: strings.ToUpper(id), Command: []string{self()},
		Env:          []string{"PATH=" + os.Getenv("PATH"), modeEnv + "=" + mode, "GOCOVERDIR=/tmp"},
		StartTimeout: patience, ShutdownGrace: patience,
		Restart:     supervisor.Restart{Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond},
		Fingerprint: mode + string(config),
		Init: func(generation int64) (*extensionv1.InitRequest, error) {
			return &extensionv1.InitRequest{Id: id, Generation: generation, Config: config}, nil
		},
	}
}

func (b *bench) apply(tb testing.TB, specs ...supervisor.Spec) {
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
		tb.Fatalf("%v\n%s", err, b.Recorder)
	}
}

func (b *bench) status(tb testing.TB, id string) supervisor.Status {
	tb.Helper()
	all := b.Statuses()
	i := slices.IndexFunc(all, func(s supervisor.Status) bool { return s.ID == id })
	if i < 0 {
		tb.Fatalf("no status of %s", id)
	}
	return all[i]
}

// call has the extension do something.
func call(tb testing.TB, i *supervisor.Instance, name, argument string) (string, error) {
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

func mustCall(tb testing.TB, i *supervisor.Instance, name, argument string) string {
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
