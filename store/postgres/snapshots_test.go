package postgres_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/postgres"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

const week = 7 * 24 * time.Hour

// What a restore within the window needs stays, and nothing else.
func keepsTheWindow(t *testing.T, s *postgrestest.Server, dsn string) {
	ctx, l := t.Context(), cellOf(t, dsn, "one")
	w := acquire(t, l, "one")
	if err := l.Keep(ctx, w, week); err != nil {
		t.Fatal(err)
	}
	for n, age := range []int{20, 9, 8, 3, 1} { // in days
		mustAppend(t, w, strings.Repeat("x", n))
		if err := l.PutSnapshot(ctx, w, w.at, strings.NewReader(fmt.Sprint("state ", n+1))); err != nil {
			t.Fatal(err)
		}
		s.DoIn(postgrestest.Name(dsn), fmt.Sprintf("UPDATE switchboard.snapshots SET made = now() - interval '%d days' "+
			"WHERE head = %d", age, n+1))
	}
	heads := func() (all []int64) {
		kept, err := l.Snapshots(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range kept {
			all = append(all, k.Head)
		}
		return all
	}
	// The parts of a snapshot whose node died are removed too.
	s.DoIn(postgrestest.Name(dsn), "INSERT INTO switchboard.snapshot VALUES (1, 100, 0, 'half', now() - interval '2 days'), "+
		"(1, 101, 0, 'on its way', now())")
	if err := l.Keep(ctx, w, week); err != nil {
		t.Fatal(err)
	}
	if got := heads(); !slices.Equal(got, []int64{5, 4, 3}) {
		t.Fatalf("the snapshots %d are left", got)
	}
	if n := s.DoIn(postgrestest.Name(dsn), "SELECT count(*) FROM switchboard.snapshot"); n[0] != "4" {
		t.Errorf("%s parts are left", n[0])
	}
	if state, err := l.Head(ctx); err != nil || state.First != 3 {
		t.Errorf("the log begins at %d, %v", state.First, err)
	}
	for position, want := range map[int64]int64{3: 3, 4: 4, 5: 5, 100: 5} {
		at, r, err := l.SnapshotAt(ctx, position)
		if err != nil || at.Head != want {
			t.Fatalf("before %d is the snapshot %d, %v", position, at.Head, err)
		}
		if b, err := io.ReadAll(r); err != nil || string(b) != fmt.Sprint("state ", want) {
			t.Errorf("the snapshot %d is %q, %v", want, b, err)
		}
	}
	if _, _, err := l.SnapshotAt(ctx, 2); !errors.Is(err, commitlog.ErrNone) {
		t.Errorf("a snapshot that was removed: %v", err)
	}
	if e, err := l.Entry(ctx, 4); err != nil || string(e.Body) != "xxx" {
		t.Errorf("entry 4 is %q, %v", e.Body, err)
	}
	if n, size, err := l.Since(ctx, 3); err != nil || n != 2 || size < 7 {
		t.Errorf("since entry 3 there are %d with %d bytes, %v", n, size, err)
	}
	acquire(t, l, "two")
	if err := l.Keep(ctx, w, 0); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("an earlier owner removes snapshots: %v", err)
	}
	if got := heads(); len(got) != 3 {
		t.Errorf("an earlier owner left the snapshots %d", got)
	}
}

