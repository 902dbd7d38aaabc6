package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Contents summarizes a store.
type Contents struct {
	Version     int // of its schema
	Events      int
	FirstEvent  time.Time // zero: there are none
	LastEvent   time.Time
	LastSeq     int64
	Unsettled   int // deliveries
	DeadLetters int
	Sessions    int
	Rows        int // of all histories
	// Keys counts the keys of extensions, by <extension>/<first part of the key>.
	Keys map[string]int
	// Blobs are the sizes of the files that it names, by their hashes.
	Blobs map[string]int64
}

// Examine reads all of a closed store without changing it, and checks its pages,
// indexes and the consistency of its rows. A store of an older version is examined as
// after its migration.
func Examine(ctx context.Context, path string) (c Contents, err error) {
	err = inspect(path, func(conn *sqlite.Conn) error {
		conn.SetInterrupt(ctx.Done())
		if err := checkOurs(conn); err != nil {
			return err
		}
		if c.Version, err = userVersion(conn); err != nil {
			return err
		}
		if err := runCheck(conn, "PRAGMA integrity_check(1)"); err != nil {
			return err
		}
		if c.Version == len(migrations) {
			return c.read(conn)
		}
		return c.readMigrated(ctx, conn, path)
	})
	if err != nil && ctx.Err() != nil {
		return c, ctx.Err()
	}
	if err != nil {
		err = fmt.Errorf("the store %s: %w", path, err)
	}
	return c, err
}

// readMigrated migrates a copy and reads it.
func (c *Contents) readMigrated(ctx context.Context, conn *sqlite.Conn, path string) error {
	dir, err := os.MkdirTemp(filepath.Dir(path), InspectPrefix+"*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	migrated := filepath.Join(dir, "migrated")
	if err := copyTo(ctx, conn, migrated); err != nil {
		return err
	}
	other, err := sqlite.OpenConn(migrated, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer other.Close()
	other.SetInterrupt(ctx.Done())
	if err := migrate(other, migrated); err != nil {
		return err
	}
	return c.read(other)
}

func (c *Contents) read(conn *sqlite.Conn) error {
	var first, last int64
	for _, q := range []struct {
		query string
		into  any
	}{
		{"SELECT count(*) FROM event", &c.Events},
		{"SELECT coalesce(max(seq), 0) FROM event", &c.LastSeq},
		{"SELECT coalesce((SELECT created_at FROM event ORDER BY seq LIMIT 1), 0)", &first},
		{"SELECT coalesce((SELECT created_at FROM event ORDER BY seq DESC LIMIT 1), 0)", &last},
		{"SELECT (SELECT count(*) FROM delivery WHERE state < 2) + (SELECT coalesce(sum(open), 0) FROM delivery_block)",
			&c.Unsettled},
		{"SELECT count(*) FROM delivery WHERE state = 3", &c.DeadLetters},
		{"SELECT count(*) FROM session", &c.Sessions},
		{"SELECT count(*) FROM history", &c.Rows},
	} {
		if err := sqlitex.ExecuteTransient(conn, q.query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			switch into := q.into.(type) {
			case *int:
				*into = stmt.ColumnInt(0)
			case *int64:
				*into = stmt.ColumnInt64(0)
			}
			return nil
		}}); err != nil {
			return err
		}
	}
	if first > 0 {
		c.FirstEvent, c.LastEvent = time.UnixMicro(first).UTC(), time.UnixMicro(last).UTC()
	}
	c.Keys = map[string]int{}
	if err := sqlitex.ExecuteTransient(conn,
		"SELECT owner || '/' || substr(key, 1, instr(key || '/', '/') - 1) AS what, count(*) FROM kv GROUP BY what",
		&sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			c.Keys[stmt.ColumnText(0)] = stmt.ColumnInt(1)
			return nil
		}}); err != nil {
		return err
	}
	var err error
	if c.Blobs, err = blobSizes(conn); err != nil {
		return err
	}
	return checkRows(conn)
}

