package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/home/support"
)

// stage makes the test's binary the program that is in the sandbox.
const stage = "SANDBOX_TEST_STAGE"

func TestMain(m *testing.M) {
	switch os.Getenv(stage) {
	case "enter": // as a built-in does
		if err := Enter(); err != nil {
			fmt.Println("cannot enter:", err)
			os.Exit(1)
		}
		tryAll(os.Args[1:])
	case "exec": // as the program of a third party is started
		_ = os.Setenv(stage, "inside")
		fmt.Println("cannot start:", Exec(append([]string{os.Args[0]}, os.Args[1:]...)))
		os.Exit(1)
	case "inside":
		tryAll(os.Args[1:])
	default:
		os.Exit(m.Run())
	}
}

// tryAll does what each argument says and prints what came of it, in JSON.
func tryAll(attempts []string) {
	results := map[string]string{}
	for _, a := range attempts {
		results[a] = "ok"
		if err := try(a); err != nil {
			results[a] = err.Error()
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(results)
}

func try(attempt string) error {
	verb, what, _ := strings.Cut(attempt, " ")
	done := make(chan error, 1)
	go func() { done <- do(verb, what) }() // whatever thread that is
	return <-done
}

func do(verb, what string) error {
	switch verb {
	case "read":
		_, err := os.ReadFile(what)
		return err
	case "write":
		return os.WriteFile(what, []byte("x"), 0o600)
	case "remove":
		return os.Remove(what)
	case "rename":
		from, to, _ := strings.Cut(what, " ")
		return os.Rename(from, to)
	case "link":
		from, to, _ := strings.Cut(what, " ")
		return os.Link(from, to)
	case "run":
		return exec.Command(what).Run()
	case "child-reads": // what is inherited
		out, err := exec.Command("cat", what).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	case "dial":
		network, address, _ := strings.Cut(what, " ")
		c, err := net.DialTimeout(network, address, 5*time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err
	case "listen":
		network, address, _ := strings.Cut(what, " ")
		l, err := net.Listen(network, address)
		if err == nil {
			_ = l.Close()
		}
		return err
	case "socket":
		var domain, kind, protocol int
		_, _ = fmt.Sscan(what, &domain, &kind, &protocol)
		fd, err := syscall.Socket(domain, kind, protocol)
		if err == nil {
			_ = syscall.Close(fd)
		}
		return err
	case "signal":
		pid, _ := strconv.Atoi(what)
		return syscall.Kill(pid, syscall.SIGURG)
	case "uring":
		_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	case "limit": // what another process may use
		pid, _ := strconv.Atoi(what)
		now := unix.Rlimit{}
		if err := unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &now); err != nil {
			return err
		}
		return unix.Prlimit(pid, unix.RLIMIT_CORE, &now, nil)
	case "nice":
		var of, id int
		_, _ = fmt.Sscan(what, &of, &id)
		return unix.Setpriority(of, id, 19)
	case "disk-nice":
		var of, id int
		_, _ = fmt.Sscan(what, &of, &id)
		if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, uintptr(of), uintptr(id), 2<<13|7); errno != 0 {
			return errno
		}
		return nil
	case "pin":
		pid, _ := strconv.Atoi(what)
		var all unix.CPUSet
		if err := unix.SchedGetaffinity(0, &all); err != nil {
			return err
		}
		return unix.SchedSetaffinity(pid, &all)
	case "hurry":
		return unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_NORMAL, Nice: 19}, 0)
	case "mode":
		return os.Chmod(what, 0o755)
	case "own-mode":
		f, err := os.Open(what)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Chmod(0o755)
	case "owner":
		return os.Chown(what, os.Getuid(), os.Getgid())
	case "shared-memory":
		if _, _, errno := unix.Syscall(unix.SYS_SHMGET, 0, 4096, 0o1600); errno != 0 {
			return errno
		}
		return nil
	case "keys":
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false)
		return err
	case "unshare":
		flags, _ := strconv.ParseInt(what, 0, 64)
		return unix.Unshare(int(flags))
	case "clone":
		flags, _ := strconv.ParseUint(what, 0, 64)
		child := exec.Command("true")
		child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: uintptr(flags)}
		return child.Run()
	case "clone3":
		if _, _, errno := unix.Syscall(unix.SYS_CLONE3, 0, 0, 0); errno != 0 {
			return errno
		}
		return nil
	case "limits":
		var files, core, tasks unix.Rlimit
		_, _, _ = unix.Getrlimit(unix.RLIMIT_NOFILE, &files), unix.Getrlimit(unix.RLIMIT_CORE, &core),
			unix.Getrlimit(unix.RLIMIT_NPROC, &tasks)
		adj, _ := os.ReadFile("/proc/self/oom_score_adj")
		return fmt.Errorf("files %d core %d tasks %d first %s", files.Max, core.Max, tasks.Max,
			strings.TrimSpace(string(adj)))
	}
	return errors.New("what is " + verb)
}

