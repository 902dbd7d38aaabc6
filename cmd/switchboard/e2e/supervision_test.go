package e2e

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// quickly makes an extension fail for good after few and quick restarts.
const quickly = "restart: {backoff: 10ms, max_backoff: 50ms, max: 2, window: 1m}"

// works checks that the assistant answers at a terminal.
func (w *world) works() {
	w.t.Helper()
	p := w.attach()
	defer p.leave()
	if got := p.ask("list channels"); !strings.Contains(got, "cli_channel") {
		w.t.Errorf("the assistant answers %q", got)
	}
}

func TestStoppedProcessIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probe("box", "channel", "provides: {channel: {formats: [text]}}")
	w.start()
	c := w.control()
	w.state(c, "box", "active")
	stopped := w.extensionProcess("probe box")
	kill(stopped, syscall.SIGSTOP)
	w.attach().say(`send "hello" to box`)
	w.eventually("another process", func() bool {
		pid := w.extension(c, "box").Pid
		return pid != 0 && pid != int64(stopped.pid)
	})
	w.gone([]process{stopped})
	w.eventually("the message", func() bool { return strings.Contains(w.text("data", "box", "out"), "hello") })
	w.works()
}

func TestCrashLoopEndsInFailedWhileEverythingElseWorks(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"crash", "exit", "garbage"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.probe("broken", mode, quickly)
			w.start()
			c := w.control()
			e := w.state(c, "broken", "failed")
			want := map[string]string{"crash": "exit status 3", "exit": "exit status 3", "garbage": "stdout"}[mode]
			if !strings.Contains(e.LastError, want) {
				t.Errorf("the last error is %q, without %q", e.LastError, want)
			}
			w.eventually("the event that says so", func() bool { return w.count("system.extension.failed") == 1 })
			w.works()
			// Once it is repaired, it is started again.
			w.write("api: 1\nid: broken\nname: Repaired\nversion: 1.0.1\nrun: {command: ./probe, args: [broken, bus]}\n", 0o600,
				"extensions", "broken", "manifest.yaml")
			w.state(c, "broken", "active")
		})
	}
}

func TestExtensionsCommandRestartsAFailedOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probe("broken", "once", quickly)
	w.start()
	c := w.control()
	w.state(c, "broken", "failed")
	w.write("", 0o600, "data", "broken", "repaired")
	w.must("extensions", "restart", "broken")
	w.state(c, "broken", "active")
}

func TestMissingExecutableIsNamedAndStartedOnceItIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dropIn("absent", "", "api: 1\nid: absent\nname: Absent\nversion: 1.0.0\nrun: {command: ./probe, args: [absent, "+
		"bus]}\n"+quickly+"\n", "in")
	w.start()
	c := w.control()
	e := w.state(c, "absent", "failed")
	if !strings.Contains(e.LastError, "extensions/absent/probe does not exist") {
		t.Errorf("the last error is %q", e.LastError)
	}
	w.works()
	copyFile(w, binary("probe"), w.file("extensions", "absent", "probe"))
	w.state(c, "absent", "active")
}

func TestExtensionThatNeverFinishesStartingIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"hang", "mute"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.dropIn("slow", "probe",
				"api: 1\nid: slow\nname: Slow\nversion: 1.0.0\nrun: {command: ./probe, args: [slow, "+mode+"], start_timeout: "+
					"1s}\n"+
					"restart: {backoff: 10ms, max_backoff: 50ms, max: 1, window: 1m}\n", "in")
			w.start()
			w.works() // at once, without waiting for it
			c := w.control()
			e := w.state(c, "slow", "failed")
			if !strings.Contains(e.LastError, "start_timeout") {
				t.Errorf("the last error is %q", e.LastError)
			}
			w.eventually("the end of its process", func() bool {
				return !slices.ContainsFunc(descendants(t, w.kernel.pid()),
					func(p process) bool { return strings.Contains(p.command, "probe slow") })
			})
		})
	}
}

func TestExtensionThatPrintsToStdoutWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probe("loud", "chatter", "")
	w.start()
	c := w.control()
	w.line(1, "loud", "out")
	if e := w.state(c, "loud", "active"); e.Restarts != 0 {
		t.Errorf("it was started again: %+v", e)
	}
	w.eventually("what it printed in its log", func() bool { return strings.Contains(w.log("loud"), "after blah") })
	w.works()
}

func TestKilledKernelLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.probe("mother", "child", "")
	w.probe("box", "channel", "provides: {channel: {formats: [text]}}")
	w.start()
	c := w.control()
	w.state(c, "mother", "active")
	w.state(c, "box", "active")
	below := descendants(t, w.kernel.pid())
	child := w.extensionProcess("sleep 3607")
	_ = w.kernel.cmd.Process.Kill()
	<-w.kernel.ended
	// What an extension has started itself the next kernel ends at the latest.
	var own []process
	for _, p := range below {
		if p.pid != child.pid {
			own = append(own, p)
		}
	}
	w.gone(own)
	w.start()
	w.gone([]process{child})
	w.works()
	w.state(w.control(), "mother", "active")
	w.stop() // takes the new child along
}

func TestStoppedKernelLeavesNothingBehindAndEndsWell(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("Hello.") })
	w.probe("mother", "child", "")
	w.start()
	w.state(w.control(), "mother", "active")
	w.attach().ask("hello")
	w.stop()
	if code := w.kernel.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d: %s", code, w.kernel.output)
	}
	if _, err := os.Stat(w.file("switchboard.db-wal")); err == nil {
		t.Error("the store was not closed")
	}
}
