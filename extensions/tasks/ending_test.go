package tasks

import (
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// A failed child has a result, whatever the reason.
func TestFailedChildHasResult(t *testing.T) {
	play(t, func(g *game) {
		for outcome, want := range outcomes {
			if outcome == contract.OutcomeOK {
				continue
			}
			g.push(main, "a")
			g.call(main, "run", nil)
			g.endTurn("a", outcome, "")
			got := g.received(g.call(main, "receive", fields{"from": "a"}))
			if len(got) != 1 || got[0].Success || got[0].Outcome != want || got[0].Error == "" || got[0].Partial != "so far" ||
				got[0].Output != "" {
				t.Errorf("%s gives %+v", outcome, got)
			}
		}
	})
}

// A capped task ends the run: further tasks would be capped, too.
func TestCappedTaskEndsRun(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.call(main, "run", fields{"count": 1})
		g.endTurn("a", contract.OutcomeCapped, "")
		g.states(Queued, "b")
		g.call(main, "run", nil)
		g.states(Running, "b")
	})
}

// A result is delivered over one path, however often its commit fails.
func TestResultDeliveredOnce(t *testing.T) {
	play(t, func(g *game) {
		paths := func() (inbox, told, inputs int) {
			g.mu.Lock()
			defer g.mu.Unlock()
			for key := range g.kv {
				if strings.HasPrefix(key, inboxPrefix) {
					inbox++
				}
			}
			for _, in := range g.sessions[root].pending {
				if in.GetKind() == contract.InputResult {
					inputs++
				}
			}
			return inbox, len(g.notified), inputs
		}
		handle := func(name string) {
			task := g.task(name)
			out := contract.AgentOutput{Session: "s9", Extension: ID, Key: task.sessionKey(), Outcome: contract.OutcomeOK,
				Text: "done"}
			var effects sdk.Effects
			for range 1200 { // its commit fails
				var err error
				if effects, err = g.x.workerFinished(g.ctx, out); err != nil {
					t.Fatal(err)
				}
			}
			g.restart()
			again, err := g.x.workerFinished(g.ctx, out)
			if err != nil {
				t.Fatal(err)
			}
			if err := g.apply(effects, nil); err != nil {
				t.Fatal(err)
			}
			if err := g.apply(again, nil); contract.Code(err) != contract.Code(contract.ErrConflict) {
				t.Errorf("the second commit ends with %v", err)
			}
			if effects, err := g.x.workerFinished(g.ctx, out); err != nil || len(effects) > 0 {
				t.Errorf("a task that has finished yields %d effects, %v", len(effects), err)
			}
		}
		g.push(main, "a", "b")
		g.call(main, "push", fields{"name": "c", "prompt": "Do it.", "deliver": announce})
		g.call(main, "run", nil)
		handle("a")
		if inbox, told, inputs := paths(); inbox != 1 || told != 0 || inputs != 0 {
			t.Errorf("a result in an inbox lies there %d times, is told %d times and runs main %d times", inbox, told, inputs)
		}
		g.receives(main, "check", nil, "a")
		g.command("receive", nil)
		handle("c") // the person waits for another result: this one is announced
		if inbox, told, inputs := paths(); inbox != 0 || told != 0 || inputs != 1 {
			t.Errorf("an announced result lies in the inbox %d times, is told %d times and runs main %d times", inbox, told,
				inputs)
		}
		handle("b")
		if inbox, told, inputs := paths(); inbox != 0 || told != 1 || inputs != 1 {
			t.Errorf("a result that a person waits for lies in the inbox %d times, is told %d times and runs main %d times",
				inbox, told, inputs-1)
		}
	})
}

// The first commit wins: a cancelled task stays cancelled, and a finished one
// cannot be cancelled.
func TestOutcomeIsFinal(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.call(main, "run", nil)
		g.beginTurn("a")
		g.call(main, "task_cancel", fields{"name": "a"})
		g.settle()
		task := g.task("a")
		if task.Outcome != Cancelled {
			t.Fatalf("a has ended with %q", task.Outcome)
		}
		effects, err := g.x.workerFinished(g.ctx,
			contract.AgentOutput{Session: "s9", Extension: ID, Key: task.sessionKey(), Outcome: contract.OutcomeOK})
		if err != nil || len(effects) > 0 {
			t.Errorf("a late word yields %d effects, %v", len(effects), err)
		}
		g.finishTasks("b")
		g.callFails(main, "task_cancel", fields{"name": "b"}, "has already finished: ok")
		got := g.received(g.call(main, "check", nil))
		if len(got) != 2 || got[0].Outcome != Cancelled || got[0].Partial != "so far" || got[1].Outcome != OK {
			t.Errorf("the results are %+v", got)
		}
	})
}

