package agent

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// An input may name a model and instructions for its turn, and for no other.
func TestAnInputOverridesModelAndInstructions(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.model = says(text("yes"), text("yes"))
	spec := &extensionv1.AgentSpec{Model: "default", Instructions: "You are a personal assistant.",
		Context: []string{"memory/relevant"}}
	w.one(t, spec, contract.AgentInput{Kind: contract.InputTask, Sender: "main", Text: "work", Meta: map[string]any{
		contract.MetaModel: "scout", contract.MetaInstructions: "Your name is a.",
	}})
	w.one(t, spec, user("hello"))
	if len(w.requests) != 2 {
		t.Fatalf("the model was asked %d times", len(w.requests))
	}
	for i, want := range []struct{ model, instructions string }{{"scout", "Your name is a."},
		{"default", "You are a personal assistant."}} {
		r := w.requests[i]
		if system := r.GetMessages()[0].GetContent(); r.GetModel() != want.model ||
			!strings.HasPrefix(system, want.instructions) {
			t.Errorf("request %d goes to %q: %s", i, r.GetModel(), system)
		}
	}
	if len(w.asked) > 1 {
		t.Errorf("the tools of agent.context were asked %q: a turn with instructions of its own has none", w.asked)
	}
}

// An input may have the context of its turn: it is recorded in the same commit, sent
// only in that turn, and its tool is not called, so a slow tool does not matter.
func TestAnInputHasContext(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.model = plainAnswer
	w.knows = func(context.Context) (*extensionv1.CallResult, error) {
		return &extensionv1.CallResult{Content: "Anna likes tea."}, nil
	}
	a := w.agent(t, &extensionv1.AgentSpec{Context: []string{"links/peers", "memory/relevant"}})
	for i, in := range []contract.AgentInput{
		{Kind: contract.InputMessage, Sender: "lead", Text: "which word?", Thread: "x1", Meta: map[string]any{
			contract.MetaContext: map[string]any{"links/peers": "You are on the link with lead.", "empty/one": " "},
		}},
		{Kind: contract.InputMessage, Sender: "lead", Text: "and now?", Thread: "x1"},
	} {
		if err := w.deliver(t.Context(), a, input([]string{"e1", "e2"}[i], in)); err != nil {
			t.Fatal(err)
		}
	}
	var rows []string
	for _, r := range w.rows[:4] {
		rows = append(rows, r.GetKind()+" "+r.GetSender())
	}
	if want := []string{"input lead", "context links/peers", "context memory/relevant", "answer "}; !slices.Equal(rows,
		want) || w.commits != 2 {
		t.Errorf("recorded %q in %d commits, want %q in one for each turn", rows, w.commits, want)
	}
	if asked := strings.Join(w.asked[:1], " "); asked != `memory/relevant{"query":"which word?"}` || len(w.asked) != 3 {
		t.Errorf("asked %q, want the tool without context in the first turn, and both in the second", w.asked)
	}
	frame := "user: [context from links/peers]\n~~~\nYou are on the link with lead.\n~~~"
	if got := contents(w.requests[0]); !slices.Contains(got, frame) {
		t.Errorf("the first request is %q, want %q in it", got, frame)
	}
	if got := contents(w.requests[1]); slices.Contains(got, frame) {
		t.Errorf("the second request is %q: the context of a turn that is over is not sent again", got)
	}
}

// The context of an input is bounded like that of tools, and must be texts.
func TestContextOfAnInputIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meta any
		rows int
	}{
		"long":     {map[string]any{"a/b": strings.Repeat("tea ", 10_000), "c/d": "more"}, 1},
		"no texts": {map[string]any{"a/b": 7}, 0},
		"no map":   {"a text", 0},
	} {
		rows := metaContext(contract.AgentInput{Meta: map[string]any{contract.MetaContext: c.meta}})
		if len(rows) != c.rows {
			t.Errorf("%s: %d rows, want %d", name, len(rows), c.rows)
		}
		for _, r := range rows {
			if n := len(r.GetText()); n > maxContext {
				t.Errorf("%s: a row of %d bytes", name, n)
			}
		}
	}
}
