package tools_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
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

// world is a chat of Anna with the orchestrator, which may use the tools of an
// extension named notes.
type world struct {
	*kerneltest.World
	telegram     *kerneltest.Channel
	orchestrator *kerneltest.Agent
	notes        *kerneltest.Extension
}

func play(t *testing.T, do func(w *world)) {
	t.Helper()
	kerneltest.Run(t, func(k *kerneltest.World) {
		w := &world{World: k, telegram: k.Channel("telegram"), orchestrator: k.Agent("orchestrator")}
		w.notes = k.Extension(bus.Actor{ID: "notes", Publish: []string{"notes.added"}}, kerneltest.On("notes.added"))
		w.Know(func(s *directory.Snapshot) { s.DefaultAgent = "orchestrator" })
		w.telegram.Admits("anna")
		do(w)
	})
}

// hears begins a turn.
func (w *world) hears() *kerneltest.Turn {
	w.T.Helper()
	w.telegram.Says("anna", "go")
	return w.orchestrator.Hears("go")
}

// attempts counts the runs of a tool, and what they were asked.
type attempts struct {
	requests []*extensionv1.CallRequest
	contexts []context.Context
}

func (a *attempts) of(
	run func(n int) (*extensionv1.CallResult, error),
) func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
	return func(ctx context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
		// A copy: the kernel goes on with its own.
		a.requests = append(a.requests, &extensionv1.CallRequest{
			CallId:    r.GetCallId(),
			Name:      r.GetName(),
			Arguments: r.GetArguments(),
			Lane:      r.GetLane(),
			Session:   r.GetSession(),
			Agent:     r.GetAgent(),
			ReplyTo:   r.GetReplyTo(),
			Channel:   r.GetChannel(),
			Timezone:  r.GetTimezone(),
			Sender:    r.GetSender(),
			Repeat:    r.GetRepeat(),
		})
		a.contexts = append(a.contexts, ctx)
		return run(len(a.requests))
	}
}

func text(content string) (*extensionv1.CallResult, error) {
	return &extensionv1.CallResult{Content: content}, nil
}

func TestACallIsMadeOnceAndItsResultKept(t *testing.T) {
	play(t, func(w *world) {
		var a attempts
		w.Tool("notes", &extensionv1.Tool{Name: "add"}, a.of(func(int) (*extensionv1.CallResult, error) {
			return &extensionv1.CallResult{Content: "noted", Effects: []*busv1.Effect{
				kerneltest.Publish("notes.added", struct{}{}), kerneltest.PutAt("note", "milk", 0),
			}}, nil
		}))
		turn := w.hears()
		id := turn.Asks([2]string{"notes/add", ` {"text": "milk"} `})[0]
		for range 3 {
			r, err := turn.Call(id)
			if err != nil || r.GetContent() != "noted" || r.GetIsError() || len(r.GetEffects()) != 0 {
				t.Fatalf("the result is %v, %v", r, err)
			}
		}
		w.Restart()
		turn = w.orchestrator.Hears("go")
		if r, err := turn.Call(id); err != nil || r.GetContent() != "noted" {
			t.Errorf("after a restart: %v, %v", r, err)
		}
		if len(a.requests) != 1 {
			t.Fatalf("the tool ran %d times", len(a.requests))
		}
		q := a.requests[0]
		if q.GetCallId() != id || q.GetName() != "add" || string(q.GetArguments()) != ` {"text": "milk"} ` || q.GetAgent() != "orchestrator" || q.GetSender() != "anna" ||
			q.GetChannel() != "telegram" || q.GetReplyTo() != turn.Input.ReplyTo || q.GetTimezone() != "UTC" || q.GetRepeat() ||
			q.GetLane() == "" {
			t.Errorf("the tool was asked %v", q)
		}
		if got := w.Events(
			"notes.added",
		); len(got) != 1 || got[0].GetSource() != "notes" ||
			got[0].GetCausationId() != turn.Delivery.GetEvent().GetId() {
			t.Errorf("events: %v", got)
		}
		if rows := w.History(turn.Session()); !slices.Equal(rows, []string{"input: go", "answer: ", "result: noted"}) {
			t.Errorf("the history is %q", rows)
		}
	})
}

