package agent

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// An input may name a model and instructions for its turn, and for no other.
func TestAnInputNamesModelAndInstructions(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.model = says(text("yes"), text("yes"))
	spec := &extensionv1.AgentSpec{Model: "default", Instructions: "You are a personal assistant.", Context: []string{"memory/relevant"}}
	w.one(t, spec, contract.AgentInput{Kind: contract.InputTask, Sender: "main", Text: "work", Meta: map[string]any{
		contract.MetaModel: "scout", contract.MetaInstructions: "Your name is a.",
	}})
	w.one(t, spec, user("hello"))
	if len(w.requests) != 2 {
		t.Fatalf("the model was asked %d times", len(w.requests))
	}
	for i, want := range []struct{ model, instructions string }{{"scout", "Your name is a."}, {"default", "You are a personal assistant."}} {
		r := w.requests[i]
		if system := r.GetMessages()[0].GetContent(); r.GetModel() != want.model || !strings.HasPrefix(system, want.instructions) {
			t.Errorf("request %d goes to %q: %s", i, r.GetModel(), system)
		}
	}
	if len(w.asked) > 1 {
		t.Errorf("the tools of agent.context were asked %q: a turn with instructions of its own has none", w.asked)
	}
}
