package tasks

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// With two places, never more than two of five are at work, which the world
// checks at every commit, also if some wait and come back, and over restarts.
func TestTwoOfFiveAtATime(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c", "d", "e")
		g.does(main, "run", fields{"count": 2})
		g.states(Running, "a", "b")
		g.states(Queued, "c", "d", "e")
		for _, name := range []string{"a", "b"} {
			g.works(name)
			g.later(name, "receive", fields{"from": main})
		}
		g.states(Running, "c", "d") // they have given their places back
		g.states(Queued, "e")
		g.restart()
		a := g.later("a", "receive", fields{"from": main})
		b := g.later("b", "receive", fields{"from": main})
		g.does(main, "send", fields{"to": "a", "message": "go"})
		g.does(main, "send", fields{"to": "b", "message": "go"})
		g.settle()
		g.silent(a)
		g.done("c") // whoever comes back goes before what is queued
		time.Sleep(lookAgain)
		back := []<-chan string{a, b}
		i := slices.IndexFunc(back, func(c <-chan string) bool { return len(c) > 0 })
		if i < 0 {
			t.Fatal("nobody has come back")
		}
		g.says(back[i], "go")
		g.silent(back[1-i])
		g.states(Queued, "e")
		g.done("d")
		time.Sleep(lookAgain)
		g.says(back[1-i], "go")
		g.states(Queued, "e")
		g.done("a")
		g.states(Running, "e")
		g.done("b", "e")
		g.collects(main, "check", nil, "c", "d", "a", "b", "e")
		g.clean(queuedPrefix, workingPrefix)
		if q := stored[queue](g.world, queueKey(root, main)); q.Active || q.Placed != 0 {
			t.Errorf("the queue is %+v", q)
		}
	})
}

// A newer run holds: with more places, with fewer, and after one without a limit.
func TestANewerRunHolds(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c", "d", "e", "f", "g")
		g.does(main, "run", fields{"count": 1})
		g.states(Queued, "b")
		g.does(main, "run", fields{"count": 3})
		g.states(Running, "b", "c")
		g.does(main, "run", fields{"count": 1})
		g.done("a", "b")
		g.states(Queued, "d")
		g.done("c")
		g.states(Running, "d")
		g.states(Queued, "e")
		g.does(main, "run", nil)
		g.states(Running, "e", "f", "g")
		g.push(main, "h", "i")
		if said := g.does(main, "run", fields{"count": 2}); !strings.Contains(said, "Nothing begins before") || !strings.Contains(said, `"running":4`) {
			t.Errorf("run says %s", said)
		}
		g.done("d", "e")
		g.states(Queued, "h")
		g.done("f")
		g.states(Running, "h")
		g.states(Queued, "i")
		g.done("g")
		g.states(Running, "i")
	})
}

// Who ends while a newer run with fewer places is being committed does not hand
// its place on by the old number.
func TestFewerPlacesWhileOneEnds(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c", "d")
		g.does(main, "run", fields{"count": 2})
		task := g.task("a")
		out := contract.AgentOutput{Session: "s9", Extension: ID, Key: task.sessionKey(), Outcome: contract.OutcomeOK}
		effects, err := g.x.finished(g.ctx, out)
		if err != nil {
			t.Fatal(err)
		}
		g.does(main, "run", fields{"count": 1})
		if err := g.apply(effects, nil); contract.Code(err) != contract.Code(contract.ErrConflict) {
			t.Fatalf("the commit ends with %v", err)
		}
		g.done("a")
		g.states(Queued, "c")
		g.done("b")
		g.states(Running, "c")
		g.states(Queued, "d")
	})
}

// What is pushed while a run is under way is part of it, and what is pushed when
// its queue is empty is not.
func TestPushWhileARunIsActive(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.does(main, "run", fields{"count": 1})
		g.push(main, "c")
		g.done("a")
		g.states(Running, "b")
		g.done("b")
		g.states(Running, "c")
		g.push(main, "d")
		g.done("c")
		g.states(Queued, "d")
		g.does(main, "run", nil)
		g.states(Running, "d")
	})
}