func TestConcurrentRequestsJoinOneCall(t *testing.T) {
	play(t, func(w *world) {
		var a attempts
		release := make(chan struct{})
		w.Tool("notes", &extensionv1.Tool{Name: "slow"}, a.of(func(int) (*extensionv1.CallResult, error) {
			<-release
			return text("done")
		}))
		turn := w.hears()
		id := turn.Asks([2]string{"notes/slow", ""})[0]
		var waiting []func() (*extensionv1.CallResult, error)
		for range 5 {
			waiting = append(waiting, turn.Calls(id))
		}
		// The agent dies; the call goes on, and the next attempt joins it.
		w.orchestrator.Dies()
		w.orchestrator.Starts()
		w.Wait(time.Minute)
		again := w.orchestrator.Hears("go")
		waiting = append(waiting, again.Calls(id))
		close(release)
		for i, result := range waiting {
			if r, err := result(); err != nil || r.GetContent() != "done" {
				t.Errorf("request %d: %v, %v", i, r, err)
			}
		}
		if len(a.requests) != 1 || string(a.requests[0].GetArguments()) != "{}" {
			t.Errorf("the tool ran %d times: %v", len(a.requests), a.requests)
		}
	})
}

// Messages of the user may come at any moment of a call.
func TestMessagesComeWhileACallBegins(t *testing.T) {
	play(t, func(w *world) {
		delegated, over := make(chan struct{}), make(chan struct{})
		w.Tool(
			"notes",
			&extensionv1.Tool{Name: "slow"},
			func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				close(delegated)
				<-over
				return text("done")
			},
		)
		turn := w.hears()
		id := turn.Asks([2]string{"notes/slow", ""})[0]
		go func() {
			const session = 1
			defer close(over)
			for {
				w.Tools.Interrupt(session)
				select {
				case <-delegated:
					return
				default:
					runtime.Gosched()
				}
			}
		}()
		if r, err := turn.Calls(id)(); err != nil || r.GetContent() != "done" {
			t.Errorf("%v, %v", r, err)
		}
	})
}

func TestAVersionConflictRunsTheToolAgainAsTheSameCall(t *testing.T) {
	play(t, func(w *world) {
		w.notes.Must("", kerneltest.PutAt("counter", "1", 0))
		var a attempts
		w.Tool("notes", &extensionv1.Tool{Name: "count"}, a.of(func(n int) (*extensionv1.CallResult, error) {
			return &extensionv1.CallResult{Content: fmt.Sprint("attempt ", n), Effects: []*busv1.Effect{
				kerneltest.Publish("notes.added", n), kerneltest.PutAt("counter", "2", int64(n-2)),
			}}, nil
		}))
		turn := w.hears()
		if r := turn.Uses("notes/count", map[string]any{}); r.GetContent() != "attempt 3" {
			t.Errorf("the result is %v", r)
		}
		for i, q := range a.requests {
			if q.GetCallId() != a.requests[0].GetCallId() || q.GetRepeat() != (i > 0) {
				t.Errorf("attempt %d was asked %v", i, q)
			}
		}
		if got := w.Events("notes.added"); len(got) != 1 {
			t.Errorf("effects of attempts in conflict: %v", got)
		}
	})
}

func TestAConflictThatDoesNotEndIsAnError(t *testing.T) {
	play(t, func(w *world) {
		var a attempts
		w.Tool("notes", &extensionv1.Tool{Name: "count"}, a.of(func(int) (*extensionv1.CallResult, error) {
			return &extensionv1.CallResult{Content: "done", Effects: []*busv1.Effect{kerneltest.PutAt("counter", "2", 99)}}, nil
		}))
		if r := w.hears().Uses(
			"notes/count",
			map[string]any{},
		); !r.GetIsError() ||
			!strings.Contains(r.GetContent(), "version") {
			t.Errorf("the result is %v", r)
		}
		if len(a.requests) != 11 {
			t.Errorf("the tool ran %d times", len(a.requests))
		}
	})
}

