package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/internal/seed"
)

// busy has the message <c0m0> lead to a long turn, whose second call works until
// the shop has the file go, and every other one to a turn with one call.
func busy(token string) [][]openaitest.Call {
	if token != "<c0m0>" {
		return [][]openaitest.Call{{work("act", token, 0, "")}}
	}
	return [][]openaitest.Call{
		{work("peek", token, 0, "")},
		{work("act", token, 1, "go"), work("act", token, 2, "")},
		{openaitest.NewCall(sendTool, map[string]string{"channel_id": "shop", "text": "News of " + token})},
	}
}

// steered has two more messages come while a call of the first one's turn works.
func (s *shop) steered() {
	s.t.Helper()
	s.write("<c0m0>")
	s.reaches("the second call",
		func() bool { return len(s.query(`SELECT id FROM call WHERE name = 'shop/act' AND state > 0`)) > 0 })
	s.write("<c0m1>")
	s.write("<c0m2>")
	s.reaches("three messages", func() bool { return s.count("user.message") == 3 })
	s.world.write("", 0o600, "data", "shop", "go")
	s.over("<c0m0>", "<c0m1>", "<c0m2>")
	s.survived("<c0m0>", "<c0m1>", "<c0m2>")
}

func TestMessagesSteerATurnThatGoesOnAfterwards(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	s.plan = busy
	s.open()
	s.steered()
	if got := s.texts(chatOf("<c0m0>")); !slices.Equal(got, []string{"You said <c0m1> <c0m2>", "You said <c0m0>"}) {
		t.Errorf("Telegram has %q", got)
	}
	requests := s.model.Requests()
	if len(requests) != 7 {
		t.Fatalf("the model was asked %d times", len(requests))
	}
	steered := requests[2]
	if got := steered.Last("user"); strings.Count(got, "[Backlog]") != 1 || !strings.Contains(got, "<c0m1>") ||
		!strings.Contains(got, "<c0m2>") ||
		strings.Index(got, "<c0m1>") > strings.Index(got, "<c0m2>") {
		t.Errorf("the model was interrupted with %q", got)
	}
	contains(t, "the interrupted turn", transcript(steered), "did <c0m0>1", "skipped: new message")
	contains(t, "the end", transcript(requests[6]), "assistant: You said <c0m1> <c0m2>")
	contains(t, "the turn that goes on", requests[4].Last("user"), "<c0m0>", "shop/act")
	if got := s.lines("shop", "calls"); !slices.Equal(got,
		[]string{"peek <c0m0>0", "act <c0m0>1", "act <c0m1>0", "act <c0m0>2"}) {
		t.Errorf("the tools ran in this order: %q", got)
	}
}

func TestSteeredTurnSurvivesACrashOfTheKernelAtEveryCommit(t *testing.T) {
	t.Parallel()
	did := commits(t, func(s *shop) {
		s.plan = busy
		s.open()
		s.steered()
	})
	t.Logf("commits:\n%s", strings.Join(did, "\n"))
	for _, point := range fewerPoints(t, len(did), 4) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, "")
			s.plan = busy
			s.crashAt(point)
			s.steered()
		})
	}
}

func TestSteeredTurnSurvivesTheDeathOfItsAgentAtACommit(t *testing.T) {
	t.Parallel()
	random := seed.Rand(t)
	for i := range 4 {
		point := fmt.Sprint([]string{"before ", "after "}[i%2], 2+6*i+random.IntN(6))
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, "processes: separate")
			s.plan = busy
			s.env["SWITCHBOARD_CRASH_VICTIM"] = "agent:keeper"
			s.crashAt(point)
			agent := s.extensionProcess("agent:keeper")
			s.steered()
			s.gone([]process{agent})
		})
	}
}

func TestTurnThatWasInterruptedThreeTimesRunsToItsEnd(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	s.plan = func(token string) [][]openaitest.Call {
		if token != "<c0m0>" {
			return nil
		}
		var all [][]openaitest.Call
		for i := range 5 {
			all = append(all, []openaitest.Call{work("act", token, i, fmt.Sprint("go", i))})
		}
		return all
	}
	s.open()
	s.write("<c0m0>")
	tokens := []string{"<c0m0>"}
	for i := range 5 {
		s.eventually("the next call", func() bool {
			return slices.Contains(s.lines("shop", "calls"), fmt.Sprint("act <c0m0>", i))
		})
		if i < 4 {
			tokens = append(tokens, fmt.Sprintf("<c0m%d>", i+1))
			s.write(tokens[i+1])
			s.eventually("the message", func() bool { return s.count("user.message") == len(tokens) })
		}
		s.world.write("", 0o600, "data", "shop", fmt.Sprint("go", i))
	}
	s.survived(tokens...)
	want := []string{"You said <c0m1>", "You said <c0m2>", "You said <c0m3>", "You said <c0m0>", "You said <c0m4>"}
	if got := s.texts(chatOf("<c0m0>")); !slices.Equal(got, want) {
		t.Errorf("Telegram has %q", got)
	}
}
