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
	counterKey = "counter" // the highest number used in an id

	// keepFinished is how long a finished schedule stays visible.
	keepFinished = 7 * 24 * time.Hour
)

func rowKey(id string) string { return rowPrefix + id }

// row is a stored schedule.
type row struct {
	schedule.Schedule
	version int64
}

// load sets the time to check each row. It retries until it succeeds, and
// reports false if ctx ended.
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
		s.log.Error("cannot read schedules, will retry", "error", err, "retry_in", wait.String())
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
		return fmt.Errorf("read id counter: %w", err)
	}
	if counter.Version != 0 {
		n, err := strconv.ParseInt(string(counter.Value), 10, 64)
		if err != nil {
			s.log.Error("the id counter is damaged, using the highest stored id", "value", string(counter.Value))
		}
		s.numberUsed(n)
	}
	rows := 0
	err = s.k.Scan(ctx, rowPrefix, func(v sdk.Value) error {
		id := strings.TrimPrefix(v.Key, rowPrefix)
		if n, err := strconv.ParseInt(strings.TrimPrefix(id, "r"), 10, 64); err == nil {
			s.numberUsed(n)
		}
		if r, err := s.decode(v); err == nil {
			rows++
			s.watch(r.Schedule)
			if _, moved := r.Realign(s.started); moved {
				s.clock.Set(id, s.started)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read schedules: %w", err)
	}
	s.log.Debug("schedules loaded", "count", rows)
	return nil
}

// watch sets the time of a schedule's next check.
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

// decode reads a row and records whether it is readable.
func (s *scheduler) decode(v sdk.Value) (row, error) {
	id := strings.TrimPrefix(v.Key, rowPrefix)
	sc, err := schedule.Decode(v.Value)
	if err == nil && sc.ID != id {
		err = fmt.Errorf("decode schedule: wrong id %q", sc.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if s.unreadable[id] != err.Error() {
			s.log.Error("a schedule is damaged and will not fire: cancel it to remove it", "id", id, "error", err)
		}
		s.unreadable[id] = err.Error()
		return row{version: v.Version}, err
	}
	delete(s.unreadable, id)
	return row{sc, v.Version}, nil
}

// seenBy returns whether a call may see and change a schedule.
func seenBy(c sdk.ToolCall) func(schedule.Schedule) bool {
	return func(sc schedule.Schedule) bool { return c.Principal.Sees(sc.Principal) }
}

// find reads the row with the id that a caller gave, if the call may see it.
func (s *scheduler) find(ctx context.Context, c sdk.ToolCall, id string) (row, error) {
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
		return row{}, s.unknown(ctx, c, id)
	}
	r, err := s.decode(v)
	if !seenBy(c)(r.Schedule) || err != nil && !c.Principal.SeesOwners() {
		return row{}, s.unknown(ctx, c, id)
	}
	if err != nil {
		return r, fmt.Errorf("read schedule %s: %w: to remove it, use cancel_schedule", id, err)
	}
	return r, nil
}

// unknown is a contract.ErrNotFound with a text for people.
type unknown string

func (u unknown) Error() string        { return string(u) }
func (u unknown) Is(target error) bool { return target == contract.ErrNotFound }

func (s *scheduler) unknown(ctx context.Context, c sdk.ToolCall, id string) error {
	rows, err := s.all(ctx, c, func(sc schedule.Schedule) bool { return !sc.Finished() && sc.Owner == "" })
	if err != nil || len(rows) == 0 {
		return unknown(fmt.Sprintf("there is no schedule %q: nothing is scheduled", id))
	}
	var ids []string
	for _, r := range rows[:min(len(rows), 20)] {
		ids = append(ids, r.ID)
	}
	return unknown(fmt.Sprintf("there is no schedule %q: use one of %s", id, strings.Join(ids, ", ")))
}

// all reads the rows that a call may see and that want accepts, the next due first.
func (s *scheduler) all(ctx context.Context, c sdk.ToolCall, want func(schedule.Schedule) bool) ([]row, error) {
	var rows []row
	sees := seenBy(c)
	err := s.k.Scan(ctx, rowPrefix, func(v sdk.Value) error {
		if r, err := s.decode(v); err == nil && sees(r.Schedule) && want(r.Schedule) {
			rows = append(rows, r)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
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

func (s *scheduler) numberUsed(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastNumber = max(s.lastNumber, n)
}

// newID returns an unused id and the effect that stores the counter.
func (s *scheduler) newID() (string, sdk.Effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastNumber++
	return "r" + strconv.FormatInt(s.lastNumber, 10), sdk.Put(counterKey, s.lastNumber)
}
