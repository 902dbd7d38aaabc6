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

// Nobody waits for one that waits for them: all of a circle are told at once, and
// those who wait for one of them wait on. Nobody is told as long as somebody goes on.
func TestThoseWhoWaitForEachOtherDoNot(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waits []string // who for whom, in this order; for whoever it is: ?
		works string   // who else there is
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
				g.does(main, "run", nil)
				g.push(main, "q")
				said := map[string]<-chan string{}
				for _, wait := range test.waits {
					who, whom, _ := strings.Cut(wait, " ")
					if who != main {
						g.works(who)
					}
					arguments := fields{"from": whom}
					if whom == "?" {
						arguments = nil
					}
					said[who] = g.later(who, "receive", arguments)
				}
				for who, said := range said {
					if slices.Contains(strings.Fields(test.told), who) {
						g.says(said, "Nothing can come")
					} else {
						g.silent(said)
					}
				}
			})
		})
	}
	t.Run("one that has its message is not waited for in vain", func(t *testing.T) {
		play(t, func(g *game) {
			g.push(main, "a", "b")
			g.does(main, "run", fields{"count": 1})
			g.works("a")
			a := g.later("a", "receive", fields{"from": main})
			g.states(Running, "b") // a has given its place back
			g.works("b")
			g.does(main, "send", fields{"to": "a", "message": "go"})
			g.settle()
			g.silent(a) // b has its place
			parent := g.later(main, "receive", fields{"from": "a"})
			g.silent(parent)
			g.done("b")
			g.says(a, "go")
			g.done("a")
			g.says(parent, "a is done")
		})
	})
}

// What cannot come is said at once.
func TestWaitsInVain(t *testing.T) {
	play(t, func(g *game) {
		g.says(g.later(main, "receive", nil), "Nothing can come: nothing is running")
		g.fails(main, "receive", fields{"from": "nobody"}, "there is no task")
		g.fails(main, "receive", fields{"from": main}, "wait for yourself")
		g.push(main, "a")
		g.says(g.later(main, "receive", fields{"from": "a"}), "nobody has started it")
		g.says(g.later(main, "receive", nil), "Nothing can come: nothing is running")
		g.does(main, "run", nil)
		g.done("a")
		g.collects(main, "receive", nil, "a")
		g.says(g.later(main, "receive", fields{"from": "a"}), "it has finished (ok)")
	})
}

// A wait with a time looks before that is over, and says when it is.
func TestAWaitWithATimeLooksFirst(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.does(main, "run", nil)
		g.done("a")
		g.collects(main, "receive", fields{"timeout": 1e-9}, "a")
		wait := g.later(main, "receive", fields{"timeout": 60})
		g.silent(wait)
		time.Sleep(59 * time.Second)
		g.silent(wait)
		time.Sleep(time.Second)
		g.says(wait, "Nothing has come in time")
		wait = g.later(main, "receive", fields{"timeout": 60})
		time.Sleep(59 * time.Second)
		g.done("b")
		g.says(wait, "b is done")

		// What came just before is there, also if nobody has said so.
		g.push(main, "c")
		g.does(main, "run", nil)
		task := g.task("c")
		effects, err := g.x.finished(g.ctx, contract.AgentOutput{Session: "s9", Extension: ID, Key: task.sessionKey(), Outcome: contract.OutcomeOK, Text: "c is done"})
		if err != nil {
			t.Fatal(err)
		}
		wait = g.later(main, "receive", fields{"timeout": 60})
		time.Sleep(60*time.Second - time.Nanosecond)
		g.silent(wait)
		if err := g.apply(effects, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Nanosecond)
		g.says(wait, "c is done")
	})
}

// What is said when nothing has come in time stands, whatever changes the queue
// before it is stored: a call that is made again would wait anew.
func TestAWaitThatIsOverIsNotMadeAgain(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.does(main, "run", fields{"count": 1})
		g.works("a")
		result, err := g.tool("receive")(g.ctx, g.request(g.sessionOf("a"), "c2", "receive", fields{"from": main, "timeout": 60}))
		if err != nil || !strings.Contains(result.Content, "Nothing has come in time") {
			t.Fatalf("it is told %s, %v", result.Content, err)
		}
		g.does(main, "run", fields{"count": 2})
		if err := g.apply(result.Effects, nil); err != nil {
			t.Errorf("what it is told cannot be stored: %v", err)
		}
		if task := g.task("a"); task.Waiting || !task.Placed {
			t.Errorf("it goes on without its place: %+v", task)
		}
	})
}