// Tasks that end at the same time do not get in each other's way.
func TestTasksThatEndTogether(t *testing.T) {
	for _, count := range []int{4, 0} {
		t.Run(fmt.Sprint("run ", count), func(t *testing.T) {
			play(t, func(g *game) {
				for i := range 40 {
					g.push(main, fmt.Sprint("x", i))
				}
				g.does(main, "run", fields{"count": count})
				g.reset()
				for i := 0; i < 36; i += 4 {
					var all []sdk.Effects
					for j := range 4 {
						task := g.task(fmt.Sprint("x", i+j))
						effects, err := g.x.finished(g.ctx, contract.AgentOutput{Session: "s9", Extension: ID, Key: task.sessionKey(), Outcome: contract.OutcomeOK})
						if err != nil {
							t.Fatal(err)
						}
						all = append(all, effects)
					}
					for _, effects := range all {
						if err := g.apply(effects, nil); err != nil {
							t.Fatal(err)
						}
					}
				}
				if _, _, _, conflicts := g.tally(); conflicts > 0 {
					t.Errorf("there are %d conflicts", conflicts)
				}
				g.states(Running, "x36", "x37", "x38", "x39")
			})
		})
	}
}

// What another change was about to begin, and then has not, begins a little
// later, over a restart too.
func TestATaskThatNobodyBegins(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			play(t, func(g *game) {
				g.push(main, "a", "b", "c")
				g.does(main, "run", fields{"count": 2})
				task := g.task("a")
				if _, err := g.x.finished(g.ctx, contract.AgentOutput{Session: "s9", Extension: ID, Key: task.sessionKey()}); err != nil {
					t.Fatal(err)
				}
				g.done("b") // c is claimed by what is lost
				g.states(Queued, "c")
				if restart {
					g.restart()
				}
				time.Sleep(2 * claimLasts)
				g.states(Running, "c")
			})
		})
	}
}

// What a task costs does not depend on how many others there are.
func TestCostsDoNotGrow(t *testing.T) {
	t.Parallel()
	cost := func(t *testing.T, others int) (read, written, bytes int) {
		play(t, func(g *game) {
			for range others {
				g.does(main, "push", fields{"prompt": "Do it."})
			}
			g.does(main, "run", fields{"count": 4})
			for i := range 3 { // so that all are in the middle
				g.done(fmt.Sprint("task-", i+1))
			}
			g.works("task-4")
			wait := g.later(main, "receive", fields{"from": "task-5"})
			g.reset()
			g.done("task-4")
			g.does(main, "push", fields{"prompt": "Do it."})
			g.collects(main, "check", fields{"from": "task-4"}, "task-4")
			g.silent(wait)
			read, written, bytes, _ = g.tally()
		})
		return read, written, bytes
	}
	var few, many [3]int
	t.Run("few", func(t *testing.T) { few[0], few[1], few[2] = cost(t, 60) })
	t.Run("many", func(t *testing.T) { many[0], many[1], many[2] = cost(t, 500) })
	t.Cleanup(func() {
		t.Logf("rows read, rows written, bytes: %v", many)
		if few[0] != many[0] || few[1] != many[1] || many[2] > few[2]+20 {
			t.Errorf("with 60 tasks %v rows read, rows written and bytes, with 500 %v", few, many)
		}
	})
}

// What a task that gives no work and gets no mail costs is few questions to the
// kernel, each of which wakes two processes.
func TestFewQuestions(t *testing.T) {
	play(t, func(g *game) {
		g.mu.Lock()
		g.sessions[root].busy = true // so that it is told of nothing
		g.mu.Unlock()
		g.does(main, "push", fields{"prompt": "Do it."})
		asks := func(what string, most int, f func()) {
			t.Helper()
			synctest.Wait()
			g.mu.Lock()
			g.trips = 0
			g.mu.Unlock()
			f()
			g.mu.Lock()
			defer g.mu.Unlock()
			if t.Logf("%s: %d", what, g.trips); g.trips > most {
				t.Errorf("%s: the kernel is asked %d times, at most %d times would do", what, g.trips, most)
			}
		}
		asks("push", 1, func() { g.does(main, "push", fields{"prompt": "Do it."}) })
		asks("push by name", 2, func() { g.push(main, "c") })
		asks("push by name", 2, func() { g.push(main, "d") })
		g.does(main, "run", fields{"count": 2})
		asks("an end and a beginning", 4, func() { g.done("task-1") })
		g.restart()
		asks("the same after a restart", 5, func() { g.done("task-2") })
		asks("collecting", 4, func() { g.collects(main, "receive", nil, "task-1") })
		g.collects(main, "receive", nil, "task-2")
		asks("an end", 3, func() { g.done("c") })
	})
}

