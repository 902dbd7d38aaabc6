package models_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/switchboard-run/switchboard/kernel/models"
)

// hall records who acquired a slot, in order.
type hall struct {
	t     *testing.T
	slots models.Slots
	mu    sync.Mutex // several may come at once
	came  []string
	leave map[string]func()
}

// asks acquires one of two slots, for a key.
func (h *hall) asks(ctx context.Context, name, key string) {
	h.t.Helper()
	go func() {
		leave, err := h.slots.Acquire(ctx, key, 2)
		if err != nil {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.came, h.leave[name] = append(h.came, name), leave
	}()
	synctest.Wait()
}

func (h *hall) leaves(name string) { h.leave[name](); synctest.Wait() }

func (h *hall) wants(names ...string) {
	h.t.Helper()
	if !slices.Equal(h.came, names) {
		h.t.Fatalf("in came %v, want %v", h.came, names)
	}
}

func newHall(t *testing.T) *hall { return &hall{t: t, leave: map[string]func(){}} }

func TestSlotsAreGivenInOrderOfArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		for i := range 6 {
			h.asks(t.Context(), fmt.Sprint(i), fmt.Sprint("s", i))
		}
		h.wants("0", "1")
		h.leaves("1")
		h.leaves("0")
		h.wants("0", "1", "2", "3")
		h.leaves("2")
		h.leaves("2") // only once
		h.wants("0", "1", "2", "3", "4")
		if waiting, taken := h.slots.Counts(); waiting != 1 || taken != 2 {
			t.Errorf("%d wait and %d have a slot", waiting, taken)
		}
		h.leaves("3")
		for _, name := range []string{"4", "5"} {
			h.leaves(name)
		}
		if waiting, taken := h.slots.Counts(); waiting != 0 || taken != 0 {
			t.Errorf("in the end %d wait and %d have a slot", waiting, taken)
		}
	})
}

// No session has two slots  while another one waits.
func TestKeysWithoutSlotComeFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		h.asks(t.Context(), "a1", "a")
		h.asks(t.Context(), "b1", "b")
		h.asks(t.Context(), "a2", "a")
		h.asks(t.Context(), "a3", "a")
		h.asks(t.Context(), "c1", "c")
		h.leaves("b1")
		h.wants("a1", "b1", "c1")
		h.leaves("c1") // nobody else waits: it may have the second one
		h.wants("a1", "b1", "c1", "a2")
	})
}

func TestACanceledWaiterLeavesTheQueueAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		h.asks(t.Context(), "a", "a")
		h.asks(t.Context(), "b", "b")
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		failed := make(chan error, 1)
		go func() {
			_, err := h.slots.Acquire(ctx, "c", 2)
			failed <- err
		}()
		synctest.Wait()
		h.asks(t.Context(), "d", "d")
		cancel(stopped)
		if err := <-failed; !errors.Is(err, stopped) {
			t.Errorf("it ended with %v", err)
		}
		if waiting, _ := h.slots.Counts(); waiting != 1 {
			t.Errorf("%d wait", waiting)
		}
		h.leaves("a")
		h.wants("a", "b", "d")
	})
}

// A limit that is raised lets in who waits; none lets in everybody.
func TestTheLimitMayChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		for i := range 5 {
			h.asks(t.Context(), fmt.Sprint(i), fmt.Sprint("s", i))
		}
		leave, err := h.slots.Acquire(t.Context(), "x", 0)
		synctest.Wait()
		if err != nil || len(h.came) != 5 {
			t.Fatalf("in came %v: %v", h.came, err)
		}
		leave()
	})
}
