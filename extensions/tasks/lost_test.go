package tasks

import (
	"slices"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// loses has a worker say its last word, or its session go, without the extension
// ever hearing of it.
func (g *game) loses(name string, gone bool) {
	g.t.Helper()
	g.works(name)
	g.mu.Lock()
	s := g.worker(name)
	g.world.says(s, contract.OutcomeOK, "unheard")
	g.events = nil
	if gone {
		delete(g.sessions, s.id)
		delete(g.byKey, s.agent+" "+s.key)
	}
	g.mu.Unlock()
}

// A task whose worker's last word has died, or whose session is gone, ends with its
// one result, and what worked for it and what is queued behind it do not stay
// behind. One that works, or waits to, goes on, however long.
func TestALostWorker(t *testing.T) {
	for name, gone := range map[string]bool{"its word has died": false, "its session is gone": true} {
		t.Run(name, func(t *testing.T) {
			play(t, func(g *game) {
				g.push(main, "a", "b", "c", "d")
				g.does(main, "run", fields{"count": 3})
				g.push("a", "child")
				g.does("a", "run", nil)
				g.works("b") // c has not begun yet
				g.works("child")
				g.loses("a", gone)
				g.restart()
				time.Sleep(lostAfter - time.Second)
				g.states(Running, "a", "b", "c", "child")
				g.states(Queued, "d")
				time.Sleep(lostAfter)
				g.settle()
				g.states(Finished, "a", "child")
				g.states(Running, "b", "c", "d")
				got := g.received(g.does(main, "check", nil))
				if len(got) != 1 || got[0].From != "a" || got[0].Success || got[0].Outcome != Interrupted || got[0].Error == "" {
					t.Errorf("the results are %+v", got)
				}
				g.done("b", "c", "d")
				g.collects(main, "check", nil, "b", "c", "d")
				time.Sleep(3 * lostAfter)
				g.collects(main, "check", nil)
			})
		})
	}
}

// A last word that comes late is the result, or nothing: never a second one. One
// that was stopped ends as that.
func TestALastWordThatComesLate(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c")
		g.does(main, "run", nil)
		for _, name := range []string{"a", "b"} {
			g.works(name)
		}
		g.mu.Lock()
		for _, name := range []string{"a", "b"} {
			g.world.says(g.worker(name), contract.OutcomeOK, name+" is done")
		}
		late := slices.Clone(g.events)
		g.events = late[:1]
		g.mu.Unlock()
		time.Sleep(lostAfter / 2)
		g.settle()
		g.loses("c", true)
		g.does(main, "task_cancel", fields{"name": "c"})
		time.Sleep(3 * lostAfter)
		g.mu.Lock()
		g.events = late
		g.mu.Unlock()
		g.settle()
		got := g.received(g.does(main, "check", nil))
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

// A worker whose wait has failed, as the extension was away for too long, goes on,
// and counts as at work again. One that still waits does not.
func TestAWaitThatHasFailed(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.does(main, "run", fields{"count": 2})
		for _, name := range []string{"a", "b"} {
			g.works(name)
			g.later(name, "receive", fields{"from": main})
		}
		g.mu.Lock()
		g.worker("a").asleep()
		g.mu.Unlock()
		time.Sleep(2 * lostEvery)
		g.push(main, "c", "d")
		g.does(main, "run", fields{"count": 2})
		g.states(Running, "c")
		g.states(Queued, "d")
		if a, b := g.task("a"), g.task("b"); a.Waiting || !a.Placed || !b.Waiting || b.Placed {
			t.Errorf("a is %+v, b %+v", a, b)
		}
		g.done("a")
		g.states(Running, "d")
	})
}
