package tools_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// delegates begins a call of delegate_task.
func delegates(turn *kerneltest.Turn, agent, prompt string) (call string, result func() (*extensionv1.CallResult, error)) {
	arguments, _ := json.Marshal(map[string]string{"agent": agent, "prompt": prompt})
	call = turn.Asks([2]string{session.DelegateTool, string(arguments)})[0]
	return call, turn.Calls(call)
}

func (w *world) result(f func() (*extensionv1.CallResult, error)) session.Delegation {
	w.T.Helper()
	r, err := f()
	if err != nil {
		w.T.Fatal(err)
	}
	d := read[session.Delegation](w.T, r)
	if d.Success == r.GetIsError() {
		w.T.Errorf("the result %+v is an error: %t", d, r.GetIsError())
	}
	return d
}

func (w *world) stored(call string) (c *journal.Call) {
	w.T.Helper()
	w.Read(func(r journal.Reader) (err error) {
		c, err = r.Call(journal.ParseCallID(call))
		return err
	})
	return c
}

// resultRows are the rows with results in a history.
func (w *world) resultRows(session int64) (rows []string) {
	for _, row := range w.History(session) {
		if text, ok := strings.CutPrefix(row, "result: "); ok {
			rows = append(rows, text)
		}
	}
	return rows
}

func TestATaskOfAnotherAgent(t *testing.T) {
	play(t, func(w *world) {
		helper := w.Agent("helper")
		turn := w.hears()
		call, result := delegates(turn, "helper", "count the stars")
		task := helper.Hears("count the stars")
		if in := task.Input; in.Kind != contract.InputTask || in.Sender != "orchestrator" || in.ReplyTo != turn.Input.ReplyTo || in.Group {
			t.Errorf("the task is %+v", in)
		}
		if c := task.Delivery.GetTurn(); c.GetChannel() != "" || c.GetHistorySeq() != 0 {
			t.Errorf("its turn is %v", c)
		}
		if s := w.Session("helper", "task:"+call); s.OutboundKind != directory.OutboundNowhere || s.Conversation != 0 {
			t.Errorf("its session is %+v", s)
		}
		if task.Delivery.GetEvent().GetCorrelationId() != turn.Delivery.GetEvent().GetCorrelationId() {
			t.Error("it does not count among the turns that follow from the message")
		}
		w.Wait(5 * time.Minute) // as long as it takes
		task.Answers("6000 of them")
		want := session.Delegation{Agent: "helper", Success: true, Output: "6000 of them", Outcome: "ok"}
		if d := w.result(result); d != want {
			t.Errorf("the result is %+v", d)
		}
		w.telegram.IsSilent() // it is the orchestrator's to tell
		turn.Answers("There are 6000.")
		w.telegram.Shows("anna: There are 6000.")
		if rows := w.resultRows(turn.Session()); len(rows) != 1 {
			t.Errorf("the results are %q", rows)
		}
	})
}

func TestAnEmptyAnswerIsAResult(t *testing.T) {
	play(t, func(w *world) {
		helper := w.Agent("helper")
		_, result := delegates(w.hears(), "helper", "work")
		helper.Hears("work").Answers("")
		if d := w.result(result); d != (session.Delegation{Agent: "helper", Success: true, Outcome: "ok"}) {
			t.Errorf("the result is %+v", d)
		}
	})
}

func TestAFailureIsToldWithItsText(t *testing.T) {
	for outcome, text := range map[string]string{
		contract.OutcomeError: "The model is away.", contract.OutcomeTimeout: "I stopped here.", contract.OutcomeCapped: "",
	} {
		t.Run(outcome, func(t *testing.T) {
			play(t, func(w *world) {
				helper := w.Agent("helper")
				_, result := delegates(w.hears(), "helper", "work")
				helper.Hears("work").Ends(outcome, text)
				d := w.result(result)
				if d.Success || d.Outcome != outcome || d.Error == "" || text != "" && d.Error != text || d.Output != "" {
					t.Errorf("the result is %+v", d)
				}
				w.telegram.IsSilent()
			})
		})
	}
}

