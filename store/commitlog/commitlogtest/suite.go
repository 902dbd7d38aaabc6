package commitlogtest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
)

// Exercise checks the promises of package commitlog. open returns an empty log. The log
// of each test is used by that test alone.
func Exercise(t *testing.T, open func(t *testing.T) commitlog.Log) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, commitlog.Log){
		"appends and reads":              testAppend,
		"fences earlier tenures":         testFence,
		"appends only after the newest":  testHead,
		"sees an append that was made":   testAcquireSees,
		"ends a released tenure":         testRelease,
		"keeps a snapshot and truncates": testSnapshot,
		"replaces the state":             testReplace,
		"keeps files":                    testBlobs,
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			test(t, open(t))
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func acquire(t *testing.T, l commitlog.Log, node string) commitlog.Tenure {
	t.Helper()
	tenure, err := l.Acquire(t.Context(), node)
	must(t, err)
	return tenure
}

func seal(t commitlog.Tenure, after commitlog.Position, body string) commitlog.Entry {
	s := t.State()
	return commitlog.Seal(after, commitlog.Entry{Epoch: s.Epoch, Incarnation: s.Incarnation, Kind: commitlog.Changes,
		Schema: 7, Time: 1, Body: []byte(body)})
}

// fill appends entries and returns the position of the last one.
func fill(t *testing.T, tenure commitlog.Tenure, bodies ...string) commitlog.Position {
	t.Helper()
	at := tenure.State().Position
	for _, body := range bodies {
		e := seal(tenure, at, body)
		must(t, tenure.Append(e))
		at = e.At()
	}
	return at
}

// wantBodies reads the log after a position.
func wantBodies(t *testing.T, l commitlog.Log, after commitlog.Position, want ...string) {
	t.Helper()
	var got []string
	at := after
	must(t, l.Read(t.Context(), after.Head, func(e commitlog.Entry) error {
		if err := commitlog.Check(at, e); err != nil {
			return err
		}
		at = e.At()
		got = append(got, string(e.Body))
		return nil
	}))
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("after entry %d the log has %v, want %v", after.Head, got, want)
	}
}

func testAppend(t *testing.T, l commitlog.Log) {
	s, err := l.Head(t.Context())
	must(t, err)
	if s.Position != (commitlog.Position{}) || s.First != 0 || s.Snapshot != nil {
		t.Errorf("an empty log is %+v", s)
	}
	wantBodies(t, l, commitlog.Position{})
	tenure := acquire(t, l, "a")
	if s := tenure.State(); s.Epoch != 1 || s.Node != "a" || s.Incarnation == [16]byte{} {
		t.Errorf("the first tenure is %+v", s)
	}
	at := fill(t, tenure, "one", "two", "", strings.Repeat("x", 100_000))
	s, err = l.Head(t.Context())
	must(t, err)
	if s.Position != at || s.Schema != 7 || s.First != 1 || s.Epoch != 1 || s.Node != "a" {
		t.Errorf("after four entries the log is %+v", s)
	}
	wantBodies(t, l, commitlog.Position{}, "one", "two", "", strings.Repeat("x", 100_000))
	wantBodies(t, l, at)
	stop := errors.New("stop")
	if err := l.Read(t.Context(), 0, func(commitlog.Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("a reader that stops gets %v", err)
	}
}

func testFence(t *testing.T, l commitlog.Log) {
	old := acquire(t, l, "a")
	at := fill(t, old, "one")
	next := acquire(t, l, "b")
	if s := next.State(); s.Epoch != 2 || s.Position != at || s.Incarnation == old.State().Incarnation {
		t.Errorf("the second tenure is %+v", s)
	}
	if err := old.Append(seal(old, at, "late")); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the old tenure appends: %v", err)
	}
	if err := old.Confirm(t.Context()); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the old tenure is confirmed: %v", err)
	}
	if err := l.PutSnapshot(t.Context(), old, at, strings.NewReader("x")); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the old tenure publishes a snapshot: %v", err)
	}
	if err := l.Truncate(t.Context(), old, at.Head); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the old tenure truncates: %v", err)
	}
	must(t, next.Confirm(t.Context()))
	fill(t, next, "two")
	wantBodies(t, l, commitlog.Position{}, "one", "two")
}

func testHead(t *testing.T, l commitlog.Log) {
	tenure := acquire(t, l, "a")
	first := seal(tenure, commitlog.Position{}, "one")
	must(t, tenure.Append(first))
	must(t, tenure.Append(first)) // as a resend: it is there already
	second := acquire(t, l, "a")
	for name, after := range map[string]commitlog.Position{
		"the beginning": {}, "a gap": {Head: 5}, "another branch": {Head: 1, Hash: commitlog.Hash{1}},
	} {
		if err := second.Append(seal(second, after, name)); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("an entry after %s: %v", name, err)
		}
	}
	wantBodies(t, l, commitlog.Position{}, "one")
}

