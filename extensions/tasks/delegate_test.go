package tasks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// delegates begins a call of delegate_task, and returns the name of its task.
func (g *game) delegates(who, agent, prompt string) (name string, said <-chan string) {
	g.t.Helper()
	id := fmt.Sprint("c", 2+g.task(who).Depth)
	return agent + "-" + id, g.startCall(id, who, "delegate_task", fields{"agent": agent, "prompt": prompt})
}

// delegated decodes the result of delegate_task.
func (g *game) delegated(said <-chan string) (d delegation) {
	g.t.Helper()
	content := g.returns(said)
	if err := json.Unmarshal([]byte(content), &d); err != nil {
		g.t.Fatalf("%s: %v", content, err)
	}
	return d
}

func TestDelegatedTaskReturnsItsResult(t *testing.T) {
	play(t, func(g *game) {
		name, said := g.delegates(main, "helper", "Count the stars.")
		g.stillWaits(said)
		in := g.beginTurn(name)
		if in.GetText() != "Count the stars." || in.GetKind() != contract.InputTask || in.GetSender() != "orchestrator" ||
			in.GetReplyTo() != "the chat" || len(in.GetMeta()) > 0 {
			t.Errorf("the agent hears %v", in)
		}
		made := g.made[len(g.made)-1]
		if made.GetAgent() != "helper" || made.GetKey() != "task:c2:s1:helper-c2" || made.GetWithin() != root ||
			made.GetChain() != "" || made.GetOutbound().GetKind() != busv1.Outbound_KIND_EXTENSION {
			t.Errorf("its session is %v", made)
		}
		time.Sleep(time.Hour) // as long as it takes
		g.stillWaits(said)
		g.endTurn(name, contract.OutcomeOK, "6000 of them")
		want := delegation{Agent: "helper", Success: true, Output: "6000 of them", Outcome: OK}
		if d := g.delegated(said); d != want {
			t.Errorf("the result is %+v", d)
		}
		// It is the result of the call alone.
		g.receives(main, "check", nil)
		if len(g.notices()) > 0 || len(g.sentToPeople()) > 0 {
			t.Errorf("main is told %q, people %q", g.notices(), g.sentToPeople())
		}
	})
}

func TestFailureOfDelegatedTask(t *testing.T) {
	for outcome, want := range map[string]delegation{
		contract.OutcomeError:     {Error: "The model is away.", Outcome: Failed},
		contract.OutcomeTimeout:   {Error: "The model is away.", Outcome: Timeout},
		contract.OutcomeDead:      {Error: "The model is away.", Outcome: Interrupted},
		contract.OutcomeCapped:    {Error: "too many turns followed from one event", Outcome: Capped},
		contract.OutcomeCancelled: {Error: "the task was cancelled", Outcome: Cancelled},
	} {
		t.Run(outcome, func(t *testing.T) {
			play(t, func(g *game) {
				text := "The model is away."
				if outcome == contract.OutcomeCapped || outcome == contract.OutcomeCancelled {
					text = "" // it was said before
				}
				name, said := g.delegates(main, "helper", "Work.")
				g.endTurn(name, outcome, text)
				want.Agent, want.Partial = "helper", "so far"
				if d := g.delegated(said); d != want {
					t.Errorf("the result is %+v, want %+v", d, want)
				}
			})
		})
	}
}

func TestEmptyAnswerOfDelegatedTask(t *testing.T) {
	play(t, func(g *game) {
		name, said := g.delegates(main, "helper", "Work.")
		g.endTurn(name, contract.OutcomeOK, "")
		if d := g.delegated(said); d != (delegation{Agent: "helper", Success: true, Outcome: OK}) {
			t.Errorf("the result is %+v", d)
		}
	})
}

func TestLongResultOfDelegatedTaskIsCut(t *testing.T) {
	for name, text := range map[string]string{
		"letters": strings.Repeat("word ", 20_000), "escapes": strings.Repeat("\"\n", 40_000),
		"runes": strings.Repeat("слово", 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(g *game) {
				task, said := g.delegates(main, "helper", "Work.")
				g.endTurn(task, contract.OutcomeOK, text)
				content := g.returns(said)
				if len(content) > contract.MaxToolResult || len(content) < contract.MaxToolResult/2 {
					t.Fatalf("the result has %d bytes", len(content))
				}
				var d delegation
				if err := json.Unmarshal([]byte(content), &d); err != nil {
					t.Fatal(err)
				}
				if kept, cut := strings.CutSuffix(d.Output, cutMark); !d.Success || !cut || !strings.HasPrefix(text, kept) {
					t.Errorf("the result ends with %.100q", d.Output[len(d.Output)-90:])
				}
			})
		})
	}
}

func TestRefusedDelegations(t *testing.T) {
	for name, test := range map[string]struct {
		agent, prompt string
		words         []string
	}{
		"no such agent": {"ghost", "Work.", []string{`no agent "ghost"`, "helper, orchestrator", "no agent was asked"}},
		"not running":   {"broken", "Work.", []string{`"broken" is not running`, "no agent was asked"}},
		"blank prompt":  {"helper", " \n", []string{"prompt is empty", "no agent was asked"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(g *game) {
				for _, words := range test.words {
					g.callFails(main, "delegate_task", fields{"agent": test.agent, "prompt": test.prompt}, words)
				}
				g.noRows(taskPrefix, workingPrefix, promptPrefix)
				if len(g.made) > 0 {
					t.Errorf("a session is made: %v", g.made)
				}
			})
		})
	}
}

