package procfs

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// A process that is busy or sleeps is not taken for one that a signal has stopped.
func TestStopped(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"while :; do :; done", "sleep 1000"} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "exec 2>/dev/null; "+script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := cmd.Process.Pid
		t.Cleanup(func() {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
			_ = cmd.Wait()
		})
		for range 1000 {
			if Stopped(pid) {
				t.Fatalf("%q is taken for stopped", script)
			}
		}
		becomes := func(signal syscall.Signal, want bool) {
			t.Helper()
			if err := syscall.Kill(pid, signal); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(time.Minute); Stopped(pid) != want; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%q after %s: stopped is %v", script, signal, !want)
				}
			}
		}
		becomes(syscall.SIGSTOP, true)
		becomes(syscall.SIGCONT, false)
	}
	if Stopped(0) || Stopped(1<<30) {
		t.Error("a process that does not exist is stopped")
	}
}
