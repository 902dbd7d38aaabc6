package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// known is what `switchboard memory list --json` prints of a memory.
type known struct {
	ID, Kind, Text string
	ChannelID      string `json:"channel_id"`
}

func (w *world) memories(args ...string) []known {
	w.t.Helper()
	return list[[]known](w, append([]string{"memory", "list"}, args...)...)
}

// contextOf is what a request tells of memory in front of what the user said.
func contextOf(r openaitest.Request) string {
	var all []string
	for _, m := range r.Messages {
		if m.Role == "user" && strings.HasPrefix(m.Content.Text, "[context from memory/relevant]") {
			all = append(all, m.Content.Text)
		}
	}
	return strings.Join(all, "\n")
}

// saidIn is what the user said last.
func saidIn(r openaitest.Request) string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" && !strings.HasPrefix(m.Content.Text, "[") {
			return m.Content.Text
		}
	}
	return ""
}

func TestWhatIsToldInTheTerminalIsKnownInTelegramAfterAKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	tell := map[string]map[string]any{
		"My mother's birthday is on 3 May.": {"text": "The birthday of Anna's mother is on 3 May"},
		"Write to me in Telegram.": {"text": "Write to Anna in Telegram", "kind": "preference",
			"channel_id": "telegram_channel"},
		"I have to call the dentist.": {"text": "Call the dentist", "due": "2020-01-01",
			"channel_id": "telegram_channel"},
	}
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		said := saidIn(r)
		switch results := r.Results(); {
		case len(results) > 0:
			return openaitest.Say("Noted: " + results[0])
		case tell[said] != nil:
			return openaitest.CallTool("memory__remember", tell[said])
		}
		return openaitest.Say("I know: " + contextOf(r))
	})
	w.start()
	p := w.attach()
	for said := range tell {
		contains(t, "the confirmation", p.ask(said), `"status":"remembered"`)
	}
	w.restart()
	w.telegramReady()

	// A turn goes on without what memory does not say in time.
	asked := 0
	knows := func(said string) (answer string) {
		t.Helper()
		w.eventually("what is known when someone says "+said, func() bool {
			asked++
			w.telegram.Say(anna, said)
			answer = w.told(anna, asked).Text
			return strings.Contains(answer, "[context ")
		})
		return answer
	}
	got := knows("When are the birthdays of my mother?")
	for _, part := range []string{"The birthday of Anna's mother is on 3 May",
		"Write to Anna in Telegram (channel telegram_channel;", "Call the dentist (overdue since"} {
		contains(t, "what is known", got, part)
	}
	// Without anything that fits, preferences and what is due are known all the same.
	got = knows("Hello!")
	contains(t, "what is known", got, "Write to Anna in Telegram")
	if strings.Contains(got, "birthday") {
		t.Errorf("what does not fit is told: %s", got)
	}
	w.telegram.Say(boris, "When are the birthdays of my mother?")
	if got := w.told(boris, 1).Text; strings.Contains(got, "Anna") {
		t.Errorf("another person is told: %s", got)
	}
	for _, r := range w.model.Requests() {
		if r.HasTool("memory__relevant") || r.HasTool("memory__forget_all") || !r.HasTool("memory__recall") {
			t.Error("the tools of memory that are offered are wrong")
		}
	}
	if dead := w.dead(); len(dead) != 0 {
		t.Errorf("dead letters: %q", dead)
	}
}

func TestMemoryWithoutAModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.start()
	p := w.attach()
	const n = 6
	for i := range n { // each is killed somewhere on its way
		p.say(fmt.Sprintf("remember that box %d is in cellar%d", i, i))
		w.restart()
		p = w.attach()
	}
	w.eventually("everything remembered", func() bool { return len(w.memories()) == n })
	w.settled()
	var got []string
	for _, m := range w.memories() {
		got = append(got, m.Text)
	}
	slices.Sort(got)
	if len(got) != n || got[0] != "box 0 is in cellar0" || len(slices.Compact(got)) != n {
		t.Errorf("remembered is %q", got)
	}
	w.telegramReady()
	w.telegram.Say(anna, "Запомни, что чайник стоит на кухне")
	contains(t, "the answer", w.told(anna, 1).Text,
		"Хорошо, запомню: чайник стоит на кухне [m")
	w.settled()
	w.restart()
	w.telegramReady()
	w.telegram.Say(anna, "Что ты помнишь о чайниках?")
	contains(t, "the answer", w.told(anna, 2).Text, "чайник стоит на кухне (")
	p = w.attach()
	contains(t, "the answer", p.ask("what do you know about cellar3?"), "box 3 is in cellar3 (")
	contains(t, "the command", p.ask("/memories"), "box 3 is in cellar3")
	contains(t, "the answer", p.ask("forget that box 3 is in cellar3"), "Forgotten: box 3 is in cellar3")
	contains(t, "the answer", p.ask("what do you know about cellar3?"), "I don't remember anything about “cellar3”.")
	if len(w.memories()) != n {
		t.Errorf("left are %v", w.memories())
	}

	// A preferred channel decides where a reminder goes that names none.
	contains(t, "the answer", p.ask("remember that I prefer Telegram"), "OK, I'll remember: I prefer Telegram [m")
	contains(t, "the answer", p.ask("in 1 second remind me to turn off the kettle"), "telegram_channel")
	contains(t, "the reminder", w.told(anna, 3).Text, "turn off the kettle")
}

func TestAgentReachesOnlyTheMemoryOfItsManifest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	manifest := func(id, memory string) string {
		return fmt.Sprintf("api: 1\nid: %s\nname: N\nversion: 1.0.0\ndescription: D\nagent:\n  model: default\n  "+
			"instructions: Help.\n  uses_tools: [memory/*]\n  context: [memory/relevant]\n%s", id, memory)
	}
	w.dropIn("none", "", manifest("none", ""))
	w.dropIn("worker", "", manifest("worker", "  memory: [work]\n"))
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if results := r.Results(); len(results) > 0 {
			return openaitest.Say(contextOf(r) + results[0])
		}
		if scope, ok := strings.CutPrefix(saidIn(r), "into "); ok {
			return openaitest.CallTool("memory__remember", map[string]any{"text": "a thing of " + scope, "scope": scope})
		}
		return openaitest.CallTool("memory__recall", map[string]any{"query": "thing"})
	})
	w.start()
	w.attach().ask("into personal")
	none, worker := w.attach(wire.Frame{New: true, Agent: "none"}), w.attach(wire.Frame{New: true, Agent: "worker"})
	contains(t, "the refusal", none.ask("the thing"), `the manifest of "none" lacks "memory: [personal]"`)
	contains(t, "the refusal", none.ask("into personal"), `the manifest of "none" lacks "memory: [personal]"`)
	contains(t, "the refusal", worker.ask("into personal"), `the manifest of "worker" lacks "memory: [personal]"`)
	contains(t, "the confirmation", worker.ask("into work"), `"scope":"work"`)
	got := worker.ask("the thing")
	contains(t, "what is recalled", got, "a thing of work")
	if strings.Contains(got, "a thing of personal") {
		t.Errorf("another scope is told: %s", got)
	}
	if got := w.memories(); len(got) != 2 {
		t.Errorf("remembered is %v", got)
	}
}

func TestATurnGoesOnWithoutMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.config("extensions: {memory: {enabled: false}}")
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if contextOf(r) != "" || r.HasTool("memory__remember") || strings.Contains(r.Messages[0].Content.Text, "## Memory") {
			return openaitest.Say("there is memory")
		}
		return openaitest.Say("fine")
	})
	w.start()
	if got := w.attach().ask("hello"); got != "fine" {
		t.Errorf("the answer is %q", got)
	}
	_, complaint, code := w.cli("memory", "list")
	if code == 0 {
		t.Error("memory list works without memory")
	}
	contains(t, "the complaint", complaint, "memory", "is not running")
}
