package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/switchboard-run/switchboard/store/commitlog"
)

// partSize is how much of a snapshot or a file one row holds.
const partSize = 1 << 20

// inParts calls put for each part of what r reads: at least one.
func inParts(r io.Reader, put func(part int, bytes []byte) error) error {
	next := make([]byte, partSize)
	n, err := io.ReadFull(r, next)
	for part := 0; ; part++ {
		current := next[:n]
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		last := err != nil
		if !last {
			next = make([]byte, partSize)
			if n, err = io.ReadFull(r, next); errors.Is(err, io.EOF) {
				last = true
			}
		}
		if putErr := put(part, current); putErr != nil || last {
			return putErr
		}
	}
}

// parts reads what inParts has put, part by part.
type parts struct {
	next  func(part int) ([]byte, error) // nil bytes: there is no such part
	count int
	part  int
	rest  []byte
}

func (p *parts) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.part == p.count {
			return 0, io.EOF
		}
		bytes, err := p.next(p.part)
		switch {
		case err != nil:
			return 0, err
		case bytes == nil:
			return 0, errors.New("it was replaced or deleted while it was read: read it again")
		}
		p.part++
		p.rest = bytes
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (p *parts) Close() error { return nil }

// PutSnapshot implements commitlog.Log.
func (l *Cell) PutSnapshot(ctx context.Context, t commitlog.Tenure, at commitlog.Position, r io.Reader) error {
	err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, "UPDATE cell SET touched = touched + 1 WHERE id = $1 AND "+fence(t.State())+
			" RETURNING snapshot + touched", l.id)
		if err == nil && len(got.rows) == 0 {
			err = errFenced(t.State())
		}
		if err != nil {
			return err
		}
		id := got.rows[0].int(0)
		err = inParts(r, func(part int, bytes []byte) error {
			_, err := c.exec(ctx, "INSERT INTO snapshot VALUES ($1, $2, $3, $4)", l.id, id, part, bytes)
			return err
		})
		if err != nil {
			return err
		}
		done, err := c.exec(ctx, "UPDATE cell SET snapshot = $2, snapshot_head = $3, snapshot_hash = $4 WHERE id = $1 AND "+
			fence(t.State()), l.id, id, at.Head, append([]byte{}, at.Hash[:]...))
		if err == nil && done.affected == 0 {
			err = errFenced(t.State())
		}
		if err != nil {
			return err
		}
		_, err = c.exec(ctx, "DELETE FROM snapshot WHERE cell = $1 AND id < $2", l.id, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("store a snapshot of the cell %s: %w", l.name, err)
	}
	return nil
}

// Snapshot implements commitlog.Log.
func (l *Cell) Snapshot(ctx context.Context) (commitlog.Position, io.ReadCloser, error) {
	var at commitlog.Position
	var id, count int64
	err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, `SELECT snapshot, snapshot_head, snapshot_hash,
			(SELECT count(*) FROM snapshot WHERE snapshot.cell = cell.id AND snapshot.id = cell.snapshot)
			FROM cell WHERE id = $1`, l.id)
		if err == nil && (len(got.rows) == 0 || got.rows[0].int(0) == 0) {
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

// part reads the bytes of one row.
func (l *Cell) part(ctx context.Context, sql string, args ...any) (bytes []byte, err error) {
	err = l.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, sql, args...)
		if err == nil && len(got.rows) > 0 {
			bytes = append([]byte{}, got.rows[0][0]...)
		}
		return err
	})
	return bytes, err
}

// PutBlob implements commitlog.Blobs.
func (l *Cell) PutBlob(ctx context.Context, hash string, r io.Reader) error {
	sum := sha256.New()
	err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
		// Its locks are of this file alone, and what it reads may be slow.
		_, err := c.script(ctx, "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0")
		if err != nil {
			return err
		}
		_, err = c.exec(ctx, "DELETE FROM blob WHERE cell = $1 AND hash = $2", l.id, hash)
		if err == nil {
			err = inParts(io.TeeReader(r, sum), func(part int, bytes []byte) error {
				_, err := c.exec(ctx, "INSERT INTO blob VALUES ($1, $2, $3, $4)", l.id, hash, part, bytes)
				return err
			})
		}
		if got := hex.EncodeToString(sum.Sum(nil)); err == nil && got != hash {
			err = fmt.Errorf("%w: its bytes have the hash %s", commitlog.ErrBroken, got)
		}
		if err == nil {
			_, err = c.exec(ctx, "COMMIT")
		}
		return err // a connection that is in a transaction is not used again
	})
	if err != nil {
		return fmt.Errorf("store the file %s: %w", hash, err)
	}
	return nil
}

// Blob implements commitlog.Blobs.
func (l *Cell) Blob(ctx context.Context, hash string) (io.ReadCloser, error) {
	count := 0
	err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.exec(ctx, "SELECT count(*) FROM blob WHERE cell = $1 AND hash = $2", l.id, hash)
		if err == nil {
			count = int(got.rows[0].int(0))
		}
		return err
	})
	if err == nil && count == 0 {
		err = commitlog.ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("open the file %s: %w", hash, err)
	}
	return &parts{count: count, next: func(part int) ([]byte, error) {
		return l.part(ctx, "SELECT bytes FROM blob WHERE cell = $1 AND hash = $2 AND part = $3", l.id, hash, part)
	}}, nil
}

// DeleteBlob implements commitlog.Blobs.
func (l *Cell) DeleteBlob(ctx context.Context, hash string) error {
	err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, "DELETE FROM blob WHERE cell = $1 AND hash = $2", l.id, hash)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete the file %s: %w", hash, err)
	}
	return nil
}
