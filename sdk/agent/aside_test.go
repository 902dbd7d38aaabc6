package agent

import (
	"context"
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// An aside reaches the user and stays out of the history; what else waits for the
// history is recorded.
func TestAnAsideStaysOutOfTheHistory(t *testing.T) {
	t.Parallel()
	w := newWorld()
	var asked [][]string
	w.model = func(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		var contents []string
		for _, m := range r.GetMessages()[1:] {
			_, said := SplitPreamble(m.GetContent())
			contents = append(contents, m.GetRole()+": "+said)
		}
		asked = append(asked, contents)
		if len(asked) == 1 {
			return (&said{text: "I didn't understand that.", finish: contract.FinishAside}).emit(emit)
		}
		return text("fine").emit(emit)
	}
	a := w.agent(t, &extensionv1.AgentSpec{})
	for _, e := range []string{"e1", "e2"} {
		if err := w.deliver(t.Context(), a, input(e, user("say "+e))); err != nil {
			t.Fatal(err)
		}
	}
	if want := [][]string{{"user: say e1"}, {"user: say e2"}}; !slices.EqualFunc(asked, want, slices.Equal) {
		t.Errorf("the model was asked %q, want %q", asked, want)
	}
	if len(w.outputs) != 2 || w.outputs[0].Text != "I didn't understand that." || len(w.rows) != 2 {
		t.Errorf("outputs %v and %d rows", w.outputs, len(w.rows))
	}
}