// Neither does what it costs to look for one message among many.
func TestAMessageAmongMany(t *testing.T) {
	t.Parallel()
	var few, many map[string]int
	cost := func(t *testing.T, others int) map[string]int {
		read := map[string]int{}
		play(t, func(g *game) {
			g.push(main, "a", "b")
			g.does(main, "run", nil)
			g.works("a")
			for range others {
				g.does("a", "send", fields{"to": main, "message": "on my way"})
			}
			for _, name := range []string{"b", "a"} {
				for _, order := range []string{"fifo", "lifo"} {
					if name == "b" {
						g.works("b")
						g.does("b", "send", fields{"to": main, "message": "hello"})
					}
					g.reset()
					g.does(main, "receive", fields{"from": name, "order": order})
					read[name+" "+order], _, _, _ = g.tally()
				}
			}
		})
		return read
	}
	t.Run("few", func(t *testing.T) { few = cost(t, 10) })
	t.Run("many", func(t *testing.T) { many = cost(t, 1000) })
	t.Cleanup(func() {
		t.Logf("rows read: %v", many)
		for what, n := range few {
			if most := n + 40; many[what] > most || strings.Contains(what, "fifo") && many[what] != n {
				t.Errorf("%s: %d rows are read among ten, and %d among a thousand", what, n, many[what])
			}
		}
	})
}

// A worker is as one to whom the work was delegated: it works for the
// conversation of the push, and its turns are counted apart from others.
func TestWhatAWorkerKnows(t *testing.T) {
	play(t, func(g *game) {
		g.does(main, "push", fields{"name": "a", "prompt": "Do it.", "model": "small"})
		g.does(main, "run", nil)
		in := g.works("a")
		if in.GetReplyTo() != "the chat" || in.GetKind() != contract.InputTask || in.GetSender() != main || !strings.Contains(string(in.GetMeta()), "small") {
			t.Errorf("a hears %+v", in)
		}
		for _, words := range []string{"Do it.", "Your name is a."} {
			if !strings.Contains(in.GetText(), words) {
				t.Errorf("a reads %q", in.GetText())
			}
		}
		g.push("a", "b")
		g.does("a", "run", nil)
		if in := g.works("b"); in.GetReplyTo() != "the chat" || !strings.Contains(string(in.GetMeta()), "small") {
			t.Errorf("b hears %+v", in)
		}
		a, b := g.made[0], g.made[1]
		if a.GetWithin() != root || a.GetChain() != g.task("a").ID || a.GetOutbound().GetKind() != busv1.Outbound_KIND_EXTENSION {
			t.Errorf("the session of a is %+v", a)
		}
		if b.GetWithin() != g.sessionOf("a") || b.GetChain() != a.GetChain() {
			t.Errorf("the session of b is %+v", b)
		}
	})
}

// Agents that give work to others are held within bounds: so many in a row, so
// many at a time, so many in a conversation. Those of main are not.
func TestBackstops(t *testing.T) {
	play(t, func(g *game) {
		g.x.config = config{Depth: 3, Concurrency: 2, PerRoot: 5}
		for range 30 {
			g.does(main, "push", fields{"prompt": "Do it."})
		}
		g.push(main, "a")
		g.does(main, "run", nil)
		g.push("a", "b", "c", "d")
		if said := g.does("a", "run", nil); !strings.Contains(said, "Started: b, c. Queued behind: 1") {
			t.Errorf("run says %s", said)
		}
		g.push("b", "e")
		g.does("b", "run", nil)
		g.fails("e", "push", fields{"prompt": "deeper"}, "3 agents stand in a row")
		g.push("b", "f")
		g.fails("c", "push", fields{"prompt": "one more"}, "5 tasks of sub-agents are unfinished")
		g.done("e")
		g.push("c", "h")
		g.does(main, "push", fields{"prompt": "main may"})
	})
}
