//go:build crashpoints

package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/store/commitlog"
)

// Appended is called after each append, before its transaction is committed to the file.
// It is in test binaries only.
var Appended func()

// A spoiled log breaks its promises, to show that tests of several kernels would notice:
//
//	SWITCHBOARD_SPOIL_LOG  "fence": an append checks nothing, is sent until it
//	                       happens, and the lease never ends; "head": it does not check the
//	                       newest entry; "early": it is answered before it is sent; "plain":
//	                       an unknown outcome is resolved by a read; "alone": the group of
//	                       an unknown outcome is refused, as if nothing had been sent;
//	                       "lease": the lease never ends
func init() {
	spoil := os.Getenv("SWITCHBOARD_SPOIL_LOG")
	if spoil != "" && !slices.Contains([]string{"fence", "head", "early", "plain", "alone", "lease"}, spoil) {
		panic(fmt.Sprintf("SWITCHBOARD_SPOIL_LOG is %q", spoil))
	}
	if spoil == "lease" || spoil == "fence" {
		leaseEnd = func(sent time.Time) time.Time { return sent.Add(time.Hour) }
	}
	wrapTenure = func(t *tenure) commitlog.Tenure {
		s := &spoiledTenure{tenure: t, how: spoil}
		if spoil == "early" {
			s.late = make(chan commitlog.Entry, 1<<16)
			go s.appendLate()
		}
		return s
	}
}

type spoiledTenure struct {
	*tenure
	how  string
	late chan commitlog.Entry
}

// Append implements commitlog.Tenure.
func (t *spoiledTenure) Append(e commitlog.Entry) (err error) {
	switch t.how {
	case "early":
		t.late <- e
		return nil
	case "alone":
		if err := (steps{t.tenure}).TryAppend(e); err != nil {
			return fmt.Errorf("append entry %d: %s", e.Position, err) //nolint:errorlint // of another class
		}
	case "fence":
		for err = errFenced(t.state); err != nil && t.ctx.Err() == nil; pause(t.ctx, reconnectPause) {
			err = spoiledSteps{steps{t.tenure}, t.how}.TryAppend(e)
		}
	case "head", "plain":
		err = commitlog.Append(t.ctx, spoiledSteps{steps{t.tenure}, t.how}, e)
	default:
		err = t.tenure.Append(e)
	}
	if err == nil && Appended != nil {
		Appended()
	}
	return err
}

func (t *spoiledTenure) appendLate() {
	for e := range t.late {
		pause(t.ctx, 300*time.Millisecond)
		if t.tenure.Append(e) != nil {
			return
		}
	}
}

type spoiledSteps struct {
	steps
	how string
}

// TryAppend implements commitlog.Steps.
func (s spoiledSteps) TryAppend(e commitlog.Entry) error {
	fence := " AND epoch = $4 AND incarnation = $5"
	switch s.how {
	case "fence":
		fence = " AND ($4::bigint, $5::bytea) IS NOT NULL"
	case "plain":
		return s.steps.TryAppend(e)
	}
	var got result
	err := s.cell.database.with(s.ctx, func(ctx context.Context, c *conn) (err error) {
		got, err = c.exec(ctx, `WITH f AS (UPDATE switchboard.cell SET head = head + 1, hash = $2, schema = $6,
			first = greatest(first, 1) WHERE id = $1`+fence+` RETURNING head)
			INSERT INTO switchboard.log SELECT $1, head, $3 FROM f`, s.cell.id, e.Hash[:], e.Encode(), e.Epoch, e.Incarnation[:],
			e.Schema)
		return err
	})
	if err == nil && got.affected != 1 {
		err = errors.New("nothing was appended")
	}
	return err
}

// Settle implements commitlog.Steps.
func (s spoiledSteps) Settle(ctx context.Context, position int64) (commitlog.State, *commitlog.Entry, error) {
	if s.how != "plain" {
		return s.steps.Settle(ctx, position)
	}
	state, err := s.cell.Head(ctx)
	var there *commitlog.Entry
	if err == nil && state.Head >= position {
		err = s.cell.Read(ctx, position-1, func(e commitlog.Entry) error {
			if e.Position == position {
				there = &e
			}
			return nil
		})
	}
	return state, there, err
}
