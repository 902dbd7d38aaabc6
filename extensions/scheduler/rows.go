package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	rowPrefix  = "schedule/"
	counterKey = "counter" // the highest number ever given to an id

	// keepFinished is how long a finished schedule stays visible.
	keepFinished = 7 * 24 * time.Hour
)

func rowKey(id string) string { return rowPrefix + id }

// row is a schedule as it is stored now.
type row struct {
	schedule.Schedule
	version int64
}

// load finds out when to look at which row. It repeats until it succeeds; false
// means that ctx ended.
func (s *scheduler) load(ctx context.Context) bool {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		err := s.loadOnce(ctx)
		if err == nil {
			close(s.loaded)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		s.log.Error("reading the stored schedules failed", "error", err, "again_in", wait.String())
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
	}
}

func (s *scheduler) loadOnce(ctx context.Context) error {
	counter, err := s.k.Get(ctx, counterKey)
	if err != nil {
		return fmt.Errorf("read the counter of ids: %w", err)
	}
	if counter.Version != 0 {
		n, err := strconv.ParseInt(string(counter.Value), 10, 64)
		if err != nil {
			s.log.Error("the counter of ids cannot be read: counting from the stored schedules", "value", string(counter.Value))
		}
		s.noteNumber(n)
	}
	rows := 0
	err = s.k.Scan(ctx, rowPrefix, func(v sdk.Value) error {
		id := strings.TrimPrefix(v.Key, rowPrefix)
		if n, err := strconv.ParseInt(strings.TrimPrefix(id, "r"), 10, 64); err == nil {
			s.noteNumber(n)
		}
		if r, err := s.decode(v); err == nil {
			rows++
			s.watch(r.Schedule)
			if _, ahead := r.Realign(s.started); ahead {
				s.clock.Set(id, s.started)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("scan the stored schedules: %w", err)
	}
	s.log.Debug("schedules loaded", "count", rows)
	return nil
}

// watch sets when to look at a schedule next.
func (s *scheduler) watch(sc schedule.Schedule) {
	switch {
	case sc.State == schedule.Active && sc.Next != nil:
		s.clock.Set(sc.ID, *sc.Next)
	case sc.Finished():
		s.clock.Set(sc.ID, deleteAt(sc))
	default:
		s.clock.Remove(sc.ID)
	}
}

func deleteAt(sc schedule.Schedule) time.Time {
	if sc.FinishedAt == nil {
		return sc.CreatedAt.Add(keepFinished)
	}
	return sc.FinishedAt.Add(keepFinished)
}

// decode reads a row; one that cannot be read is remembered.
func (s *scheduler) decode(v sdk.Value) (row, error) {
	id := strings.TrimPrefix(v.Key, rowPrefix)
	sc, err := schedule.Decode(v.Value)
	if err == nil && sc.ID != id {
		err = fmt.Errorf("it says that it is %q", sc.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if s.unreadable[id] != err.Error() {
			s.log.Error("a stored schedule cannot be read and will not fire: cancel it to remove it", "id", id, "error", err)
		}
		s.unreadable[id] = err.Error()
		return row{version: v.Version}, err
	}
	delete(s.unreadable, id)
	return row{sc, v.Version}, nil
}

// find reads a row that a caller named.
func (s *scheduler) find(ctx context.Context, id string) (row, error) {
	if err := s.ready(ctx); err != nil {
		return row{}, err
	}
	id = strings.TrimPrefix(strings.TrimSpace(id), "#")
	if number, ok := strings.CutPrefix(id, "R"); ok {
		id = "r" + number
	}
	v, err := s.k.Get(ctx, rowKey(id))
	if err != nil {
		return row{}, fmt.Errorf("read schedule %s: %w", id, err)
	}
	if v.Version == 0 {
		return row{}, s.unknown(ctx, id)
	}
	r, err := s.decode(v)
	if err != nil {
		return r, fmt.Errorf("schedule %s cannot be read (%w): cancel_schedule removes it", id, err)
	}
	return r, nil
}

// unknown is a contract.ErrNotFound in a sentence for people.
type unknown string

func (u unknown) Error() string        { return string(u) }
func (u unknown) Is(target error) bool { return target == contract.ErrNotFound }

func (s *scheduler) unknown(ctx context.Context, id string) error {
	rows, err := s.all(ctx, func(sc schedule.Schedule) bool { return !sc.Finished() && sc.Owner == "" })
	if err != nil || len(rows) == 0 {
		return unknown(fmt.Sprintf("there is no schedule %q: none is active", id))
	}
	var ids []string
	for _, r := range rows[:min(len(rows), 20)] {
		ids = append(ids, r.ID)
	}
	return unknown(fmt.Sprintf("there is no schedule %q: active are %s", id, strings.Join(ids, ", ")))
}

// all reads the rows that are wanted, those due first in front.
func (s *scheduler) all(ctx context.Context, want func(schedule.Schedule) bool) ([]row, error) {
	var rows []row
	err := s.k.Scan(ctx, rowPrefix, func(v sdk.Value) error {
		if r, err := s.decode(v); err == nil && want(r.Schedule) {
			rows = append(rows, r)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("scan the stored schedules: %w", err)
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		switch {
		case a.Next != nil && b.Next != nil:
			return a.Next.Compare(*b.Next)
		case a.Next != nil:
			return -1
		case b.Next != nil:
			return 1
		default:
			return a.CreatedAt.Compare(b.CreatedAt)
		}
	})
	return rows, nil
}

func (s *scheduler) noteNumber(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastNumber = max(s.lastNumber, n)
}

// newID gives out an id that was never used, and the effect that keeps it so.
func (s *scheduler) newID() (string, sdk.Effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastNumber++
	return "r" + strconv.FormatInt(s.lastNumber, 10), sdk.Put(counterKey, s.lastNumber)
}
