package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// crashAt starts the shop, ready to be killed at a commit: "before 7" is when
// the 7th since the first message has been applied and is not on disk, "after 7"
// when it is on disk and nobody was told.
func (s *shop) crashAt(point, from, victim string) {
	s.t.Helper()
	s.env["SWITCHBOARD_CRASH"], s.env["SWITCHBOARD_CRASH_FROM"], s.env["SWITCHBOARD_CRASH_VICTIM"] = point, from, victim
	s.open()
	delete(s.env, "SWITCHBOARD_CRASH")
}

// crashed waits until the kernel has killed itself, or until there is nothing
// left at which it could.
func (s *shop) crashed(tokens ...string) bool {
	s.t.Helper()
	below := descendants(s.t, s.kernel.pid())
	ended := func() bool {
		select {
		case <-s.kernel.ended:
			return true
		default:
			return false
		}
	}
	s.eventually("the crash", func() bool { return ended() || s.answeredAll(tokens) && len(s.pending()) == 0 })
	if !ended() {
		return false
	}
	s.gone(below)
	s.leeway.add(s.frozen())
	return true
}

// commits runs a turn whole and returns what each of its commits did.
func commits(t *testing.T, run func(*shop)) []string {
	t.Helper()
	s := newShop(t, "")
	trace := s.file("commits")
	s.env["SWITCHBOARD_CRASH_TRACE"], s.env["SWITCHBOARD_CRASH_FROM"] = trace, "user.message"
	run(s)
	return s.linesOf(trace)
}

// points are both sides of every commit; of fewer in a short run and with the
// race detector: every fourth, and some by chance.
func points(t *testing.T, n int) []string {
	t.Helper()
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("before %d", i+1), fmt.Sprintf("after %d", i+1))
	}
	if !testing.Short() && !raceDetector {
		return all
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var some []string
	for i, p := range all {
		if i%8 == 0 || random.IntN(10) == 0 {
			some = append(some, p)
		}
	}
	return some
}

func TestTurnSurvivesACrashOfTheKernelAtEveryCommit(t *testing.T) {
	t.Parallel()
	did := commits(t, func(s *shop) {
		s.open()
		s.write("<c0m0>")
		s.survived("<c0m0>")
		if n := s.model.Total(); n != 4 {
			t.Errorf("the model was asked %d times", n)
		}
	})
	t.Logf("commits of the turn:\n%s", strings.Join(did, "\n"))
	for _, point := range points(t, len(did)) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, "")
			s.crashAt(point, "user.message", "")
			s.write("<c0m0>")
			if s.crashed("<c0m0>") {
				s.open()
			} else {
				t.Logf("this turn had fewer commits")
			}
			s.survived("<c0m0>")
		})
	}
}
