package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// small is a model with a window that refuses what exceeds it, as an extension of package
// modelapi does.
type small struct {
	tokens    int
	refused   int
	summaries int
	longest   int // request that was answered, in bytes
}

func (m *small) complete(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
	size := len(strings.Join(contents(r), ""))
	if size/6 > m.tokens {
		m.refused++
		if err := emit(&sdk.Delta{Model: "local/small", Context: int64(m.tokens)}); err != nil {
			return err
		}
		return fmt.Errorf("the conversation is too long: %w", contract.ErrInvalid)
	}
	m.longest = max(m.longest, size)
	said := "noted"
	if r.GetPurpose() == purposeSummary {
		m.summaries++
		said = "the summary"
	}
	return emit(&sdk.Delta{Text: said, Finish: "stop", Model: "local/small", Context: int64(m.tokens)})
}

// A small window leads to summaries before a request is too long for it. A new process that
// does not know the window yet gets a refusal, and then sends a summary.
func TestASmallWindowLeadsToASummary(t *testing.T) {
	t.Parallel()
	w := newWorld()
	m := &small{tokens: 4096}
	w.model = m.complete
	a := w.agent(t, &extensionv1.AgentSpec{})
	for i := range 100 {
		if err := w.deliver(t.Context(), a, input(fmt.Sprintf("e%d", i),
			user(fmt.Sprintf("fact %03d %s", i, strings.Repeat("x", 400))))); err != nil {
			t.Fatal(err)
		}
	}
	if m.refused != 0 || m.summaries < 3 || m.summaries > 30 || m.longest > 3*m.tokens+400 {
		t.Errorf("%d refusals, %d summaries, the longest request had %d bytes", m.refused, m.summaries, m.longest)
	}
	w.rows = nil
	for _, wide := range []int{1 << 20, 4096} { // the history grows with another model
		m = &small{tokens: wide}
		w.model = m.complete
		a = w.agent(t, &extensionv1.AgentSpec{})
		for i := range 40 {
			id := fmt.Sprintf("%d.%d", wide, i)
			if err := w.deliver(t.Context(), a, input(id, user(id+strings.Repeat(" x", 600)))); err != nil {
				t.Fatal(err)
			}
			if last := w.outputs[len(w.outputs)-1]; last.Text != "noted" {
				t.Fatalf("%d tokens, turn %d: %q", wide, i, last.Text)
			}
		}
	}
	if m.refused != 1 || m.summaries < 2 || m.longest > 3*m.tokens+1200 {
		t.Errorf("a new process: %d refusals, %d summaries, the longest request had %d bytes", m.refused, m.summaries,
			m.longest)
	}
}

// The facts before a message are complete again if the rows that had them are summarized.
func TestAShorterRequestHasTheFactsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.model = (&small{tokens: 1 << 20}).complete
	a := w.agent(t, &extensionv1.AgentSpec{})
	for i := range 40 {
		if err := w.deliver(t.Context(), a, input(fmt.Sprintf("e%d", i), user(strings.Repeat("word ", 200)))); err != nil {
			t.Fatal(err)
		}
	}
	w.model = (&small{tokens: 4096}).complete
	if err := w.deliver(t.Context(), a, input("last", user("and now?"))); err != nil {
		t.Fatal(err)
	}
	sent := contents(w.sent[len(w.sent)-1])
	last := sent[len(sent)-1]
	if !strings.Contains(last, "Current time") || !strings.Contains(last, "Current channel: cli_channel") ||
		!strings.Contains(last, "and now?") {
		t.Errorf("the last message is %q", last)
	}
}

// A result that is longer than a small window is cut.
func TestResultsAreCutToTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.tool("web/read", true)
	w.run["web/read"] = func(context.Context, *busv1.Call) (*extensionv1.CallResult, error) {
		return &extensionv1.CallResult{Content: strings.Repeat("page ", 5000)}, nil
	}
	answers := says(calls("web/read"), text("done"))
	m := &small{tokens: 4096}
	w.model = func(ctx context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		if size := len(strings.Join(contents(r), "")); size/6 > m.tokens {
			return m.complete(ctx, r, emit)
		}
		return answers(ctx, r, emit)
	}
	out := w.one(t, &extensionv1.AgentSpec{}, user("read it"))
	if out.Text != "done" || m.refused != 1 {
		t.Errorf("%q after %d refusals", out.Text, m.refused)
	}
}

func TestRoomForRequests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ limit, window, tokens int }{
		{0, 0, 50_000}, {0, 4096, 3072}, {0, 60_000, 45_000}, {0, 128_000, 50_000}, {0, 300_000, 75_000},
		{0, 1_000_000, 100_000}, {2000, 0, 2000}, {2000, 1_000_000, 2000}, {200_000, 128_000, 96_000},
	} {
		a := &Agent{limits: limits{tokens: tt.limit}}
		if tt.window > 0 {
			a.windows.set("m", int64(tt.window))
		}
		if got := a.room("m"); got != tt.tokens*bytesPerToken {
			t.Errorf("limit %d, window %d: %d bytes, want %d", tt.limit, tt.window, got, tt.tokens*bytesPerToken)
		}
	}
}
