package agent

import (
	"context"
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

// steered is a turn with two calls, during the first of which two messages come.
// The model answers by the last message.
func steered() *world {
	w := newWorld()
	w.tool("notes/add", false)
	w.tool("notes/sum", false)
	add := w.run["notes/add"]
	w.run["notes/add"] = func(ctx context.Context, c *busv1.Call) (*extensionv1.CallResult, error) {
		w.mu.Lock()
		if len(w.waiting) == 0 && len(w.stack) == 0 && w.times == 0 {
			w.waiting = append(w.waiting, input("e2", user("wait")), input("e3", user("what time is it?")))
		}
		w.mu.Unlock()
		return add(ctx, c)
	}
	w.model = func(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		last := r.GetMessages()[len(r.GetMessages())-1]
		switch {
		case strings.HasPrefix(last.GetContent(), "[Backlog]"):
			return text("It is noon.").emit(emit)
		case strings.HasPrefix(last.GetContent(), "[note from switchboard]"):
			return calls("notes__sum").emit(emit)
		case last.GetRole() == "tool":
			return text("All done.").emit(emit)
		}
		return calls("notes__add", "notes__sum").emit(emit)
	}
	return w
}

func contents(r *kernelv1.CompleteRequest) (all []string) {
	for _, m := range r.GetMessages()[1:] {
		text := m.GetRole() + ": " + m.GetContent()
		for _, c := range m.GetCalls() {
			text += "<" + c.GetName() + ">"
		}
		all = append(all, text)
	}
	return all
}

func TestSteering(t *testing.T) {
	t.Parallel()
	w := steered()
	if err := w.deliver(t.Context(), w.agent(t, &extensionv1.AgentSpec{}), input("e1", user("do it"))); err != nil {
		t.Fatal(err)
	}
	if len(w.requests) != 4 {
		t.Fatalf("the model was asked %d times", len(w.requests))
	}
	before := []string{"user: do it", "assistant: <notes__add><notes__sum>", `tool: notes/add did {"n":0}`,
		"tool: error: skipped: new message"}
	steer := append(slices.Clone(before), "user: [Backlog]\nwait\nwhat time is it?")
	if diff := cmp.Diff(steer, contents(w.requests[1])); diff != "" {
		t.Errorf("the steered turn asks (-want +got):\n%s", diff)
	}
	back := append(slices.Clone(steer), "assistant: It is noon.",
		"user: [note from switchboard]\n~~~\nThe newer message was answered. "+
			`Continue the earlier request now ("do it"). These calls have run, do not repeat them: notes/add. `+
			"These were skipped and did not run: notes/sum.\n~~~")
	if diff := cmp.Diff(back, contents(w.requests[2])); diff != "" {
		t.Errorf("the continued turn asks (-want +got):\n%s", diff)
	}
	w.steeredOnce(t)
}

// steeredOnce checks the results of a steered turn.
func (w *world) steeredOnce(t *testing.T) {
	t.Helper()
	var said []string
	for _, o := range w.outputs {
		said = append(said, fmt.Sprintf("%d %s", o.Turn, o.Text))
	}
	if want := []string{"2 It is noon.", "1 All done."}; !slices.Equal(said, want) {
		t.Errorf("outputs %q, want %q", said, want)
	}
	if want := []string{`notes/add{"n":0}`, `notes/sum{"n":0}`}; !slices.Equal(w.ran, want) {
		t.Errorf("ran %q, want %q", w.ran, want)
	}
	slices.Sort(w.settled)
	if want := []string{"e1", "e2", "e3"}; !slices.Equal(w.settled, want) {
		t.Errorf("settled %q, want %q", w.settled, want)
	}
	checkRequests(t, w.requests)
}

// However a process dies in the middle of a steered turn, both are answered once
// and nothing runs twice.
func TestSteeringSurvivesAnyCrash(t *testing.T) {
	t.Parallel()
	var points []string
	counting := steered()
	counting.fault = func(point string) bool { points = append(points, point); return false }
	if err := counting.deliver(t.Context(), counting.agent(t, &extensionv1.AgentSpec{}),
		input("e1", user("do it"))); err != nil {
		t.Fatal(err)
	}
	if len(points) < 20 {
		t.Fatalf("only %d points to die at: %q", len(points), points)
	}
	for i := range points {
		t.Run(fmt.Sprintf("%d %s", i, points[i]), func(t *testing.T) {
			t.Parallel()
			w, n := steered(), 0
			w.fault = func(string) bool { n++; return n == i+1 }
			w.finish(t, &extensionv1.AgentSpec{}, input("e1", user("do it")))
			w.steeredOnce(t)
			if len(w.requests) > 5 {
				t.Errorf("the model was asked %d times", len(w.requests))
			}
		})
	}
}

func TestAfterThreeInterruptionsATurnRunsToItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.tool("notes/add", false)
	n := 1
	w.run["notes/add"] = func(context.Context, *busv1.Call) (*extensionv1.CallResult, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		n++
		w.waiting = append(w.waiting, input(fmt.Sprintf("e%d", n), user("hurry")))
		return &extensionv1.CallResult{Content: "added"}, nil
	}
	w.model = func(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		last := r.GetMessages()[len(r.GetMessages())-1]
		switch {
		case strings.HasPrefix(last.GetContent(), "[Backlog]"):
			return text("soon").emit(emit)
		case n > 6:
			return text("done").emit(emit)
		}
		return calls("notes__add").emit(emit)
	}
	if err := w.deliver(t.Context(), w.agent(t, &extensionv1.AgentSpec{}), input("e1", user("do it"))); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, o := range w.outputs {
		said = append(said, o.Text)
	}
	if want := []string{"soon", "soon", "soon", "done"}; !slices.Equal(said, want) || len(w.waiting) != 3 {
		t.Errorf("outputs %q, want %q; %d messages wait", said, want, len(w.waiting))
	}
}

