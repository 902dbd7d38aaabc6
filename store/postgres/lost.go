package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/switchboard-run/switchboard/store/commitlog"
)

// ReportLost notes that the cell's log lost entries that PostgreSQL had reported, up to a
// position: each owner of the epochs until now has to begin again, and the next one logs
// doubts.
func (l *Cell) ReportLost(ctx context.Context, at commitlog.Position) error {
	err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, `INSERT INTO lost (cell, epoch, head) SELECT id, epoch, $2 FROM cell WHERE id = $1
			ON CONFLICT (cell) DO UPDATE SET epoch = greatest(lost.epoch, excluded.epoch), head = greatest(lost.head, $2)`+
			notify, l.id, at.Head)
		if err == nil && len(got.rows) == 0 {
			err = ErrNoCell
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("report that the log of the cell %s has lost commits: %w", l.name, err)
	}
	return nil
}

// Lost returns the position of ReportLost that no owner has logged doubts about; nil: there
// is none.
func (l *Cell) Lost(ctx context.Context) (at *commitlog.Position, err error) {
	err = l.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, "SELECT head FROM lost WHERE cell = $1", l.id)
		if err == nil && len(got.rows) > 0 {
			at = &commitlog.Position{Head: got.rows[0].int(0)}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what the log of the cell %s has lost: %w", l.name, err)
	}
	return at, nil
}

// Doubted removes what ReportLost noted before a tenure, which has logged doubts.
func (l *Cell) Doubted(ctx context.Context, t commitlog.Tenure) error {
	err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, "DELETE FROM lost WHERE cell = $1 AND epoch < $2", l.id, t.State().Epoch)
		if errors.Is(err, errWarned) {
			err = nil // doubts that are logged again do no harm
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("note that the doubts of the cell %s are logged: %w", l.name, err)
	}
	return nil
}
