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

// With two slots at most two of five tasks run, also across receives and restarts;
// the world checks each commit.
func TestRunLimit(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c", "d", "e")
		g.call(main, "run", fields{"count": 2})
		g.states(Running, "a", "b")
		g.states(Queued, "c", "d", "e")
		for _, name := range []string{"a", "b"} {
			g.beginTurn(name)
			g.start(name, "receive", fields{"from": main})
		}
		g.states(Running, "c", "d") // a and b have released their slots
		g.states(Queued, "e")
		g.restart()
		a := g.start("a", "receive", fields{"from": main})
		b := g.start("b", "receive", fields{"from": main})
		g.call(main, "send", fields{"to": "a", "message": "go"})
		g.call(main, "send", fields{"to": "b", "message": "go"})
		g.settle()
		g.stillWaits(a)
		g.finishTasks("c") // waiting workers precede queued tasks
		time.Sleep(pollMax)
		back := []<-chan string{a, b}
		i := slices.IndexFunc(back, func(c <-chan string) bool { return len(c) > 0 })
		if i < 0 {
			t.Fatal("nobody has come back")
		}
		g.returns(back[i], "go")
		g.stillWaits(back[1-i])
		g.states(Queued, "e")
		g.finishTasks("d")
		time.Sleep(pollMax)
		g.returns(back[1-i], "go")
		g.states(Queued, "e")
		g.finishTasks("a")
		g.states(Running, "e")
		g.finishTasks("b", "e")
		g.receives(main, "check", nil, "c", "d", "a", "b", "e")
		g.noRows(queuedPrefix, workingPrefix)
		if q := stored[queue](g.world, queueKey(root, main)); q.Active || q.Used != 0 {
			t.Errorf("the queue is %+v", q)
		}
	})
}

// A newer run replaces the limit: with more slots, fewer, and after no limit.
func TestNewerRunReplacesLimit(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c", "d", "e", "f", "g")
		g.call(main, "run", fields{"count": 1})
		g.states(Queued, "b")
		g.call(main, "run", fields{"count": 3})
		g.states(Running, "b", "c")
		g.call(main, "run", fields{"count": 1})
		g.finishTasks("a", "b")
		g.states(Queued, "d")
		g.finishTasks("c")
		g.states(Running, "d")
		g.states(Queued, "e")
		g.call(main, "run", nil)
		g.states(Running, "e", "f", "g")
		g.push(main, "h", "i")
		if said := g.call(main, "run", fields{"count": 2}); !strings.Contains(said, "No free slot") ||
			!strings.Contains(said, `"running":4`) {
			t.Errorf("run says %s", said)
		}
		g.finishTasks("d", "e")
		g.states(Queued, "h")
		g.finishTasks("f")
		g.states(Running, "h")
		g.states(Queued, "i")
		g.finishTasks("g")
		g.states(Running, "i")
	})
}

// A task that ends while a run with a lower limit is being committed does not
// pass its slot on under the old limit.
func TestLowerLimitWhileTaskEnds(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c", "d")
		g.call(main, "run", fields{"count": 2})
		task := g.task("a")
		out := contract.AgentOutput{Session: "s9", Extension: ID, Key: task.sessionKey(), Outcome: contract.OutcomeOK}
		effects, err := g.x.workerFinished(g.ctx, out)
		if err != nil {
			t.Fatal(err)
		}
		g.call(main, "run", fields{"count": 1})
		if err := g.apply(effects, nil); contract.Code(err) != contract.Code(contract.ErrConflict) {
			t.Fatalf("the commit ends with %v", err)
		}
		g.finishTasks("a")
		g.states(Queued, "c")
		g.finishTasks("b")
		g.states(Running, "c")
		g.states(Queued, "d")
	})
}

// A task that is pushed during a run belongs to it; one that is pushed after its
// queue was empty does not.
func TestPushDuringRun(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.call(main, "run", fields{"count": 1})
		g.push(main, "c")
		g.finishTasks("a")
		g.states(Running, "b")
		g.finishTasks("b")
		g.states(Running, "c")
		g.push(main, "d")
		g.finishTasks("c")
		g.states(Queued, "d")
		g.call(main, "run", nil)
		g.states(Running, "d")
	})
}

