package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// All receives of a deadlock return at once; those that only wait for one of them
// go on waiting. None returns while an agent is active.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waits []string // receiver and sender, in this order; any sender: ?
		works string   // other tasks that run
		told  string
	}{
		"a parent for a child":                        {[]string{"a main", "main a"}, "", "a main"},
		"a child for a parent":                        {[]string{"main a", "a main"}, "", "a main"},
		"a child for any, a parent for it":            {[]string{"a ?", "main a"}, "", "a main"},
		"a child for any, a parent for any":           {[]string{"a ?", "main ?"}, "", "a main"},
		"a parent for any, a child for it":            {[]string{"main ?", "a main"}, "", "a main"},
		"a parent for any, a child for any":           {[]string{"main ?", "a ?"}, "", "a main"},
		"a child alone":                               {[]string{"a ?"}, "", ""},
		"a child alone, for main":                     {[]string{"a main"}, "", ""},
		"a parent whose child works":                  {[]string{"main a"}, "a", ""},
		"two siblings":                                {[]string{"a b", "b a"}, "", "a b"},
		"two siblings and a parent for any":           {[]string{"main ?", "a b", "b a"}, "", "a b"},
		"a parent for any and two siblings":           {[]string{"a b", "main ?", "b a"}, "", "a b"},
		"three siblings and a parent for one":         {[]string{"a b", "b c", "main a", "c a"}, "", "a b c"},
		"three siblings through a parent":             {[]string{"a b", "b main", "main a"}, "", "a b main"},
		"a sibling for any, the other for it":         {[]string{"a ?", "b a"}, "", ""},
		"all for any":                                 {[]string{"a ?", "b ?", "c ?", "main ?"}, "", "a b c main"},
		"all for any, but one works":                  {[]string{"a ?", "b ?", "main ?"}, "c", ""},
		"all, each in its way":                        {[]string{"a main", "b ?", "c b", "main a"}, "", "a main"},
		"all, one for any":                            {[]string{"a main", "b ?", "c b", "main b"}, "", "a b c main"},
		"one for itself through who starts it":        {[]string{"main q"}, "", "main"},
		"a sibling for one that main has not started": {[]string{"a q"}, "", ""},
		"main waits for who waits for its queued one": {[]string{"a q", "main a"}, "", "a main"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(g *game) {
				all := strings.Fields(test.works)
				for _, wait := range test.waits {
					if who, _, _ := strings.Cut(wait, " "); who != main {
						all = append(all, who)
					}
				}
				g.push(main, all...)
				g.call(main, "run", nil)
				g.push(main, "q")
				said := map[string]<-chan string{}
				for _, wait := range test.waits {
					who, whom, _ := strings.Cut(wait, " ")
					if who != main {
						g.beginTurn(who)
					}
					arguments := fields{"from": whom}
					if whom == "?" {
						arguments = nil
					}
					said[who] = g.start(who, "receive", arguments)
				}
				for who, said := range said {
					if slices.Contains(strings.Fields(test.told), who) {
						g.returns(said, "Nothing can arrive")
					} else {
						g.stillWaits(said)
					}
				}
			})
		})
	}
	t.Run("one that has its message is not waited for in vain", func(t *testing.T) {
		play(t, func(g *game) {
			g.push(main, "a", "b")
			g.call(main, "run", fields{"count": 1})
			g.beginTurn("a")
			a := g.start("a", "receive", fields{"from": main})
			g.states(Running, "b") // a has released its slot
			g.beginTurn("b")
			g.call(main, "send", fields{"to": "a", "message": "go"})
			g.settle()
			g.stillWaits(a) // b uses the slot
			parent := g.start(main, "receive", fields{"from": "a"})
			g.stillWaits(parent)
			g.finishTasks("b")
			g.returns(a, "go")
			g.finishTasks("a")
			g.returns(parent, "a is done")
		})
	})
}

