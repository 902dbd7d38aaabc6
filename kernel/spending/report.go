package spending

import (
	"context"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Row is what the completions of one day, agent and model took together.
type Row struct {
	Day, Agent, Model string
	Sum
}

// Rows are the sums of the last days, today included, in the order of the days,
// and when the first of them began.
func (l *Ledger) Rows(ctx context.Context, days int) (rows []Row, from time.Time, err error) {
	if days < 1 || days > Kept {
		return nil, from, fmt.Errorf("%w: %d days: give 1 to %d", contract.ErrInvalid, days, Kept)
	}
	zone := l.directory.Current().Location
	first := l.now().In(zone).AddDate(0, 0, 1-days)
	from = time.Date(first.Year(), first.Month(), first.Day(), 0, 0, 0, 0, zone)
	err = l.bus.View(ctx, func(r journal.Reader) error {
		return scan(r, prefix, func(k key, s Sum) error {
			if k.day >= first.Format(time.DateOnly) {
				rows = append(rows, Row{k.day, k.agent, k.model, s})
			}
			return nil
		})
	})
	return rows, from, err
}