// Tasks that end at the same time do not conflict.
func TestConcurrentEndsDoNotConflict(t *testing.T) {
	for _, count := range []int{4, 0} {
		t.Run(fmt.Sprint("run ", count), func(t *testing.T) {
			play(t, func(g *game) {
				for i := range 40 {
					g.push(main, fmt.Sprint("x", i))
				}
				g.call(main, "run", fields{"count": count})
				g.resetTally()
				for i := 0; i < 36; i += 4 {
					var all []sdk.Effects
					for j := range 4 {
						task := g.task(fmt.Sprint("x", i+j))
						effects, err := g.x.workerFinished(g.ctx,
							contract.AgentOutput{Session: "s9", Extension: ID, Key: task.sessionKey(), Outcome: contract.OutcomeOK})
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

// A task that a change claimed but did not start is started later, also across a
// restart.
func TestUnusedClaim(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			play(t, func(g *game) {
				g.push(main, "a", "b", "c")
				g.call(main, "run", fields{"count": 2})
				task := g.task("a")
				if _, err := g.x.workerFinished(g.ctx,
					contract.AgentOutput{Session: "s9", Extension: ID, Key: task.sessionKey()}); err != nil {
					t.Fatal(err)
				}
				g.finishTasks("b") // claims c, and is not committed
				g.states(Queued, "c")
				if restart {
					g.restart()
				}
				time.Sleep(2 * claimTTL)
				g.states(Running, "c")
			})
		})
	}
}

// The costs of a task do not depend on the number of others.
func TestConstantCosts(t *testing.T) {
	t.Parallel()
	cost := func(t *testing.T, others int) (read, written, bytes int) {
		play(t, func(g *game) {
			for range others {
				g.call(main, "push", fields{"prompt": "Do it."})
			}
			g.call(main, "run", fields{"count": 4})
			for i := range 3 { // away from the ends of the queue
				g.finishTasks(fmt.Sprint("task-", i+1))
			}
			g.beginTurn("task-4")
			wait := g.start(main, "receive", fields{"from": "task-5"})
			g.resetTally()
			g.finishTasks("task-4")
			g.call(main, "push", fields{"prompt": "Do it."})
			g.receives(main, "check", fields{"from": "task-4"}, "task-4")
			g.stillWaits(wait)
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

// A task without children and messages takes few calls to the kernel, each of
// which wakes two processes.
func TestKernelCalls(t *testing.T) {
	play(t, func(g *game) {
		g.mu.Lock()
		g.sessions[root].busy = true // no notices
		g.mu.Unlock()
		g.call(main, "push", fields{"prompt": "Do it."})
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
		asks("push", 1, func() { g.call(main, "push", fields{"prompt": "Do it."}) })
		asks("push by name", 2, func() { g.push(main, "c") })
		asks("push by name", 2, func() { g.push(main, "d") })
		g.call(main, "run", fields{"count": 2})
		asks("an end and a beginning", 4, func() { g.finishTasks("task-1") })
		g.restart()
		asks("the same after a restart", 5, func() { g.finishTasks("task-2") })
		asks("collecting", 4, func() { g.receives(main, "receive", nil, "task-1") })
		g.receives(main, "receive", nil, "task-2")
		asks("an end", 3, func() { g.finishTasks("c") })
	})
}

// The cost of a receive does not depend on the size of the inbox.
func TestConstantCostOfInbox(t *testing.T) {
	t.Parallel()
	var few, many map[string]int
	cost := func(t *testing.T, others int) map[string]int {
		read := map[string]int{}
		play(t, func(g *game) {
			g.push(main, "a", "b")
			g.call(main, "run", nil)
			g.beginTurn("a")
			for range others {
				g.call("a", "send", fields{"to": main, "message": "on my way"})
			}
			for _, name := range []string{"b", "a"} {
				for _, order := range []string{"fifo", "lifo"} {
					if name == "b" {
						g.beginTurn("b")
						g.call("b", "send", fields{"to": main, "message": "hello"})
					}
					g.resetTally()
					g.call(main, "receive", fields{"from": name, "order": order})
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

// A worker works for the conversation of the push, and its turns are counted by
// chain.
func TestWorkerInput(t *testing.T) {
	play(t, func(g *game) {
		g.call(main, "push", fields{"name": "a", "prompt": "Do it.", "model": "small"})
		g.call(main, "run", nil)
		in := g.beginTurn("a")
		if in.GetReplyTo() != "the chat" || in.GetKind() != contract.InputTask || in.GetSender() != main ||
			!strings.Contains(string(in.GetMeta()), "small") {
			t.Errorf("a hears %+v", in)
		}
		for _, words := range []string{"Do it.", "Your name is a."} {
			if !strings.Contains(in.GetText(), words) {
				t.Errorf("a reads %q", in.GetText())
			}
		}
		g.push("a", "b")
		g.call("a", "run", nil)
		if in := g.beginTurn("b"); in.GetReplyTo() != "the chat" || !strings.Contains(string(in.GetMeta()), "small") {
			t.Errorf("b hears %+v", in)
		}
		a, b := g.made[0], g.made[1]
		if a.GetWithin() != root || a.GetChain() != g.task("a").ID ||
			a.GetOutbound().GetKind() != busv1.Outbound_KIND_EXTENSION {
			t.Errorf("the session of a is %+v", a)
		}
		if b.GetWithin() != g.sessionOf("a") || b.GetChain() != a.GetChain() {
			t.Errorf("the session of b is %+v", b)
		}
	})
}

// Nested agents are limited in depth, concurrency and number. Tasks of main are
// not.
func TestLimits(t *testing.T) {
	play(t, func(g *game) {
		g.x.config = config{Depth: 3, Concurrency: 2, PerRoot: 5}
		for range 30 {
			g.call(main, "push", fields{"prompt": "Do it."})
		}
		g.push(main, "a")
		g.call(main, "run", nil)
		g.push("a", "b", "c", "d")
		if said := g.call("a", "run", nil); !strings.Contains(said, "Started: b, c. Still queued: 1") {
			t.Errorf("run says %s", said)
		}
		g.push("b", "e")
		g.call("b", "run", nil)
		g.callFails("e", "push", fields{"prompt": "deeper"}, "nested 3 deep")
		g.push("b", "f")
		g.callFails("c", "push", fields{"prompt": "one more"}, "sub-agents have 5 unfinished tasks")
		g.finishTasks("e")
		g.push("c", "h")
		g.call(main, "push", fields{"prompt": "main may"})
	})
}
