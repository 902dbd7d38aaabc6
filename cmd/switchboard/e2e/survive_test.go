package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/internal/seed"
)

// crashAt starts the shop, ready to be killed at a commit: "before 7" is when
// the 7th since the first message has been applied and is not on disk, "after 7"
// when it is on disk and not yet reported. Later kernels crash at the
// other points, counted from their start.
func (s *shop) crashAt(point string, then ...string) {
	s.t.Helper()
	s.env["SWITCHBOARD_CRASH"], s.env["SWITCHBOARD_CRASH_FROM"] = point, "user.message"
	s.then = then
	s.open()
	s.watch()
}

// watch records the processes that must end after a crash.
func (s *shop) watch() {
	s.t.Helper()
	for _, p := range descendants(s.t, s.kernel.pid()) {
		if !slices.Contains(s.below, p) {
			s.below = append(s.below, p)
		}
	}
}

// revive starts a kernel if the running one has killed itself.
func (s *shop) revive() {
	s.t.Helper()
	select {
	case <-s.kernel.ended:
		s.gone(s.below)
		s.leeway.add(s.frozen())
		delete(s.env, "SWITCHBOARD_CRASH")
		delete(s.env, "SWITCHBOARD_CRASH_FROM")
		if s.anew = len(s.then) > 0; s.anew {
			s.env["SWITCHBOARD_CRASH"], s.then = s.then[0], s.then[1:]
		}
		s.below = nil
		s.launch()
	default:
	}
}

// reaches waits for something, over the crash if it comes meanwhile.
func (s *shop) reaches(what string, done func() bool) {
	s.t.Helper()
	s.eventually(what, func() bool {
		s.revive()
		return done()
	})
}

// over waits until nothing is left to do.
func (s *shop) over(tokens ...string) {
	s.t.Helper()
	s.reaches("the end", func() bool { return s.answeredAll(tokens) && len(s.pending()) == 0 })
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

// points are places to crash at among n commits: of each commit one of its two
// sides, as chance chooses.
func points(t *testing.T, n int) []string { t.Helper(); return fewerPoints(t, n, 2) }

// fewerPoints is one of so many sides of commits that follow each other. In a
// short run and with the race detector there are fewer; all of them if
// SWITCHBOARD_CRASH_POINTS is "all".
func fewerPoints(t *testing.T, n, each int) (chosen []string) {
	t.Helper()
	if testing.Short() || raceDetector {
		each *= 4
	}
	if os.Getenv("SWITCHBOARD_CRASH_POINTS") == "all" {
		each = 1
	}
	random := seed.Rand(t)
	for i := 0; i < 2*n; i += each {
		k := min(i+random.IntN(each), 2*n-1)
		chosen = append(chosen, fmt.Sprint([]string{"before ", "after "}[k%2], 1+k/2))
	}
	return chosen
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
	if len(did) > 22 {
		t.Errorf("the turn took %d commits", len(did))
	}
	for _, point := range points(t, len(did)) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, "")
			s.crashAt(point)
			s.write("<c0m0>")
			s.over("<c0m0>")
			s.survived("<c0m0>")
		})
	}
}

func TestTurnSurvivesACrashWhileItIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	random := seed.Rand(t)
	for i := range 4 {
		first := fmt.Sprint([]string{"before ", "after "}[i%2], 2+random.IntN(16))
		var then []string
		for range 3 {
			then = append(then, fmt.Sprint([]string{"before ", "after "}[random.IntN(2)], 1+random.IntN(12)))
		}
		t.Run(fmt.Sprint(first, then), func(t *testing.T) {
			t.Parallel()
			s := newShop(t, "")
			s.crashAt(first, then...)
			s.write("<c0m0>")
			s.over("<c0m0>")
			s.survived("<c0m0>")
		})
	}
}
