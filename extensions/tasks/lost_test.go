package tasks

import (
	"slices"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// loseOutput ends a worker's turn or deletes its session, and drops the event.
func (g *game) loseOutput(name string, gone bool) {
	g.t.Helper()
	g.beginTurn(name)
	g.mu.Lock()
	s := g.worker(name)
	g.world.endTurn(s, contract.OutcomeOK, "unheard")
	g.events = nil
	if gone {
		delete(g.sessions, s.id)
		delete(g.byKey, s.agent+" "+s.key)
	}
	g.mu.Unlock()
}

// A task whose final output was lost, or whose session was deleted, finishes with
// one result; its children are cancelled and the next queued task starts. A task
// that runs or waits is never ended so.
func TestLostOutput(t *testing.T) {
	for name, gone := range map[string]bool{"its word has died": false, "its session is gone": true} {
		t.Run(name, func(t *testing.T) {
			play(t, func(g *game) {
				g.push(main, "a", "b", "c", "d")
				g.call(main, "run", fields{"count": 3})
				g.push("a", "child")
				g.call("a", "run", nil)
				g.beginTurn("b") // c has not started yet
				g.beginTurn("child")
				g.loseOutput("a", gone)
				g.restart()
				time.Sleep(lostAfter - time.Second)
				g.states(Running, "a", "b", "c", "child")
				g.states(Queued, "d")
				time.Sleep(lostAfter)
				g.settle()
				g.states(Finished, "a", "child")
				g.states(Running, "b", "c", "d")
				got := g.received(g.call(main, "check", nil))
				if len(got) != 1 || got[0].From != "a" || got[0].Success || got[0].Outcome != Interrupted || got[0].Error == "" {
					t.Errorf("the results are %+v", got)
				}
				g.finishTasks("b", "c", "d")
				g.receives(main, "check", nil, "b", "c", "d")
				time.Sleep(3 * lostAfter)
				g.receives(main, "check", nil)
			})
		})
	}
}

// A late output is the result or is dropped: there is never a second result. A
// stopped task keeps the outcome of the stop.
func TestLateOutput(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c")
		g.call(main, "run", nil)
		for _, name := range []string{"a", "b"} {
			g.beginTurn(name)
		}
		g.mu.Lock()
		for _, name := range []string{"a", "b"} {
			g.world.endTurn(g.worker(name), contract.OutcomeOK, name+" is done")
		}
		late := slices.Clone(g.events)
		g.events = late[:1]
		g.mu.Unlock()
		time.Sleep(lostAfter / 2)
		g.settle()
		g.loseOutput("c", true)
		g.call(main, "task_cancel", fields{"name": "c"})
		time.Sleep(3 * lostAfter)
		g.mu.Lock()
		g.events = late
		g.mu.Unlock()
		g.settle()
		got := g.received(g.call(main, "check", nil))
		if len(got) != 3 {
			t.Fatalf("the results are %+v", got)
		}
		for _, m := range got {
			if want := map[string]string{"a": OK, "b": Interrupted, "c": Cancelled}[m.From]; m.Outcome != want {
				t.Errorf("%s has ended as %s, want %s", m.From, m.Outcome, want)
			}
		}
	})
}

// A worker whose receive failed, because the extension was down for too long,
// continues and uses a slot again. One that still waits does not.
func TestFailedReceiveRestoresSlot(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.call(main, "run", fields{"count": 2})
		for _, name := range []string{"a", "b"} {
			g.beginTurn(name)
			g.start(name, "receive", fields{"from": main})
		}
		g.mu.Lock()
		g.worker("a").asleep()
		g.mu.Unlock()
		time.Sleep(2 * lostEvery)
		g.push(main, "c", "d")
		g.call(main, "run", fields{"count": 2})
		g.states(Running, "c")
		g.states(Queued, "d")
		if a, b := g.task("a"), g.task("b"); a.Waiting || !a.HasSlot || !b.Waiting || b.HasSlot {
			t.Errorf("a is %+v, b %+v", a, b)
		}
		g.finishTasks("a")
		g.states(Running, "d")
	})
}
