package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// few limits the open files of a command and its children.
func few(cmd *exec.Cmd, files int) *exec.Cmd {
	l := exec.Command("bash", append([]string{"-c", `ulimit -n ` + strconv.Itoa(files) + ` && exec "$0" "$@"`, cmd.Path},
		cmd.Args[1:]...)...)
	l.Env = cmd.Env
	return l
}

// memory is what the kernel and its extensions have resident, in MiB.
func (w *world) memory() (mib int) {
	w.t.Helper()
	for _, p := range append(descendants(w.t, w.kernel.pid()), process{pid: w.kernel.pid()}) {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		if err != nil {
			continue // it has ended meanwhile
		}
		for line := range strings.Lines(string(raw)) {
			if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
				kib, _ := strconv.Atoi(strings.Fields(rest)[0])
				mib += kib / 1024
			}
		}
	}
	return mib
}

// named waits until each message of each chat is named in what the chat was told.
func (w *world) named(chats, each int) {
	w.t.Helper()
	w.eventually("an answer to each message", func() bool {
		for c := range chats {
			text := strings.Join(w.texts(int64(5000+c)), "\n")
			for i := range each {
				if !strings.Contains(text, fmt.Sprintf("<c%dm%d>", c, i)) {
					return false
				}
			}
		}
		return true
	})
}

// crowd has people in so many chats write until each has written so many
// messages, and waits until all are answered and nothing is under way.
func (w *world) crowd(chats, written, each int) {
	w.t.Helper()
	for i := written; i < each; i++ {
		for c := range chats {
			w.telegram.Say(int64(5000+c), fmt.Sprintf("message <c%dm%d>", c, i))
		}
	}
	w.named(chats, each)
	w.settled()
	w.answered(chats, each)
	if dead := w.dead(); len(dead) != 0 {
		w.t.Errorf("dead letters: %q", dead)
	}
}

// TestFewFilesSlowDownAndLoseNothing gives every process so few file descriptors
// that the channels run out of them.
func TestFewFilesSlowDownAndLoseNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers(), withModel)
	w.config(`channels: {telegram_channel: {allow_from: ["*"]}}`)
	w.model.Handle(echo)
	w.files = 64
	w.start()
	w.telegramReady()
	// Terminals take all that the process of the channels may have.
	var terminals []net.Conn
	for range 100 {
		if c, err := w.dial(); err == nil {
			terminals = append(terminals, c)
		}
	}
	for c := range 100 {
		w.telegram.Say(int64(5000+c), fmt.Sprintf("message <c%dm0>", c))
	}
	w.eventually("the channels to run out of files", func() bool {
		return strings.Contains(w.text("logs", "telegram_channel.log")+w.text("logs", "cli_channel.log"),
			"too many open files")
	})
	for _, c := range terminals {
		_ = c.Close()
	}
	w.crowd(100, 1, 2)
	if got := w.attach().ask("<here>"); !strings.Contains(got, "<here>") {
		t.Errorf("a terminal is told %q", got)
	}
}

// TestSlowDiskHoldsBackAndLosesNothing has each sync of the store take 100 ms,
// while more comes than it can take: it is answered late, all of it, once, and
// memory does not grow with what waits.
func TestSlowDiskHoldsBackAndLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers(), withModel)
	w.config(`channels: {telegram_channel: {allow_from: ["*"]}}`)
	w.model.Handle(echo)
	w.env["SWITCHBOARD_SLOW_SYNC"] = "100ms"
	w.probe("flood", "bus", "permissions: {publish: [flood.drop]}\n")
	w.start()
	w.telegramReady()
	before := w.memory()
	// What an extension publishes waits at the extension, not in the kernel.
	const drops, size = 120, 500_000
	for range drops {
		w.request("flood", "in", fmt.Sprintf(`{"topic": "flood.drop", "payload": {}, "size": %d}`, size))
	}
	w.crowd(100, 0, 2)
	if grown := w.memory() - before; grown > drops*size/1024/1024+100 && !raceDetector {
		t.Errorf("memory has grown by %d MiB", grown)
	}
	w.eventually("the flood to be stored", func() bool { return len(w.lines("flood", "out")) == drops })
	for _, line := range w.lines("flood", "out") {
		if line != "ok" {
			t.Errorf("the flood was told %q", line)
		}
	}
	if n := w.count("flood.drop"); n != drops {
		t.Errorf("%d of %d are stored", n, drops)
	}
}
