package agent

import (
	"context"
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// An agent without a history handles each input as if it were the first, also
// when another process continues the turn.
func TestAnAgentWithoutAHistory(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.tool("notes/add", false)
	var asked [][]string
	w.model = func(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		var contents []string
		for _, m := range r.GetMessages()[1:] {
			contents = append(contents, m.GetRole()+": "+m.GetContent())
		}
		asked = append(asked, contents)
		if len(contents) == 1 && len(asked) > 1 {
			return calls("notes/add").emit(emit)
		}
		return text("fine").emit(emit)
	}
	spec := &extensionv1.AgentSpec{NoHistory: true}
	a := w.agent(t, spec)
	if err := w.deliver(t.Context(), a, input("e1", user("my name is Anna"))); err != nil {
		t.Fatal(err)
	}
	w.fault = func(point string) bool { return point == "before call" }
	if err := w.deliver(t.Context(), a, input("e2", user("what is my name?"))); err == nil {
		t.Fatal("the process did not die")
	}
	w.fault, w.dead = nil, false
	if err := w.deliver(t.Context(), w.agent(t, spec), input("e2", user("what is my name?"))); err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"user: my name is Anna"}, {"user: what is my name?"},
		{"user: what is my name?", "assistant: ", "tool: notes/add did {\"n\":0}"},
	}
	if !slices.EqualFunc(asked, want, slices.Equal) {
		t.Errorf("the model was asked %q, want %q", asked, want)
	}
	if len(w.outputs) != 2 || len(w.rows) != 6 {
		t.Errorf("%d outputs and %d rows: all rows must be stored", len(w.outputs), len(w.rows))
	}
}
