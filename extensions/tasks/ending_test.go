package tasks

import (
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// A child that fails tells, whatever has happened to it.
func TestAFailedChildTells(t *testing.T) {
	play(t, func(g *game) {
		for outcome, want := range outcomes {
			if outcome == contract.OutcomeOK {
				continue
			}
			g.push(main, "a")
			g.does(main, "run", nil)
			g.ends("a", outcome, "")
			got := g.received(g.does(main, "receive", fields{"from": "a"}))
			if len(got) != 1 || got[0].Success || got[0].Outcome != want || got[0].Error == "" || got[0].Partial != "so far" || got[0].Output != "" {
				t.Errorf("%s gives %+v", outcome, got)
			}
		}
	})
}

// A capped task ends the run: what began now would end in the same way.
func TestACappedTaskEndsTheRun(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.does(main, "run", fields{"count": 1})
		g.ends("a", contract.OutcomeCapped, "")
		g.states(Queued, "b")
		g.does(main, "run", nil)
		g.states(Running, "b")
	})
}

// A result is delivered over one path, however often its handling fails.
func TestAResultTakesOnePath(t *testing.T) {
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
			out := contract.AgentOutput{Session: "s9", Extension: ID, Key: task.sessionKey(), Outcome: contract.OutcomeOK, Text: "done"}
			var effects sdk.Effects
			for range 1200 { // its commit fails again and again
				var err error
				if effects, err = g.x.finished(g.ctx, out); err != nil {
					t.Fatal(err)
				}
			}
			g.restart()
			again, err := g.x.finished(g.ctx, out)
			if err != nil {
				t.Fatal(err)
			}
			if err := g.apply(effects, nil); err != nil {
				t.Fatal(err)
			}
			if err := g.apply(again, nil); contract.Code(err) != contract.Code(contract.ErrConflict) {
				t.Errorf("the second commit ends with %v", err)
			}
			if effects, err := g.x.finished(g.ctx, out); err != nil || len(effects) > 0 {
				t.Errorf("a task that has finished yields %d effects, %v", len(effects), err)
			}
		}
		g.push(main, "a", "b")
		g.does(main, "push", fields{"name": "c", "prompt": "Do it.", "deliver": announce})
		g.does(main, "run", nil)
		handle("a")
		if inbox, told, inputs := paths(); inbox != 1 || told != 0 || inputs != 0 {
			t.Errorf("a result in an inbox lies there %d times, is told %d times and runs main %d times", inbox, told, inputs)
		}
		g.collects(main, "check", nil, "a")
		g.types("receive", nil)
		handle("c") // not what the person waits for: it is announced
		if inbox, told, inputs := paths(); inbox != 0 || told != 0 || inputs != 1 {
			t.Errorf("an announced result lies in the inbox %d times, is told %d times and runs main %d times", inbox, told, inputs)
		}
		handle("b")
		if inbox, told, inputs := paths(); inbox != 0 || told != 1 || inputs != 1 {
			t.Errorf("a result that a person waits for lies in the inbox %d times, is told %d times and runs main %d times", inbox, told, inputs-1)
		}
	})
}

// Who commits first wins: a task that was cancelled stays so, and one that is
// done cannot be cancelled.
func TestCancelledOrDoneStays(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.does(main, "run", nil)
		g.works("a")
		g.does(main, "task_cancel", fields{"name": "a"})
		g.settle()
		task := g.task("a")
		if task.Outcome != Cancelled {
			t.Fatalf("a has ended with %q", task.Outcome)
		}
		effects, err := g.x.finished(g.ctx, contract.AgentOutput{Session: "s9", Extension: ID, Key: task.sessionKey(), Outcome: contract.OutcomeOK})
		if err != nil || len(effects) > 0 {
			t.Errorf("a late word yields %d effects, %v", len(effects), err)
		}
		g.done("b")
		g.fails(main, "task_cancel", fields{"name": "b"}, "has finished already: ok")
		got := g.received(g.does(main, "check", nil))
		if len(got) != 2 || got[0].Outcome != Cancelled || got[0].Partial != "so far" || got[1].Outcome != OK {
			t.Errorf("the results are %+v", got)
		}
	})
}

// A task that is cancelled in the moment in which it finishes has one result, in
// both orders.
func TestCancelledAsItFinishes(t *testing.T) {
	play(t, func(g *game) {
		for _, cancelFirst := range []bool{true, false} {
			g.push(main, "a")
			g.does(main, "run", nil)
			g.works("a")
			g.mu.Lock()
			g.world.says(g.worker("a"), contract.OutcomeOK, "done") // the turn has ended, and the extension has not heard of it
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
				g.fails(main, "task_cancel", fields{"name": "a"}, "has finished already")
			}
			got := g.received(g.does(main, "check", nil))
			if len(got) != 1 || got[0].Outcome != OK || got[0].Output != "done" {
				t.Errorf("the results are %+v", got)
			}
		}
	})
}