func TestOtherInputsDoNotSteer(t *testing.T) {
	t.Parallel()
	for name, waiting := range map[string][]contract.AgentInput{
		"a notice": {{Kind: contract.InputNotice, Text: "x"}},
		"a result": {{Kind: contract.InputResult, Text: "x"}},
		"a record": {{Kind: contract.InputRecord, Text: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := toolTurn()
			for i, in := range waiting {
				w.waiting = append(w.waiting, input(fmt.Sprintf("e%d", i+2), in))
			}
			if err := w.deliver(t.Context(), w.agent(t, &extensionv1.AgentSpec{}), input("e1", user("do it"))); err != nil {
				t.Fatal(err)
			}
			if len(w.outputs) != 1 || len(w.waiting) != 1 {
				t.Errorf("outputs %v, %d waiting", w.outputs, len(w.waiting))
			}
		})
	}
}

// Messages with different reply targets are not merged.
func TestSteeringTakesOneReplyTarget(t *testing.T) {
	t.Parallel()
	w := steered()
	elsewhere := user("elsewhere")
	elsewhere.ReplyTo = "h2"
	run := w.run["notes/add"]
	w.run["notes/add"] = func(ctx context.Context, c *busv1.Call) (*extensionv1.CallResult, error) {
		r, err := run(ctx, c)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waiting = append(w.waiting, input("e4", elsewhere))
		return r, err
	}
	if err := w.deliver(t.Context(), w.agent(t, &extensionv1.AgentSpec{}), input("e1", user("do it"))); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.requests {
		for _, m := range contents(r) {
			if strings.Contains(m, "wait") && strings.Contains(m, "elsewhere") {
				t.Errorf("two reply targets in one message: %q", m)
			}
		}
	}
}

// A timeout while the newer message is answered does not end the interrupted turn,
// which continues in the next attempt.
func TestTheTimeoutOfAnInterruptingTurnDoesNotEndTheInterruptedOne(t *testing.T) {
	t.Parallel()
	w := steered()
	ctx, end := context.WithCancelCause(t.Context())
	w.fault = func(point string) bool {
		if point == "after commit" && len(w.outputs) == 1 {
			end(sdk.ErrEnded)
		}
		return false
	}
	err := w.deliver(ctx, w.agent(t, &extensionv1.AgentSpec{}), input("e1", user("do it")))
	if err == nil || len(w.outputs) != 1 {
		t.Fatalf("%v; outputs %v", err, w.outputs)
	}
	w.fault = nil
	w.finish(t, &extensionv1.AgentSpec{}, input("e1", user("do it")))
	w.steeredOnce(t)
}

// The interrupted turn gets its reminder also if the newer message got no answer
// of the model.
func TestAnInterruptedTurnContinuesAfterAFailedOne(t *testing.T) {
	t.Parallel()
	w := steered()
	answer := w.model
	w.model = func(ctx context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		all := contents(r)
		if strings.HasPrefix(all[len(all)-1], "user: [Backlog]") {
			return fmt.Errorf("it is overloaded: %w", contract.ErrUnavailable)
		}
		return answer(ctx, r, emit)
	}
	if err := w.deliver(t.Context(), w.agent(t, &extensionv1.AgentSpec{}), input("e1", user("do it"))); err != nil {
		t.Fatal(err)
	}
	all := contents(w.requests[2])
	if last := all[len(all)-1]; !strings.Contains(last, `Continue the earlier request now ("do it").`) {
		t.Errorf("the turn continues with %q", all)
	}
	if n := len(w.outputs); n != 2 || w.outputs[0].Outcome != contract.OutcomeError || w.outputs[1].Text != "All done." {
		t.Errorf("outputs %+v", w.outputs)
	}
}
