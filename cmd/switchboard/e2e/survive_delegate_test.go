package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// assistant is an agent that works for the keeper.
const assistant = `api: 1
id: assistant
name: Assistant
version: 1.0.0
agent:
  model: default
  instructions: You help the keeper.
  uses_tools: [shop/*]
` + backAtOnce

// delegating has the keeper ask the assistant, who acts once.
func delegating(s *shop) {
	s.config(`agents: {default: keeper, enabled: [keeper, assistant]}
channels: {telegram_channel: {allow_from: ["*"]}}
extensions: {scheduler: {enabled: false}, offline: {enabled: false}}
`)
	s.dropIn("assistant", "", assistant)
	s.model.Handle(by(map[string]func(openaitest.Request) openaitest.Answer{
		"You keep the shop.": func(r openaitest.Request) openaitest.Answer {
			results := r.Results()
			if len(results) == 0 {
				return openaitest.CallTool("delegate_task", map[string]string{"agent": "assistant", "prompt": "Do it."})
			}
			var result struct {
				Success bool
				Output  string
			}
			if err := json.Unmarshal([]byte(results[0]), &result); err != nil || !result.Success ||
				result.Output != "It is done." || len(results) > 1 {
				s.note("the keeper is told %q", results)
			}
			return openaitest.Say("You said <c0m0>")
		},
		"You help the keeper.": func(r openaitest.Request) openaitest.Answer {
			if results := r.Results(); len(results) == 0 {
				return openaitest.Answer{Calls: []openaitest.Call{work("act", "<c0m0>", 1, "")}}
			}
			return openaitest.Say("It is done.")
		},
	}))
}

// delegated checks that one agent worked for the other once.
func (s *shop) delegated() {
	s.t.Helper()
	s.write("<c0m0>")
	s.over("<c0m0>")
	s.settled()
	s.mu.Lock()
	for _, wrong := range s.wrong {
		s.t.Error(wrong)
	}
	s.mu.Unlock()
	s.repliedOnce([]string{"<c0m0>"})
	if bad := append(s.dead(), s.query(`SELECT id, inputs, outcome FROM turn WHERE outcome != 'ok'`)...); len(bad) > 0 {
		s.t.Errorf("dead letters, and turns that did not end well: %q", bad)
	}
	for what, query := range map[string]string{
		"tasks":                        `SELECT seq FROM event WHERE topic = 'agent.input.assistant'`,
		"calls of the tool":            `SELECT id FROM call WHERE name = 'tasks/delegate_task' AND state = 2`,
		"final texts of the assistant": `SELECT seq FROM event WHERE topic = 'agent.output' AND CAST(payload AS TEXT) LIKE '%It is done.%'`,
	} {
		if got := s.query(query); len(got) != 1 {
			s.t.Errorf("there are %d %s", len(got), what)
		}
	}
	effects := len(s.query(`SELECT seq FROM event WHERE topic = 'shop.did'`))
	if runs := len(s.lines("shop", "calls")); runs > 1 || effects > 1 || effects == 0 && !s.leeway.unknown {
		s.t.Errorf("the assistant acted %d times, with %d effects", runs, effects)
	}
}

func TestTaskOfAnotherAgentSurvivesACrashOfTheKernelAtEveryCommit(t *testing.T) {
	t.Parallel()
	did := commits(t, func(s *shop) {
		delegating(s)
		s.open()
		s.delegated()
		if n := s.model.Total(); n != 4 {
			t.Errorf("the model was asked %d times", n)
		}
	})
	t.Logf("commits:\n%s", strings.Join(did, "\n"))
	for _, point := range points(t, len(did)) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, "")
			delegating(s)
			s.crashAt(point)
			s.delegated()
		})
	}
}
