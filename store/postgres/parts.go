package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

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
	select {
	case l.database.files <- struct{}{}:
		defer func() { <-l.database.files }()
	case <-ctx.Done():
		return ctx.Err()
	}
	sum := sha256.New()
	err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
		// Its locks are of this file alone, and what it reads may be slow.
		_, err := c.script(ctx, "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0")
		if err != nil {
			return err
		}
		_, err = c.exec(ctx, "INSERT INTO file (cell, hash) VALUES ($1, $2) "+ // locks it first, as SweepBlobs does
			"ON CONFLICT (cell, hash) DO UPDATE SET stored = now(), dropped = NULL", l.id, hash)
		if err == nil {
			_, err = c.exec(ctx, "DELETE FROM blob WHERE cell = $1 AND hash = $2", l.id, hash)
		}
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

// DeleteBlob implements commitlog.Blobs. The bytes stay for SweepBlobs.
func (l *Cell) DeleteBlob(ctx context.Context, hash string) error {
	err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, "UPDATE file SET dropped = now() WHERE cell = $1 AND hash = $2 AND dropped IS NULL",
			l.id, hash)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete the file %s: %w", hash, err)
	}
	return nil
}

// KeepBlobs takes back DeleteBlob, and returns those of the hashes of which there are no
// bytes.
func (l *Cell) KeepBlobs(ctx context.Context, hashes []string) (missing []string, err error) {
	for _, hash := range hashes {
		err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
			done, err := c.exec(ctx, "UPDATE file SET dropped = NULL WHERE cell = $1 AND hash = $2", l.id, hash)
			if err == nil && done.affected == 0 {
				missing = append(missing, hash)
			}
			return err
		})
		if err != nil {
			return missing, fmt.Errorf("keep the file %s: %w", hash, err)
		}
	}
	return missing, nil
}

// Swept is what SweepBlobs has done.
type Swept struct{ Dropped, Deleted int }

// SweepBlobs drops the files that are not known and were stored longer ago than unused,
// such as those of a node that died before a message named them; and deletes the bytes of
// those that were dropped longer ago than the window. known reads the newest state: it is
// asked after the file was found, and a file that is stored again meanwhile stays.
func (l *Cell) SweepBlobs(
	ctx context.Context, unused, window time.Duration, known func(hash string) (bool, error),
) (s Swept, err error) {
	const page = 500
	for after := ""; ; {
		var rows []row
		err := l.database.with(ctx, func(ctx context.Context, c *conn) error {
			got, err := c.exec(ctx, `SELECT hash, dropped IS NOT NULL FROM file WHERE cell = $1 AND hash > $2 AND (
				dropped IS NULL AND stored < now() - $3 * interval '1 microsecond' OR
				dropped < now() - $4 * interval '1 microsecond') ORDER BY hash LIMIT $5`,
				l.id, after, unused.Microseconds(), window.Microseconds(), page)
			rows = got.rows
			return err
		})
		for _, r := range rows {
			if err == nil {
				err = l.sweepBlob(ctx, r.text(0), r.int(1) != 0, unused, window, known, &s)
			}
		}
		if err != nil {
			return s, fmt.Errorf("sweep the files of the cell %s: %w", l.name, err)
		}
		if len(rows) < page {
			return s, nil
		}
		after = rows[page-1].text(0)
	}
}

func (l *Cell) sweepBlob(ctx context.Context, hash string, dropped bool, unused, window time.Duration,
	known func(string) (bool, error), s *Swept,
) error {
	used, err := known(hash)
	switch {
	case err != nil:
		return err
	case used && dropped: // it was stored again while a sweep of an earlier owner dropped it
		_, err := l.KeepBlobs(ctx, []string{hash})
		return err
	case used:
		return nil
	}
	return l.database.with(ctx, func(ctx context.Context, c *conn) error {
		if !dropped {
			done, err := c.exec(ctx, "UPDATE file SET dropped = now() WHERE cell = $1 AND hash = $2 AND dropped IS NULL "+
				"AND stored < now() - $3 * interval '1 microsecond'", l.id, hash, unused.Microseconds())
			s.Dropped += int(done.affected)
			return err
		}
		done, err := c.exec(ctx, `WITH gone AS (DELETE FROM file WHERE cell = $1 AND hash = $2
			AND dropped < now() - $3 * interval '1 microsecond' RETURNING hash),
			parts AS (DELETE FROM blob USING gone WHERE blob.cell = $1 AND blob.hash = gone.hash)
			SELECT hash FROM gone`, l.id, hash, window.Microseconds())
		s.Deleted += len(done.rows)
		return err
	})
}
