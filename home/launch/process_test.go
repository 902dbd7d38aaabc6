package launch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/home/orphans"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/kernel/supervisor/supervisortest"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := spec("one", "extension", behavior{})
	s.Dir = shortDir(t)
	s.Env = append(s.Env, plugin.EnvUnixSocketDir+"=/somewhere/else", "GIVEN=yes")
	b.apply(t, s)
	i := b.AwaitActive(t, 0, "one")
	environ := strings.Split(mustCall(t, i, "environment", ""), "\n")
	for _, entry := range environ {
		if strings.Contains(entry, "hunter2") {
			t.Errorf("the kernel's secret is visible: %s", entry)
		}
		name, _, _ := strings.Cut(entry, "=")
		known := slices.ContainsFunc(s.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		if !known && !strings.HasPrefix(name, "PLUGIN_") && name != contract.Handshake.MagicCookieKey && name != "PWD" {
			t.Errorf("where does %s come from?", entry)
		}
	}
	if !slices.Contains(environ, "GIVEN=yes") {
		t.Errorf("environment: %q", environ)
	}
	if got := mustCall(t, i, "directory", ""); got != s.Dir {
		t.Errorf("it runs in %s", got)
	}
	if got := mustCall(t, i, "group", ""); got != fmt.Sprint(i.PID) {
		t.Errorf("process %d is in group %s", i.PID, got)
	}
}

// The input of the kernel is put in place of its real one before any process
// starts, hence no t.Parallel.
func TestStdin(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdin
	os.Stdin = read
	t.Cleanup(func() { os.Stdin = old; _, _ = read.Close(), write.Close() })
	if _, err := write.WriteString("typed by a person\n"); err != nil {
		t.Fatal(err)
	}
	b := setup(t)
	b.apply(t, spec("one", "extension", behavior{}))
	if got := mustCall(t, b.AwaitActive(t, 0, "one"), "stdin", ""); got != "" {
		t.Errorf("the extension read %q", got)
	}
	line, err := bufio.NewReader(read).ReadString('\n')
	if line != "typed by a person\n" || err != nil {
		t.Errorf("left for the kernel: %q, %v", line, err)
	}
}

func TestGrandchild(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(t, spec("one", "extension", behavior{}))
	i := b.AwaitActive(t, 0, "one")
	for _, how := range []string{"exit", "panic", "restart"} {
		pid, err := strconv.Atoi(mustCall(t, i, "grandchild", ""))
		if err != nil || dead(pid) {
			t.Fatalf("grandchild %d: %v", pid, err)
		}
		mark := b.Mark()
		if how == "restart" {
			if _, err := b.Restart("one"); err != nil {
				t.Fatal(err)
			}
		} else {
			_, _ = call(t, i, how, "2")
		}
		b.AwaitGone(t, mark, "one")
		awaitDead(t, pid)
		i = b.AwaitActive(t, mark, "one")
	}
}

