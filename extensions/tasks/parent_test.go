package tasks

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// A task that ends while its requester ends puts nothing into the requester's inbox.
func TestNoResultForEndedRequester(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]bool{"it is cancelled": true, "it finishes": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			w := newWorld(t)
			x := w.extension(ctx)
			call := func(session, name string, fields map[string]any) {
				t.Helper()
				arguments, _ := json.Marshal(fields)
				i := slices.IndexFunc(x.tools(), func(tool sdk.Tool) bool { return tool.Name == name })
				result, err := x.tools()[i].Call(ctx,
					sdk.ToolCall{ID: "c1", Name: ID + "/" + name, Session: session, Agent: "orchestrator", Arguments: arguments})
				if err == nil {
					err = w.apply(result.Effects, nil)
				}
				if err != nil {
					t.Fatalf("%s %s: %v", name, arguments, err)
				}
			}
			says := func(s *session, outcome string) sdk.Effects {
				t.Helper()
				effects, err := x.workerFinished(ctx,
					contract.AgentOutput{Session: s.id, Extension: ID, Key: s.key, Outcome: outcome})
				if err != nil {
					t.Fatal(err)
				}
				return effects
			}
			call(root, "push", map[string]any{"name": "a", "prompt": "Have it done."})
			call(root, "run", nil)
			a := w.worker("a")
			for _, child := range []string{"b", "c"} { // c is next when b ends
				call(a.id, "push", map[string]any{"name": child, "prompt": "Do it."})
			}
			call(a.id, "run", map[string]any{"count": 1})
			if cancel {
				call(root, "task_cancel", map[string]any{"name": "a"})
			}
			b := w.worker("b")
			early := says(b, contract.OutcomeCancelled)
			if err := w.apply(says(a, contract.OutcomeOK), nil); err != nil {
				t.Fatal(err)
			}
			err := w.apply(early, nil)
			if errors.Is(err, contract.ErrConflict) {
				err = w.apply(says(b, contract.OutcomeCancelled), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			id, _, _, _ := parseSessionKey(a.key)
			for key := range w.kv {
				if strings.HasPrefix(key, inboxOf(root, id)) || strings.HasPrefix(key, orderOf(root, id)) {
					t.Errorf("%s is left", key)
				}
			}
			if task := stored[Task](w, taskKey(root, "b")); task.State != Finished {
				t.Errorf("b is %s", task.State)
			}
		})
	}
}