// Who goes on in a run without a limit, just as another one sets a limit, is
// counted.
func TestOneThatGoesOnWithoutAPlaceIsCounted(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.does(main, "run", fields{"count": 1})
		g.works("a")
		wait := g.later("a", "receive", fields{"from": main})
		g.does(main, "run", nil)
		g.does(main, "send", fields{"to": "a", "message": "go"})
		g.push(main, "b")
		limits, err := g.tool("run")(g.ctx, g.request(root, "c1", "run", fields{"count": 1}))
		if err != nil {
			t.Fatal(err)
		}
		g.settle()
		g.says(wait, "go")
		if err := g.apply(limits.Effects, nil); !errors.Is(err, contract.ErrConflict) {
			t.Errorf("the run that has not seen it ends with %v", err)
		}
		g.does(main, "run", fields{"count": 1})
		g.states(Queued, "b")
		g.done("a")
		g.states(Running, "b")
	})
}

// A new message of the user ends a wait, and nothing is taken by it.
func TestAnInterruptedWaitTakesNothing(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.does(main, "run", nil)
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
		if g.x.anyWaits(root) {
			t.Error("it still counts as waiting")
		}
		g.done("a")
		g.collects(main, "receive", nil, "a")
	})
}

// The hard timeout of a task also ends a wait, and the place is free.
func TestTimeoutWhileItWaits(t *testing.T) {
	play(t, func(g *game) {
		g.does(main, "push", fields{"name": "a", "prompt": "wait", "timeout": 5})
		g.push(main, "b")
		g.does(main, "run", fields{"count": 1})
		g.works("a")
		wait := g.later("a", "receive", fields{"from": main})
		g.settle()
		g.states(Running, "a", "b")
		time.Sleep(6 * time.Second)
		g.settle()
		g.says(wait, "error")
		if task := g.task("a"); task.Outcome != Timeout {
			t.Errorf("a has ended with %q", task.Outcome)
		}
		got := g.received(g.does(main, "receive", fields{"from": "a"}))
		if len(got) != 1 || got[0].Success || got[0].Outcome != Timeout || got[0].Partial != "so far" || got[0].Error == "" {
			t.Errorf("the result of a: %+v", got)
		}
		g.states(Running, "b")
		g.done("b")
	})
}

// A message that lies there when one begins to wait, or comes while it does, is
// collected by exactly one of two who want it, whichever way and however they
// are killed.
func TestTwoWaitOnOneMessage(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.does(main, "run", nil)
		one, two := g.later(main, "receive", nil), g.later(main, "receive", nil)
		g.done("a")
		var first string
		select {
		case first = <-one:
			one = two
		case first = <-two:
		}
		if from := senders(g.received(first)); len(from) != 1 || from[0] != "a" {
			t.Errorf("the first has something of %q", from)
		}
		g.silent(one)
		g.done("b")
		g.says(one, "b is done")
	})
}

// Collectors that read at the same time: one of them commits.
func TestTwoCollectAtTheSameTime(t *testing.T) {
	play(t, func(g *game) {
		for _, tools := range [][2]string{{"check", "check"}, {"check", "receive"}, {"receive", "receive"}} {
			for _, ids := range [][2]string{{"c1", "c2"}, {"c1", "e2"}, {"e1", "c2"}} {
				g.push(main, "a")
				g.does(main, "run", nil)
				g.done("a")
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
				g.restart() // what they have said is on its way
				if err := g.apply(two.Effects, nil); err != nil {
					t.Fatal(err)
				}
				if err := g.apply(one.Effects, nil); contract.Code(err) != contract.Code(contract.ErrConflict) {
					t.Errorf("%v %v: the second commit ends with %v", tools, ids, err)
				}
				g.collects(main, "check", nil)
				g.clean(inboxPrefix, orderPrefix)
			}
		}
	})
}

