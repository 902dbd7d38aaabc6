package tools_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

func TestCallsThatAreRefused(t *testing.T) {
	schema := `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`
	tests := []struct {
		name      string
		tool      string
		arguments string
		says      []string
	}{
		{"invalid JSON", "notes/add", `{"text": `, []string{"notes/add", "not valid JSON", "fits its schema"}},
		{"not the schema", "notes/add", `{"txt": 1}`, []string{"do not fit", "text", "txt"}},
		{"nothing at all", "notes/add", ``, []string{"do not fit", "text"}},
		{
			"no such tool",
			"notes/remove",
			`{}`,
			[]string{`There is no tool "notes/remove"`, "notes/add", "core/send_to_channel"},
		},
		{"no such extension", "diary/add", `{}`, []string{`There is no tool "diary/add"`}},
		{"a private tool", "notes/wipe", `{}`, []string{"not granted", `uses_tools: [notes/wipe]`}},
		{"not granted", "other/t", `{}`, []string{"not granted", `uses_tools: [other/t]`, "Granted:"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			play(t, func(w *world) {
				var a attempts
				run := a.of(func(int) (*extensionv1.CallResult, error) { return text("done") })
				w.Tool("notes", &extensionv1.Tool{Name: "add", Schema: []byte(schema)}, run)
				w.Tool("notes", &extensionv1.Tool{Name: "wipe", Private: true}, run)
				w.Tool("other", &extensionv1.Tool{Name: "t"}, run)
				w.Know(func(s *directory.Snapshot) {
					s.Agents[0].Spec = &extensionv1.AgentSpec{UsesTools: []string{"core/*", "notes/*"}}
				})
				turn := w.hears()
				r, err := turn.Call(turn.Asks([2]string{test.tool, test.arguments})[0])
				if err != nil || !r.GetIsError() {
					t.Fatalf("the result is %v, %v", r, err)
				}
				for _, word := range test.says {
					if !strings.Contains(r.GetContent(), word) {
						t.Errorf("the result is %q, want %q in it", r.GetContent(), word)
					}
				}
				if len(a.requests) != 0 {
					t.Errorf("the tool ran: %v", a.requests)
				}
			})
		})
	}
}

func TestAPrivateToolIsGrantedByItsFullName(t *testing.T) {
	play(t, func(w *world) {
		w.Tool(
			"notes",
			&extensionv1.Tool{Name: "wipe", Private: true},
			func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				return text("wiped")
			},
		)
		listed := func() bool {
			tools, _ := w.Tools.List(w.T.Context(), "orchestrator")
			return slices.ContainsFunc(tools, func(t *extensionv1.Tool) bool { return t.GetName() == "notes/wipe" })
		}
		if listed() {
			t.Error("a private tool is granted by a wildcard")
		}
		w.Know(func(s *directory.Snapshot) {
			s.Agents[0].Spec = &extensionv1.AgentSpec{UsesTools: []string{"notes/wipe"}}
		})
		if !listed() {
			t.Error("the tool is not listed")
		}
		if r := w.hears().Uses("notes/wipe", map[string]any{}); r.GetContent() != "wiped" {
			t.Errorf("the result is %v", r)
		}
	})
}
