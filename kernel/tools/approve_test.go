package tools_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// guarded gives the notes a tool that needs approval and counts its runs.
func (w *world) guarded() *attempts {
	a := &attempts{}
	w.Tool("notes", &extensionv1.Tool{Name: "burn", Approve: true}, a.of(func(int) (*extensionv1.CallResult, error) {
		return &extensionv1.CallResult{
			Content: "burned",
			Effects: []*busv1.Effect{kerneltest.Publish("notes.added", struct{}{})},
		}, nil
	}))
	return a
}

const burn = "notes/burn"

// wants begins a call of the guarded tool.
func (w *world) wants(turn *kerneltest.Turn) (id string, result func() (*extensionv1.CallResult, error)) {
	w.T.Helper()
	id = turn.Asks([2]string{burn, `{"which":"all of them"}`})[0]
	return id, turn.Calls(id)
}

// open is how many questions are open.
func (w *world) open() (n int) {
	w.Settle()
	w.Read(func(j journal.Reader) error {
		open, _, err := w.Router.Questions().Open(j, time.Now().UnixMicro())
		n = len(open)
		return err
	})
	return n
}

func (w *world) says(result func() (*extensionv1.CallResult, error), isError bool, words string) {
	w.T.Helper()
	r, err := result()
	if err != nil || r.GetIsError() != isError || !strings.Contains(r.GetContent(), words) {
		w.T.Fatalf("the result is %v, %v; want %q in it", r, err, words)
	}
}

func TestAToolThatNeedsApprovalIsRunAfterAYesOnly(t *testing.T) {
	for _, tt := range []struct {
		answer, result string
		runs           int
	}{{"yes", "burned", 1}, {"no", "The user declined: notes/burn was not run.", 0}} {
		t.Run(tt.answer, func(t *testing.T) {
			play(t, func(w *world) {
				a := w.guarded()
				turn := w.hears()
				_, result := w.wants(turn)
				w.telegram.ShowsOne(
					"orchestrator wants to run notes/burn:",
					"which: all of them\n",
					"Reply yes or no. With \"always here\" or \"always\" I won't ask again. (Question q1",
				)
				w.Wait(50 * time.Minute) // the time of the turn stands still
				if len(a.requests) != 0 || w.orchestrator.Cancelled(turn.Delivery.GetToken()) {
					t.Fatal("it was not waited for the answer")
				}
				w.telegram.Says("anna", tt.answer)
				w.says(result, tt.runs == 0, tt.result)
				if len(a.requests) != tt.runs || len(w.Events("notes.added")) != tt.runs {
					t.Errorf("the tool ran %d times", len(a.requests))
				}
				w.telegram.IsSilent() // its turn says what there is to say
				turn.Answers("Done.")
				w.telegram.Shows("anna: Done.")
				w.orchestrator.HearsNothing() // the answer was no message
			})
		})
	}
}

func TestWhatNeedsApproval(t *testing.T) {
	for name, tt := range map[string]struct {
		set  func(*directory.Snapshot)
		asks bool
	}{
		"nothing":                    {func(*directory.Snapshot) {}, false},
		"the configuration":          {func(s *directory.Snapshot) { s.Approve = []string{"notes/*"} }, true},
		"the configuration, others":  {func(s *directory.Snapshot) { s.Approve = []string{"shell/*", "notes/lis*"} }, false},
		"the configuration, by name": {func(s *directory.Snapshot) { s.Approve = []string{"notes/add"} }, true},
		"the agent's manifest":       {func(s *directory.Snapshot) { s.Agents[0].Approve = []string{"notes/add"} }, true},
		"another agent's manifest": {func(s *directory.Snapshot) {
			s.Agents = append(s.Agents, directory.Agent{ID: "other", Approve: []string{"*"}})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.Tool(
					"notes",
					&extensionv1.Tool{Name: "add", ReadOnly: true},
					func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
						return text("noted")
					},
				)
				w.Know(tt.set)
				turn := w.hears()
				result := turn.Calls(turn.Asks([2]string{"notes/add", "{}"})[0])
				if asked := w.open() == 1; asked != tt.asks {
					t.Fatalf("a person is asked: %v", asked)
				}
				lease, err := w.Bus.Lease(w.orchestrator.Actor, turn.Delivery.GetToken())
				if err != nil {
					t.Fatal(err)
				}
				// What cannot wait cannot be approved.
				_, err = w.Tools.Ask(w.T.Context(), w.orchestrator.Actor, lease, "notes/add", nil)
				if errors.Is(err, contract.ErrDenied) != tt.asks {
					t.Errorf("asked without a row: %v", err)
				}
				w.telegram.Sends()
				if tt.asks {
					w.telegram.Says("anna", "ok")
				}
				w.says(result, false, "noted")
				// A person at the command line has decided already.
				if r, err := w.Tools.CallOutsideTurn(w.T.Context(), "notes/add", nil, contract.Principal{}); err != nil || r.GetContent() != "noted" {
					t.Errorf("at the command line: %v, %v", r, err)
				}
			})
		})
	}
}

