package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

const (
	// maxFirst is the most bytes of the first request of a conversation.
	maxFirst = 8000
	// maxNew is the most bytes of a later one that no earlier request began with,
	// besides its new messages.
	maxNew = 200
)

// sent is a request as the server sees it, and what is new in it.
type sent struct {
	openaitest.Request
	openaitest.Added
}

// sentSince is the requests from number n on.
func (w *world) sentSince(n int) (all []sent) {
	requests := w.model.Requests()
	for i, news := range openaitest.AddedBy(requests) {
		if i >= n {
			all = append(all, sent{requests[i], news})
		}
	}
	return all
}

// cheap checks that the requests from number n on bring little but new messages.
func (w *world) cheap(what string, n int) {
	w.t.Helper()
	all := w.sentSince(n)
	if len(all) == 0 {
		w.t.Fatalf("%s: no request was sent", what)
	}
	for _, s := range all {
		if s.Bytes > s.Added.Messages+maxNew {
			w.t.Errorf("%s: %d bytes are new, of which %d are new messages:\n%s", what, s.Bytes, s.Added.Messages,
				s.Raw[len(s.Raw)-s.Bytes:])
		}
	}
}

// A conversation with the default extensions sends a small request first, and
// from then on what is new: over tool rounds, tools that are found, messages that
// interrupt a turn, and kills of the kernel.
func TestARequestIsCheap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.start()
	p := w.attach()
	say := func(text string, answers ...openaitest.Answer) {
		t.Helper()
		n := w.model.Total()
		w.model.Queue(answers...)
		p.ask(text)
		if n > 0 {
			w.cheap(text, n)
		}
	}
	say("Hello!", openaitest.Say("Hello yourself."))
	if first := w.model.Requests()[0]; len(first.Raw) > maxFirst {
		t.Errorf("the first request has %d bytes, at most %d are wanted:\n%s", len(first.Raw), maxFirst, first.Raw)
	}
	said := []string{"Tell me more.", "And then?", "Why?"}
	for _, text := range said {
		say(text, openaitest.Say("That is how it is."))
		last := w.sentSince(w.model.Total() - 1)[0]
		if texts := len("That is how it is.") + len(text); last.Bytes > texts+maxNew {
			t.Errorf("%q: %d bytes are new for %d of texts", text, last.Bytes, texts)
		}
	}
	say("Which channels are there?", openaitest.CallTool("list_channels", "{}"), openaitest.Say("Two."))
	say("Have someone dig.", openaitest.CallTool("find_tools", map[string]string{"query": "task queue"}),
		openaitest.CallTool("use_tool", map[string]any{"name": "tasks/push",
			"arguments": map[string]string{"prompt": "dig", "name": "digger"}}),
		openaitest.CallTool("tasks__queue", "{}"), openaitest.Say("It is queued."))
	results := w.model.Requests()[w.model.Total()-1].Results()
	contains(t, "what the queue says", strings.Join(results, "\n"), "digger")

	// A message interrupts a turn, which goes on afterwards.
	gate, n := make(chan struct{}), w.model.Total()
	call := openaitest.CallTool("list_channels", "{}")
	call.Gate = gate
	w.model.Queue(call, openaitest.Say("It is noon."), openaitest.Say("Two channels."))
	shown := len(p.texts())
	p.say("Count the channels.")
	w.eventually("the request", func() bool { return w.model.Total() > n })
	p.say("What time is it?")
	close(gate)
	p.hears(shown + 2)
	if !strings.Contains(w.model.Requests()[n+1].Last("user"), "[Backlog]") {
		t.Fatalf("the turn was not interrupted:\n%s", w.model.Requests()[n+1].Raw)
	}
	w.cheap("an interrupted turn", n)

	w.settled()
	w.restart()
	p = w.attach()
	say("Are you back?", openaitest.Say("I am."))

	// The kernel is killed in the middle of a turn: the request is sent again.
	gate, n = make(chan struct{}), w.model.Total()
	held := openaitest.Say("Never heard.")
	held.Gate = gate
	w.model.Queue(openaitest.CallTool("list_channels", "{}"), held, openaitest.Say("Still two."))
	p.say("Count again.")
	w.eventually("the request with the result", func() bool { return w.model.Total() == n+2 })
	// What only reads is stored with the next commit, and otherwise done again.
	w.eventually("the result in the store", func() bool {
		return len(w.query("SELECT id FROM call WHERE ended_at = 0")) == 0
	})
	w.restart()
	close(gate)
	p = w.attach()
	p.hearsLike("Still two.")
	if again := w.sentSince(n + 2); again[0].Bytes != 0 {
		t.Errorf("after a kill %d bytes of the same request are new:\n%s", again[0].Bytes,
			again[0].Raw[len(again[0].Raw)-again[0].Bytes:])
	}
	w.cheap("a killed turn", n)

	// A new conversation begins as the old one did.
	n = w.model.Total()
	p.ask("/new")
	w.model.Queue(openaitest.Say("Hello again."))
	p.hearsLike("")
	shown = len(p.texts())
	p.say("Hello?")
	p.hears(shown + 1)
	fresh := w.sentSince(n)[0]
	if len(fresh.Request.Messages) != 2 {
		t.Errorf("a new conversation has %d messages", len(fresh.Request.Messages))
	}
	if preamble := len(fresh.Request.Messages[1].Content.Preamble); fresh.Bytes > fresh.Added.Messages+preamble+maxNew {
		t.Errorf("of the first request of a new conversation %d bytes are new", fresh.Bytes)
	}
}

