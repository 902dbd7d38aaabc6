package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// attached reports whether a terminal is still connected.
func (p *person) attached() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed
}

func TestSecretThatAppearsDisturbsNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	delete(w.env, "TELEGRAM_BOT_TOKEN")
	w.probe("box", "channel", "provides: {channel: {formats: [text]}}")
	w.start()
	c := w.control()
	box := w.state(c, "box", "active")
	p := w.attach()
	contains(t, "the answer", p.ask("say hi to me in Telegram"), "TELEGRAM_BOT_TOKEN")
	w.write("TELEGRAM_BOT_TOKEN='"+w.telegram.Token()+"'\n", 0o600, "secrets.env")
	w.telegramReady()
	p.ask("say hi to me in Telegram")
	contains(t, "Telegram", w.told(anna, 1).Text, "Hi")
	if !p.attached() {
		t.Error("the terminal lost its connection")
	}
	if e := w.extension(c, "box"); e.Pid != box.Pid || e.Restarts != 0 {
		t.Errorf("another extension was started again: %+v", e)
	}
	w.write("TELEGRAM_BOT_TOKEN='"+w.telegram.Token()+"'\n", 0o644, "secrets.env") // others may read it
	w.eventually("a complaint", func() bool {
		s, err := c.Status(w.ctx(), &adminv1.StatusRequest{})
		return err == nil && strings.Contains(strings.Join(s.Problems, "\n"), "chmod 600")
	})
	w.telegram.Say(anna, "list channels")
	w.told(anna, 2)
}

func TestChannelSwitchedOffAndOnAgainLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(echo)
	w.start()
	w.telegramReady()
	c := w.control()
	w.telegram.Say(anna, "<one>")
	w.told(anna, 1)
	process := w.state(c, "cli_channel", "active").Pid // the channels share it
	w.config(`{channels: {telegram_channel: {allow_from: ["1001"]}}, extensions: {telegram_channel: {enabled: false}}}`)
	w.state(c, "telegram_channel", "disabled")
	w.eventually("a process without Telegram", func() bool {
		e := w.extension(c, "cli_channel")
		return e.State == "active" && e.Pid != process
	})
	w.telegram.Say(anna, "<two>")
	if got := w.attach().ask("<here>"); got != "You said <here>" {
		t.Errorf("the terminal shows %q", got)
	}
	w.config(`{channels: {telegram_channel: {allow_from: ["1001"]}}}`)
	if got := w.told(anna, 2).Text; got != "You said <two>" {
		t.Errorf("Telegram has %q", got)
	}
	w.settled()
	if got := w.texts(anna); len(got) != 2 {
		t.Errorf("Telegram has %q", got)
	}
}

func TestModelThatIsConfiguredWhileATurnRunsDisturbsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	delete(w.env, "OPENAI_API_KEY")
	w.start()
	c := w.control()
	p := w.attach()
	contains(t, "the answer", p.ask("what is the meaning of life?"), "didn't understand", "OPENAI_API_KEY")
	p.ask("in 3 seconds remind me in Telegram to turn off the kettle")
	before := w.state(c, "orchestrator", "active")
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("42") })
	w.write("OPENAI_API_KEY="+openaiKey+"\n", 0o600, "secrets.env")
	w.eventually("the model", func() bool { return p.ask("what is the meaning of life?") == "42" })
	for _, r := range w.model.Requests() {
		if asked := fmt.Sprint(r.Messages); strings.Contains(asked, "didn't understand") {
			t.Errorf("the model was told what the offline model did not understand: %s", asked)
		}
	}
	w.telegramReady()
	contains(t, "the reminder", w.told(anna, 1).Text, "kettle")
	if after := w.state(c, "orchestrator", "active"); after.Pid != before.Pid || after.SinceUs > before.SinceUs {
		t.Errorf("the agent was started again: %+v", after)
	}
	// And a setting of the scheduler alone.
	since := w.state(c, "scheduler", "active").SinceUs
	w.config(`{channels: {telegram_channel: {allow_from: ["1001"]}}, extensions: {scheduler: {config: {min_every_seconds: 1}}}}`)
	w.eventually("the scheduler to be initialised again", func() bool {
		e := w.extension(c, "scheduler")
		return e.State == "active" && e.SinceUs > since
	})
	w.model.Queue(openaitest.CallTool("scheduler__schedule_once",
		map[string]any{"message": "And the stove!", "delay_seconds": 1, "channel_id": "telegram_channel"}),
		openaitest.Say("I will."))
	p.ask("and the stove")
	contains(t, "the reminder", w.told(anna, 2).Text, "stove")
	if after := w.state(c, "orchestrator", "active"); after.Pid != before.Pid || after.SinceUs > before.SinceUs {
		t.Errorf("the agent was started again: %+v", after)
	}
	if !p.attached() {
		t.Error("the terminal lost its connection")
	}
}

