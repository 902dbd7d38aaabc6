package router

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

func TestWhichAgentHears(t *testing.T) {
	t.Parallel()
	agents := func(ids ...string) (all []directory.Agent) {
		for _, id := range ids {
			all = append(all, directory.Agent{ID: id, Spec: &extensionv1.AgentSpec{Echo: id == "echo"}})
		}
		return all
	}
	down := func(s directory.Snapshot) directory.Snapshot {
		s.Agents[0].State = "failed"
		return s
	}
	routing := map[string]string{"telegram": "chat"}
	tests := []struct {
		name    string
		now     directory.Snapshot
		asked   string
		want    string
		refusal []string
	}{
		{
			"explicit before mapped and default",
			directory.Snapshot{Agents: agents("chat", "echo", "helper"), Settings: directory.Settings{Routing: routing, DefaultAgent: "chat"}},
			"helper",
			"helper",
			nil,
		},
		{
			"explicit, not there: an error that names it",
			directory.Snapshot{Agents: agents("chat")},
			"ghost",
			"",
			[]string{`There is no agent "ghost"`, "/agent"},
		},
		{
			"explicit, not enabled: an error that names it",
			directory.Snapshot{Agents: agents("chat", "helper"), Settings: directory.Settings{EnabledAgents: []string{"chat"}}},
			"helper",
			"",
			[]string{`"helper" is not enabled`, "/agent"},
		},
		{
			"mapped before default",
			directory.Snapshot{Agents: agents("chat", "helper"), Settings: directory.Settings{Routing: routing, DefaultAgent: "helper"}},
			"",
			"chat",
			nil,
		},
		{
			"mapped, not enabled: an error that names it",
			directory.Snapshot{Agents: agents("chat", "helper"), Settings: directory.Settings{Routing: routing, EnabledAgents: []string{"helper"}}},
			"",
			"",
			[]string{`"chat" is not enabled`, "agents.routing"},
		},
		{
			"mapped, not there: an error that names it",
			directory.Snapshot{Agents: agents("helper"), Settings: directory.Settings{Routing: routing}},
			"",
			"",
			[]string{`There is no agent "chat"`, "agents.routing"},
		},
		{
			"another channel is mapped",
			directory.Snapshot{
				Agents: agents("chat", "helper"), Settings: directory.Settings{Routing: map[string]string{"cli": "chat"},
					DefaultAgent: "helper",
				},
			},
			"",
			"helper",
			nil,
		},
		{
			"default before the first by id",
			directory.Snapshot{Agents: agents("a", "helper"), Settings: directory.Settings{DefaultAgent: "helper"}},
			"",
			"helper",
			nil,
		},
		{
			"default, not enabled: an error that names it",
			directory.Snapshot{Agents: agents("a", "helper"), Settings: directory.Settings{DefaultAgent: "helper", EnabledAgents: []string{"a"}}},
			"",
			"",
			[]string{`"helper" is not enabled`, "agents.default"},
		},
		{
			"first of those enabled before the first by id",
			directory.Snapshot{Agents: agents("a", "b", "c"), Settings: directory.Settings{EnabledAgents: []string{"gone", "c", "b"}}},
			"",
			"c",
			nil,
		},
		{
			"default before the first of those enabled",
			directory.Snapshot{Agents: agents("a", "b"), Settings: directory.Settings{EnabledAgents: []string{"a", "b"}, DefaultAgent: "b"}},
			"",
			"b",
			nil,
		},
		{
			"explicit before echo alone",
			directory.Snapshot{Agents: agents("a", "echo"), Settings: directory.Settings{EnabledAgents: []string{"echo", "a"}}},
			"a",
			"a",
			nil,
		},
		{
			"mapped but down: it waits there",
			down(directory.Snapshot{Agents: agents("chat", "helper"), Settings: directory.Settings{Routing: routing, DefaultAgent: "helper"}}),
			"",
			"chat",
			nil,
		},
		{
			"explicit but down: it waits there",
			down(directory.Snapshot{Agents: agents("chat", "helper"), Settings: directory.Settings{DefaultAgent: "helper"}}),
			"chat",
			"chat",
			nil,
		},
		{"first by id", directory.Snapshot{Agents: agents("b", "c")}, "", "b", nil},
		{
			"echo, which is enabled like any other, comes last",
			directory.Snapshot{Agents: agents("echo", "zed")},
			"",
			"zed",
			nil,
		},
		{"echo when nobody else is there", directory.Snapshot{Agents: agents("echo")}, "", "echo", nil},
		{
			"echo is not put in a named one's place",
			directory.Snapshot{Agents: agents("echo")},
			"ghost",
			"",
			[]string{"ghost"},
		},
		{"nobody", directory.Snapshot{}, "", "", []string{"enables no agent", "agents.enabled"}},
		{
			"echo when none is enabled",
			directory.Snapshot{Agents: agents("a", "echo"), Settings: directory.Settings{EnabledAgents: []string{}}},
			"",
			"echo",
			nil,
		},
		{
			"explicit when none is enabled: an error that names it",
			directory.Snapshot{Agents: agents("a", "echo"), Settings: directory.Settings{EnabledAgents: []string{}}},
			"a",
			"",
			[]string{`"a" is not enabled`},
		},
		{
			"nobody enabled, and no echo",
			directory.Snapshot{Agents: agents("a"), Settings: directory.Settings{EnabledAgents: []string{}}},
			"",
			"",
			[]string{"enables no agent"},
		},
		{
			"those enabled are not there",
			directory.Snapshot{Agents: agents("a", "echo"), Settings: directory.Settings{EnabledAgents: []string{"ghost"}}},
			"",
			"",
			[]string{"enables no agent", "agents.enabled"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, refusal := pickAgent(&test.now, "telegram", test.asked)
			if got != test.want || (refusal == "") != (test.refusal == nil) {
				t.Errorf("got %q, %q; want %q", got, refusal, test.want)
			}
			for _, word := range test.refusal {
				if !strings.Contains(refusal, word) {
					t.Errorf("the refusal %q lacks %q", refusal, word)
				}
			}
		})
	}
}

func TestKeysOfDifferentConversationsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string][]string{}
	parts := []string{"a", "a:b", "b", "a~1", "a%7E1", "a%3Ab", "", "a/b", "~", "%"}
	for _, one := range parts {
		for _, two := range parts {
			key := sessionKey("chan", "telegram", one, two)
			if before := seen[key]; before != nil {
				t.Errorf("%q and %q have the key %q", before, []string{one, two}, key)
			}
			seen[key] = []string{one, two}
			if strings.Contains(strings.TrimPrefix(key, "chan:"), "~") {
				t.Errorf("the key %q contains the mark of /new", key)
			}
		}
	}
}
