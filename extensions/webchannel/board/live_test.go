package board

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// TestManyPagesCostWhatOneCosts opens 200 pages while much happens.
func TestManyPagesCostWhatOneCosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		l := s.board.live
		s.follow = make(chan *busv1.Event)
		const pages = 200
		all, got := make([]*follower, pages), make([]int, pages)
		for i := range all {
			all[i] = &follower{view: view{[]string{"", "ru"}[i%2], time.UTC}, next: make(chan []byte, 1)}
			l.join(all[i])
		}
		collect := func() {
			synctest.Wait()
			for i, f := range all {
				select {
				case <-f.next:
					got[i]++
				default:
				}
			}
		}
		collect()
		begun := time.Now()
		n := 0
		for time.Since(begun) < 4*time.Second { // 100 events a second, each of which changes the board
			s.mu.Lock()
			s.status = &adminv1.Status{Waiting: []*adminv1.Subscription{{Extension: "x", Deliveries: int32(n)}}}
			s.mu.Unlock()
			s.follow <- &busv1.Event{}
			collect()
			time.Sleep(10 * time.Millisecond)
			n++
		}
		for i := range got {
			if got[i] < 7 || got[i] > 10 {
				t.Fatalf("page %d got %d updates in 4 seconds", i, got[i])
			}
		}
		s.mu.Lock()
		if s.statuses > 10 {
			t.Errorf("the status was read %d times for %d pages", s.statuses, pages)
		}
		s.statuses = 0
		s.mu.Unlock()
		// Nothing happens: the board is read now and then, and no page gets what it has.
		time.Sleep(time.Second)
		collect()
		clear(got)
		time.Sleep(time.Minute)
		collect()
		s.mu.Lock()
		if got[0] != 0 || s.statuses > 15 {
			t.Errorf("at rest: %d updates, %d reads in a minute", got[0], s.statuses)
		}
		s.statuses = 0
		s.mu.Unlock()
		// No page is open: nothing is read.
		for _, f := range all {
			l.leave(f)
		}
		time.Sleep(time.Minute)
		if s.statuses != 0 {
			t.Errorf("no page is open, and the status was read %d times", s.statuses)
		}
	})
}

func TestThePageFollowsTheKernel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.follow = make(chan *busv1.Event)
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "GET", "/live/board", nil)
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() {
			defer close(done)
			q := s.board.request(r)
			q.v = anna
			s.board.live.serve(w, q)
		}()
		synctest.Wait()
		s.mu.Lock()
		s.err = contract.ErrGone
		s.mu.Unlock()
		time.Sleep(2 * liveIdle)
		s.mu.Lock()
		s.err = nil
		s.mu.Unlock()
		time.Sleep(liveAlive)
		cancel()
		<-done
		body := w.Body.String()
		if w.Header().Get("Content-Type") != "text/event-stream; charset=utf-8" || strings.Count(body, "event: board\n") != 3 ||
			!strings.Contains(body, "The kernel doesn") || !strings.Contains(body, ": alive\n") {
			t.Errorf("%v\n%s", w.Header(), body)
		}
		for line := range strings.Lines(body) {
			if line != "\n" && !strings.HasPrefix(line, "data: ") && line != "event: board\n" && line != "retry: 2000\n" &&
				line != ": alive\n" {
				t.Errorf("a line that is no part of an event: %q", line)
			}
		}
	})
}
