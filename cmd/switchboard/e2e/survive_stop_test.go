package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// stopped has someone stop a turn whose calls never end, and ask for something
// else.
func (s *shop) stopped() {
	s.t.Helper()
	s.plan = func(token string) [][]openaitest.Call {
		if token != "<c0m0>" {
			return nil
		}
		return [][]openaitest.Call{{work("act", token, 0, "never"), work("act", token, 1, "never")}}
	}
	s.write("<c0m0>")
	s.reaches("a call",
		func() bool { return len(s.query(`SELECT id FROM call WHERE name = 'shop/act' AND state > 0`)) > 0 })
	chat := chatOf("<c0m0>")
	s.telegram.Say(chat, "/stop")
	s.reaches("the answer to /stop", func() bool {
		return slices.ContainsFunc(s.texts(chat), func(text string) bool { return strings.Contains(text, "Stopped") })
	})
	s.world.write("", 0o600, "data", "shop", "never")
	s.write("<c0m1>")
	s.over("<c0m1>")
	s.settled()
	s.nothingWrong()
	texts := s.texts(chat)
	s.once("the answer to /stop", "Stopped", texts)
	s.once("the reply to <c0m1>", "You said <c0m1>", texts)
	for _, text := range texts {
		if strings.Contains(text, "<c0m0>") {
			s.t.Errorf("what was stopped is answered: %q", text)
		}
	}
	if did := s.query(`SELECT payload FROM event WHERE topic = 'shop.did'`); len(did) > 0 {
		s.t.Errorf("what was stopped had effects: %q", did)
	}
	for _, line := range []string{"act <c0m0>0", "act <c0m0>1"} {
		if n := len(slices.DeleteFunc(s.lines("shop", "calls"), func(l string) bool { return l != line })); n > 1 {
			s.t.Errorf("%s ran %d times", line, n)
		}
	}
	if got := s.query(`SELECT outcome FROM turn ORDER BY id`); !slices.Equal(got, []string{"cancelled", "ok"}) {
		s.t.Errorf("the turns ended %q", got)
	}
}

func TestStoppedTurnStaysStoppedOverACrashAtEveryCommit(t *testing.T) {
	t.Parallel()
	did := commits(t, func(s *shop) {
		s.open()
		s.stopped()
	})
	t.Logf("commits:\n%s", strings.Join(did, "\n"))
	for _, point := range points(t, len(did)) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, "")
			s.crashAt(point)
			s.stopped()
		})
	}
}
