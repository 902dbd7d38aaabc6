package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// worker is a word of the instructions that every sub-agent has.
const worker = "You work for another agent."

// names is the name that a sub-agent is told.
func names(r openaitest.Request) string {
	_, behind, _ := strings.Cut(r.Messages[0].Content.Text, "Your name is ")
	name, _, _ := strings.Cut(behind, ".")
	return name
}

// collected is the messages that a result of receive or check holds.
func collected(t *testing.T, result string) (found []struct {
	From    string
	Success bool
	Output  string
	Error   string
	Message string
	Outcome string
	Partial string `json:"partial_output"`
}) {
	t.Helper()
	var all struct{ Messages json.RawMessage }
	if err := json.Unmarshal([]byte(result), &all); err != nil {
		t.Errorf("the result %q: %v", result, err)
		return nil
	}
	if err := json.Unmarshal(all.Messages, &found); err != nil {
		t.Errorf("the result %q: %v", result, err)
	}
	return found
}

// allResults is the results of the calls of the turn that is under way.
func allResults(r openaitest.Request) (results []string) {
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			results = nil
		case "tool":
			results = append(results, m.Content.Text)
		}
	}
	return results
}

// script has an agent make one call after the other and then say what it got.
func script(calls ...openaitest.Answer) func(openaitest.Request) openaitest.Answer {
	return func(r openaitest.Request) openaitest.Answer {
		results := allResults(r)
		if len(results) < len(calls) {
			return calls[len(results)]
		}
		return openaitest.Say(strings.Join(results, "\n"))
	}
}

// TestSubAgentsInParallel has one agent give work to three, of whom two work at
// a time, and collect what they say out of order. They start blank.
func TestSubAgentsInParallel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	push := func(name string) openaitest.Answer {
		return openaitest.CallTool("tasks__push", map[string]string{"name": name, "prompt": "Do part " + name + "."})
	}
	lead := script(push("a"), push("b"), push("c"),
		openaitest.CallTool("tasks__run", map[string]int{"count": 2}),
		openaitest.CallTool("tasks__receive", map[string]string{"from": "b"}),
		openaitest.CallTool("tasks__receive", map[string]string{"from": "c"}),
		openaitest.CallTool("tasks__receive", map[string]string{}),
		openaitest.CallTool("tasks__receive", map[string]string{}))
	w.model.Handle(by(map[string]func(openaitest.Request) openaitest.Answer{
		"You are a personal assistant": lead,
		worker: func(r openaitest.Request) openaitest.Answer {
			if text := fmt.Sprint(r.Messages); strings.Contains(text, "secret of the conversation") {
				t.Errorf("a sub-agent knows the conversation: %s", text)
			}
			return openaitest.Say("Part " + names(r) + " is done.")
		},
	}))
	w.start()
	said := w.attach().ask("the secret of the conversation")
	lines := strings.Split(said, "\n")
	if len(lines) != 8 {
		t.Fatalf("the assistant got %q", said)
	}
	for i, name := range []string{"b", "c", "a"} {
		got := collected(t, lines[4+i])
		if len(got) != 1 || got[0].From != name || !got[0].Success || got[0].Output != "Part "+name+" is done." {
			t.Errorf("receive %d: %+v", i, got)
		}
	}
	contains(t, "a wait in vain", lines[7], "Nothing can come")
}

// TestCommandsForSubAgents goes through what a person can do with them.
func TestCommandsForSubAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.model.Handle(by(map[string]func(openaitest.Request) openaitest.Answer{
		"You are a personal assistant": func(openaitest.Request) openaitest.Answer { return openaitest.Say("I see.") },
		worker: func(r openaitest.Request) openaitest.Answer {
			if len(r.Results()) == 0 {
				return openaitest.CallTool("tasks__receive", map[string]string{"from": "main"})
			}
			return openaitest.Say("I was told: " + r.Results()[0])
		},
	}))
	w.start()
	p := w.attach()
	contains(t, "/check", p.ask("/check"), "Nothing has come")
	contains(t, "/push", p.ask("/push name=one timeout=600 Wait for a word."), "Queued as one")
	contains(t, "/push", p.ask("/push name=one Again."), "is taken")
	contains(t, "/push", p.ask("/push name=two Wait, too."), "Queued as two")
	contains(t, "/send to a queued one", p.ask("/send one the word"), "Sent to one")
	// From here on the assistant may be told of a result, and say so, at any time.
	before := len(p.texts())
	since := func(text string) func() bool {
		return func() bool { return strings.Contains(strings.Join(p.texts()[before:], "\n"), text) }
	}
	p.say("/run")
	w.eventually("the start", since("Started: one, two"))
	p.say("/receive from=two")
	w.eventually("the wait", since("Waiting. What comes next"))
	p.say("/queue")
	w.eventually("the queue", since("two (started"))
	p.say("/task_cancel two")
	w.eventually("the cancelling", since("Cancelled two"))
	w.eventually("the result of two", since("two** has failed (cancelled)"))
	w.eventually("the end of one", func() bool { return strings.Contains(w.must("tasks", "list"), "ok") })
	p.say("/check")
	w.eventually("the result of one", since("I was told"))
	p.say("/inbox")
	w.eventually("an empty inbox", since("inbox is empty"))
	shown := w.must("tasks", "show", "one", "--follow")
	for _, part := range []string{"Wait for a word.", "tasks/receive", "the word", "finished ok", "I was told"} {
		contains(t, "tasks show", shown, part)
	}
	if _, stderr, code := w.cli("tasks", "cancel", "one"); code == 0 || !strings.Contains(stderr, "has finished already") {
		t.Errorf("tasks cancel ends with %d: %s", code, stderr)
	}
}