func TestAnEffectThatIsNotGrantedIsAnError(t *testing.T) {
	play(t, func(w *world) {
		w.Tool(
			"notes",
			&extensionv1.Tool{Name: "spam"},
			func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				return &extensionv1.CallResult{Content: "done", Effects: []*busv1.Effect{
					kerneltest.PutAt("k", "v", 0), kerneltest.Publish(contract.TopicUserNotify, contract.UserNotify{Text: "spam"}),
				}}, nil
			},
		)
		r := w.hears().Uses("notes/spam", map[string]any{})
		if !r.GetIsError() || !strings.Contains(r.GetContent(), `permissions: {publish: [system.user.notify]}`) {
			t.Errorf("the result is %v", r)
		}
		w.telegram.IsSilent()
		w.Read(func(j journal.Reader) error {
			v, err := j.KVGet("notes", "k")
			if v.Version != 0 {
				t.Error("half of the effects happened")
			}
			return err
		})
	})
}

func TestWhatBecomesOfACallWhoseExtensionDies(t *testing.T) {
	tests := []struct {
		name       string
		tool       *extensionv1.Tool
		back       bool
		runs       int
		isError    bool
		says       string
		lastRepeat bool
	}{
		{"read only: again", &extensionv1.Tool{Name: "t", ReadOnly: true}, true, 2, false, "done", true},
		{"idempotent: again", &extensionv1.Tool{Name: "t", Idempotent: true}, true, 2, false, "done", true},
		{"neither: nobody knows", &extensionv1.Tool{Name: "t"}, true, 1, true, "unknown whether it had its effect", false},
		{
			"idempotent, and it does not come back",
			&extensionv1.Tool{Name: "t", Idempotent: true},
			false,
			1,
			true,
			"notes is not running",
			false,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			play(t, func(w *world) {
				var a attempts
				w.Tool("notes", test.tool, a.of(func(n int) (*extensionv1.CallResult, error) {
					if n > 1 {
						return text("done")
					}
					go func() {
						w.notes.Dies()
						time.Sleep(5 * time.Second)
						if test.back {
							w.notes.Starts()
						}
					}()
					time.Sleep(time.Second)
					return nil, fmt.Errorf("%w: it ended", contract.ErrGone)
				}))
				r := w.hears().Uses("notes/t", map[string]any{})
				if r.GetIsError() != test.isError || !strings.Contains(r.GetContent(), test.says) {
					t.Errorf("the result is %v", r)
				}
				if len(a.requests) != test.runs || a.requests[test.runs-1].GetRepeat() != test.lastRepeat {
					t.Errorf("the tool was asked %v", a.requests)
				}
				w.Wait(time.Minute)
			})
		})
	}
}

// A call that has waited for long goes on waiting when its extension starts again.
func TestALongWaitOutlivesItsExtension(t *testing.T) {
	play(t, func(w *world) {
		var a attempts
		w.Tool(
			"notes",
			&extensionv1.Tool{Name: "t", Idempotent: true, Interruptible: true},
			a.of(func(n int) (*extensionv1.CallResult, error) {
				if n > 2 {
					return text("done")
				}
				time.Sleep(10 * time.Minute)
				w.notes.Dies()
				time.AfterFunc(20*time.Second, w.notes.Starts)
				return nil, fmt.Errorf("%w: it ended", contract.ErrGone)
			}),
		)
		if r := w.hears().Uses("notes/t", map[string]any{}); r.GetIsError() || r.GetContent() != "done" {
			t.Errorf("the result is %v", r)
		}
		if len(a.requests) != 3 {
			t.Errorf("the tool was asked %v", a.requests)
		}
	})
}

func TestACallWaitsForAnExtensionThatIsDown(t *testing.T) {
	for _, tool := range []*extensionv1.Tool{{Name: "t"}, {Name: "t", ReadOnly: true}} {
		t.Run(fmt.Sprint("read only: ", tool.GetReadOnly()), func(t *testing.T) {
			play(t, func(w *world) {
				var a attempts
				w.Tool("notes", tool, a.of(func(int) (*extensionv1.CallResult, error) { return text("done") }))
				turn := w.hears()
				w.notes.Dies()
				ids := turn.Asks([2]string{"notes/t", ""}, [2]string{"notes/t", ""})
				waiting := turn.Calls(ids[0])
				w.Wait(20 * time.Second)
				// It has not begun, so even a restart leaves nothing unknown.
				w.Restart()
				if _, err := waiting(); err == nil {
					t.Error("a call survived its kernel")
				}
				turn = w.orchestrator.Hears("go")
				waiting = turn.Calls(ids[0])
				w.notes.Starts()
				w.Wait(time.Second)
				if r, err := waiting(); err != nil || r.GetContent() != "done" {
					t.Errorf("the result is %v, %v", r, err)
				}
				w.notes.Dies()
				r, err := turn.Call(ids[1])
				if err != nil || !r.GetIsError() || !strings.Contains(r.GetContent(), "nothing was done") {
					t.Errorf("the result is %v, %v", r, err)
				}
				if len(a.requests) != 1 {
					t.Errorf("the tool ran %d times", len(a.requests))
				}
			})
		})
	}
}