// under runs attempts with a policy.
func under(t *testing.T, how string, p *sandbox.Policy, attempts ...string) map[string]string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	policy := *p
	policy.Execute = append([]string{filepath.Dir(self), "/usr", "/bin", "/lib", "/lib64"}, p.Execute...)
	policy.Read = append([]string{"/proc"}, p.Read...)
	policy.Write = append([]string{"/dev/null"}, p.Write...)
	cmd := exec.Command(self, attempts...)
	cmd.Env = append(os.Environ(), stage+"="+how, sandbox.Variable+"="+policy.Encode())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	results := map[string]string{}
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return results
}

func needs(t *testing.T, abi int) {
	t.Helper()
	if support.Detect().Landlock < abi {
		t.Skipf("this system has Landlock ABI %d, and %d is needed", support.Detect().Landlock, abi)
	}
}

func TestOnlyNamedFilesCanBeUsed(t *testing.T) {
	t.Parallel()
	needs(t, abiRename)
	for _, how := range []string{"enter", "exec"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, d := range []string{"own", "data", "data/below", "store"} {
				if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, d, "f"), []byte("#!/bin/sh\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			at := func(format string) string { return strings.ReplaceAll(format, "@", dir) }
			allowed := []string{
				"read @/own/f", "run @/own/f", "child-reads @/own/f", "read @/data/f", "write @/data/new",
				"rename @/data/new @/data/below/new",
				"remove @/data/below/new", "listen unix @/data/s",
			}
			refused := []string{
				"read @/store/f", "write @/store/f", "write @/store/new", "remove @/store/f", "child-reads @/store/f",
				"read @/own/../store/f",
				"write @/own/f", "write @/own/new", "remove @/own/f", "rename @/data/f @/store/g", "rename @/store/f @/data/g",
				"link @/store/f @/data/g",
				"run @/data/f", "listen unix @/store/s", "read /etc/passwd", "child-reads /etc/passwd",
				"write /tmp/of-nobody-" + filepath.Base(dir),
				fmt.Sprintf("read /proc/%d/environ", os.Getpid()), fmt.Sprintf("child-reads /proc/%d/environ", os.Getpid()),
				fmt.Sprintf("read /proc/%d/mem", os.Getpid()),
			}
			var all []string
			for _, a := range append(allowed, refused...) {
				all = append(all, at(a))
			}
			results := under(t, how, &sandbox.Policy{Execute: []string{at("@/own")},
				Write: []string{at("@/data"), at("@/missing")}}, all...)
			for _, a := range allowed {
				if got := results[at(a)]; got != "ok" {
					t.Errorf("%s: %s", a, got)
				}
			}
			for _, a := range refused {
				if got := results[at(a)]; !strings.Contains(got, "permission denied") &&
					!strings.Contains(got, "Permission denied") && !strings.Contains(got, "cross-device") {
					t.Errorf("%s: %s", a, got)
				}
			}
		})
	}
}

func TestWithoutNetworkThereAreNoSocketsButThoseOfFiles(t *testing.T) {
	t.Parallel()
	if !support.Detect().Seccomp {
		t.Skip("this system has no seccomp")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	attempts := []string{
		"dial tcp " + l.Addr().String(), "dial udp 127.0.0.1:53", "listen tcp 127.0.0.1:0", "socket 2 1 262", "socket 10 1 0",
		"socket 2 3 1", "socket 17 3 0",
		"socket 40 1 0", "socket 38 5 0", "uring",
	}
	for _, how := range []string{"enter", "exec"} {
		results := under(t, how, &sandbox.Policy{Write: []string{dir}},
			append(attempts, "listen unix "+dir+"/s", "socket 16 3 0")...)
		for _, a := range attempts {
			if got := results[a]; got == "ok" {
				t.Errorf("%s, %s: %s", how, a, got)
			}
		}
		for _, a := range []string{"listen unix " + dir + "/s", "socket 16 3 0"} {
			if got := results[a]; got != "ok" {
				t.Errorf("%s, %s: %s", how, a, got)
			}
		}
	}
}

func TestNetworkIsLimitedToPorts(t *testing.T) {
	t.Parallel()
	needs(t, 4)
	open := func() (string, uint16) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l.Addr().String(), uint16(l.Addr().(*net.TCPAddr).Port)
	}
	granted, port := open()
	other, _ := open()
	attempts := []string{"dial tcp " + granted, "dial tcp " + other, "listen tcp 127.0.0.1:0", "socket 2 1 262",
		"socket 2 1 132", "socket 2 2 0"}
	results := under(t, "exec", &sandbox.Policy{Network: &sandbox.Network{Connect: []uint16{port}}}, attempts...)
	for i, want := range []bool{true, false, false, false, false, true} {
		if got := results[attempts[i]]; (got == "ok") != want {
			t.Errorf("%s: %s", attempts[i], got)
		}
	}
	results = under(t, "enter", &sandbox.Policy{Network: &sandbox.Network{Any: true}}, attempts...)
	for i, want := range []bool{true, true, true, false, false, true} {
		if got := results[attempts[i]]; (got == "ok") != want {
			t.Errorf("with any network, %s: %s", attempts[i], got)
		}
	}
}

