package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// toolTurn is a world whose model needs two rounds of tools.
func toolTurn() *world {
	w := newWorld()
	w.tool("core/list_channels", true)
	w.tool("clock/now", true)
	w.tool("core/send_to_channel", false)
	w.tool("scheduler/schedule_once", false)
	w.model = says(
		calls("list_channels", "clock__now", "send_to_channel", "scheduler__schedule_once"),
		calls("send_to_channel"),
		text("All done."))
	return w
}

// trace returns the recorded rows, one line each.
func (w *world) trace() []string {
	var out []string
	for _, e := range w.rows {
		line := fmt.Sprintf("%d %s %s", e.GetTurn(), e.GetKind(), e.GetText())
		for _, c := range e.GetCalls() {
			line += " " + c.GetName()
		}
		out = append(out, line)
	}
	slices.Sort(out) // calls that run together end in any order
	return out
}

// If a process dies at any step, before or after it has taken effect, the next
// one continues after the last recorded step.
func TestDeathAtEveryStep(t *testing.T) {
	t.Parallel()
	event := input("e1", user("do it"))
	var points []string
	plain := toolTurn()
	plain.fault = func(point string) bool {
		points = append(points, point)
		return false
	}
	plain.finish(t, &extensionv1.AgentSpec{}, event)
	if len(points) < 20 {
		t.Fatalf("only %d points at which a process can die: %v", len(points), points)
	}
	for at, point := range points {
		t.Run(fmt.Sprintf("%02d %s", at, point), func(t *testing.T) {
			t.Parallel()
			w := toolTurn()
			n := -1
			w.fault = func(string) bool { n++; return n == at }
			w.finish(t, &extensionv1.AgentSpec{}, event)

			if diff := cmp.Diff(plain.trace(), w.trace()); diff != "" {
				t.Errorf("the history differs (-undisturbed +killed):\n%s", diff)
			}
			if diff := cmp.Diff(plain.outputs, w.outputs); diff != "" {
				t.Errorf("the output differs:\n%s", diff)
			}
			want := []string{
				`clock/now{"n":1}`, `core/list_channels{"n":0}`, `core/send_to_channel{"n":0}`,
				`core/send_to_channel{"n":2}`, `scheduler/schedule_once{"n":3}`,
			}
			if ran := slices.Sorted(slices.Values(w.ran)); !slices.Equal(ran, want) {
				t.Errorf("calls that ran: %v", ran)
			}
			// The model is asked once for each step; again only if the process
			// died before the answer was recorded.
			asked := 3
			if point == "after complete" || point == "before commit" || point == "before ack" {
				asked = 4
			}
			if len(w.requests) != asked {
				t.Errorf("the model was asked %d times, want %d", len(w.requests), asked)
			}
		})
	}
}

// A model API refuses a request whose calls and results do not match.
func checkRequests(t *testing.T, requests []*kernelv1.CompleteRequest) {
	t.Helper()
	for n, r := range requests {
		var open []string
		for i, m := range r.GetMessages() {
			switch m.GetRole() {
			case "tool":
				if len(open) == 0 || open[0] != m.GetCallId() {
					t.Errorf("request %d, message %d: result of %q, open are %v", n, i, m.GetCallId(), open)
					return
				}
				open = open[1:]
				continue
			case "system":
				if i != 0 {
					t.Errorf("request %d: a system prompt in the middle", n)
				}
			case "assistant":
				if m.GetContent() == "" && len(m.GetCalls()) == 0 {
					t.Errorf("request %d, message %d: an empty answer", n, i)
				}
			}
			if len(open) > 0 {
				t.Errorf("request %d, message %d: calls %v have no result", n, i, open)
			}
			for _, c := range m.GetCalls() {
				open = append(open, c.GetCallId())
			}
		}
		if len(open) > 0 {
			t.Errorf("request %d ends with open calls %v", n, open)
		}
	}
}

func TestRequestsOfAToolTurn(t *testing.T) {
	t.Parallel()
	w := toolTurn()
	w.finish(t, &extensionv1.AgentSpec{}, input("e1", user("do it")))
	w.finish(t, &extensionv1.AgentSpec{}, input("e2", user("again")))
	checkRequests(t, w.requests)
	last := w.requests[len(w.requests)-1].GetMessages()
	if len(last) != 18 {
		t.Errorf("the last request has %d messages, want all 18", len(last))
	}
	for _, m := range last {
		for _, c := range m.GetCalls() {
			if strings.Contains(c.GetName(), "/") || c.GetCallId() == "" {
				t.Errorf("call %v in a request", c)
			}
		}
	}
}

