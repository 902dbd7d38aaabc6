package fair

import (
	"testing"
	"testing/synctest"
	"time"
)

// sized is the size of every commit.
func sized(size int) func(int) int { return func(int) int { return size } }

// entering counts the commits of an extension that found room.
func entering(s *Share, id string, n, size int) func() int {
	entered := make(chan struct{}, n)
	for range n {
		go func() {
			s.Enter(id, 1, sized(size))
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
		s := NewShare()
		got := entering(s, "one", aloneCommits+10, 100)
		if n := got(); n != aloneCommits {
			t.Errorf("%d commits are on their way", n)
		}
		for range 5 {
			s.Leave("one", 1, 100, 0, 0)
		}
		if n := got(); n != aloneCommits+5 {
			t.Errorf("after five are done, %d have found room", n)
		}
		for range aloneCommits {
			s.Leave("one", 1, 100, 0, 0)
		}
		if n := got(); n != aloneCommits+10 || len(s.users) != 1 {
			t.Errorf("in the end %d have found room", n)
		}
		for range 5 {
			s.Leave("one", 1, 100, 0, 0)
		}
	})
}

func TestExtensionSharesWithOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewShare()
		s.Note("other")
		flood := entering(s, "flood", 5000, 100)
		if n := flood(); n != sharedCommits {
			t.Errorf("%d commits of the flood are on their way", n)
		}
		if n := entering(s, "other", 1, 100)(); n != 1 {
			t.Error("the other one has to wait for the flood")
		}
		time.Sleep(2 * recent)
		s.Leave("flood", 1, 100, 0, 0) // the other one has been silent for a while
		if n := flood(); n <= sharedCommits+1 {
			t.Errorf("alone again, %d commits have found room", n)
		}
		s.Leave("other", 1, 100, 0, 0)
		for range 5000 {
			if flood(); s.users["flood"] != nil {
				s.Leave("flood", 1, 100, 0, 0)
			}
		}
	})
}

func TestLargeCommitsCountByTheirSize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewShare()
		s.Note("other")
		flood := entering(s, "flood", 3, 1<<20)
		if n := flood(); n != 1 {
			t.Errorf("%d commits of a megabyte are on their way beside others", n)
		}
		for want := 2; want <= 3; want++ {
			s.Leave("flood", 1, 1<<20, 0, 0)
			if n := flood(); n != want {
				t.Errorf("%d have found room, not %d", n, want)
			}
		}
		s.Leave("flood", 1, 1<<20, 0, 0)
	})
}

// With a slow disk the others wait for that, and small groups would make it
// slower still.
func TestShareGrowsWithTheTimeOfTheDisk(t *testing.T) {
	t.Parallel()
	s := NewShare()
	s.Note("other")
	for range 100 {
		s.Enter("slow", 1, sized(1))
		s.Leave("slow", 1, 1, time.Microsecond, 100*time.Millisecond)
	}
	if w := s.window("slow", time.Now()); w < 500 {
		t.Errorf("it may have %d commits on their way", w)
	}
}

// Long commits hold everybody up: beside others, they have to be rare.
func TestLongCommitsAreRareBesideOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewShare()
		begin, long := time.Now(), 0
		for time.Since(begin) < 10*time.Second {
			s.Note("other")
			s.Enter("heavy", 1, sized(1<<20))
			time.Sleep(10 * time.Millisecond)
			s.Leave("heavy", 1, 1<<20, 10*time.Millisecond, 0)
			long++
		}
		if long < 5 || long > 50 {
			t.Errorf("it made %d commits of ten milliseconds in ten seconds", long)
		}
		// Small ones are not held up.
		begin = time.Now()
		for range 1000 {
			s.Note("other")
			s.Enter("light", 1, sized(300))
			time.Sleep(500 * time.Microsecond)
			s.Leave("light", 1, 300, 50*time.Microsecond, 0)
		}
		if took := time.Since(begin); took > 510*time.Millisecond {
			t.Errorf("a thousand small commits took %s", took)
		}
	})
}