// A collector that is killed before its answer is stored has taken nothing.
func TestACollectorIsKilled(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.does(main, "run", nil)
		g.done("a")
		for _, tool := range []string{"check", "receive"} {
			if _, err := g.tool(tool)(g.ctx, g.request(root, "c1", tool, nil)); err != nil {
				t.Fatal(err)
			}
			g.restart()
		}
		g.collects(main, "receive", nil, "a")
		g.collects(main, "check", nil)
	})
}

// Each /receive of a person gets one message, in their order; what they wait for
// is sent to where they asked, and recorded.
func TestPeopleWait(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c")
		g.does(main, "run", nil)
		for _, from := range []string{"b", "", ""} {
			g.types("receive", fields{"from": from})
		}
		g.restart()
		g.done("a", "b")
		g.done("c")
		if len(g.told()) != 3 {
			t.Fatalf("the person is told %q", g.told())
		}
		for i, name := range []string{"a", "b", "c"} {
			if want := fmt.Sprintf(`{"text":"**%s** has finished:\n\n%s is done","reply_to":"the chat"}`, name, name); g.told()[i] != want {
				t.Errorf("they are told %s, want %s", g.told()[i], want)
			}
		}
		g.mu.Lock()
		records := len(g.sessions[root].pending)
		g.mu.Unlock()
		if n := records; n != 3 {
			t.Errorf("%d records wait for main", n)
		}
		g.collects(main, "check", nil)
		g.clean(followPrefix, inboxPrefix, orderPrefix, unnamedPrefix)
		if n := g.notices(); len(n) != 0 {
			t.Errorf("main is told of what the person has: %q", n)
		}

		g.push(main, "d", "e")
		g.does(main, "run", nil)
		g.types("receive", fields{"from": "d", "timeout": 10})
		g.done("e") // not what they wait for
		g.collects(main, "check", nil, "e")
		time.Sleep(20 * time.Second)
		if last := g.told()[len(g.told())-1]; len(g.told()) != 4 || last != `{"text":"Nothing has come in time.","reply_to":"the chat"}` {
			t.Errorf("they are told %s", last)
		}
		g.done("d")
		g.collects(main, "check", nil, "d")
	})
}

// What comes in the very moment in which a person begins to wait follows at once,
// whoever is committed first, and whether others wait there already.
func TestAMessageComesAsAPersonBeginsToWait(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		for _, waitsFirst := range []bool{false, true} {
			for _, restart := range []bool{false, true} {
				t.Run(fmt.Sprintf("others wait: %t, waits first: %t, restart: %t", others, waitsFirst, restart), func(t *testing.T) {
					play(t, func(g *game) {
						g.push(main, "a", "b")
						g.does(main, "run", nil)
						if others {
							g.types("receive", fields{"from": "b"})
							g.settle()
						}
						wait, err := g.tool("receive")(g.ctx, g.request(root, "e1", "receive", fields{"from": "a"}))
						if err != nil {
							t.Fatal(err)
						}
						g.works("a")
						g.mu.Lock()
						g.world.says(g.worker("a"), contract.OutcomeOK, "a is done")
						word := g.events[0]
						g.mu.Unlock()
						if restart {
							g.restart() // the person's wait is on its way, and this process knows nothing of it
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
						} else if err != nil && !waitsFirst { // the kernel makes the call again
							answer = g.types("receive", fields{"from": "a"})
						}
						g.settle()
						if told := append(g.told(), answer); strings.Count(strings.Join(told, ""), "a is done") != 1 {
							t.Errorf("the person is told %q", told)
						}
						g.collects(main, "check", nil)
						if n := g.notices(); len(n) > 0 {
							t.Errorf("main is told %q", n)
						}
						if others {
							g.done("b")
							if !strings.Contains(strings.Join(g.told(), ""), "b is done") {
								t.Errorf("the other person is told %q", g.told())
							}
						}
						g.clean(followPrefix, fencePrefix, inboxPrefix, orderPrefix, unnamedPrefix)
					})
				})
			}
		}
	}
}
