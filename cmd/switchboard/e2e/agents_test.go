package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// helper is an agent that is nothing but a manifest.
const helper = `api: 1
id: helper
name: Helper
version: 1.0.0
description: Helps.
agent:
  model: default
  instructions: You are the helper.
  uses_tools: [lab/look]
`

// by answers each agent by a word of its instructions.
func by(agents map[string]func(openaitest.Request) openaitest.Answer) func(openaitest.Request) openaitest.Answer {
	return func(r openaitest.Request) openaitest.Answer {
		for word, answer := range agents {
			if strings.Contains(r.Messages[0].Content.Text, word) {
				return answer(r)
			}
		}
		return openaitest.Fail(400, "no agent is meant")
	}
}

func TestAgentThatIsOnlyAManifestWorksAsSoonAsItIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.model.Handle(by(map[string]func(openaitest.Request) openaitest.Answer{
		"You are the helper.":          func(openaitest.Request) openaitest.Answer { return openaitest.Say("The helper.") },
		"You are a personal assistant": func(openaitest.Request) openaitest.Answer { return openaitest.Say("The orchestrator.") },
	}))
	w.start()
	p := w.attach()
	c := w.control()
	if got := p.ask("/agent helper"); !strings.Contains(got, `no agent "helper"`) {
		t.Fatalf("it is there already: %s", got)
	}
	if got := p.ask("who are you?"); got != "The orchestrator." {
		t.Errorf("the terminal shows %q", got)
	}
	before := w.state(c, "orchestrator", "active")
	w.dropIn("helper", "", helper)
	dropped := time.Now()
	w.state(c, "helper", "active")
	t.Logf("active %s after it was dropped in", time.Since(dropped).Round(time.Millisecond))
	if after := w.state(c, "orchestrator", "active"); after.Pid != before.Pid {
		t.Error("another agent was restarted for it")
	}

	// Asked for by the message, by a command, by the configuration.
	if got := w.attach(wire.Frame{New: true, Agent: "helper"}).ask("who are you?"); got != "The helper." {
		t.Errorf("chat --agent: %q", got)
	}
	contains(t, "the confirmation", p.ask("/agent helper"), "helper answers here from now on")
	if got := p.ask("who are you?"); got != "The helper." {
		t.Errorf("/agent: %q", got)
	}
	for how, text := range map[string]string{
		"mapped":      "agents: {routing: {cli_channel: helper}}",
		"channel_map": "agents: {channel_map: {cli_channel: helper}}",
		"default":     "agents: {default: helper}",
		"enabled":     "agents: {enabled: [helper, echo]}",
	} {
		w.config("agents: {default: echo}")
		other := w.attach(wire.Frame{New: true})
		w.eventually("the configuration to be in force", func() bool { return other.ask("who are you?") == "who are you?" })
		w.config(text)
		w.eventually("the helper, "+how, func() bool { return other.ask("who are you?") == "The helper." })
	}
	w.config("agents: {enabled: [echo]}")
	w.eventually("a refusal", func() bool {
		got := p.ask("who are you?") // as /agent has chosen
		return strings.Contains(got, "helper") && strings.Contains(got, "not enabled")
	})
}

func TestChatRemembersAndBasicChatDoesNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	var n atomic.Int32
	w.model.Handle(func(openaitest.Request) openaitest.Answer {
		return openaitest.Say(fmt.Sprintf("<answer %d>", n.Add(1)))
	})
	w.start()
	for _, agent := range []string{"chat", "basic_chat"} {
		p := w.attach(wire.Frame{New: true, Agent: agent})
		p.ask("my name is Anna")
		before := w.model.Total()
		p.ask("what is my name?")
		if got := w.model.Total() - before; got != 1 {
			t.Errorf("%s asks the model %d times", agent, got)
		}
		r := w.model.Requests()[before]
		if len(r.Tools) != 0 || !strings.Contains(r.Messages[0].Content.Text, "You have no tools.") {
			t.Errorf("%s is offered %d tools, and told:\n%s", agent, len(r.Tools), r.Messages[0].Content.Text)
		}
		var said []string
		for _, m := range r.Messages[1:] {
			said = append(said, m.Role+": "+m.Content.Text)
		}
		want := []string{"user: what is my name?"}
		if agent == "chat" {
			want = []string{"user: my name is Anna", "assistant: <answer 1>", "user: what is my name?"}
		}
		if strings.Join(said, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s sends %q, want %q", agent, said, want)
		}
	}
	for _, s := range list[[]*adminv1.Session](w, "sessions", "list") {
		if s.Rows != 4 || s.State != "idle" {
			t.Errorf("what was said is kept all the same: %+v", s)
		}
	}
}

