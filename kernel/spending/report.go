package spending

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Ways to group what was spent.
const (
	ByDay     = "day"
	ByAgent   = "agent"
	ByModel   = "model"
	BySession = "session" // from the events, as long as those are kept
)

// Row is one line of a report: its name is a day, an agent, a model or a session.
type Row struct {
	Name string
	Sum
}

// Report is what was spent on the last days, today included: days in order,
// anything else by tokens.
func (l *Ledger) Report(ctx context.Context, by string, days int) ([]Row, error) {
	if days < 1 || days > Kept {
		return nil, fmt.Errorf("%w: %d days: give 1 to %d", contract.ErrInvalid, days, Kept)
	}
	zone := l.directory.Current().Location
	first := l.now().In(zone).AddDate(0, 0, 1-days)
	sums := map[string]Sum{}
	err := l.bus.View(ctx, func(r journal.Reader) error {
		if by == BySession {
			return bySession(r, time.Date(first.Year(), first.Month(), first.Day(), 0, 0, 0, 0, zone), sums)
		}
		name := map[string]func(key) string{
			ByDay: func(k key) string { return k.day }, ByAgent: func(k key) string { return k.agent }, ByModel: func(k key) string { return k.model },
		}[by]
		if name == nil {
			return fmt.Errorf("%w: by %q: give %s, %s, %s or %s", contract.ErrInvalid, by, ByDay, ByAgent, ByModel, BySession)
		}
		return scan(r, prefix, func(k key, s Sum) error {
			if k.day >= first.Format(time.DateOnly) {
				sums[name(k)] = sums[name(k)].plus(s)
			}
			return nil
		})
	})
	rows := make([]Row, 0, len(sums))
	for _, n := range slices.Sorted(maps.Keys(sums)) {
		rows = append(rows, Row{n, sums[n]})
	}
	if by != ByDay {
		slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(b.Input+b.Output, a.Input+a.Output) })
	}
	return rows, err
}

// bySession adds up the events from a moment on.
func bySession(r journal.Reader, from time.Time, sums map[string]Sum) error {
	for before := int64(0); ; {
		events, err := r.Events(journal.EventFilter{Topic: contract.TopicModelUsage, Before: before, Limit: chunk})
		if err != nil {
			return err
		}
		for _, e := range events {
			before = e.GetSeq()
			if e.GetCreatedAtUs() < from.UnixMicro() {
				return nil
			}
			var u contract.ModelUsage
			if err := json.Unmarshal(e.GetPayload(), &u); err != nil {
				return fmt.Errorf("event %s: %w", e.GetId(), err)
			}
			name := cmp.Or(u.Session, u.Agent)
			s := sums[name]
			s.add(u)
			sums[name] = s
		}
		if len(events) < chunk {
			return nil
		}
	}
}