// Its process dies again and again, so its delivery does.
func TestADeadTaskIsAResult(t *testing.T) {
	play(t, func(w *world) {
		helper := w.Agent("helper")
		_, result := delegates(w.hears(), "helper", "work")
		for range 3 {
			helper.Hears("work")
			helper.Dies()
			helper.Starts()
			w.Wait(time.Minute)
		}
		helper.HearsNothing()
		if d := w.result(result); d.Success || d.Outcome != contract.OutcomeDead || !strings.Contains(d.Error, "I couldn't answer that") {
			t.Errorf("the result is %+v", d)
		}
		w.telegram.IsSilent()
	})
}

func TestALongOutputIsCutToWhatReachesAModel(t *testing.T) {
	for name, text := range map[string]string{"letters": strings.Repeat("word ", 20_000), "escapes": strings.Repeat("\"\n", 40_000), "runes": strings.Repeat("слово", 20_000)} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				helper := w.Agent("helper")
				_, result := delegates(w.hears(), "helper", "work")
				helper.Hears("work").Answers(text)
				r, err := result()
				if err != nil || len(r.GetContent()) > contract.MaxToolResult || len(r.GetContent()) < contract.MaxToolResult/2 {
					t.Fatalf("the result has %d bytes, %v", len(r.GetContent()), err)
				}
				if d := read[session.Delegation](t, r); !d.Success || !strings.HasSuffix(d.Output, "[cut: it was longer]") || !strings.HasPrefix(text, strings.TrimSuffix(d.Output, "\n[cut: it was longer]")) {
					t.Errorf("the result ends with %.100q", d.Output[len(d.Output)-90:])
				}
			})
		})
	}
}

func TestTasksThatNobodyIsGiven(t *testing.T) {
	tests := []struct {
		name, agent, prompt string
		says                []string
	}{
		{"no such agent", "ghost", "work", []string{`There is no agent "ghost"`, "helper, orchestrator", "Nobody was asked"}},
		{"one that is not enabled", "hidden", "work", []string{`"hidden" is not enabled`, "Nobody was asked"}},
		{"one that does not run", "broken", "work", []string{`"broken" is not running: it is failed`, "Nobody was asked"}},
		{"a blank prompt", "helper", " \n", []string{"prompt is empty", "Nobody was asked"}},
		{"no prompt", "helper", "", []string{"do not fit"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			play(t, func(w *world) {
				agents := []*kerneltest.Agent{w.Agent("helper"), w.Agent("hidden"), w.Agent("broken")}
				w.Know(func(s *directory.Snapshot) {
					s.EnabledAgents = []string{"helper", "orchestrator", "broken"}
					s.Agents[0].State = "failed"
				})
				r := w.hears().Uses(session.DelegateTool, map[string]string{"agent": test.agent, "prompt": test.prompt})
				for _, word := range test.says {
					if !r.GetIsError() || !strings.Contains(r.GetContent(), word) {
						t.Errorf("the result is %v, want %q", r, word)
					}
				}
				for _, a := range agents {
					a.HearsNothing()
				}
			})
		})
	}
}

// One that is about to be back is waited for.
func TestATaskWaitsForItsAgent(t *testing.T) {
	play(t, func(w *world) {
		helper := w.Agent("helper")
		helper.Dies()
		w.Know(func(s *directory.Snapshot) { s.Agents[0].State = directory.StateBackingOff })
		_, result := delegates(w.hears(), "helper", "work")
		w.Wait(time.Minute)
		helper.Starts()
		helper.Hears("work").Answers("done")
		if d := w.result(result); !d.Success {
			t.Errorf("the result is %+v", d)
		}
	})
}