// A task that is cancelled just as it finishes has one result, in both orders.
func TestCancelWhileFinishing(t *testing.T) {
	play(t, func(g *game) {
		for _, cancelFirst := range []bool{true, false} {
			g.push(main, "a")
			g.call(main, "run", nil)
			g.beginTurn("a")
			g.mu.Lock()
			g.world.endTurn(g.worker("a"), contract.OutcomeOK, "done") // the extension has not got the event
			e := g.events[0]
			g.mu.Unlock()
			finishing, err := g.x.handle(g.ctx, e)
			if err != nil {
				t.Fatal(err)
			}
			cancelling, err := g.tool("task_cancel")(g.ctx, g.request(root, "c1", "task_cancel", fields{"name": "a"}))
			if err != nil {
				t.Fatal(err)
			}
			both := []sdk.Effects{finishing, cancelling.Effects}
			if cancelFirst {
				slices.Reverse(both)
			}
			if err := g.apply(both[0], nil); err != nil {
				t.Fatal(err)
			}
			if err := g.apply(both[1], nil); contract.Code(err) != contract.Code(contract.ErrConflict) {
				t.Errorf("the second commit ends with %v", err)
			}
			g.settle()
			if !cancelFirst {
				g.callFails(main, "task_cancel", fields{"name": "a"}, "has already finished")
			}
			got := g.received(g.call(main, "check", nil))
			if len(got) != 1 || got[0].Outcome != OK || got[0].Output != "done" {
				t.Errorf("the results are %+v", got)
			}
		}
	})
}

// A task that ends cancels its unfinished descendants; its result has the number
// of uncollected messages.
func TestEndCancelsChildren(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.call(main, "run", nil)
		g.push("a", "b", "c", "d")
		g.call("a", "run", fields{"count": 2})
		g.push("b", "e")
		g.call("b", "run", nil)
		for _, name := range []string{"b", "c", "e"} {
			g.beginTurn(name)
		}
		g.call(main, "send", fields{"to": "a", "message": "one"})
		g.call("b", "send", fields{"to": "a", "message": "two"})
		g.call("b", "send", fields{"to": "d", "message": "three"})
		g.finishTasks("a")
		for _, name := range []string{"b", "c", "d", "e"} {
			if task := g.task(name); task.State != Finished || task.Outcome != Cancelled {
				t.Errorf("%s is %s %s", name, task.State, task.Outcome)
			}
		}
		got := g.received(g.call(main, "check", nil))
		if len(got) != 1 || got[0].From != "a" || got[0].Uncollected != 2 {
			t.Errorf("main gets %+v", got)
		}
		g.noRows(inboxPrefix, orderPrefix, workingPrefix, queuedPrefix)
		g.callFails("b", "push", fields{"prompt": "more"}, `task "b" has ended`)
	})
}

// A queued task whose session was deleted ends as cancelled, and the run continues.
func TestTaskSessionDeleted(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c")
		g.call(main, "run", fields{"count": 1})
		g.remove(g.worker("b"))
		g.settle()
		g.beginTurn("a")
		g.remove(g.worker("a"))
		g.settle()
		g.states(Running, "c")
		g.remove(g.worker("c")) // before its turn begins
		g.settle()
		got := g.received(g.call(main, "check", nil))
		if from := senders(got); !slices.Equal(from, []string{"b", "a", "c"}) {
			t.Errorf("main hears of %q", from)
		}
		for _, m := range got {
			if m.Success || m.Outcome != Cancelled {
				t.Errorf("%s: %+v", m.From, m)
			}
		}
	})
}

