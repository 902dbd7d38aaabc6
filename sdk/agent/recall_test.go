package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// A turn that continues after one larger than one read of a history is read
// completely, too: the request has its input and its calls.
func TestATurnInterruptedByALargeOneIsReadCompletely(t *testing.T) {
	t.Parallel()
	w := steered()
	w.tool("web/get", true)
	w.run["web/get"] = func(context.Context, *busv1.Call) (*extensionv1.CallResult, error) {
		return &extensionv1.CallResult{Content: strings.Repeat("x", 20<<10)}, nil
	}
	answer, got := w.model, false
	w.model = func(ctx context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		last := r.GetMessages()[len(r.GetMessages())-1]
		switch {
		case strings.HasPrefix(last.GetContent(), "[Backlog]"):
			return calls("web__get").emit(emit)
		case last.GetRole() == "tool" && strings.Contains(last.GetContent(), "xxx") && !got:
			got = true
			return text("It is noon.").emit(emit)
		}
		return answer(ctx, r, emit)
	}
	n := 0
	w.fault = func(string) bool { // once the turn above has ended
		if len(w.outputs) == 1 {
			n++
		}
		return n == 1
	}
	w.finish(t, &extensionv1.AgentSpec{MaxTokens: 2000}, input("e1", user("do it")))
	if want := []string{`notes/add{"n":0}`, `web/get{"n":0}`, `notes/sum{"n":0}`}; !slices.Equal(w.ran, want) {
		t.Errorf("ran %q, want %q", w.ran, want)
	}
	for _, r := range w.requests[len(w.requests)-2:] {
		if all := contents(r); !slices.Contains(all, "user: do it") {
			t.Errorf("the model is asked without the request: %.300q", all)
		}
	}
}

// The cached rows of a turn equal the kernel's rows, one by one: a summary
// may end after any of them.
func TestCachedRowsHaveTheirSeqs(t *testing.T) {
	t.Parallel()
	w := steered()
	a := w.agent(t, &extensionv1.AgentSpec{})
	if err := w.deliver(t.Context(), a, input("e1", user("do it"))); err != nil {
		t.Fatal(err)
	}
	h := a.histories.take("s1")
	if h == nil || len(h.rows) != len(w.rows) {
		t.Fatalf("in memory: %v", h)
	}
	for i, r := range h.rows {
		if stored := w.rows[i]; r.GetSeq() != stored.GetSeq() || r.GetKind() != stored.GetKind() {
			t.Errorf("row %d is %d %s in memory, and %d %s", i, r.GetSeq(), r.GetKind(), stored.GetSeq(), stored.GetKind())
		}
	}
}

// Stored results are longer than in requests: a new process finds the summary
// before them, too.
func TestASummaryBeforeLargeResultsIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.tool("web/get", true)
	w.run["web/get"] = func(context.Context, *busv1.Call) (*extensionv1.CallResult, error) {
		return &extensionv1.CallResult{Content: strings.Repeat("x", 900<<10)}, nil
	}
	spec := &extensionv1.AgentSpec{MaxTokens: 50_000}
	summaries := 0
	w.model = func(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		last := r.GetMessages()[len(r.GetMessages())-1]
		switch {
		case r.GetPurpose() == purposeSummary:
			summaries++
			return text("what was said").emit(emit)
		case strings.HasPrefix(last.GetContent(), "get"):
			return calls("web__get").emit(emit)
		}
		return text("noted").emit(emit)
	}
	a := w.agent(t, spec)
	say := func(a *Agent, text string) {
		t.Helper()
		if err := w.deliver(t.Context(), a, input("e"+text[:8], user(text))); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; summaries == 0 && i < 100; i++ {
		say(a, fmt.Sprintf("fact %03d %s", i, strings.Repeat("y", 4000)))
	}
	say(a, "get it, please")
	before := len(w.requests)
	say(w.agent(t, spec), "and then?")
	if all := strings.Join(contents(w.requests[before]), "\n"); summaries != 1 || !strings.Contains(all, "what was said") {
		t.Errorf("%d summaries; a new process asks without the one there was: %d bytes", summaries, len(all))
	}
}