// A log of many entries is truncated in steps, which a later call goes on with.
func truncatesInSteps(t *testing.T, s *postgrestest.Server, dsn string) {
	l := cellOf(t, dsn, "one")
	w := acquire(t, l, "one")
	mustAppend(t, w, "a")
	const entries = 5000
	db := postgrestest.Name(dsn)
	s.DoIn(db, fmt.Sprintf("INSERT INTO switchboard.log SELECT 1, n, '' FROM generate_series(2, %d) n", entries))
	s.DoIn(db, fmt.Sprintf("UPDATE switchboard.cell SET head = %d", entries))
	if err := l.PutSnapshot(t.Context(), w, commitlog.Position{Head: entries}, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	s.DoIn(db, "UPDATE switchboard.cell SET first = 4990") // a call that died after its first step
	if err := l.Keep(t.Context(), w, week); err != nil {
		t.Fatal(err)
	}
	if left := s.DoIn(db, "SELECT min(position), count(*) FROM switchboard.log"); left[0] != "5000|1" {
		t.Errorf("entries are left: %s", left)
	}
}

// A cell that ended is not served any more, by no node.
func cellEnds(t *testing.T, _ *postgrestest.Server, dsn string) {
	l := cellOf(t, dsn, "one")
	old := acquire(t, l, "one")
	w := acquire(t, l, "two")
	mustAppend(t, w, "a")
	expectFenced(t, l.End(t.Context(), old, "x"))
	if why, err := l.Ended(t.Context()); err != nil || why != "" {
		t.Fatalf("the cell ended: %q, %v", why, err)
	}
	if err := l.End(t.Context(), w, "two took it"); err != nil {
		t.Fatal(err)
	}
	if why, err := l.Ended(t.Context()); err != nil || why != "two took it" {
		t.Errorf("the cell ended with %q, %v", why, err)
	}
	expectFenced(t, w.append("b"))
	expectFenced(t, w.Confirm(t.Context()))
	if _, err := l.Acquire(t.Context(), "three"); !errors.Is(err, postgres.ErrEnded) {
		t.Errorf("it has another writer: %v", err)
	}
	if _, err := l.Head(t.Context()); !errors.Is(err, postgres.ErrEnded) || !strings.Contains(err.Error(), "two took it") {
		t.Errorf("it is followed: %v", err)
	}
}

// Files go when nothing has named them for the window, and come back when a restore or a
// message names them again.
func sweepsFiles(t *testing.T, s *postgrestest.Server, dsn string) {
	ctx, l, db := t.Context(), cellOf(t, dsn, "one"), postgrestest.Name(dsn)
	put := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		hash := hex.EncodeToString(sum[:])
		if err := l.PutBlob(ctx, hash, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		return hash
	}
	used := map[string]bool{}
	var during func(hash string)
	sweep := func(want postgres.Swept) {
		t.Helper()
		got, err := l.SweepBlobs(ctx, time.Hour, week, func(hash string) (bool, error) {
			known := used[hash]
			if during != nil {
				during(hash)
			}
			return known, nil
		})
		if err != nil || got != want {
			t.Fatalf("the sweep did %+v, %v, want %+v", got, err, want)
		}
	}
	age := func(column, by string) {
		s.DoIn(db, fmt.Sprintf("UPDATE switchboard.file SET %[1]s = %[1]s - interval '%[2]s'", column, by))
	}
	wants := func(n string) {
		t.Helper()
		if got := s.DoIn(db, "SELECT (SELECT count(*) FROM switchboard.file), (SELECT count(*) FROM switchboard.blob)"); got[0] != n {
			t.Fatalf("files and parts are %s, want %s", got[0], n)
		}
	}
	kept, lost, again := put("kept"), put("of a node that died"), put("stored again")
	used[kept], used[again] = true, true
	sweep(postgres.Swept{}) // too new
	age("stored", "2 hours")
	sweep(postgres.Swept{Dropped: 1})
	if err := l.DeleteBlob(ctx, again); err != nil {
		t.Fatal(err)
	}
	wants("3|3")
	age("dropped", "8 days")
	during = func(hash string) { // it is stored again, and named, while a sweep looks at it
		if hash == lost {
			put("of a node that died")
			used[lost] = true
		}
	}
	sweep(postgres.Swept{}) // again is kept, as it is used
	wants("3|3")
	during = nil
	if dropped := s.DoIn(db, "SELECT count(dropped) FROM switchboard.file"); dropped[0] != "0" {
		t.Errorf("%s files that are used are dropped", dropped[0])
	}
	delete(used, lost)
	if err := l.DeleteBlob(ctx, lost); err != nil {
		t.Fatal(err)
	}
	if missing, err := l.KeepBlobs(ctx, []string{lost, "none"}); err != nil || !slices.Equal(missing, []string{"none"}) {
		t.Errorf("missing are %q, %v", missing, err)
	}
	if err := l.DeleteBlob(ctx, lost); err != nil {
		t.Fatal(err)
	}
	age("dropped", "8 days")
	sweep(postgres.Swept{Deleted: 1})
	wants("2|2")
}

// An append of a state whose answer is lost has happened, once.
func replacesOnce(t *testing.T, s *postgrestest.Server, dsn string) {
	p := postgrestest.NewProxy(t, s)
	l := cellOf(t, p.DSN(dsn), "one")
	w := acquire(t, l, "one")
	var swallow atomic.Bool
	p.Filter(func(toServer bool, b []byte) bool {
		if toServer && strings.Contains(string(b), "INSERT INTO snapshots") {
			swallow.Store(true) // its answer is the next to come
		} else if !toServer && swallow.CompareAndSwap(true, false) {
			go p.CutClients()
			return false
		}
		return true
	})
	e := w.next("")
	e.Kind = commitlog.Snapshot
	e = commitlog.Seal(w.at, e)
	u, err := l.Upload(t.Context(), strings.NewReader("state"))
	if err == nil {
		err = l.Replace(t.Context(), w.Tenure, e, u)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Filter(nil)
	if kept, err := l.Snapshots(t.Context()); err != nil || len(kept) != 1 || kept[0].Head != 1 {
		t.Errorf("the snapshots are %+v, %v", kept, err)
	}
	expect(t, bodies(t, l, commitlog.Position{}), "")
}