// An agent may give itself a task, which begins blank, but not for ever.
func TestTasksOfTasksComeToAnEnd(t *testing.T) {
	play(t, func(w *world) {
		turn := w.hears()
		var results []func() (*extensionv1.CallResult, error)
		turns := []*kerneltest.Turn{turn}
		for depth := 1; depth <= 8; depth++ {
			_, result := delegates(turn, "orchestrator", fmt.Sprint("level ", depth))
			turn = w.orchestrator.Hears(fmt.Sprint("level ", depth))
			results, turns = append(results, result), append(turns, turn)
		}
		r := turn.Uses(session.DelegateTool, map[string]string{"agent": "orchestrator", "prompt": "level 9"})
		if !r.GetIsError() || !strings.Contains(r.GetContent(), "8 agents stand in a row") || !strings.Contains(r.GetContent(), "Nobody was asked") {
			t.Errorf("the result is %v", r)
		}
		w.orchestrator.HearsNothing()
		for depth := 8; depth >= 1; depth-- {
			turns[depth].Answers(fmt.Sprint("done ", depth))
			if d := w.result(results[depth-1]); d.Output != fmt.Sprint("done ", depth) {
				t.Errorf("level %d: %+v", depth, d)
			}
		}
		turns[0].Answers("all done")
		w.telegram.Shows("anna: all done")
	})
}

// Whatever ends the turn that waits stops who works for it, in the same commit,
// and those who work for that one.
func TestATaskEndsWithItsTurn(t *testing.T) {
	ends := map[string]func(w *world, turn *kerneltest.Turn){
		"stopped":     func(w *world, _ *kerneltest.Turn) { w.telegram.Says("anna", "/stop") },
		"out of time": func(_ *world, turn *kerneltest.Turn) { turn.Ends(contract.OutcomeTimeout, "I stopped here.") },
		"a new one":   func(w *world, _ *kerneltest.Turn) { w.telegram.Says("anna", "/new") },
		"its session is gone": func(w *world, turn *kerneltest.Turn) {
			w.Do(func(tx *bus.Tx) error { return w.Sessions.Delete(tx, turn.Session()) })
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				helper, expert := w.Agent("helper"), w.Agent("expert")
				turn := w.hears()
				first, result := delegates(turn, "helper", "work")
				task := helper.Hears("work")
				second, below := delegates(task, "expert", "advise")
				advice := expert.Hears("advise")
				end(w, turn)
				w.Settle()
				for _, f := range []func() (*extensionv1.CallResult, error){result, below} {
					if r, err := f(); !errors.Is(err, contract.ErrStale) {
						t.Errorf("the call's result is %v, %v", r, err)
					}
				}
				if !helper.Cancelled(task.Delivery.GetToken()) || !expert.Cancelled(advice.Delivery.GetToken()) {
					t.Error("those who work were not told")
				}
				if _, err := advice.TriesToAsk([2]string{"core/list_channels", "{}"}); !errors.Is(err, contract.ErrStale) {
					t.Errorf("the work goes on: %v", err)
				}
				advice.Answers("too late")
				task.Answers("too late")
				helper.HearsNothing()
				expert.HearsNothing()
				for id, agent := range map[string]string{first: "helper", second: "expert"} {
					if s := w.Session(agent, "task:"+id); len(s.Stack) != 0 {
						t.Errorf("session %+v goes on", s)
					}
					if c := w.stored(id); c != nil && (c.State != journal.CallClosed || strings.Contains(c.Result, "too late")) {
						t.Errorf("the call is %+v", c)
					}
				}
				for _, e := range w.Events(contract.TopicAgentOutput) {
					if out := kerneltest.Decode[contract.AgentOutput](t, e); out.Session != journal.SessionID(turn.Session()) && out.Outcome != contract.OutcomeCancelled {
						t.Errorf("an output: %+v", out)
					}
				}
				w.Restart()
				helper.HearsNothing()
				expert.HearsNothing()
			})
		})
	}
}

