package agent

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

var remembering = &extensionv1.AgentSpec{Context: []string{"memory/relevant"}}

func plainAnswer(_ context.Context, _ *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
	return text("fine").emit(emit)
}

func TestContextIsARecordedStep(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.model = plainAnswer
	w.knows = func(context.Context) (*extensionv1.CallResult, error) {
		return &extensionv1.CallResult{Content: "Anna likes tea."}, nil
	}
	a := w.agent(t, remembering)
	for i, said := range []string{"hello", "and now?"} {
		if err := w.deliver(t.Context(), a, input([]string{"e1", "e2"}[i], user(said))); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{`memory/relevant{"query":"hello"}`,
		`memory/relevant{"query":"and now?"}`}; !slices.Equal(w.asked, want) {
		t.Errorf("asked %q, want %q", w.asked, want)
	}
	var kinds []string
	for _, r := range w.rows {
		kinds = append(kinds, r.GetKind())
	}
	if want := []string{"input", "context", "answer", "input", "context", "answer"}; !slices.Equal(kinds, want) ||
		w.commits != 2 {
		t.Errorf("recorded %q in %d commits, want %q", kinds, w.commits, want)
	}
	known := "user: [context from memory/relevant]\n~~~\nAnna likes tea.\n~~~"
	want := []string{"user: hello", "assistant: fine", "user: and now?", known}
	if got := contents(w.requests[1]); !slices.Equal(got, want) {
		t.Errorf("the second request is %q, want %q: the context of a turn that is over is not sent again", got, want)
	}
}

func TestATurnContinuesWithoutContext(t *testing.T) {
	t.Parallel()
	for name, knows := range map[string]func(context.Context) (*extensionv1.CallResult, error){
		"not there": func(context.Context) (*extensionv1.CallResult, error) { return nil, contract.ErrNotFound },
		"down":      func(context.Context) (*extensionv1.CallResult, error) { return nil, contract.ErrUnavailable },
		"broken": func(context.Context) (*extensionv1.CallResult, error) {
			return &extensionv1.CallResult{Content: "no", IsError: true}, nil
		},
		"slow": func(ctx context.Context) (*extensionv1.CallResult, error) { <-ctx.Done(); return nil, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.model, w.knows = plainAnswer, knows
				start := time.Now()
				if out := w.one(t, remembering, user("hello")); out.Text != "fine" {
					t.Errorf("output %+v", out)
				}
				if took := time.Since(start); took > consultTimeout {
					t.Errorf("it took %s", took)
				}
				if len(w.rows) != 2 {
					t.Errorf("recorded %v", w.trace())
				}
			})
		})
	}
}

func TestContextIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.model = plainAnswer
	w.knows = func(context.Context) (*extensionv1.CallResult, error) {
		return &extensionv1.CallResult{Content: strings.Repeat("tea ", 10_000)}, nil
	}
	w.one(t, remembering, user("hello"))
	if n := len(w.rows[1].GetText()); n > maxContext || n < maxContext/2 {
		t.Errorf("%d bytes of context", n)
	}
}

// A tool that knows nothing is not consulted again until its extension may have
// learned something.
func TestAToolThatKnowsNothingIsSkipped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.tool("memory/remember", false)
		w.knows = func(context.Context) (*extensionv1.CallResult, error) {
			return &extensionv1.CallResult{Nothing: true}, nil
		}
		w.model = func(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
			last := r.GetMessages()[len(r.GetMessages())-1]
			if last.GetContent() == "remember" {
				return calls("memory__remember").emit(emit)
			}
			return text("fine").emit(emit)
		}
		a := w.agent(t, remembering)
		turn := func(id, text string, want int) {
			t.Helper()
			if err := w.deliver(t.Context(), a, input(id, user(text))); err != nil {
				t.Fatal(err)
			}
			if len(w.asked) != want {
				t.Errorf("after %q it was asked %d times, want %d", text, len(w.asked), want)
			}
		}
		turn("e1", "hello", 1)
		turn("e2", "hello", 1)
		turn("e3", "remember", 1)
		turn("e4", "hello", 2)
		turn("e5", "hello", 2)
		time.Sleep(2 * skipTime)
		turn("e6", "hello", 3)
	})
}