// receive returns at once if nothing can arrive.
func TestNothingCanArrive(t *testing.T) {
	play(t, func(g *game) {
		g.returns(g.start(main, "receive", nil), "Nothing is running")
		g.callFails(main, "receive", fields{"from": "nobody"}, "there is no task")
		g.callFails(main, "receive", fields{"from": main}, "wait for itself")
		g.push(main, "a")
		g.returns(g.start(main, "receive", fields{"from": "a"}), "from a: it hasn't started")
		g.returns(g.start(main, "receive", nil), "Nothing is running")
		g.call(main, "run", nil)
		g.finishTasks("a")
		g.receives(main, "receive", nil, "a")
		g.returns(g.start(main, "receive", fields{"from": "a"}), "from a: it has finished (ok)")
	})
}

// A receive with a timeout reads the inbox before it expires.
func TestTimeoutReadsInboxFirst(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.call(main, "run", nil)
		g.finishTasks("a")
		g.receives(main, "receive", fields{"timeout": 1e-9}, "a")
		wait := g.start(main, "receive", fields{"timeout": 60})
		g.stillWaits(wait)
		time.Sleep(59 * time.Second)
		g.stillWaits(wait)
		time.Sleep(time.Second)
		g.returns(wait, "Nothing arrived in time")
		wait = g.start(main, "receive", fields{"timeout": 60})
		time.Sleep(59 * time.Second)
		g.finishTasks("b")
		g.returns(wait, "b is done")

		// A message that arrived just before is returned, even without a wake-up.
		g.push(main, "c")
		g.call(main, "run", nil)
		task := g.task("c")
		effects, err := g.x.workerFinished(g.ctx,
			contract.AgentOutput{Session: "s9", Extension: ID, Key: task.sessionKey(), Outcome: contract.OutcomeOK,
				Text: "c is done"})
		if err != nil {
			t.Fatal(err)
		}
		wait = g.start(main, "receive", fields{"timeout": 60})
		time.Sleep(60*time.Second - time.Nanosecond)
		g.stillWaits(wait)
		if err := g.apply(effects, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Nanosecond)
		g.returns(wait, "c is done")
	})
}

// A timeout result is stored even if the queue changes meanwhile: a conflict would
// repeat the call and its wait.
func TestTimeoutResultSurvivesConflict(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.call(main, "run", fields{"count": 1})
		g.beginTurn("a")
		result, err := g.tool("receive")(g.ctx,
			g.request(g.sessionOf("a"), "c2", "receive", fields{"from": main, "timeout": 60}))
		if err != nil || !strings.Contains(result.Content, "Nothing arrived in time") {
			t.Fatalf("it is told %s, %v", result.Content, err)
		}
		g.call(main, "run", fields{"count": 2})
		if err := g.apply(result.Effects, nil); err != nil {
			t.Errorf("what it is told cannot be stored: %v", err)
		}
		if task := g.task("a"); task.Waiting || !task.HasSlot {
			t.Errorf("it goes on without its place: %+v", task)
		}
	})
}

// A worker that continues in a run without a limit is counted by a concurrent run
// that sets one.
func TestResumeWithoutSlotIsCounted(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.call(main, "run", fields{"count": 1})
		g.beginTurn("a")
		wait := g.start("a", "receive", fields{"from": main})
		g.call(main, "run", nil)
		g.call(main, "send", fields{"to": "a", "message": "go"})
		g.push(main, "b")
		limits, err := g.tool("run")(g.ctx, g.request(root, "c1", "run", fields{"count": 1}))
		if err != nil {
			t.Fatal(err)
		}
		g.settle()
		g.returns(wait, "go")
		if err := g.apply(limits.Effects, nil); !errors.Is(err, contract.ErrConflict) {
			t.Errorf("the run that has not seen it ends with %v", err)
		}
		g.call(main, "run", fields{"count": 1})
		g.states(Queued, "b")
		g.finishTasks("a")
		g.states(Running, "b")
	})
}

