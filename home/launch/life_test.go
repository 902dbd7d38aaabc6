package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/home/limits"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/kernel/supervisor/supervisortest"
)

func TestStartAndStop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(t, spec("one", "extension", behavior{}), spec("two", "extension", behavior{}))
	one, two := b.AwaitActive(t, 0, "one"), b.AwaitActive(t, 0, "two")
	b.settle(t)
	if one.PID == two.PID || min(one.Generation, two.Generation) <= firstGeneration || one.Generation == two.Generation {
		t.Errorf("pids %d, %d, generations %d, %d", one.PID, two.PID, one.Generation, two.Generation)
	}
	if got := mustCall(t, one, "who", ""); got != "one" {
		t.Errorf("requests are addressed to %q", got)
	}
	if one.Description.GetSdk() != "one" || len(one.Description.GetTools()) != 1 {
		t.Errorf("description: %v", one.Description)
	}
	if s := b.status(
		t,
		"one",
	); s.State != supervisor.Active || s.PID != one.PID || s.Name != "ONE" || s.Restarts != 0 ||
		s.Since.IsZero() {
		t.Errorf("status: %+v", s)
	}
	if err := b.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := context.Cause(one.Context()); !errors.Is(err, contract.ErrGone) {
		t.Errorf("context of the instance ended with %v", err)
	}
	for _, i := range []*supervisor.Instance{one, two} {
		if !dead(i.PID) {
			t.Errorf("%s runs on", i.ID)
		}
		if e := b.AwaitGone(t, 0, i.ID); e.Reason != "the extension was stopped" {
			t.Errorf("gone: %s", e.Reason)
		}
		if s := b.status(t, i.ID); s.State != supervisor.Inactive || s.LastError != "" || s.PID != 0 {
			t.Errorf("status: %+v", s)
		}
	}
	left, err := os.ReadDir(b.dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the runtime directory: %v, %v", left, err)
	}
	if err := b.Apply(nil); err == nil {
		t.Error("Apply works after Stop")
	}
}

func TestBadStart(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	command := func(args ...string) func(*supervisor.Spec) { return func(s *supervisor.Spec) { s.Command = args } }
	short := func(s *supervisor.Spec) { s.StartTimeout = 300 * time.Millisecond }
	tests := []struct {
		name     string
		mode     string
		behavior behavior
		change   func(*supervisor.Spec)
		want     string // in the last error
		crash    string
		once     bool // not tried again
	}{
		{name: "no command", change: command(), want: "run.command"},
		{name: "missing", change: command(dir + "/nothing"), want: "/nothing does not exist: build it"},
		{
			name:   "missing, relative",
			change: func(s *supervisor.Spec) { s.Command, s.Dir = []string{"./nothing"}, dir },
			want:   dir + "/nothing does not exist: build it",
		},
		{name: "not in PATH", change: command("surely-no-such-program"), want: `"surely-no-such-program" is not in PATH`},
		{
			name:   "missing directory",
			change: func(s *supervisor.Spec) { s.Dir = dir + "/gone" },
			want:   "/gone: the directory does not exist",
		},
		{name: "not executable", change: command(file("plain", "x", 0o600)), want: "chmod +x"},
		{name: "no interpreter", change: command(file("script", "#!/no/such/shell\n", 0o700)), want: "interpreter"},
		{name: "no program", change: command(file("text", "just text\n", 0o700)), want: "not a program for this machine"},
		{name: "rubbish", mode: "rubbish", want: `wrote "Hello, world!" to stdout`, crash: ""},
		{name: "rubbish without end", mode: "rubbish without end", want: `wrote "blahblah`},
		{name: "exit", mode: "exit", want: "exit status 3): cannot find the moon", crash: "cannot find the moon"},
		{name: "mute", mode: "mute", want: "closed stdout without a handshake"},
		{name: "silent", mode: "silent", change: short, want: "did not finish starting within 300ms (run.start_timeout)"},
		{name: "hello only", mode: "hello only", change: short, want: "did not finish starting within 300ms"},
		{name: "hello and exit", mode: "hello and exit", want: "exit status 4"},
		{
			name: "other version",
			mode: "other version",
			want: "version 7 of the protocol and this kernel version 1",
			once: true,
		},
		{name: "tcp", mode: "tcp", want: "without encryption", once: true},
		{name: "other service", mode: "other service", want: "does not serve switchboard.extension.v1.Extension", once: true},
		{
			name:     "panic",
			mode:     "extension",
			behavior: behavior{InitPanic: true},
			want:     "panic: no idea how to start",
			crash:    "goroutine ",
		},
		{name: "init exit", mode: "extension", behavior: behavior{InitExit: 5}, want: "exit status 5"},
		{
			name:     "init error",
			mode:     "extension",
			behavior: behavior{InitError: "the token is wrong"},
			want:     "initialize the extension: the token is wrong",
		},
		{
			name:     "init hang",
			mode:     "extension",
			behavior: behavior{InitHang: true},
			change:   short,
			want:     "did not finish starting within 300ms",
		},
		{name: "refused", mode: "extension", change: func(s *supervisor.Spec) {
			s.Check = func(d *extensionv1.Description) error {
				return fmt.Errorf("provides tool %s, which its manifest does not: add it", d.GetTools()[0].GetName())
			}
		}, want: "provides tool do", once: true},
		{name: "no request", mode: "extension", change: func(s *supervisor.Spec) {
			s.Init = func(int64) (*extensionv1.InitRequest, error) { return nil, errors.New("a secret is missing") }
		}, want: "prepare the configuration: a secret is missing"},
	}
	b := setup(t)
	specs := []supervisor.Spec{spec("fine", "extension", behavior{})}
	for i, test := range tests {
		s := spec(fmt.Sprintf("bad%d", i), test.mode, test.behavior)
		s.Restart.Max = 1
		if test.change != nil {
			test.change(&s)
		}
		specs = append(specs, s)
	}
	b.apply(t, specs...)
	fine := b.AwaitActive(t, 0, "fine")
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := b.AwaitState(t, 0, fmt.Sprintf("bad%d", i), supervisor.Failed)
			if strings.Contains(s.LastError, "Unknown") || !strings.Contains(s.LastError, test.want) ||
				!strings.Contains(s.Crash, test.crash) {
				t.Errorf("error %q, crash %q; want %q, %q", s.LastError, s.Crash, test.want, test.crash)
			}
			if s.Detail != s.LastError || s.LastErrorAt.IsZero() {
				t.Errorf("detail: %q", s.Detail)
			}
			failures := map[time.Time]bool{}
			for _, e := range b.Since(0) {
				if e.Kind == "changed" && e.ID == s.ID && !e.Status.LastErrorAt.IsZero() {
					failures[e.Status.LastErrorAt] = true
				}
			}
			if want := map[bool]int{true: 1, false: 2}[test.once]; len(failures) != want {
				t.Errorf("it was tried %d times, want %d", len(failures), want)
			}
		})
	}
	if got := mustCall(t, fine, "who", ""); got != "fine" {
		t.Errorf("the good one was disturbed: %q", got)
	}
}

