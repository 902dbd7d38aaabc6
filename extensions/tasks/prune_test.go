package tasks

import (
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// Old tasks are deleted with their texts once their result is collected;
// uncollected results stay.
func TestPruneOldTasks(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c", "d")
		g.call(main, "run", fields{"count": 3})
		g.push("c", "child")
		g.call("c", "run", nil)
		g.finishTasks("child", "a", "b", "c")
		g.receives(main, "receive", fields{"from": "a"}, "a")
		g.receives(main, "receive", fields{"from": "c"}, "c")
		a, child := g.task("a"), g.task("child")
		time.Sleep(keep - time.Hour)
		g.states(Finished, "a", "b", "c", "child")
		time.Sleep(3 * time.Hour)
		g.noRows(taskKey(root, "a"), promptPrefix+a.ID, resultPrefix+a.ID, taskKey(root, "c"), taskKey(root, "child"),
			promptPrefix+child.ID)
		g.states(Finished, "b")
		g.states(Running, "d")
		g.receives(main, "receive", fields{"from": "b"}, "b")
		time.Sleep(2 * time.Hour)
		g.noRows(taskKey(root, "b"))
		g.finishTasks("d")
		g.receives(main, "receive", nil, "d")
	})
}

// The tasks of a deleted conversation are stopped, and its rows deleted.
func TestPruneDeletedConversation(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c", "d")
		g.call(main, "run", fields{"count": 2})
		g.beginTurn("a")
		g.beginTurn("b")
		g.command("receive", fields{"from": "d"})
		g.finishTasks("a")
		g.remove(g.sessions[root])
		g.settle()
		g.finishTasks("b") // must not fail without the conversation
		time.Sleep(2 * pruneEvery)
		g.settle()
		time.Sleep(2 * pruneEvery)
		g.noRows("")
		if !g.cancelled("c", "d") {
			t.Error("something still works for it")
		}
	})
}

// cancelled reports whether tasks, as last stored, were cancelled.
func (g *game) cancelled(names ...string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, task := range g.history {
		for _, name := range names {
			if task.Name == name && task.Outcome != Cancelled {
				return false
			}
		}
	}
	return true
}

// Messages beyond the limit of one commit are deleted later.
func TestPruneLargeInbox(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.call(main, "run", nil)
		for range maxCleared + 10 {
			g.call(main, "send", fields{"to": "a", "message": "hello"})
		}
		g.endTurn("a", contract.OutcomeOK, "done")
		got := g.received(g.call(main, "check", nil))
		if len(got) != 1 || got[0].Uncollected != maxCleared+10 {
			t.Errorf("the result is %+v", got)
		}
		time.Sleep(3 * pruneEvery)
		g.noRows(inboxPrefix, orderPrefix)
	})
}
