package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/home/support"
)

// hostile drops in an extension that does harm; run and more are added to its
// manifest.
func (w *world) hostile(mode, run, more string) {
	w.t.Helper()
	if run != "" {
		run = ", " + run
	}
	w.dropIn("hostile", "hostile", fmt.Sprintf("api: 1\nid: hostile\nname: Hostile\nversion: 1.0.0\nrun: {command: "+
		"./hostile, args: [%s], start_timeout: %s%s}\n%s\n%s\n", mode, patience, run, quickly, more))
}

// harm waits until the harm is under way.
func (w *world) harm() {
	w.t.Helper()
	w.eventually("the harm", func() bool { return w.text("data", "hostile", "found") != "" })
}

// removed takes the extension away and checks that nothing of it is left.
func (w *world) removed(before []process) {
	w.t.Helper()
	if err := os.Rename(w.file("extensions", "hostile"), w.file("away")); err != nil {
		w.t.Fatal(err)
	}
	w.state(w.control(), "hostile", "")                      // it does not begin again
	w.eventually("the end of all that it was", func() bool { // what it started while it was ended, too
		return !slices.ContainsFunc(descendants(w.t, w.kernel.pid()), func(p process) bool {
			return !slices.ContainsFunc(before, func(b process) bool { return b.pid == p.pid })
		})
	})
}

// While an extension floods the kernel in whatever way, others are answered,
// and when it is taken away nothing of it is left.
func TestOthersAreAnsweredWhileAnExtensionDoesHarm(t *testing.T) {
	t.Parallel()
	for mode, more := range map[string]string{
		"publish": "permissions: {publish: [hostile.noise]}",
		"large":   "permissions: {publish: [hostile.noise]}",
		"calls":   "",
		"streams": "permissions: {subscribe: [hostile.noise]}",
		"stderr":  "",
		"spin":    "",
		// Everything that it can open, and what does not end when it is asked to.
		"connects": "",
		"files":    "",
		"stubborn": "",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withTelegram())
			w.start()
			w.telegramReady()
			w.works()
			before := descendants(t, w.kernel.pid())
			w.hostile(mode, "", more)
			w.harm()
			p := w.attach()
			for i := range 5 {
				if got := p.ask("list channels"); !strings.Contains(got, "cli_channel") {
					t.Errorf("the assistant answers %q", got)
				}
				w.telegram.Say(anna, "list channels")
				w.told(anna, i+1)
			}
			if got := w.text("data", "hostile", "found"); mode == "streams" &&
				!strings.Contains(got, "too many watches of events") {
				t.Errorf("it is not told why it is refused: %s", got)
			}
			if opened, _ := strconv.Atoi(w.text("data", "hostile", "found")); mode == "files" &&
				(opened < 1000 || opened >= 8192) {
				t.Errorf("it could open %d files", opened)
			}
			if mode == "streams" {
				w.eventually("a line in the log of the kernel", func() bool {
					return strings.Contains(w.log("kernel"), "refusing requests of an extension")
				})
			}
			w.removed(before)
		})
	}
}

// An extension over a limit is killed, and the reason is reported.
func TestExtensionThatPassesALimitIsKilledWithAReason(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("children and directories are measured on Linux")
	}
	for mode, tt := range map[string]struct{ run, more, reason string }{
		"memory":  {"memory: 128MiB", "", "run.memory allows 128 MiB"},
		"forks":   {"processes: 20", "", "run.processes allows 20"},
		"disk":    {"disk: 8MiB", "", "8 MiB that run.disk allows"},
		"shared":  {"memory: 128MiB", "", "run.memory allows 128 MiB"},
		"memfd":   {"memory: 128MiB", "", "run.memory allows 128 MiB"},
		"threads": {"processes: 5", "", "run.processes allows 5 processes of 64 each"},
		"unnamed": {"disk: 8MiB", "", "run.disk allows 8 MiB"},
		"sockets": {"disk: 8MiB", "", "8 MiB that run.disk allows"},
		"silent": {"", "permissions: {publish: [hostile.ask], subscribe: [{topic: hostile.ask, ack_wait: 1s}]}",
			"hostile.ask"},
		"liar": {"", "", "telegram_channel"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			before := descendants(t, w.kernel.pid())
			w.hostile(mode, tt.run, tt.more)
			c := w.control()
			var e *adminv1.Extension
			w.eventually("an end with a reason", func() bool {
				e = w.extension(c, "hostile")
				return strings.Contains(e.LastError, tt.reason)
			})
			w.eventually("the reason in the log of the kernel", func() bool {
				return strings.Contains(w.log("kernel"), tt.reason)
			})
			if mode == "disk" { // it cannot begin again
				w.state(c, "hostile", "failed")
				if got := w.extension(c, "hostile").Detail; !strings.Contains(got, "delete files in "+w.file("data", "hostile")) {
					t.Errorf("what to do is not told: %s", got)
				}
				for _, command := range []string{"status", "doctor"} {
					if out, _, _ := w.cli(command); !strings.Contains(out, tt.reason) {
						t.Errorf("%s does not tell why it was killed:\n%s", command, out)
					}
				}
				if err := os.RemoveAll(w.file("data", "hostile")); err != nil {
					t.Fatal(err)
				}
				w.must("extensions", "restart", "hostile")
			}
			w.works()
			w.removed(before)
		})
	}
}

func TestWhatEscapesAnExtensionIsEndedWithIt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("there are no adopted children here")
	}
	w := newWorld(t)
	w.start()
	before := descendants(t, w.kernel.pid())
	w.hostile("escape", "", "")
	w.harm()
	escaped := func() []process {
		return slices.DeleteFunc(processes(t), func(p process) bool { return p.command != "/bin/sleep 3613" })
	}
	w.eventually("three that have escaped", func() bool { return len(escaped()) >= 3 })
	w.works()
	w.removed(before)
	w.gone(escaped())
}

func TestSpyFindsNothing(t *testing.T) {
	t.Parallel()
	if support.Detect().Level() != support.LevelFull {
		t.Skipf("the sandbox here: %s", support.Detect())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := newWorld(t, withTelegram())
	w.write("OWN_SECRET=canary-of-nobody\n", 0o600, "secrets.env")
	w.start()
	w.works()
	before := descendants(t, w.kernel.pid())
	w.hostile("spy, '"+l.Addr().String()+"'", "", "")
	w.harm()
	found := map[string]string{}
	if err := json.Unmarshal([]byte(w.text("data", "hostile", "found")), &found); err != nil {
		t.Fatal(err)
	}
	for what, got := range found {
		if got == "ok" || strings.Contains(got, "canary") {
			t.Errorf("%s: %s", what, got)
		}
		if own := strings.HasPrefix(what, "own ") || what == "certificates"; own != (got == "fine") {
			t.Errorf("%s: %s", what, got)
		}
	}
	if len(found) < 30 {
		t.Errorf("it tried %d things only: %v", len(found), found)
	}
	e := w.extension(w.control(), "hostile")
	if e.Sandbox == nil || e.Sandbox.Level != support.LevelFull || e.Sandbox.Network != "no network" {
		t.Errorf("its sandbox is %+v", e.Sandbox)
	}
	if out := w.must("doctor"); !strings.Contains(out, "hostile: own files, no network") ||
		!strings.Contains(out, "telegram_channel, usage: own files, TCP to port 53, ") {
		t.Errorf("doctor says:\n%s", out)
	}
	w.removed(before)
}