func TestACallThatWaitsForApprovalSurvivesARestart(t *testing.T) {
	play(t, func(w *world) {
		a := w.guarded()
		id, _ := w.wants(w.hears())
		w.telegram.ShowsOne("q1")
		w.Restart()
		turn := w.orchestrator.Hears("go")
		result := turn.Calls(id)
		w.telegram.IsSilent() // it is not asked again
		w.telegram.Says("anna", "yes")
		w.says(result, false, "burned")
		if len(a.requests) != 1 {
			t.Errorf("the tool ran %d times", len(a.requests))
		}
	})
}

// The kernel dies between the answer and the tool.
func TestAnApprovalIsGivenOnce(t *testing.T) {
	play(t, func(w *world) {
		a := w.guarded()
		id, _ := w.wants(w.hears())
		w.telegram.ShowsOne("q1")
		w.Restart()
		w.telegram.Says("anna", "yes") // nobody waits
		w.Restart()
		turn := w.orchestrator.Hears("go")
		for range 2 {
			r, err := turn.Call(id)
			if err != nil || r.GetContent() != "burned" {
				t.Errorf("the result is %v, %v", r, err)
			}
		}
		w.telegram.IsSilent()
		if len(a.requests) != 1 || a.requests[0].GetRepeat() {
			t.Errorf("the tool ran %d times: %v", len(a.requests), a.requests)
		}
	})
}

// The kernel dies while the approved tool runs: the rule of every other tool
// holds, and nobody is asked again.
func TestAnApprovedToolIsNotRepeated(t *testing.T) {
	play(t, func(w *world) {
		release := make(chan struct{})
		runs := 0
		w.Tool(
			"notes",
			&extensionv1.Tool{Name: "burn", Approve: true},
			func(ctx context.Context, _ *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				runs++
				<-release
				return nil, contract.ErrGone
			},
		)
		id, _ := w.wants(w.hears())
		w.telegram.ShowsOne("q1")
		w.telegram.Says("anna", "yes")
		w.Settle()
		w.Restart()
		close(release)
		turn := w.orchestrator.Hears("go")
		r, err := turn.Call(id)
		if err != nil || !r.GetIsError() || !strings.Contains(r.GetContent(), "unknown whether") || runs != 1 {
			t.Errorf("the result is %v, %v after %d runs", r, err, runs)
		}
		w.telegram.IsSilent()
	})
}

func TestAnApprovalIsGivenWhileTheAgentIsDead(t *testing.T) {
	play(t, func(w *world) {
		a := w.guarded()
		id, result := w.wants(w.hears())
		w.telegram.ShowsOne("q1")
		w.orchestrator.Dies()
		w.telegram.Says("anna", "yes")
		w.says(result, false, "burned")
		w.orchestrator.Starts()
		w.Wait(time.Minute)
		turn := w.orchestrator.Hears("go")
		if r, err := turn.Call(id); err != nil || r.GetContent() != "burned" || len(a.requests) != 1 {
			t.Errorf("the result is %v, %v after %d runs", r, err, len(a.requests))
		}
	})
}

func TestAnApprovalExpires(t *testing.T) {
	play(t, func(w *world) {
		a := w.guarded()
		_, result := w.wants(w.hears())
		w.telegram.ShowsOne("q1")
		w.Wait(61 * time.Minute)
		w.EndsQuestions()
		w.says(result, true, "was not run: no one answered within 1h0m0s.")
		w.telegram.ShowsOne("Question q1 wasn't answered in time", "That counts as no.")
		if len(a.requests) != 0 || w.open() != 0 {
			t.Errorf("the tool ran %d times", len(a.requests))
		}
	})
}