func TestCrashIsRestarted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(t, spec("one", "extension", behavior{}), spec("other", "extension", behavior{}))
	one, other := b.AwaitActive(t, 0, "one"), b.AwaitActive(t, 0, "other")
	b.settle(t)
	mark := b.Mark()
	_, err := call(t, one, "panic", "")
	if err == nil {
		t.Fatal("the call succeeded")
	}
	<-one.Context().Done()
	if err := context.Cause(one.Context()); !errors.Is(err, contract.ErrGone) {
		t.Errorf("cause: %v", err)
	}
	if e := b.AwaitGone(
		t,
		mark,
		"one",
	); e.Generation != one.Generation ||
		!strings.Contains(e.Reason, "panic: the sky is falling") {
		t.Errorf("gone: %v", e)
	}
	s := b.AwaitState(t, mark, "one", supervisor.BackingOff)
	if s.RetryAt.IsZero() || !strings.Contains(s.Crash, "goroutine ") ||
		!strings.Contains(s.LastError, "panic: the sky is falling") {
		t.Errorf("status: %+v", s)
	}
	again := b.AwaitActive(t, mark, "one")
	if again.Generation <= one.Generation || again.PID == one.PID {
		t.Errorf("started again as %+v", again)
	}
	if s := b.AwaitState(t, mark, "one", supervisor.Active); s.Restarts != 1 {
		t.Errorf("status: %+v", s)
	}
	if other.Context().Err() != nil {
		t.Error("the other one was disturbed")
	}
}

func TestCrashLoopFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	flag := filepath.Join(shortDir(t), "flag")
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	loop, user := spec("loop", "extension", behavior{ExitIfFile: flag}), spec("user", "extension", behavior{})
	user.Requires = []string{"loop"}
	loop.Restart.Max = 3
	b.apply(t, loop, user, spec("other", "extension", behavior{}))
	b.AwaitActive(t, 0, "other")
	s := b.AwaitState(t, 0, "loop", supervisor.Failed)
	if s.Restarts != 3 || !strings.Contains(s.Crash, "the file is there") {
		t.Errorf("status: %+v", s)
	}
	b.settle(t)
	if s := b.status(t, "user"); s.State != supervisor.Inactive || !strings.Contains(s.Detail, "requires loop, which is down") {
		t.Errorf("the dependant: %+v", s)
	}
	mark := b.Mark()
	b.apply(t, loop, user, spec("other", "extension", behavior{})) // changes nothing
	b.settle(t)
	if s := b.status(t, "loop"); s.State != supervisor.Failed || b.Mark() != mark {
		t.Errorf("status: %+v", s)
	}
	if err := os.Remove(flag); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Restart("loop"); err != nil {
		t.Fatal(err)
	}
	b.AwaitActive(t, mark, "loop")
	b.AwaitActive(t, mark, "user")
	if _, err := b.Restart("nobody"); !errors.Is(err, contract.ErrNotFound) {
		t.Errorf("restarting an unknown one: %v", err)
	}
}

func TestSwap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, other := spec("one", "extension", behavior{}), spec("other", "extension", behavior{})
	b.apply(t, one, other)
	before, neighbor := b.AwaitActive(t, 0, "one"), b.AwaitActive(t, 0, "other")
	b.settle(t)
	mark := b.Mark()
	b.apply(t, other, one)
	b.settle(t)
	if b.Mark() != mark {
		t.Errorf("applying the same again did something:\n%s", b.Recorder)
	}
	one.Fingerprint = "other"
	one.Init = func(generation int64) (*extensionv1.InitRequest, error) {
		if !dead(before.PID) {
			t.Error("the old process lives when the next one is initialized")
		}
		return &extensionv1.InitRequest{Id: "one", Generation: generation, Config: []byte("{}")}, nil
	}
	b.apply(t, one, other)
	after := b.AwaitActive(t, mark, "one")
	b.settle(t)
	if after.Generation <= before.Generation {
		t.Errorf("generations %d, %d", before.Generation, after.Generation)
	}
	b.AwaitState(t, mark, "one", supervisor.Stopping)
	if neighbor.Context().Err() != nil {
		t.Error("the other one was disturbed")
	}
	mark = b.Mark()
	b.apply(t, other)
	b.settle(t)
	b.AwaitGone(t, mark, "one")
	if s := b.Statuses(); len(s) != 1 || s[0].ID != "other" {
		t.Errorf("statuses: %+v", s)
	}
	if !dead(after.PID) || neighbor.Context().Err() != nil {
		t.Error("removal ended the wrong one")
	}
}

func TestStoppedProcessHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	frozen := spec("frozen", "extension", behavior{})
	frozen.ShutdownGrace = 50 * time.Millisecond
	b.apply(t, frozen)
	first := b.AwaitActive(t, 0, "frozen")
	freeze(t, first)
	mark := b.Mark()
	if _, err := b.Restart("frozen"); err != nil {
		t.Fatal(err)
	}
	second := b.AwaitActive(t, mark, "frozen")
	if e := b.AwaitGone(
		t,
		mark,
		"frozen",
	); !strings.Contains(e.Reason, "did not finish within 50ms (run.shutdown_grace)") ||
		!dead(first.PID) {
		t.Errorf("gone: %v", e)
	}
	freeze(t, second)
	if err := b.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !dead(second.PID) {
		t.Error("it lives")
	}
}

func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(t, spec("slow", "extension", behavior{StopHang: true}))
	i := b.AwaitActive(t, 0, "slow")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := b.Stop(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "slow") || !dead(i.PID) {
		t.Errorf("stop: %v", err)
	}
}

// freeze stops a process, and returns when each of its threads has stopped.
func freeze(t *testing.T, i *supervisor.Instance) {
	t.Helper()
	if err := syscall.Kill(i.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", i.PID))
		if err != nil || len(threads) == 0 || time.Now().After(end) {
			t.Fatalf("process %d does not stop: %v", i.PID, err)
		}
		if !slices.ContainsFunc(threads, func(path string) bool {
			stat, err := os.ReadFile(path)
			return err == nil && !strings.Contains(string(stat), ") T ")
		}) {
			return
		}
	}
}

func TestUnresponsive(t *testing.T) {
	t.Parallel()
	b := setup(
		t,
		func(o *options) { o.ProbeInterval, o.ProbeTimeout = 20*time.Millisecond, 2*time.Second },
	) // which one that runs answers
	want := "3 health probes unanswered"
	if runtime.GOOS == "linux" {
		want = "a signal had stopped it"
	}
	b.apply(t, spec("frozen", "extension", behavior{}))
	first := b.AwaitActive(t, 0, "frozen")
	mark := b.Mark()
	freeze(t, first)
	if e := b.AwaitGone(t, mark, "frozen"); !strings.Contains(e.Reason, want) {
		t.Errorf("gone: %v", e)
	}
	b.AwaitActive(t, mark, "frozen")
}