// Named exceptions: what an agent is given as context is shown in its turn only,
// which sends that turn again, and no other.
func TestContextSendsItsTurnOnceMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.start()
	p := w.attach()
	w.model.Queue(openaitest.CallTool("memory__remember", map[string]string{"text": "Anna prefers green tea.",
		"kind": "preference"}), openaitest.Say("Noted."))
	p.ask("I prefer green tea.")
	w.model.Handle(func(r openaitest.Request) openaitest.Answer { return openaitest.Say("You said: " + r.Last("user")) })
	var withContext []sent
	w.eventually("four turns with context", func() bool {
		n := w.model.Total()
		p.ask(fmt.Sprintf("Question %d about tea", n))
		withContext = append(withContext, w.sentSince(n)...)
		if !strings.Contains(string(w.model.Requests()[n].Raw), "[context from memory/relevant]") {
			withContext = nil
		}
		return len(withContext) == 4
	})
	for i, s := range withContext[1:] {
		// The context of the turn before and what stood behind it: nothing of the
		// turns before that one.
		if s.Resent != 1 {
			t.Errorf("turn %d: %d messages of the last request do not stand where they stood", i+1, s.Resent)
		}
		if s.Bytes > s.Added.Messages+maxNew {
			t.Errorf("turn %d: %d bytes are new, of which %d are messages", i+1, s.Bytes, s.Added.Messages)
		}
	}
}

// Named exceptions: a summary, in large steps, and a changed instruction or tool,
// once.
func TestWhatSendsAConversationAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.config("agents: {default: chief}")
	manifest := chief + "  limits: {max_tokens: 4000}\n"
	w.dropIn("chief", "", manifest)
	w.probe("lab", "tools", "provides: {tools: true}")
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if strings.Contains(r.Messages[0].Content.Text, "memory of a conversation") {
			return openaitest.Say("They talked about x.")
		}
		return openaitest.Say("Noted.")
	})
	w.start()
	w.state(w.control(), "lab", "active")
	p := w.attach()
	turns := 0
	talk := func(n int) (all []sent) {
		t.Helper()
		from := w.model.Total()
		for range n {
			turns++
			p.ask(fmt.Sprintf("%d %s", turns, strings.Repeat("x", 500)))
		}
		return slices.DeleteFunc(w.sentSince(from), func(s sent) bool { return len(s.Tools) == 0 }) // asks for a summary
	}
	again := func(all []sent) (n int) {
		for _, s := range all {
			if s.Bytes > s.Added.Messages+maxNew || s.Resent > 0 && len(s.Request.Messages) < 4 {
				n++
			}
		}
		return n
	}
	summarized := talk(40)
	summaries := 0
	for i, s := range summarized {
		if !strings.HasPrefix(s.Request.Messages[1].Content.Text, "[summary ") {
			continue
		}
		if i == 0 || summarized[i-1].Request.Messages[1].Content.Text != s.Request.Messages[1].Content.Text ||
			len(summarized[i-1].Request.Messages) > len(s.Request.Messages) {
			summaries++
		}
	}
	if summaries < 2 || summaries > 8 {
		t.Errorf("%d summaries in 40 turns of about 540 bytes with a window of 16,000", summaries)
	}
	if n := again(summarized); n > summaries {
		t.Errorf("%d of 40 requests send more than what is new, with %d summaries", n, summaries)
	}

	for name, change := range map[string]func(){
		"a changed instruction": func() {
			w.write(strings.Replace(manifest, "You run the lab.", "You run the large lab.", 1), 0o600, "extensions", "chief",
				"manifest.yaml")
		},
		"a changed tool": func() {
			w.must("extensions", "list")
			w.config("agents: {default: chief}\nextensions: {lab: {enabled: false}}")
		},
	} {
		before := w.sentSince(w.model.Total() - 1)[0]
		change()
		w.eventually(name, func() bool {
			s := talk(1)[0]
			return s.Request.Messages[0].Content.Text != before.Request.Messages[0].Content.Text ||
				len(s.Tools) != len(before.Tools)
		})
		if n := again(talk(3)); n > 1 { // one may be a summary
			t.Errorf("after %s %d of 3 requests send more than what is new", name, n)
		}
	}
}

// A prompt of a user that names the time goes on working, and doctor says what
// it costs.
func TestAPromptWithTheTimeGoesOnWorking(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.write("You are terse. Current time: {{.Time}} ({{.Zone}})", 0o600, "data", "orchestrator", "prompts", "system.md")
	w.start()
	p := w.attach()
	w.model.Queue(openaitest.Say("Hi."))
	p.ask("Hello!")
	system := w.model.Requests()[0].Messages[0].Content.Text
	if !strings.HasPrefix(system, "You are terse. Current time: 20") || !strings.HasSuffix(system, "(Europe/Berlin)") {
		t.Errorf("the system prompt is %q", system)
	}
	out, _, _ := w.cli("doctor")
	contains(t, "doctor", out, w.file("data", "orchestrator", "prompts",
		"system.md")+": the system prompt of orchestrator depends on the time")
}
