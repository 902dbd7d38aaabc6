package e2e

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// contains reports every part that a text lacks.
func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

func TestBrokenConfigurationKeepsTheKernelFromStarting(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ config, secrets, told string }{
		"no YAML":     {config: "channels: {default: [", told: "config.yaml:1:"},
		"unknown key": {config: "timezone: Europe/Berlin\nchanels: {}\n", told: "config.yaml:2:1: chanels"},
		"wrong type":  {config: "channels:\n  hold: soon\n", told: "config.yaml:2:9: channels.hold"},
		"secrets":     {secrets: "TELEGRAM_BOT_TOKEN 1:secret-canary\n", told: "secrets.env:1:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.config(tt.config)
			w.write(tt.secrets, 0o600, "secrets.env")
			out, complaints, code := w.cli("run")
			if code != 1 {
				t.Errorf("exit status %d", code)
			}
			contains(t, "stderr", complaints, tt.told, "fix them")
			if strings.Contains(out+complaints, "secret-canary") {
				t.Errorf("a secret is shown: %s", complaints)
			}
		})
	}
}

func TestBadEditKeepsTheLastGoodOneInForceAndIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.probe("box", "channel", "provides: {channel: {formats: [text]}}\nconfig: {color: red}\nconfig_schema: {type: "+
		"object, properties: {color: {type: string}}}")
	w.start()
	w.telegramReady()
	c := w.control()
	before := w.state(c, "box", "active")
	problem := func(part string) {
		t.Helper()
		var all string
		if !w.waitFor(func() bool {
			s, err := c.Status(w.ctx(), &adminv1.StatusRequest{})
			if err != nil {
				t.Fatal(err)
			}
			all = strings.Join(s.Problems, "\n")
			for _, e := range w.extensions(c) {
				all += "\n" + e.Problem
			}
			return strings.Contains(all, part)
		}) {
			t.Fatalf("the status does not tell %q: %s", part, all)
		}
	}
	w.config("channels: {telegram_channel: {allow_from: [}}")
	problem("config.yaml:1:")
	w.telegram.Say(anna, "list channels")
	contains(t, "the answer", w.told(anna, 1).Text, "telegram_channel")

	w.config("extensions: {box: {config: {color: 7}}}\nchannels: {telegram_channel: {allow_from: ['1001']}}")
	problem("color")

	w.write("api: 1\nid: box\nname: [\n", 0o600, "extensions", "box", "manifest.yaml")
	problem("manifest.yaml:3:")
	w.works()
	if after := w.state(c, "box", "active"); after.Pid != before.Pid {
		t.Error("the extension was started again")
	}
	w.attach().ask(`send "still here" to box`)
	w.eventually("the message", func() bool { return strings.Contains(w.text("data", "box", "out"), "still here") })
}

func TestManifestWithThreeMistakesHasAllOfThemReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dropIn("wrong", "probe", "api: 1\nid: wrong\nname: Wrong\nversion: 1.0.0\nrun: {comand: ./probe}\nprovides:\n  "+
		"channel: {max_length: lots}\nrestart: {policy: sometimes}\n")
	w.start()
	e := w.state(w.control(), "wrong", "invalid")
	contains(t, "the extension", e.Detail+e.Problem,
		"manifest.yaml:5:7: run.comand", "did you mean", "manifest.yaml:7:25: provides.channel.max_length",
		"manifest.yaml:8:19: restart.policy")
	w.works()
	out, complaints, code := w.cli("doctor")
	contains(t, "doctor", out+complaints, "run.comand", "provides.channel.max_length", "restart.policy")
	if code == 0 {
		t.Error("doctor finds nothing wrong")
	}
}

func TestCirclesAndClashesDisableThoseConcernedOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probe("hen", "bus", "requires: {extensions: [egg]}")
	w.probe("egg", "bus", "requires: {extensions: [hen]}")
	w.probe("orphan", "bus", "requires: {extensions: [nobody]}")
	w.probe("offline", "bus", "") // the id of a built-in
	w.probe("fine", "bus", "")
	w.start()
	c := w.control()
	w.state(c, "fine", "active")
	contains(t, "hen", w.state(c, "hen", "invalid").Detail, "egg")
	contains(t, "egg", w.state(c, "egg", "invalid").Detail, "hen")
	contains(t, "orphan", w.state(c, "orphan", "invalid").Detail, "nobody")
	w.works()
}

func TestSecondKernelOnOneHomeIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	_, complaints, code := w.cli("run")
	if code != 1 {
		t.Errorf("exit status %d", code)
	}
	contains(t, "stderr", complaints, "already running", "switchboard chat")
	w.works()
}

func TestHomeThatCannotBeWrittenIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config("")
	w.env["SWITCHBOARD_HOME"] = w.file("config.yaml", "home")
	_, complaints, code := w.cli("run")
	if code != 1 {
		t.Errorf("exit status %d", code)
	}
	contains(t, "stderr", complaints, "config.yaml/home", "SWITCHBOARD_HOME")
	if os.Geteuid() == 0 {
		return // may write everywhere
	}
	w.env["SWITCHBOARD_HOME"] = w.home
	if err := os.Chmod(w.home, 0o500); err != nil {
		t.Fatal(err)
	}
	_, complaints, code = w.cli("run")
	if code != 1 {
		t.Errorf("exit status %d: %s", code, complaints)
	}
}

func TestFullDiskRefusesLoudlyAndKeepsWhatWasAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(echo)
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "<before>")
	w.told(anna, 1)
	w.crash()
	// From here on no file may grow beyond what the store is now.
	w.full = true
	w.start()
	w.telegramReady()
	filling := strings.Repeat("x", 4000)
	var sent int
	w.eventually("the store to be full", func() bool {
		w.telegram.Say(anna, filling)
		sent++
		e := w.extension(w.control(), "telegram_channel")
		return e.Readiness == "degraded" && strings.Contains(e.Detail, "stored")
	})
	w.telegram.Say(anna, "<after>")
	sent++
	accepted := w.count("user.message") - 1
	if accepted >= sent {
		t.Errorf("%d of %d messages were accepted", accepted, sent)
	}
	w.crash()
	w.full = false
	w.start()
	w.eventually("the last answer", func() bool { return strings.Contains(strings.Join(w.texts(anna), "\n"), "<after>") })
	w.settled()
	if got := w.count("user.message") - 1; got != sent {
		t.Errorf("%d of %d messages arrived", got, sent)
	}
}

func TestPayloadOverAMegabyteIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probe("big", "bus", "permissions: {publish: [system.user.notify]}")
	w.start()
	p := w.attach()
	for i, size := range []string{"1048577", "1000000", "20000000", "0"} {
		w.request("big", "in", `{"topic": "system.user.notify", "payload": {"text": "hello `+size+`"}, "size": `+size+`}`)
		got := w.line(i+1, "big", "out")
		if fits := len(size) < 8 && size != "1048577"; fits != (got == "ok") {
			t.Errorf("%s bytes: %s", size, got)
		} else if !fits {
			contains(t, "the error", got, "too large")
		}
	}
	w.request("big", "in",
		`{"topic": "user.message", "payload": {"text": "hello", "user_id": "1", "conversation_id": "1"}}`)
	contains(t, "the error", w.line(5, "big", "out"), "not granted", "channel")
	w.request("big", "in", `{"topic": "channel.send.cli_channel", "payload": {"text": "hello"}}`)
	contains(t, "the error", w.line(6, "big", "out"), "not granted", "kernel alone")
	p.hearsLike("hello 0")
}

func TestRoutingToAnAgentThatIsNotEnabledIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config("agents: {enabled: [echo], routing: {cli_channel: orchestrator}}")
	w.start()
	p := w.attach()
	contains(t, "the answer", p.ask("hello"), "orchestrator", "not enabled", "agents.routing")
	w.config("agents: {enabled: [echo], routing: {cli_channel: butler}}")
	w.eventually("the edit to be in force", func() bool { return strings.Contains(p.ask("hello"), `no agent "butler"`) })
	w.config("agents: {enabled: [echo]}")
	w.eventually("the edit to be in force", func() bool { return strings.Contains(p.ask("hello"), "hello") })
	if n := len(w.dead()); n < 2 {
		t.Errorf("%d dead letters", n)
	}
}

func TestReminderThatCannotBeIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.start()
	p := w.attach()
	yesterday := time.Now().Add(-24 * time.Hour).Format("2006-01-02T15:04")
	for name, tt := range map[string]struct {
		tool string
		args map[string]any
		told string
	}{
		"never": {"scheduler__schedule_recurring", map[string]any{"message": "x", "cron": "0 0 30 2 *"}, "never"},
		"past":  {"scheduler__schedule_once", map[string]any{"message": "x", "at": yesterday}, "past"},
		"no such zone": {"scheduler__schedule_once", map[string]any{"message": "x", "at": "18:30",
			"timezone": "Mars/Olympus"}, "Mars/Olympus"},
		"no such channel": {"scheduler__schedule_once", map[string]any{"message": "x", "delay_seconds": 60,
			"channel_id": "slack_channel"}, "slack_channel"},
	} {
		w.model.Queue(openaitest.CallTool(tt.tool, tt.args), openaitest.Say("After "+name))
		if got := p.ask("remind me"); got != "After "+name {
			t.Errorf("%s: the terminal shows %q", name, got)
		}
		contains(t, name, strings.Join(w.model.Requests()[w.model.Total()-1].Results(), "\n"), tt.told)
	}
	if rows := w.query(`SELECT key FROM kv WHERE owner = 'scheduler' AND key LIKE 'schedule/%' AND key NOT LIKE 'schedule/%.%'`); len(rows) != 0 {
		t.Errorf("schedules were made: %q", rows)
	}
}

// limited is a command under a limit for the size of files, in KiB.
func limited(cmd *exec.Cmd, kib string) *exec.Cmd {
	l := exec.Command("bash", append([]string{"-c", `ulimit -f ` + kib + ` && exec "$0" "$@"`, cmd.Path},
		cmd.Args[1:]...)...)
	l.Env = cmd.Env
	return l
}

func TestStoreThatCannotBeReadIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(w *world)
		told  []string
	}{
		"newer": {func(w *world) {
			conn, err := sqlite.OpenConn(w.file("switchboard.db"), sqlite.OpenReadWrite)
			if err != nil {
				w.t.Fatal(err)
			}
			if err := errors.Join(sqlitex.ExecuteTransient(conn, `PRAGMA user_version = 4711`, nil), conn.Close()); err != nil {
				w.t.Fatal(err)
			}
		}, []string{"switchboard.db", "newer"}},
		"damaged": {func(w *world) {
			w.write(strings.Repeat("This is no database. ", 1000), 0o600, "switchboard.db")
			_ = os.Remove(w.file("switchboard.db-wal"))
		}, []string{"switchboard.db", "damaged"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			w.works()
			w.stop()
			tt.spoil(w)
			before := w.text("switchboard.db")
			_, complaints, code := w.cli("run")
			if code != 1 {
				t.Errorf("exit status %d", code)
			}
			contains(t, "stderr", complaints, tt.told...)
			if w.text("switchboard.db") != before {
				t.Error("the store was changed")
			}
			_ = os.Remove(w.file("switchboard.db")) // this test cannot report what is in it
		})
	}
}

func TestStormEndsAndItsUserIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	// A model that has itself asked again and again.
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if len(r.Results()) > 0 {
			return openaitest.Say("Going on.")
		}
		return openaitest.CallTool("storm__again", `{}`)
	})
	w.config("agents: {default: chief}")
	w.dropIn("chief", "", strings.ReplaceAll(chief, "lab/*", "storm/*"))
	w.probe("storm", "storm", "provides: {tools: true}\npermissions: {publish: [system.agent.task]}")
	w.start()
	w.state(w.control(), "storm", "active")
	p := w.attach()
	p.ask("begin")
	p.hearsLike("200 turns")
	w.settled()
	if n := w.count("agent.output"); n > 210 {
		t.Errorf("there were %d turns", n)
	}
	contains(t, "the dead letters", strings.Join(w.dead(), "\n"), "used up")
}
