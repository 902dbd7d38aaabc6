package e2e

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// What agents do together is seen from the command line, while they do it, over
// a restart of the kernel as well: one task that gives another one and talks to
// an agent over a link.
func TestWhatAgentsDoTogetherIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.config("agents: {default: orchestrator, enabled: [orchestrator, lead]}\nlinks: [{from: orchestrator, to: lead, " +
		"mode: task}]\n")
	w.dropIn("lead", "", strings.ReplaceAll(linkedAgent, "%[1]s", "lead"))
	half, rest := make(chan struct{}), make(chan struct{})
	step := func(calls ...openaitest.Answer) func(openaitest.Request) openaitest.Answer {
		return func(r openaitest.Request) openaitest.Answer {
			if n := len(now(r).results); n < len(calls) {
				return calls[n]
			}
			return openaitest.Say("It is all done.")
		}
	}
	call := openaitest.CallTool
	w.model.Handle(by(map[string]func(openaitest.Request) openaitest.Answer{
		"You are a personal assistant": func(r openaitest.Request) openaitest.Answer {
			switch input := now(r).inputs[0]; {
			case strings.Contains(input, "[result from lead]"):
				return openaitest.Say("The title is nebula.")
			case !strings.Contains(input, "write about it"):
				return openaitest.Say("I see.")
			}
			return step(
				call("tasks__push", map[string]any{"name": "research", "prompt": "Research it."}),
				call("tasks__run", map[string]any{}),
				call("links__send_agent_message", map[string]any{"target": "lead", "message": "Find a title."}),
			)(r)
		},
		"Your name is research.": func(r openaitest.Request) openaitest.Answer {
			a := step(
				call("tasks__push", map[string]any{"name": "measure", "prompt": "Measure it."}),
				call("tasks__run", map[string]any{}),
				call("tasks__receive", map[string]any{"from": "measure"}),
				call("tasks__send", map[string]any{"to": "main", "message": "Half way through."}),
			)(r)
			switch len(now(r).results) {
			case 3:
				a.Gate = half
			case 4:
				a.Gate = rest
			}
			return a
		},
		"Your name is measure.": func(openaitest.Request) openaitest.Answer { return openaitest.Say("Three seconds.") },
		"You are the lead.":     func(openaitest.Request) openaitest.Answer { return openaitest.Say("nebula") },
	}))
	w.start()
	for _, id := range []string{"tasks", "links", "lead"} {
		w.state(w.control(), id, "active")
	}
	p := w.attach()
	p.say("write about it")
	p.hearsLike("It is all done.")
	p.hearsLike("The title is nebula.")

	var seen buffer
	follow := w.command("tasks", "show", "research", "--follow")
	follow.Stdout, follow.Stderr = &seen, &seen
	shows := func(part string) {
		t.Helper()
		if !w.waitFor(func() bool { return strings.Contains(seen.String(), part) }) {
			t.Fatalf("%q is not shown, but:\n%s", part, &seen)
		}
	}
	w.eventually("a task to follow", func() bool { _, _, code := w.cli("tasks", "show", "research"); return code == 0 })
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	shows("measure has finished: Three seconds.")
	w.crash()
	shows("The kernel has stopped.")
	w.start()
	shows("The kernel is back.")
	close(half)
	shows("Sent to main.")
	if strings.Contains(seen.String(), "finished: ok") {
		t.Errorf("it is said to have finished:\n%s", &seen)
	}
	close(rest)
	if err := follow.Wait(); err != nil {
		t.Errorf("following ended with %v:\n%s", err, &seen)
	}
	contains(t, "what was followed", seen.String(), "for main of cli_channel", "Research it.", "calls tasks/push",
		"Half way through.", "It is all done.", "finished: ok, after ")
	for _, once := range []string{"Queued as measure", "Sent to main.", "It is all done."} {
		if n := strings.Count(seen.String(), once); n != 1 {
			t.Errorf("%q is shown %d times:\n%s", once, n, &seen)
		}
	}

	places, sides := map[string]bool{}, 0
	for _, s := range list[[]struct{ ID, Name, Key string }](w, "sessions", "list") {
		name, _, _ := strings.Cut(s.Name, " of ")
		places[name] = true
		if shown := w.must("sessions", "show", s.ID); strings.HasPrefix(s.Key, "link:") && !strings.Contains(shown, ", 0 rows") {
			sides++
			contains(t, s.Name, shown, "Find a title.", "nebula")
		}
	}
	if sides != 2 {
		t.Errorf("%d sides of the link have an exchange", sides)
	}
	for _, name := range []string{"task research for main", "task measure for research", "link orchestrator → lead",
		"link lead → orchestrator"} {
		if !places[name] {
			t.Errorf("no session is called %q: %v", name, places)
		}
	}
	var found struct{ Exchanges []struct{ ID string } }
	if err := json.Unmarshal([]byte(w.must("links", "list", "--all", "--json")), &found); err != nil ||
		len(found.Exchanges) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	x := found.Exchanges[0].ID
	contains(t, x, w.must("links", "show", x), "orchestrator → lead", "started", "Find a title.", "concluded by lead",
		"nebula", "the result went to cli_channel")

	// The tree: what was given stands below the call that gave it.
	root := w.query(`SELECT seq FROM event WHERE topic = 'user.message'`)[0]
	tree := w.must("trace", "e"+root)
	t.Log("\n" + tree)
	depth := func(part string) int {
		for line := range strings.Lines(tree) {
			if before, _, ok := strings.Cut(line, part); ok {
				lead, _, _ := strings.Cut(before, "─ ")
				return len([]rune(lead)) * strings.Count(before, "─ ")
			}
		}
		t.Errorf("the trace does not show %q", part)
		return -1
	}
	deeper := func(parts ...string) {
		for i := 1; i < len(parts); i++ {
			if depth(parts[i]) <= depth(parts[i-1]) {
				t.Errorf("%q is not below %q", parts[i], parts[i-1])
			}
		}
	}
	deeper("user.message from cli_channel", "orchestrator in cli_channel", "tool tasks/run")
	deeper("task research for main, done by", "task measure for research, done by")
	deeper("tool links/send_agent_message", "lead gets a message from orchestrator on "+x)
	deeper("lead gets a message from orchestrator on "+x, "orchestrator gets the result of lead")
	if strings.LastIndex(tree, "calls tasks/push") > strings.Index(tree, `{"name":"measure"`) {
		t.Error("a step of a turn that was taken up again is told too late")
	}
	contains(t, "the trace", tree, "measure has finished: Three seconds.", "delivered, message ")
	if strings.Contains(tree, "model.usage") || !strings.Contains(w.must("trace", "e"+root, "--all"), "model.usage") {
		t.Error("what was spent is told, or not told with --all")
	}

	// Bad input is refused with what to do.
	w.crash()
	for args, part := range map[string]string{"tasks show research --follow": "no kernel is running",
		"links show " + x: "start one with"} {
		var out bytes.Buffer
		cmd := w.command(strings.Fields(args)...)
		cmd.Stderr = &out
		if err := cmd.Run(); err == nil || !strings.Contains(out.String(), part) {
			t.Errorf("switchboard %s: %v: %s", args, err, &out)
		}
	}
}