// A new message of the user interrupts receive, which then takes nothing.
func TestInterruptedReceiveTakesNothing(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.call(main, "run", nil)
		ctx, interrupt := context.WithCancel(g.ctx)
		call := g.tool("receive")
		ended := make(chan error, 1)
		go func() {
			_, err := call(ctx, g.request(root, "c9", "receive", nil))
			ended <- err
		}()
		synctest.Wait()
		interrupt()
		if err := <-ended; err == nil {
			t.Error("the wait was not ended")
		}
		if g.x.hasWaiters(root) {
			t.Error("it still counts as waiting")
		}
		g.finishTasks("a")
		g.receives(main, "receive", nil, "a")
	})
}

// The timeout of a task also ends its receive and frees its slot.
func TestTaskTimeoutEndsReceive(t *testing.T) {
	play(t, func(g *game) {
		g.call(main, "push", fields{"name": "a", "prompt": "wait", "timeout": 5})
		g.push(main, "b")
		g.call(main, "run", fields{"count": 1})
		g.beginTurn("a")
		wait := g.start("a", "receive", fields{"from": main})
		g.settle()
		g.states(Running, "a", "b")
		time.Sleep(6 * time.Second)
		g.settle()
		g.returns(wait, "error")
		if task := g.task("a"); task.Outcome != Timeout {
			t.Errorf("a has ended with %q", task.Outcome)
		}
		got := g.received(g.call(main, "receive", fields{"from": "a"}))
		if len(got) != 1 || got[0].Success || got[0].Outcome != Timeout || got[0].Partial != "so far" || got[0].Error == "" {
			t.Errorf("the result of a: %+v", got)
		}
		g.states(Running, "b")
		g.finishTasks("b")
	})
}

// A message is collected by exactly one of two receivers, whether it arrives before
// or during the wait, and wherever a receiver is killed.
func TestTwoReceiversOneMessage(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.call(main, "run", nil)
		one, two := g.start(main, "receive", nil), g.start(main, "receive", nil)
		g.finishTasks("a")
		var first string
		select {
		case first = <-one:
			one = two
		case first = <-two:
		}
		if from := senders(g.received(first)); len(from) != 1 || from[0] != "a" {
			t.Errorf("the first has something of %q", from)
		}
		g.stillWaits(one)
		g.finishTasks("b")
		g.returns(one, "b is done")
	})
}

// Of two collectors that read at the same time, one commits.
func TestConcurrentCollectors(t *testing.T) {
	play(t, func(g *game) {
		for _, tools := range [][2]string{{"check", "check"}, {"check", "receive"}, {"receive", "receive"}} {
			for _, ids := range [][2]string{{"c1", "c2"}, {"c1", "e2"}, {"e1", "c2"}} {
				g.push(main, "a")
				g.call(main, "run", nil)
				g.finishTasks("a")
				one, err := g.tool(tools[0])(g.ctx, g.request(root, ids[0], tools[0], nil))
				if err != nil {
					t.Fatal(err)
				}
				two, err := g.tool(tools[1])(g.ctx, g.request(root, ids[1], tools[1], nil))
				if err != nil {
					t.Fatal(err)
				}
				if len(g.received(one.Content)) != 1 || len(g.received(two.Content)) != 1 {
					t.Fatalf("they see %s and %s", one.Content, two.Content)
				}
				g.restart() // their results are not stored yet
				if err := g.apply(two.Effects, nil); err != nil {
					t.Fatal(err)
				}
				if err := g.apply(one.Effects, nil); contract.Code(err) != contract.Code(contract.ErrConflict) {
					t.Errorf("%v %v: the second commit ends with %v", tools, ids, err)
				}
				g.receives(main, "check", nil)
				g.noRows(inboxPrefix, orderPrefix)
			}
		}
	})
}

// A collector that is killed before its result is stored has taken nothing.
func TestKilledCollector(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.call(main, "run", nil)
		g.finishTasks("a")
		for _, tool := range []string{"check", "receive"} {
			if _, err := g.tool(tool)(g.ctx, g.request(root, "c1", tool, nil)); err != nil {
				t.Fatal(err)
			}
			g.restart()
		}
		g.receives(main, "receive", nil, "a")
		g.receives(main, "check", nil)
	})
}

