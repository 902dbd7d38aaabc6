package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
)

// PutSnapshot implements commitlog.Log. Earlier snapshots stay: see Keep.
func (l *Cell) PutSnapshot(ctx context.Context, t commitlog.Tenure, at commitlog.Position, r io.Reader) error {
	u, err := l.upload(ctx, r, fence(t.State()))
	if err == nil {
		err = l.database.with(ctx, func(ctx context.Context, c *conn) error {
			done, err := c.exec(ctx, `WITH f AS (UPDATE cell SET snapshot = $2, snapshot_head = $3, snapshot_hash = $4
				WHERE id = $1 AND snapshot < $2 AND `+fence(t.State())+` RETURNING id)
				INSERT INTO snapshots (cell, id, head, hash, size) SELECT $1, $2, $3, $4, $5 FROM f`,
				l.id, u.ID, at.Head, at.Hash[:], u.Size)
			if err == nil && done.affected == 0 {
				err = errFenced(t.State())
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("store a snapshot of the cell %s: %w", l.name, err)
	}
	return nil
}

// Upload implements commitlog.Log.
func (l *Cell) Upload(ctx context.Context, r io.Reader) (commitlog.Upload, error) {
	u, err := l.upload(ctx, r, "true")
	if err != nil {
		err = fmt.Errorf("store a state of the cell %s: %w", l.name, err)
	}
	return u, err
}

// Replace implements commitlog.Log.
func (l *Cell) Replace(_ context.Context, t commitlog.Tenure, e commitlog.Entry, u commitlog.Upload) error {
	own := ownTenure(t)
	if own == nil {
		return fmt.Errorf("replace the state of the cell %s: the tenure is not one of PostgreSQL", l.name)
	}
	if err := commitlog.Append(own.ctx, replacement{steps{own}, u}, e); err != nil {
		return fmt.Errorf("replace the state of the cell %s: %w", l.name, err)
	}
	return nil
}

// replacement appends an entry together with its snapshot.
type replacement struct {
	steps
	commitlog.Upload
}

// TryAppend implements commitlog.Steps.
func (s replacement) TryAppend(e commitlog.Entry) error {
	previous := e.Previous[:]
	if e.Position == 1 {
		previous = []byte{}
	}
	return s.cell.database.with(s.ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, `WITH f AS (
			UPDATE cell SET head = head + 1, hash = $6, schema = $8, first = greatest(first, 1), snapshot = $9,
				snapshot_head = head + 1, snapshot_hash = $6
			WHERE id = $1 AND epoch = $2 AND incarnation = $3 AND head = $4 AND hash = $5
				AND (SELECT count(*) FROM snapshot p WHERE p.cell = $1 AND p.id = $9) = $11 RETURNING head
		), s AS (INSERT INTO snapshots (cell, id, head, hash, size) SELECT $1, $9, head, $6, $10 FROM f)
		INSERT INTO log SELECT $1, head, $7 FROM f`, s.cell.id, e.Epoch, e.Incarnation[:], e.Position-1, previous,
			e.Hash[:], e.Encode(), e.Schema, s.ID, s.Size, s.Parts)
		if err == nil && got.affected != 1 {
			err = errors.New("nothing was appended: the log does not stand where this node left it")
		}
		return err
	})
}

// upload stores the parts of a state that is not published yet, and compares what the
// server has stored with what was read. It holds no connection while it reads, which may be
// slow.
func (l *Cell) upload(ctx context.Context, r io.Reader, condition string) (u commitlog.Upload, err error) {
	err = l.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, "UPDATE cell SET uploads = uploads + 1 WHERE id = $1 AND "+condition+" RETURNING uploads",
			l.id)
		if err == nil && len(got.rows) == 0 {
			err = fmt.Errorf("%w: another node has the cell", journal.ErrFenced)
		}
		if err != nil {
			return err
		}
		u.ID = got.rows[0].int(0)
		return nil
	})
	if err != nil {
		return u, err
	}
	return u, inParts(r, func(part int, b []byte) error {
		u.Size += int64(len(b))
		u.Parts++
		sum := sha256.Sum256(b)
		return l.database.with(ctx, func(ctx context.Context, c *conn) error {
			_, err := c.exec(ctx, "INSERT INTO snapshot VALUES ($1, $2, $3, $4)", l.id, u.ID, part, b)
			var got result
			if err == nil {
				got, err = c.exec(ctx, "SELECT sha256(bytes) FROM snapshot WHERE cell = $1 AND id = $2 AND part = $3",
					l.id, u.ID, part)
			}
			if err == nil && (len(got.rows) == 0 || !bytes.Equal(got.rows[0][0], sum[:])) {
				err = fmt.Errorf("%w: part %d was not stored as it was sent", commitlog.ErrBroken, part)
			}
			return err
		})
	})
}