func TestLostLaneStopsSilently(t *testing.T) {
	t.Parallel()
	for _, rpc := range []string{"tools", "complete", "commit", "call"} {
		w := toolTurn()
		w.fault = func(point string) bool {
			if point == "before "+rpc {
				w.stale = true
			}
			return false
		}
		w.run["core/list_channels"] = func(context.Context, *busv1.Call) (*extensionv1.CallResult, error) {
			return nil, contract.ErrStale
		}
		err := w.deliver(t.Context(), w.agent(t, &extensionv1.AgentSpec{}), input("e1", user("do it")))
		if !errors.Is(err, contract.ErrStale) {
			t.Errorf("lane lost at %s: %v", rpc, err)
		}
		if len(w.outputs) != 0 {
			t.Errorf("lane lost at %s, and still an output: %v", rpc, w.outputs)
		}
	}
}

// A cancelled attempt does not count as a failure, and its
// cached history is discarded.
func TestCancelledAttempt(t *testing.T) {
	t.Parallel()
	w := toolTurn()
	ctx, cancel := context.WithCancelCause(t.Context())
	w.run["core/send_to_channel"] = func(context.Context, *busv1.Call) (*extensionv1.CallResult, error) {
		cancel(errors.New("draining"))
		return nil, context.Canceled
	}
	a := w.agent(t, &extensionv1.AgentSpec{})
	err := w.deliver(ctx, a, input("e1", user("do it")))
	if err == nil || !strings.Contains(err.Error(), "draining") || !strings.Contains(err.Error(), "again in") {
		t.Fatalf("a cancelled attempt returns %v", err)
	}
	w.run["core/send_to_channel"] = func(context.Context, *busv1.Call) (*extensionv1.CallResult, error) {
		return &extensionv1.CallResult{Content: "sent"}, nil
	}
	if err := w.deliver(t.Context(), a, input("e1", user("do it"))); err != nil {
		t.Fatal(err)
	}
	if len(w.outputs) != 1 || w.outputs[0].Text != "All done." {
		t.Errorf("outputs %v", w.outputs)
	}
	checkRequests(t, w.requests)
}

// Results that the kernel recorded without the loop are loaded.
func TestConflictIsResolvedOnce(t *testing.T) {
	t.Parallel()
	w := toolTurn()
	moved := false
	w.fault = func(point string) bool {
		if point == "before commit" && len(w.rows) > 3 && !moved {
			moved = true
			w.add(&busv1.Entry{Kind: contract.EntryNote, Text: "something that happened"})
		}
		return false
	}
	if err := w.deliver(t.Context(), w.agent(t, &extensionv1.AgentSpec{}), input("e1", user("do it"))); err != nil {
		t.Fatal(err)
	}
	if !moved || len(w.requests) != 3 || len(w.outputs) != 1 {
		t.Errorf("moved %v, asked %d times, outputs %v", moved, len(w.requests), w.outputs)
	}
}

// A history in memory is used while it is current, and only then.
func TestHistoryInMemory(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.model = func(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		return text(fmt.Sprintf("answer to %d messages", len(r.GetMessages()))).emit(emit)
	}
	a := w.agent(t, &extensionv1.AgentSpec{})
	turn := func(id string) []string {
		t.Helper()
		w.rpcs = nil
		if err := w.deliver(t.Context(), a, input(id, user("hi "+id))); err != nil {
			t.Fatal(err)
		}
		return w.rpcs
	}
	if got := turn("e1"); !slices.Equal(got, []string{"tools", "channels", "complete"}) {
		t.Errorf("the first turn calls %v", got)
	}
	if w.commits != 1 {
		t.Errorf("a plain turn takes %d commits", w.commits)
	}
	if got := turn("e2"); !slices.Equal(got, []string{"complete"}) {
		t.Errorf("a turn with a current history calls %v", got)
	}
	w.context.HistoryEpoch++
	w.rows[2].Text = "hi e2, as it was changed"
	if got := turn("e3"); !slices.Equal(got, []string{"history", "complete"}) {
		t.Errorf("a turn after the history was changed calls %v", got)
	}
	w.add(&busv1.Entry{Kind: contract.EntryNote, Text: "cancelled"})
	if got := turn("e4"); !slices.Equal(got, []string{"history", "complete"}) {
		t.Errorf("a turn after a row of the kernel calls %v", got)
	}
	last := w.requests[len(w.requests)-1].GetMessages()
	var contents []string
	for _, m := range last[1:] {
		contents = append(contents, m.GetContent())
	}
	want := []string{
		"hi e1", "answer to 2 messages", "hi e2, as it was changed", "answer to 4 messages", "hi e3", "answer to 6 messages",
		"[note from switchboard]\n~~~\ncancelled\n~~~", "hi e4",
	}
	if diff := cmp.Diff(want, contents); diff != "" {
		t.Errorf("the last request (-want +got):\n%s", diff)
	}
}
