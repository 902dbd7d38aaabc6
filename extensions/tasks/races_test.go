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

// paused is a world in which something happens behind the nth read.
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
	result, err := t.tools()[i].Call(ctx, sdk.ToolCall{ID: "c1", Name: ID + "/" + name, Session: session, Agent: "orchestrator", Arguments: arguments})
	if err == nil {
		err = w.apply(result.Effects, nil)
	}
	if err != nil {
		w.t.Fatalf("%s %s: %v", name, arguments, err)
	}
	return result.Content
}

// worker is the session of the task that has a name.
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

// finishes has a worker say its last word.
func (w *world) finishes(ctx context.Context, t *tasks, name string) {
	w.t.Helper()
	s := w.worker(name)
	effects, err := t.finished(ctx, contract.AgentOutput{Session: s.id, Extension: ID, Key: s.key, Outcome: contract.OutcomeOK, Text: "done"})
	if err == nil {
		err = w.apply(effects, nil)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// pausedAtWork is such a world, in which a works for main and is to have b work.
func pausedAtWork(t *testing.T) (*paused, *tasks) {
	t.Helper()
	p, x := &paused{world: newWorld(t)}, newTasks()
	if err := x.begin(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.calls(t.Context(), x, root, "push", map[string]any{"name": "a", "prompt": "Have b do it."})
	p.calls(t.Context(), x, root, "run", nil)
	return p, x
}

// startsB has a push and run b.
func (w *world) startsB(ctx context.Context, t *tasks) {
	w.t.Helper()
	a := w.worker("a").id
	w.calls(ctx, t, a, "push", map[string]any{"name": "b", "prompt": "Do it."})
	w.calls(ctx, t, a, "run", nil)
}

// Whoever waits for one that waits for a third does not give up because the
// third has finished just then.
func TestAResultThatJustComesIsWaitedFor(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		t.Run(fmt.Sprint("behind read ", n+1), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			p, x := pausedAtWork(t)
			w := p.world
			w.startsB(ctx, x)
			task := stored[Task](w, taskKey(root, "a"))
			x.enter(agent{root: root, name: "a", id: task.ID, task: &task}, "b")
			p.left, p.then = n+1, func() { w.finishes(ctx, x, "b") }
			why, err := x.change(ctx, "").hopeless(agent{root: root, name: main, id: main}, "a", nil)
			if err != nil || why != "" {
				t.Errorf("main is told %q, %v", why, err)
			}
		})
	}
}

// Whoever waits is not told that all wait because one of them has given work to a
// third, and waits for that, while it was looked.
func TestOneThatBeginsToWaitHasStartedAnother(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		for _, from := range []string{"", "a"} {
			t.Run(fmt.Sprintf("behind read %d from %q", n+1, from), func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				p, x := pausedAtWork(t)
				w := p.world
				p.left, p.then = n+1, func() {
					w.startsB(ctx, x)
					task := stored[Task](w, taskKey(root, "a"))
					x.enter(agent{root: root, name: "a", id: task.ID, task: &task}, "")
				}
				me := agent{root: root, name: main, id: main}
				why, err := x.change(ctx, "").hopeless(me, from, x.enter(me, from))
				if err != nil || why != "" {
					t.Errorf("main is told %q, %v", why, err)
				}
			})
		}
	}
}

// One whose result comes while it looks tells nobody that all wait: it goes on.
func TestWhoLooksAsItsResultComesTellsNobodyToGiveUp(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		t.Run(fmt.Sprint("behind read ", n+1), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			p, x := pausedAtWork(t)
			w := p.world
			w.startsB(ctx, x)
			waits := x.enter(agent{root: root, name: main, id: main}, "")
			task := stored[Task](w, taskKey(root, "a"))
			me := agent{root: root, name: "a", id: task.ID, task: &task}
			own := x.enter(me, "")
			p.left, p.then = n+1, func() { w.finishes(ctx, x, "b") }
			items, why, err := x.change(ctx, "").found(me, which{}, own, false)
			if err != nil || why != "" {
				t.Errorf("it is told %q, %v and gets %v", why, err, items)
			}
			if x.isVain(waits) {
				t.Error("main is told that nothing can come")
			}
		})
	}
}

// What was sent to a task that was cancelled before it began does not wait for
// another one of its name.
func TestMessagesToATaskThatNeverBeganAreGoneWithIt(t *testing.T) {
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
	if got := w.calls(ctx, x, root, "receive", map[string]any{"from": "b"}); !strings.Contains(got, `"uncollected_messages":1`) {
		t.Errorf("the result is %s", got)
	}
	w.calls(ctx, x, root, "push", map[string]any{"name": "a", "prompt": "Have b do it."})
	w.calls(ctx, x, root, "run", nil)
	w.calls(ctx, x, w.worker("a").id, "push", map[string]any{"name": "b", "prompt": "Do it."})
	w.calls(ctx, x, root, "send", map[string]any{"to": "b", "message": "Hurry."})
	w.finishes(ctx, x, "a")
	if n := lies(); n != 0 {
		t.Errorf("%d rows are left of a task whose parent has ended", n)
	}
}
