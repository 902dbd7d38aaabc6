package orphans

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestOrphansAreEnded starts a process that leaves another one behind in a session of
// its own. Only this test of the package has children: a sweep kills all others.
func TestOrphansAreEnded(t *testing.T) {
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	out, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	kept := exec.CommandContext(t.Context(), "sleep", "1000")
	parent := exec.CommandContext(t.Context(), "setsid", "--fork", "sh", "-c", "echo $$; exec sleep 1000")
	parent.Env, parent.Stdout = append(os.Environ(), "ORPHANS_TEST=mark"), write
	for _, cmd := range []*exec.Cmd{kept, parent} {
		if err := p.Start(cmd); err != nil {
			t.Skip(err)
		}
	}
	_ = write.Close()
	line := make([]byte, 32)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	orphan, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	p.Sweep(parent.Process.Pid)
	for { // a sweep gives up on a machine that is too slow
		if _, err := os.Stat("/proc/" + strconv.Itoa(orphan)); os.IsNotExist(err) {
			break
		}
		p.Sweep(0)
	}
	if p.Stopped(kept.Process.Pid) || kept.Process.Signal(syscall.Signal(0)) != nil {
		t.Error("a process of Start was taken for an orphan")
	}
	_ = kept.Process.Kill()
	_ = kept.Wait()
}

// TestMarkedProcessesAreEnded: a mark in the environment ends a process of a kernel that
// was killed, and no other.
func TestMarkedProcessesAreEnded(t *testing.T) {
	marked := exec.CommandContext(t.Context(), "sleep", "1000")
	marked.Env = append(os.Environ(), "ORPHANS_TEST="+t.TempDir())
	other := exec.CommandContext(t.Context(), "sleep", "1000")
	for _, cmd := range []*exec.Cmd{marked, other} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	var p Processes
	killed := p.KillMarked(marked.Env[len(marked.Env)-1])
	if len(killed) != 1 || killed[0] != marked.Process.Pid {
		t.Errorf("killed %v, want %d", killed, marked.Process.Pid)
	}
	_ = marked.Wait()
	_ = other.Process.Kill()
	if err := other.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the other process ended with %v", err)
	}
}
