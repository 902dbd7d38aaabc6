package e2e

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func TestChatOnAPipeAnswersEachLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	cmd := w.command("chat")
	cmd.Stdin = strings.NewReader("list channels\n\npokaż kanały\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	contains(t, "the output", string(out), "cli_channel", "didn't understand", "OPENAI_API_KEY")
}

func TestProgramWithoutArgumentsRunsAndChats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cmd := w.command()
	cmd.Stdin = strings.NewReader("list channels\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	contains(t, "the output", string(out), "cli_channel", "Telegram")
	// And again, on what the first one left.
	cmd = w.command()
	cmd.Stdin = strings.NewReader("напомни завтра в 9 утра позвонить домой\n")
	if out, err = cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	contains(t, "the output", string(out), "09:00")
	for _, p := range processes(t) {
		if strings.Contains(p.command, w.home) {
			t.Errorf("left behind: %v", p)
		}
	}
}

// TestProgramWithoutArgumentsBesideAKernelThatStops waits for its end, and starts
// a kernel then. A lock is held as that one holds it.
func TestProgramWithoutArgumentsBesideAKernelThatStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.stop()
	if holder := w.text("lock"); !strings.HasPrefix(holder, "stopping ") {
		t.Errorf("a kernel that has stopped was %q", holder)
	}
	lock, err := os.OpenFile(w.file("lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	cmd, output := w.command(), &buffer{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("list channels\n"), output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.eventually("a word about it", func() bool { return strings.Contains(output.String(), "is shutting down") })
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, output.String())
	}
	contains(t, "the output", output.String(), "Terminal (cli_channel): ready")
}

func TestProgramWithoutArgumentsAttachesToARunningKernel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	c := w.control()
	w.eventually("all extensions", func() bool {
		all, err := admin.Extensions(w.ctx(), c)
		return err == nil && !slices.ContainsFunc(all, func(e *adminv1.Extension) bool {
			return e.State == "starting" ||
				e.State == "inactive"
		})
	})
	below := descendants(t, w.kernel.pid())
	cmd := w.command()
	cmd.Stdin = strings.NewReader("list channels\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	contains(t, "the output", string(out), "cli_channel")
	if after := descendants(t, w.kernel.pid()); len(after) != len(below) {
		t.Errorf("the kernel ran %v and now runs %v", below, after)
	}
	w.works()
}

func TestChatWithoutAKernelSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, complaints, code := w.cli("chat")
	if code == 0 {
		t.Error("exit status 0")
	}
	contains(t, "stderr", complaints, "switchboard run")
}

func TestProgramInterruptedInTheMiddleLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cmd := w.command()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("list channels\n")); err != nil {
		t.Fatal(err)
	}
	w.eventually("an answer", func() bool { return bytes.Contains([]byte(out.String()), []byte("cli_channel")) })
	below := descendants(t, cmd.Process.Pid)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	w.gone(below)
}