// A kernel that dies while a tool runs that must not be repeated.
func TestARestartLeavesTheOutcomeUnknown(t *testing.T) {
	for _, tool := range []*extensionv1.Tool{{Name: "t"}, {Name: "t", Idempotent: true}} {
		t.Run(fmt.Sprint("idempotent: ", tool.GetIdempotent()), func(t *testing.T) {
			play(t, func(w *world) {
				var a attempts
				w.Tool("notes", tool, a.of(func(n int) (*extensionv1.CallResult, error) {
					if n == 1 {
						time.Sleep(time.Hour)
					}
					return text("done")
				}))
				turn := w.hears()
				id := turn.Asks([2]string{"notes/t", ""})[0]
				turn.Calls(id)
				w.Restart()
				turn = w.orchestrator.Hears("go")
				r, err := turn.Call(id)
				want, runs := "unknown whether it had its effect", 1
				if tool.GetIdempotent() {
					want, runs = "done", 2
				}
				if err != nil || !strings.Contains(r.GetContent(), want) || len(a.requests) != runs {
					t.Errorf("the result is %v, %v after %d runs", r, err, len(a.requests))
				}
				w.Wait(2 * time.Hour)
			})
		})
	}
}

func TestAToolsOwnErrorIsForTheModel(t *testing.T) {
	tests := map[string]error{
		"plain":       errors.New("the notebook is full"),
		"unavailable": fmt.Errorf("%w: the notebook is full", contract.ErrUnavailable),
		"not found":   fmt.Errorf("%w: the notebook is full", contract.ErrNotFound),
	}
	for name, failure := range tests {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				var a attempts
				w.Tool(
					"notes",
					&extensionv1.Tool{Name: "t", Idempotent: true},
					a.of(func(int) (*extensionv1.CallResult, error) { return nil, failure }),
				)
				began := time.Now()
				r := w.hears().Uses("notes/t", map[string]any{})
				if !r.GetIsError() || !strings.Contains(r.GetContent(), "the notebook is full") || len(a.requests) != 1 ||
					time.Since(began) > 0 {
					t.Errorf("the result is %v after %d runs and %s", r, len(a.requests), time.Since(began))
				}
			})
		})
	}
}

func TestACallThatTakesTooLong(t *testing.T) {
	for _, tool := range []*extensionv1.Tool{{Name: "t"}, {Name: "t", ReadOnly: true}} {
		t.Run(fmt.Sprint("read only: ", tool.GetReadOnly()), func(t *testing.T) {
			play(t, func(w *world) {
				w.Tool("notes", tool, func(ctx context.Context, _ *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				})
				want := "unknown whether it had its effect"
				if tool.GetReadOnly() {
					want = "took longer than 10m0s"
				}
				turn := w.hears()
				result := turn.Calls(turn.Asks([2]string{"notes/t", ""})[0])
				w.Wait(9 * time.Minute)
				w.orchestrator.Dies() // nothing depends on the attempt that asked
				w.Wait(2 * time.Minute)
				if r, err := result(); err != nil || !r.GetIsError() || !strings.Contains(r.GetContent(), want) {
					t.Errorf("the result is %v, %v", r, err)
				}
			})
		})
	}
}