// Whoever dies while one agent works for another: the result comes once, and so
// does the answer.
func TestTaskOfAnotherAgentSurvivesEveryDeath(t *testing.T) {
	t.Parallel()
	deaths := map[string]func(w *world){
		"kernel": func(w *world) { w.crash(); w.release(); w.start() },
		"the agent that works": func(w *world) {
			w.killAgent("helper")
			w.release()
		},
		"the agent that waits": func(w *world) {
			w.killAgent("orchestrator")
			w.release()
		},
	}
	for name, die := range deaths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withModel)
			w.config("processes: separate")
			w.dropIn("helper", "", helper)
			w.probe("lab", "tools", "provides: {tools: true}")
			w.model.Handle(by(map[string]func(openaitest.Request) openaitest.Answer{
				"You are the helper.": func(r openaitest.Request) openaitest.Answer {
					if len(r.Results()) == 0 {
						return openaitest.CallTool("lab__look", `{}`)
					}
					return openaitest.Say("It is blue.")
				},
				"You are a personal assistant": func(r openaitest.Request) openaitest.Answer {
					if len(r.Results()) == 0 {
						return openaitest.CallTool("delegate_task", map[string]string{"agent": "helper", "prompt": "Which color is it?"})
					}
					return openaitest.Say("The helper says: " + strings.Join(r.Results(), " and "))
				},
			}))
			w.start()
			c := w.control()
			w.state(c, "lab", "active")
			w.state(c, "helper", "active")
			p := w.attach()
			p.say("which color is it?")
			w.line(1, "lab", "calls")
			die(w)
			if name == "kernel" {
				p = w.attach()
			}
			got, ok := strings.CutPrefix(p.hears(1), "The helper says: ")
			var result struct {
				Agent, Output, Outcome string
				Success                bool
			}
			if err := json.Unmarshal([]byte(got), &result); !ok || err != nil || !result.Success ||
				result.Agent != "helper" || result.Output != "It is blue." || result.Outcome != "ok" {
				t.Errorf("the terminal shows %q", p.texts())
			}
			w.settled()
			if n := len(p.texts()); n != 1 {
				t.Errorf("the terminal shows %q", p.texts())
			}
			if n := w.model.Total(); n != 4 {
				t.Errorf("the model was asked %d times", n)
			}
			for _, s := range list[[]*adminv1.Session](w, "sessions", "list") {
				if rows := map[string]int64{"orchestrator": 4, "helper": 4}[s.Agent]; s.Rows != rows || s.State != "idle" {
					t.Errorf("session %+v", s)
				}
			}
			if dead := w.dead(); len(dead) != 0 {
				t.Errorf("dead letters: %q", dead)
			}
		})
	}
}

// killAgent kills the process of an agent and waits for the next one.
func (w *world) killAgent(id string) {
	w.t.Helper()
	before := w.extensionProcess("agent:" + id)
	kill(before, syscall.SIGKILL)
	w.eventually("another process of "+id, func() bool { return w.extensionProcess("agent:"+id).pid != before.pid })
}

func TestStopEndsTheWorkOfOtherAgents(t *testing.T) {
	t.Parallel()
	w, p := working(t)
	contains(t, "the answer", p.ask("/stop"), "Stopped")
	w.restful(p, 2, 1)
}

func TestDeletingASessionEndsWhatRunsInIt(t *testing.T) {
	t.Parallel()
	w, p := working(t)
	for _, s := range list[[]*adminv1.Session](w, "sessions", "list", "--agent", "orchestrator") {
		contains(t, "the confirmation", w.must("sessions", "delete", s.Id, "--yes"), s.Id, "is deleted")
	}
	w.restful(p, 1, 0)
	if got := p.ask("/status"); got == "" || len(p.texts()) != 1 {
		t.Errorf("the terminal shows %q", p.texts())
	}
}

// working is a chat where one agent works for another.
func working(t *testing.T) (*world, *person) {
	t.Helper()
	w := newWorld(t, withModel)
	w.dropIn("helper", "", helper)
	w.probe("lab", "tools", "provides: {tools: true}")
	w.model.Handle(by(map[string]func(openaitest.Request) openaitest.Answer{
		"You are the helper.": func(openaitest.Request) openaitest.Answer { return openaitest.CallTool("lab__look", `{}`) },
		"You are a personal assistant": func(openaitest.Request) openaitest.Answer {
			return openaitest.CallTool("delegate_task", map[string]string{"agent": "helper", "prompt": "Look."})
		},
	}))
	w.start()
	c := w.control()
	w.state(c, "lab", "active")
	w.state(c, "helper", "active")
	p := w.attach()
	p.say("have it looked at")
	w.line(1, "lab", "calls")
	for _, s := range list[[]*adminv1.Session](w, "sessions", "list") {
		if s.State != "running" || s.Turns != 1 {
			t.Errorf("session %+v", s)
		}
	}
	return w, p
}

// restful checks that nothing goes on, and how many sessions and texts there are.
func (w *world) restful(p *person, sessions, texts int) {
	w.t.Helper()
	w.settled()
	w.release()
	all := list[[]*adminv1.Session](w, "sessions", "list")
	for _, s := range all {
		if s.State != "idle" {
			w.t.Errorf("session %+v", s)
		}
	}
	if n := w.model.Total(); n != 2 || len(p.texts()) != texts || len(all) != sessions {
		w.t.Errorf("the model was asked %d times, %d sessions are left, and the terminal shows %q", n, len(all), p.texts())
	}
}