// A name is taken until the result of its task is collected.
func TestNameReuse(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.callFails(main, "push", fields{"name": "a", "prompt": "again"}, "is taken")
		g.callFails(main, "push", fields{"name": main, "prompt": "again"}, "is not a valid task name")
		g.call(main, "run", nil)
		g.finishTasks("a")
		g.callFails(main, "push", fields{"name": "a", "prompt": "again"}, "is taken")
		g.receives(main, "check", nil, "a")
		first := g.task("a")
		g.push(main, "a")
		g.noRows(promptPrefix+first.ID, resultPrefix+first.ID)
		g.restart()
		for range 3 {
			g.call(main, "push", fields{"prompt": "Do it."})
		}
		g.restart()
		if said := g.call(main, "push", fields{"prompt": "Do it."}); !strings.Contains(said, `"name":"task-4"`) {
			t.Errorf("the next name: %s", said)
		}
		g.push(main, "task-5")
		if said := g.call(main, "push", fields{"prompt": "Do it."}); !strings.Contains(said, `"name":"task-6"`) {
			t.Errorf("the next name: %s", said)
		}
	})
}

// A generated name is never that of the worker that pushes.
func TestGeneratedNameIsNotTheWorkers(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "task-1")
		g.call(main, "run", nil)
		if said := g.call("task-1", "push", fields{"prompt": "Do it."}); !strings.Contains(said, `"name":"task-2"`) {
			t.Errorf("the name: %s", said)
		}
		g.states(Running, "task-1")
		g.states(Queued, "task-2")
	})
}

// A task that is removed from a queue leaves nothing.
func TestQueueRemove(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c")
		g.call(main, "send", fields{"to": "b", "message": "hello"})
		g.call(main, "queue_remove", fields{"name": "b"})
		g.callFails(main, "queue_remove", fields{"name": "b"}, "there is no task")
		g.call(main, "run", fields{"count": 1})
		g.callFails(main, "queue_remove", fields{"name": "a"}, "is running and not in the queue")
		g.callFails("a", "queue_remove", fields{"name": "c"}, "belongs to another agent")
		g.finishTasks("a")
		g.states(Running, "c")
		g.finishTasks("c")
		g.receives(main, "check", nil, "a", "c")
		g.noRows(inboxPrefix, orderPrefix, queuedPrefix, taskKey(root, "b"))
	})
}

// A message reaches a queued task, but not a finished one.
func TestSend(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.call(main, "send", fields{"to": "a", "message": "one"})
		g.call(main, "run", nil)
		g.call("b", "send", fields{"to": "a", "message": "two"})
		g.callFails("b", "send", fields{"to": "nobody", "message": "two"}, "there is no task")
		g.callFails("b", "send", fields{"to": "a", "message": " "}, "empty")
		g.receives("a", "receive", fields{"from": "b"}, "b")
		g.receives("a", "receive", nil, main)
		g.beginTurn("a")
		g.call(main, "task_cancel", fields{"name": "a"})
		g.callFails("b", "send", fields{"to": "a", "message": "three"}, "has finished (cancelled)")
		g.settle()
		g.callFails("b", "send", fields{"to": "a", "message": "three"}, "has finished (cancelled)")
		g.call("b", "send", fields{"to": main, "message": "half of it"})
		g.receives(main, "receive", fields{"from": "b"}, "b")
	})
}

// fifo and lifo hold for one sender and for all.
func TestOrder(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.call(main, "run", nil)
		send := func(who string, texts ...string) {
			for _, text := range texts {
				g.call(who, "send", fields{"to": main, "message": text})
			}
		}
		takes := func(tool string, arguments fields, want ...string) {
			t.Helper()
			var got []string
			for _, m := range g.received(g.call(main, tool, arguments)) {
				got = append(got, m.Message)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s %v gives %q, want %q", tool, arguments, got, want)
			}
		}
		send("a", "a1")
		send("b", "b1", "b2")
		send("a", "a2", "a3")
		send("b", "b3")
		takes("receive", fields{"order": "lifo"}, "b3")
		takes("receive", fields{"order": "fifo"}, "a1")
		takes("receive", fields{"from": "a", "lifo": true}, "a3")
		takes("receive", fields{"from": "b"}, "b1")
		takes("check", fields{"order": "lifo"}, "a2", "b2")
		takes("check", nil)
		var many []string
		for range 25 {
			many = append(many, "m")
		}
		send("a", many...)
		takes("check", fields{"from": "a"}, many[:maxChecked]...)
		takes("check", fields{"from": "a", "order": "lifo"}, many[maxChecked:]...)
	})
}
