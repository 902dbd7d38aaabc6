package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// paused is a world in which something happens after the nth read.
type paused struct {
	*world
	left int
	then func()
}

func (p *paused) Page(ctx context.Context, prefix, after string, most int) ([]sdk.Value, bool, error) {
	defer p.step()
	return p.world.Page(ctx, prefix, after, most)
}

func (p *paused) Get(ctx context.Context, key string) (sdk.Value, error) {
	defer p.step()
	return p.world.Get(ctx, key)
}

func (p *paused) step() {
	if p.left--; p.left == 0 {
		p.then()
	}
}

// calls makes a call and commits it.
func (w *world) calls(ctx context.Context, t *tasks, session, name string, fields map[string]any) string {
	w.t.Helper()
	arguments, _ := json.Marshal(fields)
	i := slices.IndexFunc(t.tools(), func(tool sdk.Tool) bool { return tool.Name == name })
	result, err := t.tools()[i].Call(ctx,
		sdk.ToolCall{ID: "c1", Name: ID + "/" + name, Session: session, Agent: "orchestrator", Arguments: arguments})
	if err == nil {
		err = w.apply(result.Effects, nil)
	}
	if err != nil {
		w.t.Fatalf("%s %s: %v", name, arguments, err)
	}
	return result.Content
}

// worker returns the session of a task by name.
func (w *world) worker(name string) *session {
	w.t.Helper()
	for key, v := range w.kv {
		var task Task
		if !strings.HasPrefix(key, taskPrefix) || !strings.HasSuffix(key, "/"+name) || json.Unmarshal(v.Value, &task) != nil {
			continue
		}
		if s := w.byKey[task.Agent+" "+task.sessionKey()]; s != nil {
			return s
		}
	}
	w.t.Fatalf("there is no worker %s", name)
	return nil
}

// finishWorker ends a worker's turn and handles its output.
func (w *world) finishWorker(ctx context.Context, t *tasks, name string) {
	w.t.Helper()
	s := w.worker(name)
	effects, err := t.workerFinished(ctx,
		contract.AgentOutput{Session: s.id, Extension: ID, Key: s.key, Outcome: contract.OutcomeOK, Text: "done"})
	if err == nil {
		err = w.apply(effects, nil)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// pausedAtWork returns such a world, with a task a of main that runs.
func pausedAtWork(t *testing.T) (*paused, *tasks) {
	t.Helper()
	p, x := &paused{world: newWorld(t)}, newTasks()
	if err := x.resume(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.calls(t.Context(), x, root, "push", map[string]any{"name": "a", "prompt": "Have b do it."})
	p.calls(t.Context(), x, root, "run", nil)
	return p, x
}

// startB makes a push and run b.
func (w *world) startB(ctx context.Context, t *tasks) {
	w.t.Helper()
	a := w.worker("a").id
	w.calls(ctx, t, a, "push", map[string]any{"name": "b", "prompt": "Do it."})
	w.calls(ctx, t, a, "run", nil)
}

// A receive from an agent that waits for a third does not give up because the
// third has just finished.
func TestResultArrivesDuringSearch(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		t.Run(fmt.Sprint("after read ", n+1), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			p, x := pausedAtWork(t)
			w := p.world
			w.startB(ctx, x)
			task := stored[Task](w, taskKey(root, "a"))
			x.addWaiter(agent{root: root, name: "a", id: task.ID, task: &task}, "b", false)
			p.left, p.then = n+1, func() { w.finishWorker(ctx, x, "b") }
			why, err := x.change(ctx, "").whyNothingCanCome(agent{root: root, name: main, id: main}, "a", nil)
			if err != nil || why != "" {
				t.Errorf("main is told %q, %v", why, err)
			}
		})
	}
}

// A receive does not report a deadlock because another agent started a task, and
// waits for it, during the search.
func TestReceiveStartsDuringSearch(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		for _, from := range []string{"", "a"} {
			t.Run(fmt.Sprintf("after read %d from %q", n+1, from), func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				p, x := pausedAtWork(t)
				w := p.world
				p.left, p.then = n+1, func() {
					w.startB(ctx, x)
					task := stored[Task](w, taskKey(root, "a"))
					x.addWaiter(agent{root: root, name: "a", id: task.ID, task: &task}, "", false)
				}
				me := agent{root: root, name: main, id: main}
				why, err := x.change(ctx, "").whyNothingCanCome(me, from, x.addWaiter(me, from, false))
				if err != nil || why != "" {
					t.Errorf("main is told %q, %v", why, err)
				}
			})
		}
	}
}

// A receive whose own message arrives during the search reports no deadlock.
func TestOwnResultArrivesDuringSearch(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		t.Run(fmt.Sprint("after read ", n+1), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			p, x := pausedAtWork(t)
			w := p.world
			w.startB(ctx, x)
			waits := x.addWaiter(agent{root: root, name: main, id: main}, "", false)
			task := stored[Task](w, taskKey(root, "a"))
			me := agent{root: root, name: "a", id: task.ID, task: &task}
			own := x.addWaiter(me, "", false)
			p.left, p.then = n+1, func() { w.finishWorker(ctx, x, "b") }
			items, why, err := x.change(ctx, "").nextItem(me, query{}, own, false)
			if err != nil || why != "" {
				t.Errorf("it is told %q, %v and gets %v", why, err, items)
			}
			if x.isStuck(waits) {
				t.Error("main is told that nothing can come")
			}
		})
	}
}

// Messages to a task that was cancelled before it started are not delivered to
// a later task with its name.
func TestCancelledQueuedTaskLosesMessages(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newWorld(t)
	x := w.extension(ctx)
	lies := func() (n int) {
		for key := range w.kv {
			if box, found := strings.CutPrefix(key, orderPrefix); found && !strings.HasPrefix(box, root+"/"+main) {
				n++
			}
			if box, found := strings.CutPrefix(key, inboxPrefix); found && !strings.HasPrefix(box, root+"/"+main) {
				n++
			}
		}
		return n
	}
	w.calls(ctx, x, root, "push", map[string]any{"name": "b", "prompt": "Do it."})
	w.calls(ctx, x, root, "send", map[string]any{"to": "b", "message": "Hurry."})
	w.calls(ctx, x, root, "task_cancel", map[string]any{"name": "b"})
	if n := lies(); n != 0 {
		t.Errorf("%d rows are left of a task that was cancelled", n)
	}
	if got := w.calls(ctx, x, root, "receive", map[string]any{"from": "b"}); !strings.Contains(got,
		`"uncollected_messages":1`) {
		t.Errorf("the result is %s", got)
	}
	w.calls(ctx, x, root, "push", map[string]any{"name": "a", "prompt": "Have b do it."})
	w.calls(ctx, x, root, "run", nil)
	w.calls(ctx, x, w.worker("a").id, "push", map[string]any{"name": "b", "prompt": "Do it."})
	w.calls(ctx, x, root, "send", map[string]any{"to": "b", "message": "Hurry."})
	w.finishWorker(ctx, x, "a")
	if n := lies(); n != 0 {
		t.Errorf("%d rows are left of a task whose parent has ended", n)
	}
}