func TestAgentThatIsDroppedInCanBeChosen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if strings.Contains(r.Messages[0].Content.Text, "You run the lab") {
			return openaitest.Say("Chief here.")
		}
		return openaitest.Say("Assistant here.")
	})
	w.start()
	p := w.attach()
	contains(t, "the answer", p.ask("/agent chief"), `no agent "chief"`)
	w.dropIn("chief", "", chief)
	w.state(w.control(), "chief", "active")
	if got := p.ask("hello"); got != "Assistant here." {
		t.Errorf("the terminal shows %q", got)
	}
	contains(t, "the answer", p.ask("/agent chief"), "chief answers here")
	if got := p.ask("hello"); got != "Chief here." {
		t.Errorf("the terminal shows %q", got)
	}
	w.restart()
	if got := w.attach().ask("hello"); got != "Chief here." {
		t.Errorf("after a restart the terminal shows %q", got)
	}
	w.eventually("the end of the connection whose kernel was killed", func() bool { return !p.attached() })
}

func TestTwoExtensionsWithOneCommandAreBothNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"alpha", "beta"} {
		w.probe(id, "command", "provides: {tools: true, commands: [shout]}\n"+quickly)
	}
	w.start()
	c := w.control()
	w.eventually("one of them to be refused", func() bool {
		a, b := w.extension(c, "alpha"), w.extension(c, "beta")
		text := fmt.Sprint(a.Detail, a.LastError, b.Detail, b.LastError)
		return strings.Contains(text, "shout") && strings.Contains(text, "alpha") &&
			(a.State == "active") != (b.State == "active")
	})
	w.works()
}

func TestSettingsThatChangeAgainAndAgainLoseNothing(t *testing.T) {
	t.Parallel()
	const rounds = 12
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(echo)
	w.start()
	w.telegramReady()
	c := w.control()
	channels, agents := w.state(c, "telegram_channel", "active").Pid, w.state(c, "orchestrator", "active").Pid
	p := w.attach()
	for i := range rounds {
		w.config(fmt.Sprintf(`{channels: {telegram_channel: {allow_from: ["1001"]}}, extensions: {telegram_channel: {config: {poll_timeout: %ds}},
  openai: {config: {max_calls: %d}}, scheduler: {config: {min_every_seconds: %d}}}}`, 20+i, 20+i, 20+i))
		w.telegram.Say(anna, fmt.Sprintf("<m%d>", i))
		p.say(fmt.Sprintf("<t%d>", i))
		w.eventually("an answer", func() bool {
			return strings.Contains(strings.Join(w.texts(anna), ""), fmt.Sprintf("<m%d>", i))
		})
	}
	w.eventually("the last answer", func() bool {
		return strings.Contains(strings.Join(p.texts(), ""), fmt.Sprintf("<t%d>", rounds-1))
	})
	w.settled()
	for where, all := range map[string]string{"m": strings.Join(w.texts(anna), "\n"), "t": strings.Join(p.texts(), "\n")} {
		for i := range rounds {
			if n := strings.Count(all, fmt.Sprintf("<%s%d>", where, i)); n != 1 {
				t.Errorf("<%s%d> was answered %d times:\n%s", where, i, n, all)
			}
		}
	}
	for id, pid := range map[string]int64{"telegram_channel": channels, "orchestrator": agents} {
		if e := w.state(c, id, "active"); e.Pid != pid {
			t.Errorf("the process of %s was started again", id)
		}
	}
	if dead := w.dead(); len(dead) != 0 {
		t.Errorf("dead letters: %q", dead)
	}
}