// A grandchild that has left the process group cannot be killed with it, and
// holds the output open; nothing waits for it.
func TestEscapedGrandchild(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(t, spec("one", "extension", behavior{}))
	i := b.AwaitActive(t, 0, "one")
	pid, err := strconv.Atoi(mustCall(t, i, "escaped grandchild", ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	mark := b.Mark()
	_, _ = call(t, i, "exit", "2")
	b.AwaitGone(t, mark, "one")
	b.AwaitActive(t, mark, "one")
	if dead(pid) {
		t.Error("the test is void: the grandchild died with its parent")
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := spec("one", "extension", behavior{}), spec("two", "extension", behavior{})
	one.Group, two.Group = "both", "both"
	b.apply(t, one, two)
	i := b.AwaitActive(t, 0, "one")
	b.AwaitActive(t, 0, "two")
	for _, line := range []string{
		`{"@level":"warn","@message":"for one","@module":"one.part","n":1}`,
		`{"@level":"info","@message":"for all"}`,
		`{"@level":7,"@message":{"no":"string"},"@module":3,"@timestamp":"never"}`, // ends a host that parses as go-plugin does
		`{"@message":`,
		"plain text",
		"[WARN] careful",
		strings.Repeat("x", 3*maxLine),
	} {
		mustCall(t, i, "stderr", line)
	}
	mustCall(t, i, "stdout", "printed to stdout")
	mustCall(t, i, "stdout", strings.Repeat("y", 200<<10))
	mark := b.Mark()
	_, _ = call(t, i, "exit", "1")
	b.AwaitGone(t, mark, "one")

	var messages []string
	for line := range strings.Lines(b.logs.of("one")) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("no JSON: %.200s: %v", line, err)
		}
		text := fmt.Sprint(entry["@message"])
		if len(text) > 50 {
			text = fmt.Sprint(text[:1], "*", len(text))
		}
		messages = append(messages, fmt.Sprint(entry["@level"], " ", text))
	}
	for _, want := range []string{
		"warn for one", "info for all", "7 map[no:string]", `info {"@message":`, "info plain text", "warn careful",
		fmt.Sprint("info x*", maxLine), "info printed to stdout",
	} {
		if !slices.Contains(messages, want) {
			t.Errorf("%q is missing in %q", want, messages)
		}
	}
	if log := b.logs.of("two"); strings.Contains(log, "for one") || !strings.Contains(log, "for all") {
		t.Errorf("the other's log: %s", log)
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	member := func(id string, behave behavior) supervisor.Spec {
		s := spec(id, "extension", behave)
		s.Group = "channels"
		return s
	}
	one, two, bad := member("one", behavior{}), member("two", behavior{}), member("bad", behavior{InitError: "no token"})
	two.Requires = []string{"one"}
	bad.Restart.Max = 2
	b.apply(t, one, two, bad)
	i, j := b.AwaitActive(t, 0, "one"), b.AwaitActive(t, 0, "two")
	if i.PID != j.PID {
		t.Errorf("two processes: %d, %d", i.PID, j.PID)
	}
	for _, x := range []*supervisor.Instance{i, j} {
		if got := mustCall(t, x, "who", ""); got != x.ID {
			t.Errorf("a request to %s went to %q", x.ID, got)
		}
	}
	if s := b.AwaitState(t, 0, "bad", supervisor.Failed); !strings.Contains(s.LastError, "no token") {
		t.Errorf("status: %+v", s)
	}
	if i.Context().Err() != nil || b.status(t, "one").Generation != i.Generation {
		t.Error("a failing member disturbed the others")
	}
	mark := b.Mark()
	_, _ = call(t, j, "exit", "1")
	b.AwaitGone(t, mark, "one")
	b.AwaitGone(t, mark, "two")
	i, j = b.AwaitActive(t, mark, "one"), b.AwaitActive(t, mark, "two")
	if i.PID != j.PID {
		t.Errorf("two processes after a restart: %d, %d", i.PID, j.PID)
	}
	b.settle(t)

	// A change of one swaps the process of all; one may leave the group.
	mark = b.Mark()
	two.Group = ""
	b.apply(t, one, two)
	i, j = b.AwaitActive(t, mark, "one"), b.AwaitActive(t, mark, "two")
	b.settle(t)
	if i.PID == j.PID || len(b.Statuses()) != 2 {
		t.Errorf("processes %d, %d", i.PID, j.PID)
	}
}

// Extensions on the SDK: a group, one member of which is stopped and comes back
// while the other works on.
func TestSDK(t *testing.T) {
	t.Parallel()
	b := setup(t)
	address := filepath.Join(shortDir(t), "kernel.sock")
	listener, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	kernel := grpc.NewServer()
	served := make(chan struct{})
	go func() { defer close(served); _ = kernel.Serve(listener) }()
	t.Cleanup(func() { kernel.Stop(); <-served })
	member := func(id string) supervisor.Spec {
		s := spec(id, "sdk", behavior{})
		s.Group = "sdk"
		s.Init = func(generation int64) (*extensionv1.InitRequest, error) {
			return &extensionv1.InitRequest{Id: id, Generation: generation, KernelAddress: "unix:" + address}, nil
		}
		return s
	}
	base, one, two := spec("base", "extension", behavior{}), member("one"), member("two")
	base.Restart.Policy = supervisor.Never
	two.Requires = []string{"base"}
	b.apply(t, base, one, two)
	b.settle(t)
	i := b.AwaitActive(t, 0, "one")
	mark := b.Mark()
	if err := b.Kill("base", 0, "test"); err != nil {
		t.Fatal(err)
	}
	b.AwaitGone(t, mark, "two")
	if _, err := b.Restart("base"); err != nil {
		t.Fatal(err)
	}
	if j := b.AwaitActive(t, mark, "two"); j.PID != i.PID || i.Context().Err() != nil {
		t.Errorf("the process was swapped: %d, %d", i.PID, j.PID)
	}
	mark = b.Mark()
	if _, err := b.Restart("one"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one", "two"} {
		if e := b.AwaitGone(t, mark, id); e.Reason != "the extension was stopped" {
			t.Errorf("gone: %v", e)
		}
		b.AwaitActive(t, mark, id)
	}
}

func TestAutoMTLS(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := spec("one", "extension", behavior{})
	s.AutoMTLS = true
	b.apply(t, s)
	i := b.AwaitActive(t, 0, "one")
	if got := mustCall(t, i, "who", ""); got != "one" {
		t.Errorf("got %q", got)
	}
	if !strings.Contains(mustCall(t, i, "environment", ""), "PLUGIN_CLIENT_CERT=") {
		t.Error("no certificate was exchanged")
	}
}

func TestLargeMessages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(t, spec("one", "extension", behavior{}))
	i := b.AwaitActive(t, 0, "one")
	if _, err := call(t, i, "who", strings.Repeat("x", contract.MaxMessage-1024)); err != nil {
		t.Errorf("just under the limit: %v", err)
	}
	if _, err := call(
		t,
		i,
		"who",
		strings.Repeat("x", contract.MaxMessage+1),
	); err == nil ||
		!strings.Contains(err.Error(), "larger than max") {
		t.Errorf("over the limit: %v", err)
	}
}

func TestForeignRunDir(t *testing.T) {
	t.Parallel()
	file := filepath.Join(shortDir(t), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "/tmp", file} {
		if l, err := New(Options{RunDir: dir}); err == nil {
			t.Errorf("%q is accepted", dir)
			l.Close()
		}
	}
}

func TestRunDir(t *testing.T) {
	t.Parallel()
	long := filepath.Join(shortDir(t), strings.Repeat("x", 60))
	if _, err := New(
		Options{RunDir: long},
	); err == nil ||
		!strings.Contains(err.Error(), "at most 69 bytes") && !strings.Contains(err.Error(), "at most 65 bytes") {
		t.Errorf("a long path: %v", err)
	}
	if _, err := os.Stat(long); err == nil {
		t.Error("it was made nevertheless")
	}

	dir := shortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(dir, socketDirPrefix+"123")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", old+"/plugin456")
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	foreign := filepath.Join(dir, "kernel.sock")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	setup(t, func(o *options) { o.RunDir = dir })
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old socket is still there: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("what others put there is gone: %v", err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	// The longest path that is accepted works.
	deep := filepath.Join(dir, strings.Repeat("y", maxSocketPath-len(longestSocket)-len(dir)-1))
	b := setup(t, func(o *options) { o.RunDir = deep })
	b.apply(t, spec("one", "extension", behavior{}))
	b.AwaitActive(t, 0, "one")
}

// playHost is a kernel that runs a stubborn extension with a grandchild, says
// what their pids are, and waits to be killed.
func playHost() {
	r := supervisortest.NewRecorder(hostTB{})
	l, err := New(Options{
		RunDir: os.Args[1], Output: newLogs().output, Processes: orphans.Unwatched{}, Log: hclog.NewNullLogger(),
	})
	if err != nil {
		panic(err)
	}
	s := supervisor.New(supervisor.Options{Observer: r, Launcher: l.Launch})
	s.Begin(0)
	if err := s.Apply([]supervisor.Spec{spec("stubborn", "stubborn", behavior{})}); err != nil {
		panic(err)
	}
	tb := hostTB{}
	i := r.AwaitActive(tb, 0, "stubborn")
	fmt.Println(i.PID, mustCall(tb, i, "grandchild", ""))
	hang()
}

// hostTB lets the helpers of tests fail a process.
type hostTB struct{ testing.TB }

func (hostTB) Helper()                   {}
func (hostTB) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

func TestKernelKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("there is no parent-death signal")
	}
	dir := shortDir(t)
	host := exec.Command(self(), dir)
	host.Env = append(os.Environ(), modeEnv+"=host")
	host.Stderr = os.Stderr
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	var extension, grandchild int
	if _, err := fmt.Fscan(out, &extension, &grandchild); err != nil {
		t.Fatal(err)
	}
	if dead(extension) || dead(grandchild) {
		t.Fatal("they are not running")
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	awaitDead(t, extension)
	if dead(grandchild) {
		t.Error("the test is void: the grandchild died too")
	}
	if left, _ := filepath.Glob(dir + "/" + socketDirPrefix + "*"); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	setup(t, func(o *options) { o.RunDir = dir }) // the next kernel
	awaitDead(t, grandchild)
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