func TestSignalsStayInside(t *testing.T) {
	t.Parallel()
	needs(t, 6)
	attempt := "signal " + strconv.Itoa(os.Getpid())
	if got := under(t, "exec", &sandbox.Policy{}, attempt)[attempt]; !strings.Contains(got, "not permitted") {
		t.Errorf("a signal to a process outside: %s", got)
	}
}

// What Landlock does not know of: how other programs of the user run, what they
// share, and the modes of their files.
func TestOthersOfTheUserAreLeftAlone(t *testing.T) {
	t.Parallel()
	if !support.Detect().Seccomp {
		t.Skip("this system has no seccomp")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(os.Getpid())
	refused := []string{
		"limit " + pid, "pin " + pid, "nice 0 " + pid, "nice 1 0", "nice 2 0", "disk-nice 1 " + pid, "disk-nice 2 0",
		"disk-nice 3 0", "hurry",
		"mode " + file, "owner " + file, "shared-memory", "keys",
	}
	allowed := []string{"limit 0", "pin 0", "nice 0 0", "disk-nice 1 0", "own-mode " + file}
	for _, how := range []string{"enter", "exec"} {
		results := under(t, how, &sandbox.Policy{KeepModes: true, Background: true, Write: []string{dir}},
			append(refused, allowed...)...)
		for _, a := range refused {
			if got := results[a]; !strings.Contains(got, "not permitted") {
				t.Errorf("%s, %s: %s", how, a, got)
			}
		}
		for _, a := range allowed {
			if got := results[a]; got != "ok" {
				t.Errorf("%s, %s: %s", how, a, got)
			}
		}
	}
	if got := under(t, "enter", &sandbox.Policy{Write: []string{dir}}, "mode "+file)["mode "+file]; got != "ok" {
		t.Errorf("modes are not kept, and chmod says %s", got)
	}
}

func TestNamespacesCannotBeMade(t *testing.T) {
	t.Parallel()
	if !support.Detect().Seccomp {
		t.Skip("this system has no seccomp")
	}
	attempts := []string{"clone3", "unshare 0", "clone 0"}
	for _, flag := range []int{
		unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWPID, unix.CLONE_NEWNET, unix.CLONE_NEWIPC, unix.CLONE_NEWUTS,
		unix.CLONE_NEWCGROUP,
	} {
		attempts = append(attempts, fmt.Sprintf("unshare %#x", flag), fmt.Sprintf("clone %#x", flag))
	}
	for _, how := range []string{"enter", "exec"} {
		for attempt, got := range under(t, how, &sandbox.Policy{}, attempts...) {
			want := "not permitted"
			switch attempt {
			case "unshare 0", "clone 0":
				want = "ok"
			case "clone3":
				want = "not implemented"
			}
			if !strings.Contains(got, want) {
				t.Errorf("%s, %s: %s, want %s", how, attempt, got, want)
			}
		}
	}
}

func TestResourcesAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var tasks unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &tasks); err != nil {
		t.Fatal(err)
	}
	for background, most := range map[bool]uint64{false: tasks.Max, true: tasks.Max / 4 * 3} {
		if tasks.Max == unix.RLIM_INFINITY {
			most = tasks.Max
		}
		results := under(t, "enter", &sandbox.Policy{OpenFiles: 300, Background: background, Write: []string{dir}}, "limits")
		if got, want := results["limits"], fmt.Sprintf("files 300 core 0 tasks %d first 500", most); got != want {
			t.Errorf("the limits are %q, not %q", got, want)
		}
	}
}