func testAcquireSees(t *testing.T, l commitlog.Log) {
	for n := range 5 {
		tenure := acquire(t, l, "a")
		if s := tenure.State(); s.Head != int64(2*n) || s.Epoch != int64(n+1) {
			t.Fatalf("tenure %d begins with %+v", n+1, s)
		}
		fill(t, tenure, "x", "y")
	}
}

func testRelease(t *testing.T, l commitlog.Log) {
	tenure := acquire(t, l, "a")
	at := fill(t, tenure, "one")
	must(t, tenure.Release(t.Context()))
	must(t, tenure.Release(t.Context()))
	if err := tenure.Append(seal(tenure, at, "late")); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("a released tenure appends: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := tenure.Confirm(ctx); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("a released tenure is confirmed: %v", err)
	}
	fill(t, acquire(t, l, "b"), "two")
	wantBodies(t, l, commitlog.Position{}, "one", "two")
}

func testSnapshot(t *testing.T, l commitlog.Log) {
	if _, _, err := l.Snapshot(t.Context()); !errors.Is(err, commitlog.ErrNone) {
		t.Errorf("the snapshot of an empty log: %v", err)
	}
	tenure := acquire(t, l, "a")
	second := fill(t, tenure, "one", "two")
	for _, content := range []string{"old", strings.Repeat("snapshot ", 1<<20)} {
		must(t, l.PutSnapshot(t.Context(), tenure, second, strings.NewReader(content)))
		at, r, err := l.Snapshot(t.Context())
		must(t, err)
		b, err := io.ReadAll(r)
		must(t, errors.Join(err, r.Close()))
		if string(b) != content || at != second {
			t.Errorf("the snapshot has %d bytes of entry %d, want %d of 2", len(b), at.Head, len(content))
		}
	}
	third := seal(tenure, second, "three")
	must(t, tenure.Append(third))
	must(t, l.Truncate(t.Context(), tenure, 100)) // up to the snapshot
	if err := l.Read(t.Context(), 0, func(commitlog.Entry) error { return nil }); !errors.Is(err, commitlog.ErrTruncated) {
		t.Errorf("a truncated log is read from its beginning: %v", err)
	}
	wantBodies(t, l, second, "three")
	s, err := l.Head(t.Context())
	must(t, err)
	if s.First > 3 || s.First < 1 || s.Snapshot == nil || *s.Snapshot != second || s.Head != 3 {
		t.Errorf("the truncated log is %+v", s)
	}
}

func testReplace(t *testing.T, l commitlog.Log) {
	old := acquire(t, l, "a")
	at := fill(t, old, "one")
	tenure := acquire(t, l, "b")
	next := func(of commitlog.Tenure, after commitlog.Position) commitlog.Entry {
		e := seal(of, after, "")
		e.Kind = commitlog.Snapshot
		return commitlog.Seal(after, e)
	}
	u, err := l.Upload(t.Context(), strings.NewReader("state"))
	must(t, err)
	if err := l.Replace(t.Context(), old, next(old, at), u); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the old tenure replaces the state: %v", err)
	}
	if _, _, err := l.Snapshot(t.Context()); !errors.Is(err, commitlog.ErrNone) {
		t.Errorf("the snapshot of a fenced tenure: %v", err)
	}
	e := next(tenure, at)
	must(t, l.Replace(t.Context(), tenure, e, u))
	is, r, err := l.Snapshot(t.Context())
	must(t, err)
	b, err := io.ReadAll(r)
	must(t, errors.Join(err, r.Close()))
	if is != e.At() || string(b) != "state" {
		t.Errorf("the snapshot is %q of entry %d", b, is.Head)
	}
	after := seal(tenure, is, "after")
	must(t, tenure.Append(after))
	wantBodies(t, l, commitlog.Position{}, "one", "", "after")
}

func testBlobs(t *testing.T, l commitlog.Log) {
	blobs, ok := l.(commitlog.Blobs)
	if !ok {
		t.Skip("the log keeps no files")
	}
	content := strings.Repeat("bytes", 1<<20)
	hash := sum([]byte(content))
	if _, err := blobs.Blob(t.Context(), hash); !errors.Is(err, commitlog.ErrNone) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := blobs.PutBlob(t.Context(), hash, strings.NewReader("other")); err == nil {
		t.Error("a file with another hash was taken")
	}
	for range 2 {
		must(t, blobs.PutBlob(t.Context(), hash, strings.NewReader(content)))
	}
	r, err := blobs.Blob(t.Context(), hash)
	must(t, err)
	b, err := io.ReadAll(r)
	must(t, errors.Join(err, r.Close()))
	if string(b) != content {
		t.Errorf("the file has %d bytes of %d", len(b), len(content))
	}
	must(t, blobs.DeleteBlob(t.Context(), hash))
	must(t, blobs.DeleteBlob(t.Context(), hash))
	if r, err := blobs.Blob(t.Context(), hash); err == nil {
		must(t, r.Close())
	} else if !errors.Is(err, commitlog.ErrNone) {
		t.Errorf("a deleted file: %v", err)
	}
}