// When a turn is stopped, its calls end, and what they bring later is refused.
func TestACallEndsWithItsTurn(t *testing.T) {
	play(t, func(w *world) {
		var a attempts
		release := make(chan struct{})
		w.Tool("notes", &extensionv1.Tool{Name: "slow"}, a.of(func(int) (*extensionv1.CallResult, error) {
			<-release
			return &extensionv1.CallResult{
				Content: "late",
				Effects: []*busv1.Effect{kerneltest.Publish("notes.added", struct{}{})},
			}, nil
		}))
		turn := w.hears()
		id := turn.Asks([2]string{"notes/slow", ""})[0]
		result := turn.Calls(id)
		w.telegram.Says("anna", "/stop")
		w.telegram.Shows("anna: Stopped.")
		if a.contexts[0].Err() == nil {
			t.Error("the tool was not told")
		}
		lane := a.requests[0].GetLane()
		if _, err := w.notes.Commits(
			lane,
			kerneltest.Publish("notes.added", struct{}{}),
		); !errors.Is(
			err,
			contract.ErrStale,
		) {
			t.Errorf("the tool commits after its turn: %v", err)
		}
		close(release)
		if r, err := result(); !errors.Is(err, contract.ErrStale) {
			t.Errorf("the result is %v, %v", r, err)
		}
		if got := w.Events("notes.added"); len(got) != 0 {
			t.Errorf("late effects: %v", got)
		}
		if rows := w.History(turn.Session()); len(rows) != 3 || !strings.Contains(rows[2], "cancelled") {
			t.Errorf("the history is %q", rows)
		}
	})
}

// While it runs, a tool works for the turn under a lane of its own.
func TestTheLaneOfACall(t *testing.T) {
	play(t, func(w *world) {
		var lane string
		var during error
		w.Tool(
			"notes",
			&extensionv1.Tool{Name: "t"},
			func(_ context.Context, q *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				lane = q.GetLane()
				l, err := w.Bus.Lease(w.notes.Actor, lane)
				if err != nil || l.Agent != "orchestrator" || journal.SessionID(l.Session) != q.GetSession() {
					t.Errorf("the lease is %+v, %v", l, err)
				}
				if _, err := w.Bus.Lease(w.orchestrator.Actor, lane); !errors.Is(err, contract.ErrStale) {
					t.Errorf("another's lane: %v", err)
				}
				_, during = w.notes.Commits(lane, kerneltest.Publish("notes.added", struct{}{}))
				if _, err := w.notes.Commits(lane, kerneltest.CancelTurn(l.Session, "no")); err == nil {
					t.Error("a tool cancels the turn that it works for")
				}
				return text("done")
			},
		)
		w.hears().Uses("notes/t", map[string]any{})
		if during != nil {
			t.Errorf("a commit during the call: %v", during)
		}
		if _, err := w.notes.Commits(
			lane,
			kerneltest.Publish("notes.added", struct{}{}),
		); !errors.Is(
			err,
			contract.ErrStale,
		) {
			t.Errorf("a commit after the call: %v", err)
		}
	})
}

func TestACallOfAnotherSession(t *testing.T) {
	play(t, func(w *world) {
		turn := w.hears()
		id := turn.Asks([2]string{"core/list_agents", ""})[0]
		w.telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "elsewhere", Text: "hello"})
		other := w.orchestrator.Hears("hello")
		for _, id := range []string{id, "c999", "", "x", "c-1"} {
			if r, err := other.Call(id); !errors.Is(err, contract.ErrNotFound) {
				t.Errorf("the call %q: %v, %v", id, r, err)
			}
		}
	})
}

func TestAnExtensionThatIsStartedForTheFirstTimeIsWaitedFor(t *testing.T) {
	play(t, func(w *world) {
		w.Know(func(s *directory.Snapshot) { s.Starting = []string{"diary"} })
		turn := w.hears()
		result := turn.Calls(turn.Asks([2]string{"diary/read", ""})[0])
		w.Extension(bus.Actor{ID: "diary"})
		w.Wait(5 * time.Second)
		w.Tool(
			"diary",
			&extensionv1.Tool{Name: "read"},
			func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				return text("dear diary")
			},
		)
		w.Know(func(s *directory.Snapshot) { s.Starting = nil })
		if r, err := result(); err != nil || r.GetContent() != "dear diary" {
			t.Errorf("the result is %v, %v", r, err)
		}
	})
}

func TestAHugeResultIsCut(t *testing.T) {
	play(t, func(w *world) {
		w.Tool(
			"notes",
			&extensionv1.Tool{Name: "t"},
			func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				return text(strings.Repeat("я", contract.MaxPayload))
			},
		)
		r := w.hears().Uses("notes/t", map[string]any{})
		if len(r.GetContent()) > contract.MaxPayload+100 ||
			!strings.HasSuffix(r.GetContent(), "[cut: the result was longer]") {
			t.Errorf("the result has %d bytes", len(r.GetContent()))
		}
	})
}