func TestMemory(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *options) { o.check = limits.Check })
	s := spec("big", "extension", behavior{})
	s.Limits.Memory = 512 << 20
	b.apply(t, s)
	i := b.AwaitActive(t, 0, "big")
	mark := b.Mark()
	_, _ = call(t, i, "hold", fmt.Sprint(600<<20))
	if e := b.AwaitGone(t, mark, "big"); !strings.Contains(e.Reason, "run.memory allows 512 MiB") {
		t.Errorf("gone: %v", e)
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(t, spec("one", "extension", behavior{}))
	i := b.AwaitActive(t, 0, "one")
	if err := b.Kill("one", i.Generation-1, "too late"); !errors.Is(err, contract.ErrNotFound) {
		t.Errorf("killing an earlier generation: %v", err)
	}
	mark := b.Mark()
	if err := b.Kill("one", i.Generation, "the handler of event 7 ignores its end"); err != nil {
		t.Fatal(err)
	}
	if e := b.AwaitGone(t, mark, "one"); e.Reason != "the handler of event 7 ignores its end" {
		t.Errorf("gone: %v", e)
	}
	b.AwaitState(t, mark, "one", supervisor.BackingOff)
	b.AwaitActive(t, mark, "one")
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	base, middle, top, circle := spec("base", "extension", behavior{}), spec("middle", "extension", behavior{}),
		spec("top", "extension", behavior{}), spec("circle", "extension", behavior{})
	middle.Requires, top.Requires, circle.Requires = []string{"base"}, []string{"middle"}, []string{"circle"}
	lost := spec("lost", "extension", behavior{})
	lost.Requires = []string{"nobody"}
	b.apply(t, top, circle, lost, middle, base)
	b.settle(t)
	order := func(kind string, from int) []string {
		var ids []string
		for _, e := range b.Since(from) {
			if e.Kind == kind {
				ids = append(ids, e.ID)
			}
		}
		return ids
	}
	if got := order("active", 0); !slices.Equal(got, []string{"base", "middle", "top"}) {
		t.Errorf("started: %v", got)
	}
	if s := b.status(t, "circle"); s.State != supervisor.Inactive || !strings.Contains(s.Detail, "circle -> circle") {
		t.Errorf("circle: %+v", s)
	}
	if s := b.status(t, "lost"); s.State != supervisor.Inactive || !strings.Contains(s.Detail, "nobody, which is not installed") {
		t.Errorf("lost: %+v", s)
	}

	// A crash of what is required leaves its dependants alone.
	mark := b.Mark()
	if err := b.Kill("base", 0, "test"); err != nil {
		t.Fatal(err)
	}
	b.AwaitActive(t, mark, "base")
	b.settle(t)
	if got := order("gone", mark); !slices.Equal(got, []string{"base"}) {
		t.Errorf("gone: %v", got)
	}

	mark = b.Mark()
	if err := b.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := order("gone", mark); !slices.Equal(got, []string{"top", "middle", "base"}) {
		t.Errorf("stopped: %v", got)
	}
}

func TestRemovedDependency(t *testing.T) {
	t.Parallel()
	b := setup(t)
	base, user := spec("base", "extension", behavior{}), spec("user", "extension", behavior{})
	user.Requires = []string{"base"}
	b.apply(t, base, user)
	b.AwaitActive(t, 0, "user")
	mark := b.Mark()
	b.apply(t, user)
	b.settle(t)
	if s := b.status(t, "user"); s.State != supervisor.Inactive || !strings.Contains(s.Detail, "requires base") {
		t.Errorf("status: %+v", s)
	}
	b.apply(t, user, base)
	b.AwaitActive(t, mark, "user")
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(t, spec("one", "extension", behavior{Readiness: int32(extensionv1.Readiness_STATE_UNCONFIGURED)}))
	i := b.AwaitActive(t, 0, "one")
	if s := b.AwaitState(t, 0, "one", supervisor.Active); s.Readiness != extensionv1.Readiness_STATE_UNCONFIGURED {
		t.Errorf("status: %+v", s)
	}
	b.Report("one", i.Generation+1, &extensionv1.Readiness{State: extensionv1.Readiness_STATE_OFFLINE})
	b.Report("one", i.Generation, &extensionv1.Readiness{State: extensionv1.Readiness_STATE_DEGRADED, Detail: "half"})
	e, _ := b.Await(t, 0, "degraded", func(e supervisortest.Event) bool { return e.Status.ReadinessDetail == "half" })
	if e.Status.Readiness != extensionv1.Readiness_STATE_DEGRADED || e.Status.State != supervisor.Active {
		t.Errorf("status: %+v", e.Status)
	}
}
