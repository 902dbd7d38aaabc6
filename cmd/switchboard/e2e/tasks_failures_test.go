package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// half is what a sub-agent says before something goes wrong.
const half = "Half of it is done."

// saysHalf is the part of a sub-agent that says half of it and goes on; then
// comes the answer.
func saysHalf(then openaitest.Answer) part {
	return func(_ openaitest.Request, results []string) openaitest.Answer {
		if len(results) == 0 {
			return openaitest.Answer{Text: half, Calls: []openaitest.Call{openaitest.NewCall("list_agents", map[string]any{})}}
		}
		return then
	}
}

// never is an answer that does not come.
func (s *stage) never() openaitest.Answer { return s.held("never", openaitest.Say("too late")) }

// failed checks the one letter of a task that failed.
func failed(t *testing.T, result, name, outcome, reason string, partial ...string) {
	t.Helper()
	all := letters(t, result)
	if len(all) != 1 || all[0].From != name || all[0].Success == nil || *all[0].Success || all[0].Outcome != outcome ||
		all[0].TaskID == "" || all[0].Output != "" {
		t.Fatalf("the result is %s", result)
	}
	contains(t, "the error", all[0].Error, reason)
	contains(t, "what it had said", all[0].Partial, partial...)
	if len(partial) == 0 && all[0].Partial != "" {
		t.Errorf("it had said %q", all[0].Partial)
	}
}

// TestTaskFailures has tasks fail in every way: whoever gave them gets a result
// that says so, with what was said until then.
func TestTaskFailures(t *testing.T) {
	t.Parallel()
	s := newStage(t, strangers())
	s.config(`channels: {telegram_channel: {allow_from: ["*"]}}`)
	s.open()
	for name, run := range map[string]func(s *stage, play string){
		"ModelError":       failModel,
		"ErrorInAnAnswer":  failInAnAnswer,
		"UnknownModel":     failUnknownModel,
		"PushTimeout":      func(s *stage, play string) { failTimeout(s, play, true) },
		"RunTimeout":       func(s *stage, play string) { failTimeout(s, play, false) },
		"Cancel":           failCancel,
		"CancelWithOthers": failCancelWithOthers,
		"CancelFirst":      failCancelFirst,
		"TellsAPerson":     failForAPerson,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(s.in(t), name)
		})
	}
}

// collects is the part of main that has one task done and collects its result.
func collects(play string, more ...any) part {
	return inOrder(pushTask(play, "w", more...), callTasks("run"), callTasks("receive"))
}

func failModel(s *stage, play string) {
	s.plays(play, "w", saysHalf(openaitest.Fail(400, "I will not do that.")))
	s.plays(play, "main", collects(play))
	failed(s.t, s.perform(play)[2], "w", "error", "I will not do that.", half)
}

func failInAnAnswer(s *stage, play string) {
	broken := openaitest.Break(openaitest.ErrorChunk, "Three quarters of it.", 4)
	s.plays(play, "w", saysHalf(broken))
	s.plays(play, "main", collects(play))
	result := s.perform(play)[2]
	failed(s.t, result, "w", "error", "The server had an error", half, "Three quarters of it.")
	if strings.Contains(letters(s.t, result)[0].Error, "Three") {
		s.t.Errorf("what it had said stands in the error: %s", result)
	}
}

// Nothing else is asked instead of a model that does not exist.
func failUnknownModel(s *stage, play string) {
	s.plays(play, "main", collects(play, "model", "no-such-model"))
	failed(s.t, s.perform(play)[2], "w", "error", `no model "no-such-model"`)
	if n := len(s.requests(play, "w")); n != 0 {
		s.t.Errorf("a model was asked %d times", n)
	}
}

// failTimeout has a task stopped by the timeout of push or of run, if need be
// with more and more time, until it had said half of it.
func failTimeout(s *stage, play string, ofPush bool) {
	for time := 0.3; ; time *= 4 {
		play := fmt.Sprintf("%s%.0f", play, time*1000)
		s.plays(play, "w", saysHalf(s.never()))
		first, second := pushTask(play, "w", "timeout", time), callTasks("run")
		if !ofPush {
			first, second = pushTask(play, "w"), callTasks("run", "timeout", time)
		}
		s.plays(play, "main", inOrder(first, second, callTasks("receive")))
		result := s.perform(play)[2]
		if len(s.requests(play, "w")) < 2 {
			continue
		}
		failed(s.t, result, "w", "timeout", "the task took longer than "+(seconds(time)), half)
		return
	}
}

