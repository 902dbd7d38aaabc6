package tasks

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

func TestAProgramGivesTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.extension(t.Context())
	boris := contract.Principal{Person: "p1", Own: true, Accounts: []string{"p1"}}
	do := func(call callFunc, arguments string) (given, error) {
		t.Helper()
		r, err := call(t.Context(), sdk.ToolCall{Arguments: json.RawMessage(arguments), Principal: boris})
		if err != nil {
			return given{}, err
		}
		if err := w.Commit(t.Context(), r.Effects...); err != nil {
			t.Fatal(err)
		}
		var g given
		if err := json.Unmarshal([]byte(r.Content), &g); err != nil {
			t.Fatal(err)
		}
		return g, nil
	}
	refused := func(call callFunc, arguments, want string) {
		t.Helper()
		if _, err := do(call, arguments); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arguments, err, want)
		}
	}
	const tidy = `{"agent":"helper","prompt":"Tidy up.","name":"tidy","start":false}`
	first, err := do(x.create, tidy)
	if err != nil || first.State != Queued {
		t.Fatalf("created: %+v, %v", first, err)
	}
	if again, err := do(x.create, tidy); err != nil || again != first {
		t.Errorf("given again: %+v, %v", again, err)
	}
	refused(x.create, `{"agent":"helper","prompt":"Sweep.","name":"tidy"}`, "is taken")
	refused(x.create, `{"agent":"nobody","prompt":"Sweep."}`, "nothing was created")
	refused(x.create, `{"agent":"helper","prompt":" "}`, "the prompt is empty")
	refused(x.update, `{"id":"tidy"}`, "give what to change")
	refused(x.update, `{"id":"none","start":true}`, "there is no task")
	if got, err := do(x.update, `{"id":"tidy","prompt":"Tidy the cellar.","timeout":60,"start":true}`); err != nil ||
		got.State != Running {
		t.Fatalf("started: %+v, %v", got, err)
	}
	task, err := read[Task](x.change(t.Context(), ""), taskKey(rootOf(taskKeys(w)[0]), "tidy"))
	if err != nil || task.ReplyTo != "handle of p1" || task.Preview != "Tidy the cellar." || task.Timeout != 60 {
		t.Fatalf("the task is %+v, %v", task, err)
	}
	s := w.byKey["helper "+task.sessionKey()]
	if s == nil || len(s.pending) != 1 || !strings.HasPrefix(s.pending[0].GetText(), "Tidy the cellar.") ||
		s.pending[0].GetPerson() != "p1" {
		t.Fatalf("the worker has %+v", s)
	}
	refused(x.update, `{"id":"tidy","prompt":"Sweep."}`, "runs already")
	refused(x.update, `{"id":"tidy","start":true}`, "runs already")
	if _, err := do(x.update, `{"id":"tidy","message":"Mind the jam."}`); err != nil {
		t.Error(err)
	}
	if c := x.change(t.Context(), ""); true {
		items, _, err := c.readInbox(agent{root: task.Root, id: task.ID}, query{}, 10)
		if err != nil || len(items) != 1 || items[0].Message.Message != "Mind the jam." {
			t.Errorf("its inbox has %+v, %v", items, err)
		}
	}
	out := contract.AgentOutput{
		Extension: ID, Key: task.sessionKey(), Session: s.id, Outcome: contract.OutcomeOK, Text: "It is tidy.",
	}
	effects, err := x.workerFinished(t.Context(), out)
	if err == nil {
		err = w.Commit(t.Context(), effects...)
	}
	if err != nil {
		t.Fatal(err)
	}
	shown, err := x.show(t.Context(), sdk.ToolCall{Arguments: json.RawMessage(`{"id":"tidy"}`), Principal: boris})
	if err != nil || !strings.Contains(shown.Content, `"output":"It is tidy."`) {
		t.Errorf("shown: %s, %v", shown.Content, err)
	}
	refused(x.update, `{"id":"tidy","message":"Thanks."}`, "has ended")
	for _, prefix := range []string{inboxPrefix, unnoticedPrefix, queuedPrefix, workingPrefix} {
		if page, _, _ := w.Page(t.Context(), prefix, "", 10); len(page) > 0 {
			t.Errorf("left is %s", page[0].Key)
		}
	}
}

func taskKeys(w *world) (keys []string) {
	for _, key := range w.keys {
		if strings.HasPrefix(key, taskPrefix) {
			keys = append(keys, key)
		}
	}
	return keys
}