// Snapshot implements commitlog.Log.
func (l *Cell) Snapshot(ctx context.Context) (commitlog.Position, io.ReadCloser, error) {
	return l.SnapshotAt(ctx, 1<<62)
}

// SnapshotAt opens the newest snapshot that is not after a position.
func (l *Cell) SnapshotAt(ctx context.Context, position int64) (at commitlog.Position, r io.ReadCloser, err error) {
	var id, count int64
	err = l.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, `SELECT id, head, hash,
			(SELECT count(*) FROM snapshot p WHERE p.cell = s.cell AND p.id = s.id)
			FROM snapshots s WHERE cell = $1 AND head <= $2 ORDER BY id DESC LIMIT 1`, l.id, position)
		if err == nil && len(got.rows) == 0 {
			err = commitlog.ErrNone
		}
		if err == nil {
			id, at.Head, count = got.rows[0].int(0), got.rows[0].int(1), got.rows[0].int(3)
			copy(at.Hash[:], got.rows[0][2])
		}
		return err
	})
	if err != nil {
		return at, nil, fmt.Errorf("open the snapshot of the cell %s: %w", l.name, err)
	}
	return at, &parts{count: int(count), next: func(part int) ([]byte, error) {
		return l.part(ctx, "SELECT bytes FROM snapshot WHERE cell = $1 AND id = $2 AND part = $3", l.id, id, part)
	}}, nil
}

// Kept describes a published snapshot.
type Kept struct {
	Head, Size int64
	Age        time.Duration // on the server's clock
}

// Snapshots lists the published snapshots, the newest first.
func (l *Cell) Snapshots(ctx context.Context) (all []Kept, err error) {
	err = l.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, "SELECT head, size, "+
			"(extract(epoch FROM clock_timestamp() - made) * 1000000)::bigint FROM snapshots "+
			"WHERE cell = $1 ORDER BY id DESC", l.id)
		for _, r := range got.rows {
			all = append(all, Kept{r.int(0), r.int(1), time.Duration(r.int(2)) * time.Microsecond})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the snapshots of the cell %s: %w", l.name, err)
	}
	return all, nil
}

// Keep removes the snapshots and entries that no restore to a point within the window
// needs: those before the newest snapshot that is older than the window, and uploads that
// were never published for a day.
func (l *Cell) Keep(ctx context.Context, t commitlog.Tenure, window time.Duration) error {
	var oldest row
	err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, `SELECT id, head FROM snapshots WHERE cell = $1 AND id >= coalesce((SELECT max(id)
			FROM snapshots WHERE cell = $1 AND made <= now() - $2 * interval '1 microsecond'), 0) ORDER BY id LIMIT 1`,
			l.id, window.Microseconds())
		if err != nil || len(got.rows) == 0 {
			return err
		}
		oldest = got.rows[0]
		_, err = c.exec(ctx, `WITH old AS (DELETE FROM snapshots WHERE cell = $1 AND id < $2 AND EXISTS
				(SELECT 1 FROM cell WHERE id = $1 AND `+fence(t.State())+`) RETURNING id)
			DELETE FROM snapshot WHERE cell = $1 AND (id IN (SELECT id FROM old)
				OR id NOT IN (SELECT id FROM snapshots WHERE cell = $1) AND stored < now() - interval '1 day')`,
			l.id, oldest.int(0))
		return err
	})
	if err != nil {
		return fmt.Errorf("remove old snapshots of the cell %s: %w", l.name, err)
	}
	if oldest == nil {
		return nil
	}
	return l.Truncate(ctx, t, oldest.int(1))
}
