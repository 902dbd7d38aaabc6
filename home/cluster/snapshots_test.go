package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/postgres"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openDatabase(t *testing.T, dsn, name string) *postgres.Database {
	t.Helper()
	d, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn, Name: name})
	must(t, err)
	t.Cleanup(d.Close)
	return d
}

// own opens the store of a new owner of the cell on an empty disk.
func own(t *testing.T, cell *postgres.Cell, name string) (*sqlite.Store, commitlog.Tenure, sqlite.Progress) {
	t.Helper()
	tenure, err := cell.Acquire(t.Context(), name)
	must(t, err)
	s, p, err := sqlite.OpenOver(t.Context(), filepath.Join(t.TempDir(), "switchboard.db"), cell, tenure, sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, tenure, p
}

// put changes a value; what stays the same is not logged.
func put(t *testing.T, s *sqlite.Store, key string, size int) {
	t.Helper()
	text := fmt.Sprint(key, s.Head(), " ")
	must(t, journal.Do(t.Context(), s, func(tx journal.Tx) error {
		_, err := tx.KVPut("x", key, []byte(strings.Repeat(text, size/len(text)+1)[:size]))
		return err
	}))
}

func TestTheOwnerKeepsTheLogShort(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	dsn := server.Database()
	sql := func(statement string) []string { return server.DoIn(postgrestest.Name(dsn), statement) }
	cell, err := openDatabase(t, dsn, "one").Create(t.Context(), "home")
	must(t, err)
	s, tenure, _ := own(t, cell, "one")
	k := &keeper{cell: cell, store: s, tenure: tenure, window: func() time.Duration { return DefaultWindow },
		log: hclog.NewNullLogger()}
	snapshots := func(want int, when string) []postgres.Kept {
		t.Helper()
		must(t, k.once(t.Context()))
		kept, err := cell.Snapshots(t.Context())
		must(t, err)
		if len(kept) != want {
			t.Fatalf("%s: %d snapshots, want %d", when, len(kept), want)
		}
		return kept
	}
	snapshots(0, "a small new log")
	for range 50 { // the file stops growing long before that
		put(t, s, "a", 200_000)
	}
	snapshots(1, "a log larger than the state")
	put(t, s, "b", 200_000)
	snapshots(1, "a small change")
	// The next owner counts what the log has already.
	s, tenure, p := own(t, cell, "two")
	if p.Entries > 3 {
		t.Errorf("a new node applied %d entries, and did not begin with the snapshot", p.Entries)
	}
	k = &keeper{cell: cell, store: s, tenure: tenure, window: k.window, log: k.log}
	for s.Appended()+100_000 < s.Size() && s.Appended() < 20<<20 {
		put(t, s, "b", 50_000)
	}
	snapshots(2, "a log that two owners have written")
	sql("UPDATE switchboard.snapshots SET made = now() - interval '25 hours'")
	snapshots(2, "an old snapshot without changes")
	put(t, s, "c", 10)
	kept := snapshots(3, "an old snapshot with a change")
	if kept[0].Head != s.Head() {
		t.Errorf("the newest snapshot is of entry %d of %d", kept[0].Head, s.Head())
	}
	sql("UPDATE switchboard.snapshots SET made = now() - interval '9 days'")
	k.window = func() time.Duration { return time.Hour }
	must(t, k.sweep(t.Context()))
	if kept := snapshots(1, "nothing in the window"); kept[0].Head != s.Head() {
		t.Errorf("the snapshot of entry %d is left", kept[0].Head)
	}
	if n := sql("SELECT count(*) FROM switchboard.log"); n[0] != "1" {
		t.Errorf("%s entries are left", n[0])
	}
	third, _, p := own(t, cell, "three")
	if p.Entries != 0 {
		t.Errorf("a node applied %d entries after the newest snapshot", p.Entries)
	}
	must(t, third.View(t.Context(), func(r journal.Reader) error {
		for _, key := range []string{"a", "b", "c"} {
			if v, err := r.KVGet("x", key); err != nil || v.Version == 0 {
				return fmt.Errorf("%s is lost: %w", key, err)
			}
		}
		return nil
	}))
	if err := k.once(t.Context()); !errors.Is(err, journal.ErrFenced) && err != nil {
		t.Errorf("an earlier owner keeps the log: %v", err)
	}
	if err := k.sweep(t.Context()); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("an earlier owner sweeps: %v", err)
	}
}

// Files of a node that died while it stored them are swept; those of messages stay.
func TestTheOwnerSweepsFiles(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	dsn := server.Database()
	cell, err := openDatabase(t, dsn, "one").Create(t.Context(), "home")
	must(t, err)
	s, tenure, _ := own(t, cell, "one")
	var hashes []string
	for _, text := range []string{"named", "of a node that died"} {
		sum := sha256.Sum256([]byte(text))
		hashes = append(hashes, hex.EncodeToString(sum[:]))
		must(t, cell.PutBlob(t.Context(), hashes[len(hashes)-1], strings.NewReader(text)))
	}
	must(t, journal.Do(t.Context(), s, func(tx journal.Tx) error {
		return tx.HoldBlob(journal.Blob{Hash: hashes[0], Size: 5, Owner: "x", CreatedAt: 1}, "x", 1)
	}))
	k := &keeper{cell: cell, store: s, tenure: tenure, window: func() time.Duration { return DefaultWindow },
		log: hclog.NewNullLogger()}
	for range 2 {
		server.DoIn(postgrestest.Name(dsn), "UPDATE switchboard.file SET stored = stored - interval '9 days', "+
			"dropped = dropped - interval '9 days'")
		must(t, k.sweep(t.Context()))
	}
	left := server.DoIn(postgrestest.Name(dsn), "SELECT hash FROM switchboard.blob")
	if len(left) != 1 || left[0] != hashes[0] {
		t.Errorf("the files %q are left, want %q", left, hashes[:1])
	}
}