func blobSizes(conn *sqlite.Conn) (map[string]int64, error) {
	sizes := map[string]int64{}
	return sizes, sqlitex.ExecuteTransient(conn, "SELECT hash, size FROM blob",
		&sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			sizes[stmt.ColumnText(0)] = stmt.ColumnInt64(1)
			return nil
		}})
}

// Blobs returns the sizes of the files that a closed store names, by their hashes. A
// store that is older than files has none.
func Blobs(path string) (sizes map[string]int64, err error) {
	err = inspect(path, func(conn *sqlite.Conn) error {
		version, err := knownVersion(conn)
		if err == nil && version >= versionOfBlobs {
			sizes, err = blobSizes(conn)
		}
		return err
	})
	return sizes, err
}

// invariants are queries that count inconsistent rows.
var invariants = []struct{ problem, query string }{
	{noEvent, "SELECT count(*) FROM delivery d WHERE state < 2 AND NOT EXISTS (SELECT 1 FROM event e WHERE e.seq = " +
		"d.seq)"},
	{noSubscription, "SELECT count(*) FROM delivery d WHERE state < 2 AND NOT EXISTS (SELECT 1 FROM subscription s " +
		"WHERE s.id = d.subscription)"},
	{neverAccepted, "SELECT count(*) FROM delivery WHERE seq > (SELECT coalesce(max(seq), 0) FROM event)"},
	{"deliveries of a lane with the same rank", "SELECT count(*) FROM (SELECT 1 FROM delivery WHERE state < 2 " +
		"GROUP BY subscription, key, rank HAVING count(*) > 1)"},
	{"history rows without their session", "SELECT count(*) FROM history h " +
		"WHERE NOT EXISTS (SELECT 1 FROM session s WHERE s.id = h.session)"},
	{"sessions whose history has another length", "SELECT count(*) FROM session s " +
		"WHERE history_seq <> coalesce((SELECT max(seq) FROM history h WHERE h.session = s.id), 0)"},
	{"sessions without their conversation", "SELECT count(*) FROM session s " +
		"WHERE conversation <> 0 AND NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = s.conversation)"},
	{"sessions that run a missing or ended turn", "SELECT count(*) FROM session s, json_each(s.stack) j " +
		"WHERE NOT EXISTS (SELECT 1 FROM turn t WHERE t.id = j.value AND t.session = s.id AND t.ended_at = 0)"},
	{"turns without their session", "SELECT count(*) FROM turn t " +
		"WHERE NOT EXISTS (SELECT 1 FROM session s WHERE s.id = t.session)"},
	{"open turns that no session runs", "SELECT count(*) FROM turn t WHERE ended_at = 0 " +
		"AND NOT EXISTS (SELECT 1 FROM session s, json_each(s.stack) j WHERE s.id = t.session AND j.value = t.id)"},
	{"open tool calls of missing or ended turns", "SELECT count(*) FROM call c WHERE state < 2 AND turn <> 0 " +
		"AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.id = c.turn AND t.ended_at = 0)"},
	{"keys without a version", "SELECT count(*) FROM kv WHERE version < 1"},
	{"kept files that are not stored", "SELECT count(*) FROM blob_keeper r " +
		"WHERE NOT EXISTS (SELECT 1 FROM blob b WHERE b.hash = r.hash)"},
	{"extensions whose files have another size", "SELECT count(*) FROM blob_bytes o " +
		"WHERE bytes <> coalesce((SELECT sum(size) FROM blob b WHERE b.owner = o.owner), 0)"},
}

// checkRows checks the consistency of the rows of an intact store.
func checkRows(conn *sqlite.Conn) error {
	counts, err := checkBlocks(conn)
	if err != nil {
		return err
	}
	for _, i := range invariants {
		n, err := number(conn, i.query)
		if err != nil {
			return err
		}
		counts[i.problem] += n
	}
	var problems []error
	for _, problem := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[problem]; n > 0 {
			problems = append(problems, fmt.Errorf("%d %s", n, problem))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w (inconsistent rows: %w): %s", journal.ErrDamaged, errors.Join(problems...), hintDamaged)
}
