package tasks

import (
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// Old tasks go with their texts once their result is collected, and what is not
// collected stays.
func TestOldTasksGo(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c", "d")
		g.does(main, "run", fields{"count": 3})
		g.push("c", "child")
		g.does("c", "run", nil)
		g.done("child", "a", "b", "c")
		g.collects(main, "receive", fields{"from": "a"}, "a")
		g.collects(main, "receive", fields{"from": "c"}, "c")
		a, child := g.task("a"), g.task("child")
		time.Sleep(keep - time.Hour)
		g.states(Finished, "a", "b", "c", "child")
		time.Sleep(3 * time.Hour)
		g.clean(taskKey(root, "a"), promptPrefix+a.ID, resultPrefix+a.ID, taskKey(root, "c"), taskKey(root, "child"), promptPrefix+child.ID)
		g.states(Finished, "b")
		g.states(Running, "d")
		g.collects(main, "receive", fields{"from": "b"}, "b")
		time.Sleep(2 * time.Hour)
		g.clean(taskKey(root, "b"))
		g.done("d")
		g.collects(main, "receive", nil, "d")
	})
}

// What is left of a conversation that was deleted goes, and what works for it
// stops.
func TestADeletedConversation(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c", "d")
		g.does(main, "run", fields{"count": 2})
		g.works("a")
		g.works("b")
		g.types("receive", fields{"from": "d"})
		g.done("a")
		g.remove(g.sessions[root])
		g.settle()
		g.done("b") // that nobody is there is no reason to fail
		time.Sleep(2 * pruneEvery)
		g.settle()
		time.Sleep(2 * pruneEvery)
		g.clean("")
		if !g.over("c", "d") {
			t.Error("something still works for it")
		}
	})
}

// over says whether tasks, as they were stored last, were cancelled.
func (g *game) over(names ...string) bool {
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

// More messages than one commit should remove are removed later.
func TestALargeInboxOfOneThatEnds(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.does(main, "run", nil)
		for range maxCleared + 10 {
			g.does(main, "send", fields{"to": "a", "message": "hello"})
		}
		g.ends("a", contract.OutcomeOK, "done")
		got := g.received(g.does(main, "check", nil))
		if len(got) != 1 || got[0].Uncollected != maxCleared+10 {
			t.Errorf("the result is %+v", got)
		}
		time.Sleep(3 * pruneEvery)
		g.clean(inboxPrefix, orderPrefix)
	})
}
