package bus

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
)

// sized is a commit of about a size.
func sized(size int) []*busv1.Commit {
	p := &busv1.Publish{Payload: make([]byte, max(0, size-64))}
	return []*busv1.Commit{{Effects: []*busv1.Effect{{Kind: &busv1.Effect_Publish{Publish: p}}}}}
}

// entering counts the commits of an extension that found room.
func entering(s *share, id string, n, size int) func() int {
	entered := make(chan struct{}, n)
	for range n {
		go func() {
			s.enter(id, sized(size))
			entered <- struct{}{}
		}()
	}
	return func() int {
		synctest.Wait()
		return len(entered)
	}
}

func TestExtensionThatIsAloneMayHaveMuch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShare()
		got := entering(s, "one", aloneCommits+10, 100)
		if n := got(); n != aloneCommits {
			t.Errorf("%d commits are on their way", n)
		}
		for range 5 {
			s.leave("one", 1, 100, 0, 0)
		}
		if n := got(); n != aloneCommits+5 {
			t.Errorf("after five are done, %d have found room", n)
		}
		for range aloneCommits {
			s.leave("one", 1, 100, 0, 0)
		}
		if n := got(); n != aloneCommits+10 || len(s.users) != 1 {
			t.Errorf("in the end %d have found room", n)
		}
		for range 5 {
			s.leave("one", 1, 100, 0, 0)
		}
	})
}

func TestExtensionSharesWithOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShare()
		s.seen("other")
		flood := entering(s, "flood", 5000, 100)
		if n := flood(); n != sharedCommits {
			t.Errorf("%d commits of the flood are on their way", n)
		}
		if n := entering(s, "other", 1, 100)(); n != 1 {
			t.Error("the other one has to wait for the flood")
		}
		time.Sleep(2 * recently)
		s.leave("flood", 1, 100, 0, 0) // the other one has been silent for a while
		if n := flood(); n <= sharedCommits+1 {
			t.Errorf("alone again, %d commits have found room", n)
		}
		s.leave("other", 1, 100, 0, 0)
		for range 5000 {
			if flood(); s.users["flood"] != nil {
				s.leave("flood", 1, 100, 0, 0)
			}
		}
	})
}

func TestLargeCommitsCountByTheirSize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShare()
		s.seen("other")
		flood := entering(s, "flood", 3, 1<<20)
		if n := flood(); n != 1 {
			t.Errorf("%d commits of a megabyte are on their way beside others", n)
		}
		for want := 2; want <= 3; want++ {
			s.leave("flood", 1, 1<<20, 0, 0)
			if n := flood(); n != want {
				t.Errorf("%d have found room, not %d", n, want)
			}
		}
		s.leave("flood", 1, 1<<20, 0, 0)
	})
}

// With a slow disk the others wait for that, and small groups would make it
// slower still.
func TestShareGrowsWithTheTimeOfTheDisk(t *testing.T) {
	t.Parallel()
	s := newShare()
	s.seen("other")
	for range 100 {
		s.enter("slow", sized(1))
		s.leave("slow", 1, 1, time.Microsecond, 100*time.Millisecond)
	}
	if w := s.window("slow", time.Now()); w < 500 {
		t.Errorf("it may have %d commits on their way", w)
	}
}

// Long commits hold everybody up: beside others, they have to be rare.
func TestLongCommitsAreRareBesideOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShare()
		begin, long := time.Now(), 0
		for time.Since(begin) < 10*time.Second {
			s.seen("other")
			s.enter("heavy", sized(1<<20))
			time.Sleep(10 * time.Millisecond)
			s.leave("heavy", 1, 1<<20, 10*time.Millisecond, 0)
			long++
		}
		if long < 5 || long > 50 {
			t.Errorf("it made %d commits of ten milliseconds in ten seconds", long)
		}
		// Small ones are not held up.
		begin = time.Now()
		for range 1000 {
			s.seen("other")
			s.enter("light", sized(300))
			time.Sleep(500 * time.Microsecond)
			s.leave("light", 1, 300, 50*time.Microsecond, 0)
		}
		if took := time.Since(begin); took > 510*time.Millisecond {
			t.Errorf("a thousand small commits took %s", took)
		}
	})
}