func seconds(s float64) string { return words.Span(time.Duration(s * float64(time.Second))) }

func failCancel(s *stage, play string) {
	s.plays(play, "w", saysHalf(s.never()))
	s.plays(play, "main", inOrder(pushTask(play, "w"), callTasks("run"),
		s.held(play+" half", callTasks("task_cancel", "name", "w")), callTasks("receive"), callTasks("check")))
	p := s.begin(play)
	s.eventually("half of it", func() bool { return len(s.requests(play, "w")) == 2 })
	s.lift(play + " half")
	s.eventually("the end", func() bool { return slices.Contains(p.texts(), allDone) })
	results := s.gotBack(play, "main")
	failed(s.t, results[3], "w", "cancelled", "the task was cancelled", half)
	wantLetters(s.t, results[4:])
}

// What a task has started is cancelled with it, whatever it does.
func failCancelWithOthers(s *stage, play string) {
	s.plays(play, "w", inOrder(pushTask(play, "works"), pushTask(play, "waits"), callTasks("run", "count", 1),
		callTasks("receive")))
	s.works(play, "works", "Done.")
	s.plays(play, "main", inOrder(pushTask(play, "w"), callTasks("run"),
		s.held(play+" at work", callTasks("task_cancel", "name", "w")), callTasks("receive")))
	p := s.begin(play)
	s.onceAtWork(play, 1)
	s.eventually("the wait of w", func() bool { return len(s.requests(play, "w")) == 4 })
	s.lift(play + " at work")
	s.eventually("the end", func() bool { return slices.Contains(p.texts(), allDone) })
	failed(s.t, s.gotBack(play, "main")[3], "w", "cancelled", "the task was cancelled")
	s.onceFinished(play, 3)
	for _, row := range s.rows(play) {
		if row.Outcome != "cancelled" {
			s.t.Errorf("%s is %s", row.Name, row.Outcome)
		}
	}
	if n := len(s.requests(play, "waits")); n != 0 {
		s.t.Error("a task that was cancelled in the queue ran")
	}
	s.lift(play + "/works")
}

func failCancelFirst(s *stage, play string) {
	s.plays(play, "main", inOrder(pushTask(play, "w"), callTasks("task_cancel", "name", "w"), callTasks("receive"),
		callTasks("run"), callTasks("receive")))
	results := s.perform(play)
	failed(s.t, results[2], "w", "cancelled", "before it started")
	contains(s.t, "run", results[3], "Nothing is queued")
	contains(s.t, "a wait in vain", results[4], "Nothing is running")
	if n := len(s.requests(play, "w")); n != 0 {
		s.t.Error("it ran all the same")
	}
}

func failForAPerson(s *stage, play string) {
	for _, c := range []chatPlace{s.terminal(), s.private(6301)} {
		play := play + c.name
		s.plays(play, "w", saysHalf(s.never()))
		s.gives(c, "/push name=w Do play="+play, "Queued as w")
		s.gives(c, "/run", "Started: w")
		s.eventually("half of it", func() bool { return len(s.requests(play, "w")) == 2 })
		s.gives(c, "/receive", "Waiting")
		n := len(c.texts())
		s.gives(c, "/task_cancel w", "Cancelled w")
		c.hears(s.world, n, "w has failed (cancelled): ", "Output so far:", half)
		s.plays(play, "bad", saysHalf(openaitest.Fail(400, "I will not do that.")))
		s.gives(c, "/push name=bad Do play="+play, "Queued as bad")
		s.gives(c, "/run", "Started: bad")
		s.onceFinished(play, 2)
		s.gives(c, "/check", "bad has failed (error): ", "I will not do that.", "Output so far:", half)
		if all := strings.Join(c.texts(), "\n"); strings.Count(all, half) != 2 {
			s.t.Errorf("it was told %q", all)
		}
	}
}