// An agent may give itself a task, which starts blank, but not without end.
func TestNestedDelegations(t *testing.T) {
	play(t, func(g *game) {
		who := main
		var all []string
		var results []<-chan string
		for i, agent := range []string{"helper", "expert", "orchestrator"} {
			g.agents = append(g.agents, listedAgent{agent, true})
			name, said := g.delegates(who, agent, fmt.Sprint("Level ", i+1))
			g.beginTurn(name)
			all, results, who = append(all, name), append(results, said), name
		}
		g.callFails(who, "delegate_task", fields{"agent": "helper", "prompt": "Level 4"}, "nested 3 deep")
		if got := g.task(all[2]); got.Depth != 3 || got.Requester != all[1] || got.Root != root {
			t.Errorf("the task is %+v", got)
		}
		for i, name := range slices.Backward(all) {
			g.endTurn(name, contract.OutcomeOK, "Done "+name)
			if d := g.delegated(results[i]); d.Output != "Done "+name {
				t.Errorf("%s: %+v", name, d)
			}
		}
	})
}

// A delegation counts for the task that makes it, or for the conversation.
func TestDelegationIsCountedWithItsTask(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.call(main, "run", nil)
		g.beginTurn("a")
		name, _ := g.delegates("a", "helper", "Work.")
		if got, want := g.task(name).Chain, g.task("a").ID; got != want {
			t.Errorf("its turns count for %q, want %q", got, want)
		}
	})
}

// The process dies before or after the work has ended: the repeated call waits for
// the same task, and there is one result.
func TestDelegatedTaskSurvivesRestarts(t *testing.T) {
	for _, when := range []string{"before it ends", "before its end is handled", "afterwards"} {
		t.Run(when, func(t *testing.T) {
			play(t, func(g *game) {
				name, said := g.delegates(main, "helper", "Work.")
				g.beginTurn(name)
				end := func() {
					g.mu.Lock()
					g.world.endTurn(g.worker(name), contract.OutcomeOK, "done")
					g.mu.Unlock()
				}
				if when != "before it ends" {
					end()
				}
				if when == "afterwards" {
					g.settle()
					g.delegated(said) // lost: it was not committed
				}
				g.restart()
				_, said = g.delegates(main, "helper", "Work.")
				if when == "before it ends" {
					g.stillWaits(said)
					end()
				}
				g.settle()
				time.Sleep(pollMax) // nothing may have woken it
				if d := g.delegated(said); d.Output != "done" {
					t.Errorf("the result is %+v", d)
				}
				if n := len(g.made); n != 1 {
					t.Errorf("%d sessions are made", n)
				}
				if s := g.worker(name); len(s.pending) > 0 {
					t.Errorf("the agent has more to do: %v", s.pending)
				}
			})
		})
	}
}

// The kernel ends the work with the call; its output finishes the task.
func TestDelegatedTaskEndsWithItsCall(t *testing.T) {
	play(t, func(g *game) {
		name, said := g.delegates(main, "helper", "Work.")
		g.beginTurn(name)
		g.mu.Lock()
		g.sessions[root].asleep()
		g.world.endTurn(g.worker(name), contract.OutcomeCancelled, "")
		g.mu.Unlock()
		g.returns(said, "canceled")
		g.settle()
		if task := g.task(name); task.State != Finished || task.Outcome != Cancelled {
			t.Errorf("the task is %+v", task)
		}
		g.receives(main, "check", nil)
	})
}

func TestDelegatedTaskIsCancelledByName(t *testing.T) {
	play(t, func(g *game) {
		name, said := g.delegates(main, "helper", "Work.")
		g.beginTurn(name)
		g.command("task_cancel", fields{"name": name})
		g.settle()
		if d := g.delegated(said); d.Success || d.Outcome != Cancelled || d.Partial != "so far" {
			t.Errorf("the result is %+v", d)
		}
	})
}

// Tasks that the delegated task gave end with it.
func TestTasksOfDelegatedTaskEndWithIt(t *testing.T) {
	play(t, func(g *game) {
		name, said := g.delegates(main, "helper", "Work.")
		g.beginTurn(name)
		g.push(name, "b")
		g.call(name, "run", nil)
		g.beginTurn("b")
		g.endTurn(name, contract.OutcomeOK, "done")
		g.delegated(said)
		g.states(Finished, "b")
	})
}

// An agent that waits for the one that gave it a task gets an answer at once; the
// call goes on.
func TestDelegatedTaskCannotWaitForItsCaller(t *testing.T) {
	play(t, func(g *game) {
		name, said := g.delegates(main, "helper", "Work.")
		g.beginTurn(name)
		for range 2 {
			g.call(name, "receive", fields{"from": main})
			waits := g.start(name, "receive", fields{"from": main})
			g.returns(waits, "Nothing can arrive from main: it is waiting for you")
		}
		g.stillWaits(said)
		g.endTurn(name, contract.OutcomeOK, "done")
		if d := g.delegated(said); !d.Success {
			t.Errorf("the result is %+v", d)
		}
	})
}

// A result that was lost ends the wait, too.
func TestDelegatedTaskWhoseOutputIsLost(t *testing.T) {
	play(t, func(g *game) {
		name, said := g.delegates(main, "helper", "Work.")
		g.beginTurn(name)
		g.mu.Lock()
		g.worker(name).running = nil
		g.mu.Unlock()
		time.Sleep(lostAfter + 2*lostEvery)
		g.settle()
		synctest.Wait()
		if d := g.delegated(said); d.Success || d.Outcome != Interrupted || !strings.Contains(d.Error, "lost") {
			t.Errorf("the result is %+v", d)
		}
	})
}