// A task that nobody has begun with yet does not begin any more, either.
func TestATaskThatWaitsEndsWithItsTurn(t *testing.T) {
	play(t, func(w *world) {
		helper := w.Agent("helper")
		helper.Dies()
		call, result := delegates(w.hears(), "helper", "work")
		w.telegram.Says("anna", "/stop")
		if _, err := result(); !errors.Is(err, contract.ErrStale) {
			t.Error(err)
		}
		helper.Starts()
		helper.HearsNothing()
		if c := w.stored(call); c.State != journal.CallClosed {
			t.Errorf("the call is %s", c.State)
		}
	})
}

// The message of a person does not end the work: it waits, or steers, later.
func TestAMessageDoesNotStopATask(t *testing.T) {
	play(t, func(w *world) {
		helper := w.Agent("helper")
		_, result := delegates(w.hears(), "helper", "work")
		task := helper.Hears("work")
		w.telegram.Says("anna", "and another thing")
		task.Answers("done")
		if d := w.result(result); !d.Success {
			t.Errorf("the result is %+v", d)
		}
	})
}

// Nobody waits in the moment in which the work ends: the result is found later.
func TestTheResultOfATaskSurvivesRestarts(t *testing.T) {
	deaths := map[string]func(w *world, helper *kerneltest.Agent){
		"of the kernel": func(w *world, _ *kerneltest.Agent) { w.Restart() },
		"of the agent that waits": func(w *world, _ *kerneltest.Agent) {
			w.orchestrator.Dies()
			w.orchestrator.Starts()
		},
		"of the agent that works": func(_ *world, helper *kerneltest.Agent) {
			helper.Dies()
			helper.Starts()
		},
	}
	for name, die := range deaths {
		for _, when := range []string{"before the work has ended", "afterwards"} {
			t.Run(name+" "+when, func(t *testing.T) {
				play(t, func(w *world) {
					helper := w.Agent("helper")
					turn := w.hears()
					call, result := delegates(turn, "helper", "work")
					task := helper.Hears("work")
					if when == "afterwards" {
						task.Answers("done")
					}
					die(w, helper)
					w.Wait(time.Minute)
					if when != "afterwards" {
						if name != "of the agent that waits" {
							task = helper.Hears("work")
						}
						task.Answers("done")
					}
					if name != "of the agent that works" {
						turn = w.orchestrator.HearsNext()
						result = turn.Calls(call)
					}
					if d := w.result(result); d.Output != "done" {
						t.Errorf("the result is %+v", d)
					}
					if rows := w.resultRows(turn.Session()); len(rows) != 1 {
						t.Errorf("the results are %q", rows)
					}
					helper.HearsNothing()
					if n := len(w.Events(contract.TopicAgentInput + "helper")); n != 1 {
						t.Errorf("the task was given %d times", n)
					}
				})
			})
		}
	}
}

// The wait is joined again by the attempt that comes after the agent's death.
func TestAResumedTurnWaitsForTheSameTask(t *testing.T) {
	play(t, func(w *world) {
		helper := w.Agent("helper")
		call, _ := delegates(w.hears(), "helper", "work")
		task := helper.Hears("work")
		w.orchestrator.Dies()
		w.orchestrator.Starts()
		w.Wait(time.Minute)
		result := w.orchestrator.HearsNext().Calls(call)
		w.Wait(9 * time.Minute)
		task.Answers("done")
		if d := w.result(result); d.Output != "done" {
			t.Errorf("the result is %+v", d)
		}
		helper.HearsNothing()
	})
}

