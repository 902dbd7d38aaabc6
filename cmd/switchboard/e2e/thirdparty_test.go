package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// fileChannel drops the channel of the sdk's examples in, with its own manifest.
func (w *world) fileChannel() {
	w.t.Helper()
	manifest, err := os.ReadFile("../../../sdk/examples/filechannel/manifest.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	w.dropIn("file_channel", "filechannel", string(manifest), "box/in")
}

const admitMe = `channels: {telegram_channel: {allow_from: ["1001"]}, file_channel: {allow_from: [me]}}`

func TestChannelThatIsDroppedInIsListedWithinASecondAndCanBeTalkedTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config(admitMe)
	w.start()
	p := w.attach()
	if got := p.ask("list channels"); strings.Contains(got, "file_channel") {
		t.Fatalf("it is listed already: %s", got)
	}
	c := w.control()
	w.fileChannel()
	dropped := time.Now()
	w.eventually("the channel to be ready", func() bool {
		for _, ch := range w.channels(c) {
			if ch.ID == "file_channel" && ch.Status == "ready" {
				return true
			}
		}
		return false
	})
	t.Logf("ready %s after it was dropped in", time.Since(dropped).Round(time.Millisecond))
	if got := p.ask("list channels"); !strings.Contains(got, "File (file_channel)") {
		t.Errorf("the assistant lists: %s", got)
	}
	w.request("file_channel", "box/in", "list channels")
	w.eventually("an answer in the file", func() bool {
		return strings.Contains(w.text("extensions", "file_channel", "box", "out"), "Terminal (cli_channel)")
	})
	if got := p.ask(`send "good morning" to file_channel`); !strings.Contains(got, "File") &&
		!strings.Contains(got, "file_channel") {
		t.Errorf("the confirmation is %q", got)
	}
	w.eventually("the greeting in the file", func() bool {
		return strings.Contains(w.text("extensions", "file_channel", "box", "out"), "good morning")
	})
}

func TestReplacingTheBinaryOfAChannelLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config(admitMe)
	w.fileChannel()
	w.probe("sender", "bus", "permissions: {publish: [system.user.notify]}")
	w.start()
	c := w.control()
	w.state(c, "file_channel", "active")
	first := w.extensionProcess("filechannel")
	const n = 300
	for i := range n {
		if i == n/3 { // another file, as a build puts it there
			copyFile(w, binary("filechannel"), w.file("extensions", "file_channel", "filechannel"))
		}
		w.request("sender", "in",
			fmt.Sprintf(`{"topic": "system.user.notify", "payload": {"text": "<%d>", "channel_id": "file_channel"}}`, i))
		w.request("file_channel", "box/in", fmt.Sprintf("hello %d", i))
	}
	w.eventually("another process", func() bool { return w.extensionProcess("filechannel").pid != first.pid })
	w.eventually("all notices", func() bool { return w.count("system.user.notify") == n })
	w.state(c, "file_channel", "active")
	w.request("file_channel", "box/in", "list channels")
	w.eventually("an answer", func() bool {
		return strings.Contains(w.text("extensions", "file_channel", "box", "out"), "cli_channel")
	})
	w.settled()
	next := 0
	for _, line := range w.lines("file_channel", "box", "out") {
		switch {
		case line == fmt.Sprintf("<%d>", next):
			next++
		case strings.HasPrefix(line, "<"):
			t.Errorf("%s came where <%d> was due", line, next)
		}
	}
	if next != n {
		t.Errorf("%d of %d notices arrived", next, n)
	}
	if dead := w.dead(); len(dead) != 0 {
		t.Errorf("dead letters: %q", dead)
	}
}

func TestRemovedChannelIsParkedAndGoesOnWhenItComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config(admitMe)
	w.fileChannel()
	w.start()
	c := w.control()
	w.state(c, "file_channel", "active")
	p := w.attach()
	serving := w.extensionProcess("filechannel")
	if err := os.Rename(w.file("extensions", "file_channel"), w.file("away")); err != nil {
		t.Fatal(err)
	}
	w.gone([]process{serving})
	w.eventually("the channel to be gone", func() bool {
		return !strings.Contains(p.ask("list channels"), "file_channel")
	})
	if got := p.ask(`send "hello" to file_channel`); !strings.Contains(got, "file_channel") ||
		w.count("channel.send.file_channel") != 0 {
		t.Errorf("the answer is %q, and %d messages were sent", got, w.count("channel.send.file_channel"))
	}
	if rows := w.query(`SELECT count(*) FROM subscription WHERE extension = 'file_channel' AND parked_at > 0`); rows[0] != "1" {
		t.Errorf("%s subscriptions are parked", rows[0])
	}
	if err := os.Rename(w.file("away"), w.file("extensions", "file_channel")); err != nil {
		t.Fatal(err)
	}
	w.state(c, "file_channel", "active")
	w.request("file_channel", "box/in", "list channels")
	w.eventually("an answer", func() bool {
		return strings.Contains(w.text("extensions", "file_channel", "box", "out"), "cli_channel")
	})
}

func TestSecretsOfOneExtensionAreInvisibleToOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("Hello.") })
	w.write("OWN_SECRET=mine-4711\n", 0o600, "secrets.env")
	w.probe("spy", "bus", "secrets: [{name: OWN_SECRET}]")
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "hello")
	w.told(anna, 1)
	w.line(1, "spy", "env")
	w.telegram.FailStatus("sendMessage", 1, 500) // something to write about in the logs
	w.telegram.Say(anna, "hello again")
	w.told(anna, 2)
	w.stop()
	out, err := exec.Command("grep", "-rla", "-e", openaiKey, "-e", w.telegram.Token(), "-e",
		strings.SplitN(w.telegram.Token(), ":", 2)[1], w.home).Output()
	if err == nil || len(out) > 0 {
		t.Errorf("a secret stands in:\n%s", out)
	}
	if env := w.text("data", "spy", "env"); strings.Contains(env, "OWN_SECRET") || strings.Contains(env, "TELEGRAM_") ||
		strings.Contains(env, "OPENAI_") {
		t.Errorf("the environment of an extension is:\n%s", env)
	}
}
