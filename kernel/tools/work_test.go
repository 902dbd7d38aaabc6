package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// desk adds an extension whose tool has another agent work for the call, and waits
// for its answer.
func (w *world) desk() *kerneltest.Extension {
	desk := w.Extension(bus.Actor{ID: "desk", Effects: []string{"input", "session.ensure"}})
	described := &extensionv1.Tool{Name: "delegate", Idempotent: true, Waits: true}
	w.Tool("desk", described, func(ctx context.Context, q *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
		var args struct{ Agent, Prompt string }
		if err := json.Unmarshal(q.GetArguments(), &args); err != nil {
			return nil, err
		}
		key, actor := "task:"+q.GetCallId()+":a", desk.Running()
		if !q.GetRepeat() {
			task := kerneltest.Input(args.Agent, key, contract.InputTask, args.Prompt)
			task.GetInput().ReplyTo = q.GetReplyTo()
			if err := w.submit(actor, q.GetLane(), kerneltest.Ensure(args.Agent, key), task); err != nil {
				return nil, err
			}
		}
		for desk.Running() == actor && ctx.Err() == nil {
			text, found, err := w.said(key)
			if found || err != nil {
				return &extensionv1.CallResult{Content: text}, err
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
		return nil, fmt.Errorf("%w: it ended", contract.ErrGone)
	})
	return desk
}

func (w *world) submit(actor *bus.Actor, lane string, effects ...*busv1.Effect) error {
	done := make(chan *busv1.CommitReceipt, 1)
	w.Bus.Submit(actor, []*busv1.Commit{{Lane: lane, Effects: effects}}, func(r []*busv1.CommitReceipt) { done <- r[0] })
	return contract.FromProto((<-done).GetError())
}

// said returns the first output of a session, by its key.
func (w *world) said(key string) (text string, found bool, err error) {
	err = w.Bus.View(context.Background(), func(r journal.Reader) error {
		events, err := r.Events(journal.EventFilter{Topic: contract.TopicAgentOutput, Ascending: true})
		for _, e := range events {
			var out contract.AgentOutput
			if err := json.Unmarshal(e.GetPayload(), &out); err != nil {
				return err
			}
			if out.Key == key && !found {
				text, found = out.Text, true
			}
		}
		return err
	})
	return text, found, err
}

// delegates begins a call that another agent works for.
func delegates(
	turn *kerneltest.Turn,
	agent, prompt string,
) (call string, result func() (*extensionv1.CallResult, error)) {
	arguments, _ := json.Marshal(map[string]string{"agent": agent, "prompt": prompt})
	call = turn.Asks([2]string{"desk/delegate", string(arguments)})[0]
	return call, turn.Calls(call)
}

func (w *world) returns(f func() (*extensionv1.CallResult, error), want string) {
	w.T.Helper()
	if r, err := f(); err != nil || r.GetIsError() || r.GetContent() != want {
		w.T.Fatalf("the result is %v, %v, want %q", r, err, want)
	}
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

// Whatever ends the turn that waits stops who works for it, in the same commit,
// and those who work for that one.
func TestATaskEndsWithItsTurn(t *testing.T) {
	ends := map[string]func(w *world, turn *kerneltest.Turn){
		"stopped":     func(w *world, _ *kerneltest.Turn) { w.telegram.Says("anna", "/stop") },
		"out of time": func(_ *world, turn *kerneltest.Turn) { turn.Ends(contract.OutcomeTimeout, "I stopped here.") },
		"a new one":   func(w *world, _ *kerneltest.Turn) { w.telegram.Says("anna", "/new") },
		"its session is gone": func(w *world, turn *kerneltest.Turn) {
			w.Do(func(tx *bus.Tx) error { return w.Sessions.Delete(tx, journal.SessionID(turn.Session())) })
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.desk()
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
					if s := w.Session(agent, "task:"+id+":a"); len(s.Stack) != 0 {
						t.Errorf("session %+v goes on", s)
					}
					if c := w.stored(id); c != nil && (c.State != journal.CallClosed || strings.Contains(c.Result, "too late")) {
						t.Errorf("the call is %+v", c)
					}
				}
				for _, e := range w.Events(contract.TopicAgentOutput) {
					if out := kerneltest.Decode[contract.AgentOutput](
						t,
						e,
					); out.Session != journal.SessionID(turn.Session()) &&
						out.Outcome != contract.OutcomeCancelled {
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
		w.desk()
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
		w.desk()
		helper := w.Agent("helper")
		_, result := delegates(w.hears(), "helper", "work")
		task := helper.Hears("work")
		w.telegram.Says("anna", "and another thing")
		task.Answers("done")
		w.returns(result, "done")
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
					w.desk()
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
					w.returns(result, "done")
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

// A second output of the session changes nothing.
func TestAResultComesOnce(t *testing.T) {
	play(t, func(w *world) {
		w.desk()
		helper := w.Agent("helper")
		turn := w.hears()
		call, result := delegates(turn, "helper", "work")
		helper.Hears("work").Answers("done")
		w.returns(result, "done")
		rogue := w.Extension(bus.Actor{ID: "rogue", Effects: []string{"input", "session.ensure"}})
		rogue.Must("", kerneltest.Input("helper", "task:"+call+":a", contract.InputNotice, "again"))
		helper.Hears("again").Answers("something else")
		if rows := w.resultRows(turn.Session()); len(rows) != 1 || strings.Contains(rows[0], "something else") {
			t.Errorf("the results are %q", rows)
		}
		w.telegram.IsSilent()
		// Only the tool of a call can make the session of the call.
		for _, key := range []string{"task:c999", "task:" + call, "task:" + call + ":b"} {
			if _, err := rogue.Commits("", kerneltest.Ensure("helper", key)); !errors.Is(err, contract.ErrDenied) {
				t.Errorf("a session %s is made: %v", key, err)
			}
		}
		rogue.Must("", kerneltest.Ensure("helper", "task:999"))
	})
}

// A job whose helper has sent something has sent it.
func TestAJobWhoseTaskHasSentSomethingSaysNoMore(t *testing.T) {
	play(t, func(w *world) {
		w.desk()
		cli, helper := w.Channel("cli"), w.Agent("helper")
		w.telegram.GoesOffline()
		w.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "report", ChannelID: "cli", AgentID: "orchestrator"})
		turn := w.orchestrator.Hears("report")
		_, result := delegates(turn, "helper", "send the report")
		task := helper.Hears("send the report")
		task.Uses("core/send_to_channel", map[string]string{"channel_id": "telegram", "text": "it rains"})
		task.Answers("sent")
		w.returns(result, "sent")
		turn.Answers("I had it sent.")
		cli.IsSilent()
	})
}

// The call ends before the work: what works for it ends in the same commit.
func TestATaskEndsWithItsCall(t *testing.T) {
	play(t, func(w *world) {
		desk := w.desk()
		helper := w.Agent("helper")
		turn := w.hears()
		call, result := delegates(turn, "helper", "work")
		task := helper.Hears("work")
		desk.Dies()
		w.Wait(time.Minute)
		if r, err := result(); err != nil || !r.GetIsError() || !strings.Contains(r.GetContent(), "desk is not running") {
			t.Fatalf("the result is %v, %v", r, err)
		}
		if s := w.Session("helper", "task:"+call+":a"); len(s.Stack) != 0 || !helper.Cancelled(task.Delivery.GetToken()) {
			t.Errorf("session %+v goes on", s)
		}
		desk.Starts()
		helper.HearsNothing()
		turn.Answers("It did not work.")
		w.telegram.Shows("anna: It did not work.")
	})
}

// A call has one session that works for it.
func TestACallHasOneWorker(t *testing.T) {
	play(t, func(w *world) {
		desk := w.Extension(bus.Actor{ID: "desk", Effects: []string{"session.ensure"}})
		w.Agent("helper")
		var errs []error
		w.Tool(
			"desk",
			&extensionv1.Tool{Name: "two"},
			func(_ context.Context, q *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				for _, key := range []string{"a", "a", "b"} {
					errs = append(
						errs,
						w.submit(desk.Running(), q.GetLane(), kerneltest.Ensure("helper", "task:"+q.GetCallId()+":"+key)),
					)
				}
				return text("done")
			},
		)
		w.hears().Uses("desk/two", map[string]any{})
		if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], contract.ErrInvalid) {
			t.Errorf("the sessions are made: %v", errs)
		}
	})
}

// A tool that waits has the time of its turn, and not that of a call.
func TestAToolThatWaitsHasTheTimeOfItsTurn(t *testing.T) {
	play(t, func(w *world) {
		w.desk()
		helper := w.Agent("helper")
		turn := w.hears()
		call, _ := delegates(turn, "helper", "work")
		task := helper.Hears("work")
		for range 2 {
			w.Wait(8 * time.Minute)
			w.orchestrator.Dies() // the next attempt of the turn has the whole time again
			w.orchestrator.Starts()
			w.Wait(time.Minute)
			turn = w.orchestrator.Hears("go")
		}
		helper.HearsNothing()
		task.Answers("done")
		w.returns(turn.Calls(call), "done")
		turn.Answers("")
		turn = w.hears()
		delegates(turn, "helper", "work")
		helper.Hears("work")
		w.Wait(10 * time.Minute)
		if !w.orchestrator.Cancelled(turn.Delivery.GetToken()) {
			t.Error("the time of the turn does not count")
		}
	})
}

// An earlier version of the kernel had a tool for that, and stored such calls as
// running.
func TestACallOfAToolThatIsGoneEnds(t *testing.T) {
	play(t, func(w *world) {
		turn := w.hears()
		call := turn.Asks([2]string{"core/delegate_task", `{"agent": "helper", "prompt": "work"}`})[0]
		w.Do(func(tx *bus.Tx) error {
			return w.Sessions.Start(tx, journal.ParseCallID(call), `{"agent":"helper","success":false,"outcome":"working"}`)
		})
		w.Restart()
		turn = w.orchestrator.Hears("go")
		r, err := turn.Call(call)
		if err != nil || !r.GetIsError() || !strings.Contains(r.GetContent(), "core/delegate_task was interrupted") {
			t.Errorf("the result is %v, %v", r, err)
		}
		turn.Answers("I do not know.")
		w.telegram.Shows("anna: I do not know.")
	})
}