func TestANewMessageWithdrawsAQuestion(t *testing.T) {
	for _, call := range [][2]string{{burn, `{}`}, {"core/ask_user", `{"question":"Which one?","options":["a","b"]}`}} {
		t.Run(call[0], func(t *testing.T) {
			play(t, func(w *world) {
				a := w.guarded()
				turn := w.hears()
				result := turn.Calls(turn.Asks(call)[0])
				w.telegram.ShowsOne("q1")
				w.telegram.Says("anna", "what do you mean?")
				w.says(result, true, "the user has written something new")
				if len(a.requests) != 0 || w.open() != 0 {
					t.Errorf("the tool ran %d times, %d questions are open", len(a.requests), w.open())
				}
				w.telegram.Says("anna", "/approve q1")
				w.telegram.ShowsOne("Question q1 is closed")
			})
		})
	}
}

// The agent's process has been replaced while a person was asked.
func TestANewMessageWithdrawsTheQuestionOfAnEarlierAttempt(t *testing.T) {
	play(t, func(w *world) {
		a := w.guarded()
		id, _ := w.wants(w.hears())
		w.telegram.ShowsOne("q1")
		w.orchestrator.Dies()
		w.orchestrator.Starts()
		w.Wait(time.Minute)
		turn := w.orchestrator.Hears("go")
		result := turn.Calls(id)
		w.Wait(30 * time.Minute)
		if w.orchestrator.Cancelled(turn.Delivery.GetToken()) {
			t.Fatal("the time of the turn does not stand still")
		}
		w.telegram.Says("anna", "what do you mean?")
		w.says(result, true, "the user has written something new")
		if len(a.requests) != 0 || w.open() != 0 {
			t.Errorf("the tool ran %d times, %d questions are open", len(a.requests), w.open())
		}
	})
}

func TestATurnThatCannotBeInterruptedSaysWhatItWaitsFor(t *testing.T) {
	play(t, func(w *world) {
		a := w.guarded()
		turn := w.hears()
		w.telegram.IsSilent()
		id := turn.Asks([2]string{burn, "{}"})[0]
		w.Do(func(tx *bus.Tx) error {
			c, err := tx.Call(journal.ParseCallID(id))
			if err != nil {
				return err
			}
			row, err := tx.Turn(c.Turn)
			if err != nil {
				return err
			}
			row.Interrupted = contract.MaxInterruptions
			return tx.PutTurn(row)
		})
		result := turn.Calls(id)
		w.telegram.ShowsOne("q1")
		w.telegram.Says("anna", "what do you mean?")
		w.telegram.ShowsOne(
			"I'll get to that after question q1 is answered: orchestrator wants to run notes/burn",
			"Reply yes or no.",
		)
		w.telegram.Says("anna", "yes")
		w.says(result, false, "burned")
		turn.Answers("")
		w.orchestrator.Hears("what do you mean?").Answers("")
		if len(a.requests) != 1 {
			t.Errorf("the tool ran %d times", len(a.requests))
		}
	})
}

// Another agent works for the conversation, and asks there.
func TestATaskAsksWhereItWasGiven(t *testing.T) {
	play(t, func(w *world) {
		w.guarded()
		w.desk()
		helper := w.Agent("helper")
		turn := w.hears()
		_, whole := delegates(turn, "helper", "tidy up")
		task := helper.Hears("tidy up")
		_, result := w.wants(task)
		if m := w.telegram.ShowsOne("helper wants to run notes/burn"); m.Conversation != "anna" {
			t.Errorf("it is asked in %q", m.Conversation)
		}
		w.telegram.Says("anna", "what do you mean?")
		w.telegram.ShowsOne("I'll get to that after question q1 is answered")
		w.telegram.Says("anna", "yes")
		w.says(result, false, "burned")
		task.Answers("All is tidy.")
		w.says(whole, false, "All is tidy.")
	})
}

func TestWhatEndsATurnWithdrawsItsQuestion(t *testing.T) {
	play(t, func(w *world) {
		a := w.guarded()
		turn := w.hears()
		_, result := w.wants(turn)
		w.telegram.ShowsOne("q1")
		w.telegram.Says("anna", "/stop")
		if r, err := result(); !errors.Is(err, contract.ErrStale) {
			t.Errorf("the result is %v, %v", r, err)
		}
		w.telegram.Shows("anna: Stopped.")
		w.telegram.Says("anna", "yes") // no answer to anything
		w.orchestrator.Hears("yes").Answers("Yes?")
		if len(a.requests) != 0 || w.open() != 0 {
			t.Errorf("the tool ran %d times, %d questions are open", len(a.requests), w.open())
		}
	})
}