// A task that ends has its unfinished children cancelled, and theirs; and says
// how much lay in its inbox.
func TestAnEndTakesTheChildrenAlong(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.does(main, "run", nil)
		g.push("a", "b", "c", "d")
		g.does("a", "run", fields{"count": 2})
		g.push("b", "e")
		g.does("b", "run", nil)
		for _, name := range []string{"b", "c", "e"} {
			g.works(name)
		}
		g.does(main, "send", fields{"to": "a", "message": "one"})
		g.does("b", "send", fields{"to": "a", "message": "two"})
		g.does("b", "send", fields{"to": "d", "message": "three"})
		g.done("a")
		for _, name := range []string{"b", "c", "d", "e"} {
			if task := g.task(name); task.State != Finished || task.Outcome != Cancelled {
				t.Errorf("%s is %s %s", name, task.State, task.Outcome)
			}
		}
		got := g.received(g.does(main, "check", nil))
		if len(got) != 1 || got[0].From != "a" || got[0].Uncollected != 2 {
			t.Errorf("main gets %+v", got)
		}
		g.clean(inboxPrefix, orderPrefix, workingPrefix, queuedPrefix)
		g.fails("b", "push", fields{"prompt": "more"}, `the task "b" has ended`)
	})
}

// A queued task whose session was deleted ends as cancelled, and the run goes on.
func TestTheSessionOfATaskIsDeleted(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c")
		g.does(main, "run", fields{"count": 1})
		g.remove(g.worker("b"))
		g.settle()
		g.works("a")
		g.remove(g.worker("a"))
		g.settle()
		g.states(Running, "c")
		g.remove(g.worker("c")) // before it begins with it
		g.settle()
		got := g.received(g.does(main, "check", nil))
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
func TestNamesAreFreeAgain(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.fails(main, "push", fields{"name": "a", "prompt": "again"}, "is taken")
		g.fails(main, "push", fields{"name": main, "prompt": "again"}, "cannot be a name")
		g.does(main, "run", nil)
		g.done("a")
		g.fails(main, "push", fields{"name": "a", "prompt": "again"}, "is taken")
		g.collects(main, "check", nil, "a")
		first := g.task("a")
		g.push(main, "a")
		g.clean(promptPrefix+first.ID, resultPrefix+first.ID)
		g.restart()
		for range 3 {
			g.does(main, "push", fields{"prompt": "Do it."})
		}
		g.restart()
		if said := g.does(main, "push", fields{"prompt": "Do it."}); !strings.Contains(said, `"name":"task-4"`) {
			t.Errorf("the next name: %s", said)
		}
		g.push(main, "task-5")
		if said := g.does(main, "push", fields{"prompt": "Do it."}); !strings.Contains(said, `"name":"task-6"`) {
			t.Errorf("the next name: %s", said)
		}
	})
}

// A worker whose own name is the next one to be made up stays itself.
func TestAMadeUpNameIsNotTheWorkersOwn(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "task-1")
		g.does(main, "run", nil)
		if said := g.does("task-1", "push", fields{"prompt": "Do it."}); !strings.Contains(said, `"name":"task-2"`) {
			t.Errorf("the name: %s", said)
		}
		g.states(Running, "task-1")
		g.states(Queued, "task-2")
	})
}

// What is removed from a queue never was there.
func TestQueueRemove(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c")
		g.does(main, "send", fields{"to": "b", "message": "hello"})
		g.does(main, "queue_remove", fields{"name": "b"})
		g.fails(main, "queue_remove", fields{"name": "b"}, "there is no task")
		g.does(main, "run", fields{"count": 1})
		g.fails(main, "queue_remove", fields{"name": "a"}, "is running and not in the queue")
		g.fails("a", "queue_remove", fields{"name": "c"}, "not one of yours")
		g.done("a")
		g.states(Running, "c")
		g.done("c")
		g.collects(main, "check", nil, "a", "c")
		g.clean(inboxPrefix, orderPrefix, queuedPrefix, taskKey(root, "b"))
	})
}

// A message reaches one that is queued, and not one that has finished.
func TestSend(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.does(main, "send", fields{"to": "a", "message": "one"})
		g.does(main, "run", nil)
		g.does("b", "send", fields{"to": "a", "message": "two"})
		g.fails("b", "send", fields{"to": "nobody", "message": "two"}, "there is no task")
		g.fails("b", "send", fields{"to": "a", "message": " "}, "empty")
		g.collects("a", "receive", fields{"from": "b"}, "b")
		g.collects("a", "receive", nil, main)
		g.works("a")
		g.does(main, "task_cancel", fields{"name": "a"})
		g.fails("b", "send", fields{"to": "a", "message": "three"}, "has finished (cancelled)")
		g.settle()
		g.fails("b", "send", fields{"to": "a", "message": "three"}, "has finished (cancelled)")
		g.does("b", "send", fields{"to": main, "message": "half of it"})
		g.collects(main, "receive", fields{"from": "b"}, "b")
	})
}

// The oldest is the oldest and the newest the newest, of one sender and of all.
func TestOldestAndNewest(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.does(main, "run", nil)
		send := func(who string, texts ...string) {
			for _, text := range texts {
				g.does(who, "send", fields{"to": main, "message": text})
			}
		}
		takes := func(tool string, arguments fields, want ...string) {
			t.Helper()
			var got []string
			for _, m := range g.received(g.does(main, tool, arguments)) {
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