// A second output of the session changes nothing.
func TestAResultComesOnce(t *testing.T) {
	play(t, func(w *world) {
		helper := w.Agent("helper")
		turn := w.hears()
		call, result := delegates(turn, "helper", "work")
		helper.Hears("work").Answers("done")
		w.result(result)
		rogue := w.Extension(bus.Actor{ID: "rogue", Effects: []string{"input", "session.ensure"}})
		rogue.Must("", kerneltest.Input("helper", "task:"+call, contract.InputNotice, "again"))
		helper.Hears("again").Answers("something else")
		if rows := w.resultRows(turn.Session()); len(rows) != 1 || strings.Contains(rows[0], "something else") {
			t.Errorf("the results are %q", rows)
		}
		w.telegram.IsSilent()
		// Nobody else can make the session of a call.
		if _, err := rogue.Commits("", kerneltest.Ensure("helper", "task:c999")); !errors.Is(err, contract.ErrDenied) {
			t.Errorf("a session of a call is made: %v", err)
		}
		rogue.Must("", kerneltest.Ensure("helper", "task:999"))
	})
}

func TestATaskWhoseSessionIsDeletedFails(t *testing.T) {
	for _, delegated := range []bool{true, false} {
		t.Run(fmt.Sprint("begun ", delegated), func(t *testing.T) {
			play(t, func(w *world) {
				helper := w.Agent("helper")
				if !delegated {
					helper.Dies()
				}
				call, result := delegates(w.hears(), "helper", "work")
				if delegated {
					helper.Hears("work").Asks([2]string{"core/list_channels", "{}"})
				}
				id := w.Session("helper", "task:"+call).ID
				w.Do(func(tx *bus.Tx) error { return w.Sessions.Delete(tx, id) })
				if d := w.result(result); d.Success || d.Outcome != contract.OutcomeCancelled || !strings.Contains(d.Error, "deleted") {
					t.Errorf("the result is %+v", d)
				}
			})
		})
	}
}

// Who reads along in the conversation reads along in the work for it.
func TestATaskFromAGroupIsAsOpenAsTheGroup(t *testing.T) {
	play(t, func(w *world) {
		helper, expert := w.Agent("helper"), w.Agent("expert")
		w.telegram.Reports(contract.UserMessage{UserID: "anna", UserName: "anna", ConversationID: "family", Group: true, Text: "go"})
		delegates(w.orchestrator.Hears("go"), "helper", "work")
		task := helper.Hears("work")
		delegates(task, "expert", "advise")
		for _, turn := range []*kerneltest.Turn{task, expert.Hears("advise")} {
			if !turn.Input.Group || !turn.Delivery.GetTurn().GetGroup() {
				t.Errorf("the task is %+v in %v", turn.Input, turn.Delivery.GetTurn())
			}
		}
	})
}

// A job whose helper has sent something has sent it.
func TestAJobWhoseTaskHasSentSomethingSaysNoMore(t *testing.T) {
	play(t, func(w *world) {
		cli, helper := w.Channel("cli"), w.Agent("helper")
		w.telegram.GoesOffline()
		w.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "report", ChannelID: "cli", AgentID: "orchestrator"})
		turn := w.orchestrator.Hears("report")
		_, result := delegates(turn, "helper", "send the report")
		task := helper.Hears("send the report")
		task.Uses("core/send_to_channel", map[string]string{"channel_id": "telegram", "text": "it rains"})
		task.Answers("sent")
		w.result(result)
		turn.Answers("I had it sent.")
		cli.IsSilent()
	})
}

// Turns that follow from one event are bounded, over all agents.
func TestTasksCountAmongTheTurnsOfAnEvent(t *testing.T) {
	play(t, func(w *world) {
		helper := w.Agent("helper")
		w.Know(func(s *directory.Snapshot) { s.MaxTurns = 2 })
		turn := w.hears()
		_, result := delegates(turn, "helper", "work")
		helper.Hears("work").Answers("done")
		w.result(result)
		r := turn.Uses(session.DelegateTool, map[string]string{"agent": "helper", "prompt": "more work"})
		if d := read[session.Delegation](t, r); d.Success || d.Outcome != contract.OutcomeCapped || !strings.Contains(d.Error, "2 turns followed") {
			t.Errorf("the result is %+v", d)
		}
		helper.HearsNothing()
	})
}