// The kernel dies before the question of a turn that has ended is withdrawn.
func TestAQuestionForWhoseAnswerNobodyWaits(t *testing.T) {
	play(t, func(w *world) {
		a := w.guarded()
		w.wants(w.hears())
		w.telegram.ShowsOne("q1")
		w.Restart()
		w.orchestrator.Hears("go")
		w.telegram.Says("anna", "/stop")
		w.telegram.Sends()
		w.telegram.Says("anna", "/approve q1")
		w.telegram.ShowsOne("Question q1 is closed")
		w.telegram.Says("anna", "yes")
		w.orchestrator.Hears("yes").Answers("")
		w.EndsQuestions()
		w.telegram.IsSilent()
		if len(a.requests) != 0 || w.open() != 0 {
			t.Errorf("the tool ran %d times", len(a.requests))
		}
	})
}

func TestOtherConversationsGoOnWhileAQuestionIsOpen(t *testing.T) {
	play(t, func(w *world) {
		w.telegram.Admits("anna", "boris")
		w.guarded()
		_, result := w.wants(w.hears())
		w.telegram.ShowsOne("q1")
		w.telegram.Says("boris", "yes")
		w.orchestrator.Hears("yes").Answers("Hello.")
		w.telegram.Shows("boris: Hello.")
		w.telegram.Says("anna", "yes")
		w.says(result, false, "burned")
	})
}

func TestAJobAsksTheOwner(t *testing.T) {
	play(t, func(w *world) {
		w.guarded()
		w.telegram.Says("anna", "hello")
		w.orchestrator.Hears("hello").Answers("")
		w.Know(func(s *directory.Snapshot) { s.DefaultChannel = "telegram" })
		w.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "tidy up"})
		turn := w.orchestrator.Hears("tidy up")
		_, result := w.wants(turn)
		if m := w.telegram.ShowsOne("wants to run notes/burn"); m.Conversation != "anna" {
			t.Errorf("it is asked in %q", m.Conversation)
		}
		w.telegram.Says("anna", "yes")
		w.says(result, false, "burned")
	})
}

func TestNobodyCanBeAsked(t *testing.T) {
	play(t, func(w *world) {
		w.guarded()
		tasks := w.Extension(bus.Actor{ID: "tasks", Effects: []string{"session.ensure", "input"}})
		tasks.Must(
			"",
			kerneltest.Ensure("orchestrator", "task:1"),
			kerneltest.Input("orchestrator", "task:1", contract.InputTask, "tidy up"),
		)
		w.Know(func(s *directory.Snapshot) { s.Channels = nil })
		turn := w.orchestrator.Hears("tidy up")
		_, result := w.wants(turn)
		w.says(result, true, "no one could be asked")
	})
}

func TestTheAgentAsks(t *testing.T) {
	for name, tt := range map[string]struct{ arguments, answer, result string }{
		"any text":      {`{"question":"When?"}`, "on *Monday*", `{"answer":"on *Monday*","by":"anna"}`},
		"an option":     {`{"question":"Which?","options":["a","b"]}`, "2", `{"answer":"b","by":"anna"}`},
		"no answer":     {`{"question":"When?","timeout_seconds":60}`, "", "There is no answer: no one answered within 1m0s."},
		"does not want": {`{"question":"When?"}`, "/deny q1", "There is no answer: the user did not want to answer."},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				turn := w.hears()
				result := turn.Calls(turn.Asks([2]string{"core/ask_user", tt.arguments})[0])
				w.telegram.ShowsOne("?", "q1")
				if tt.answer != "" {
					w.telegram.Says("anna", tt.answer)
				} else {
					w.Wait(2 * time.Minute)
					w.EndsQuestions()
				}
				w.says(result, !strings.HasPrefix(tt.result, "{"), tt.result)
				w.orchestrator.HearsNothing()
			})
		})
	}
}

func TestArgumentsAreShownAsTheyAre(t *testing.T) {
	play(t, func(w *world) {
		w.guarded()
		turn := w.hears()
		id := turn.Asks([2]string{burn, `{"a":"привет\u202e` + "\u202e```" + `","a":"<b>","b":"one\na: two","n":{"x":1.50},"c":"` + strings.Repeat("x", 3000) + `"}`})[0]
		turn.Calls(id)
		m := w.telegram.ShowsOne("````\n", `a: привет\u202e\u202e`, "\na: <b>\nb: one\n    a: two\nn: {\"x\":1.50}\nc: x",
			"more characters that are not shown")
		if strings.ContainsRune(m.Text, 0x202e) || len(m.Text) > 2500 {
			t.Errorf("it is shown as %q", m.Text)
		}
		w.telegram.Says("anna", "no")
	})
}