// Each /receive of a person gets one message, in order; a deferred one is sent to
// the chat of the command, and recorded.
func TestDeferredReceive(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c")
		g.call(main, "run", nil)
		for _, from := range []string{"b", "", ""} {
			g.command("receive", fields{"from": from})
		}
		g.restart()
		g.finishTasks("a", "b")
		g.finishTasks("c")
		if len(g.sentToPeople()) != 3 {
			t.Fatalf("the person is told %q", g.sentToPeople())
		}
		for i, name := range []string{"a", "b", "c"} {
			if want := fmt.Sprintf(`{"text":"**%s** has finished:\n\n%s is done","reply_to":"the chat"}`, name,
				name); g.sentToPeople()[i] != want {
				t.Errorf("they are told %s, want %s", g.sentToPeople()[i], want)
			}
		}
		g.mu.Lock()
		records := len(g.sessions[root].pending)
		g.mu.Unlock()
		if n := records; n != 3 {
			t.Errorf("%d records wait for main", n)
		}
		g.receives(main, "check", nil)
		g.noRows(deferredPrefix, inboxPrefix, orderPrefix, unnoticedPrefix)
		if n := g.notices(); len(n) != 0 {
			t.Errorf("main is told of what the person has: %q", n)
		}

		g.push(main, "d", "e")
		g.call(main, "run", nil)
		g.command("receive", fields{"from": "d", "timeout": 10})
		g.finishTasks("e") // not the sender that they wait for
		g.receives(main, "check", nil, "e")
		time.Sleep(20 * time.Second)
		if last := g.sentToPeople()[len(g.sentToPeople())-1]; len(g.sentToPeople()) != 4 ||
			last != `{"text":"Nothing arrived in time.","reply_to":"the chat"}` {
			t.Errorf("they are told %s", last)
		}
		g.finishTasks("d")
		g.receives(main, "check", nil, "d")
	})
}

// A message that arrives just as a receive is deferred is sent at once, whichever
// commits first, and whether other receives are deferred.
func TestMessageArrivesWhileDeferring(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		for _, waitsFirst := range []bool{false, true} {
			for _, restart := range []bool{false, true} {
				t.Run(fmt.Sprintf("others wait: %t, waits first: %t, restart: %t", others, waitsFirst, restart),
					func(t *testing.T) {
						play(t, func(g *game) {
							g.push(main, "a", "b")
							g.call(main, "run", nil)
							if others {
								g.command("receive", fields{"from": "b"})
								g.settle()
							}
							wait, err := g.tool("receive")(g.ctx, g.request(root, "e1", "receive", fields{"from": "a"}))
							if err != nil {
								t.Fatal(err)
							}
							g.beginTurn("a")
							g.mu.Lock()
							g.world.endTurn(g.worker("a"), contract.OutcomeOK, "a is done")
							word := g.events[0]
							g.mu.Unlock()
							if restart {
								g.restart() // the new process does not know of the deferred receive
							}
							effects, err := g.x.handle(g.ctx, word)
							if err != nil {
								t.Fatal(err)
							}
							if !waitsFirst {
								effects, wait.Effects = wait.Effects, effects
							}
							if err := g.apply(wait.Effects, nil); err != nil {
								t.Fatal(err)
							}
							answer := ""
							if err := g.apply(effects, nil); err != nil && contract.Code(err) != contract.Code(contract.ErrConflict) {
								t.Fatal(err)
							} else if err != nil && !waitsFirst { // the kernel repeats the call
								answer = g.command("receive", fields{"from": "a"})
							}
							g.settle()
							if told := append(g.sentToPeople(), answer); strings.Count(strings.Join(told, ""), "a is done") != 1 {
								t.Errorf("the person is told %q", told)
							}
							g.receives(main, "check", nil)
							if n := g.notices(); len(n) > 0 {
								t.Errorf("main is told %q", n)
							}
							if others {
								g.finishTasks("b")
								if !strings.Contains(strings.Join(g.sentToPeople(), ""), "b is done") {
									t.Errorf("the other person is told %q", g.sentToPeople())
								}
							}
							g.noRows(deferredPrefix, fencePrefix, inboxPrefix, orderPrefix, unnoticedPrefix)
						})
					})
			}
		}
	}
}
