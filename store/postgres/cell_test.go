package postgres_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/postgres"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// patience bounds each wait; only a test that fails takes it.
const patience = time.Minute

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waiting until %s takes too long", what)
		}
	}
}

func open(t *testing.T, dsn, name string) *postgres.Database {
	t.Helper()
	d, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func cellOf(t *testing.T, dsn, name string) *postgres.Cell {
	t.Helper()
	l, err := open(t, dsn, name).Create(t.Context(), "home")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// writer appends entries of a tenure.
type writer struct {
	commitlog.Tenure
	at commitlog.Position
}

func acquire(t *testing.T, l commitlog.Log, node string) *writer {
	t.Helper()
	tenure, err := l.Acquire(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tenure.Release(context.WithoutCancel(t.Context())) })
	return &writer{tenure, tenure.State().Position}
}

func (w *writer) next(body string) commitlog.Entry {
	s := w.State()
	return commitlog.Seal(w.at, commitlog.Entry{
		Epoch: s.Epoch, Incarnation: s.Incarnation, Kind: commitlog.Changes, Schema: 7, Body: []byte(body),
	})
}

func (w *writer) append(body string) error {
	e := w.next(body)
	err := w.Append(e)
	if err == nil {
		w.at = e.At()
	}
	return err
}

func mustAppend(t *testing.T, w *writer, bodies ...string) {
	t.Helper()
	for _, b := range bodies {
		if err := w.append(b); err != nil {
			t.Fatalf("append %q: %v", b, err)
		}
	}
}

// bodies reads and checks the whole log.
func bodies(t *testing.T, l commitlog.Log, from commitlog.Position) (all []string) {
	t.Helper()
	err := l.Read(t.Context(), from.Head, func(e commitlog.Entry) error {
		if err := commitlog.Check(from, e); err != nil {
			return err
		}
		from = e.At()
		all = append(all, string(e.Body))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Fatalf("the log holds %q instead of %q", got, want)
	}
}

func expectFenced(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, journal.ErrFenced) {
		t.Fatalf("%v instead of the error of a writer that was replaced", err)
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s *postgrestest.Server, dsn string)
	}{
		{"AnEntryFollowsTheOther", entryFollows},
		{"AReplacedWriterAppendsNothing", replacedWriter},
		{"LostAnswersAndRequests", lostAnswers},
		{"AWaitThatWasCancelled", cancelledWait},
		{"ABackendThatWakesAfterTheResend", backendWakes},
		{"AHalfOpenConnection", halfOpen},
		{"CommitsWaitForAServerThatRestarts", outOfReach},
		{"AnIdleConnectionHasEnded", idleEnded},
		{"ReleaseEndsAWaitingAppend", releaseEnds},
		{"SnapshotAndTruncation", snapshotAndTruncation},
		{"TheWindow", keepsTheWindow},
		{"TruncationInSteps", truncatesInSteps},
		{"AStateIsReplacedOnce", replacesOnce},
		{"ACellEnds", cellEnds},
		{"Files", files},
		{"SweptFiles", sweepsFiles},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, server, server.Database()) })
	}
}

func entryFollows(t *testing.T, _ *postgrestest.Server, dsn string) {
	l := cellOf(t, dsn, "one")
	w := acquire(t, l, "one")
	if s := w.State(); s.Epoch != 1 || s.Head != 0 || s.Node != "one" || s.First != 0 || s.Snapshot != nil {
		t.Fatalf("a new log is %+v", s)
	}
	mustAppend(t, w, "a", "b", strings.Repeat("c", 3<<20))
	for i := range 600 { // more than a page
		mustAppend(t, w, fmt.Sprint(i))
	}
	if got := bodies(t, l, commitlog.Position{}); len(got) != 603 || got[0] != "a" || got[602] != "599" {
		t.Fatalf("%d entries", len(got))
	}
	s, err := l.Head(t.Context())
	if err != nil || s.Position != w.at || s.Schema != 7 || s.First != 1 || s.Incarnation != w.State().Incarnation {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := w.Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	if err := l.Read(t.Context(), 1, func(commitlog.Entry) error { return stop }); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if _, err := open(t, dsn, "one").Cell(t.Context(), "other"); !errors.Is(err, postgres.ErrNoCell) {
		t.Fatal(err)
	}
}

func replacedWriter(t *testing.T, _ *postgrestest.Server, dsn string) {
	l := cellOf(t, dsn, "one")
	old := acquire(t, l, "one")
	mustAppend(t, old, "a")
	w := acquire(t, cellOf(t, dsn, "two"), "two")
	if s := w.State(); s.Epoch != 2 || s.Position != old.at {
		t.Fatalf("the second tenure begins with %+v", s)
	}
	expectFenced(t, old.append("b"))
	expectFenced(t, old.Confirm(t.Context()))
	mustAppend(t, w, "c")
	expectFenced(t, old.append("d"))
	expectFenced(t, l.PutSnapshot(t.Context(), old, old.at, strings.NewReader("s")))
	expectFenced(t, l.Truncate(t.Context(), old, 2))
	if err := w.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectFenced(t, w.append("e"))
	expect(t, bodies(t, l, commitlog.Position{}), "a", "c")
}

// Every third message of the protocol in either direction is lost, with its connection.
func lostAnswers(t *testing.T, s *postgrestest.Server, dsn string) {
	p := postgrestest.NewProxy(t, s)
	w := acquire(t, cellOf(t, p.DSN(dsn), "one"), "one")
	var n atomic.Int64
	var want []string
	for i := range 40 {
		when := int64(i % 6)
		n.Store(0)
		p.Filter(func(bool, []byte) bool {
			if n.Add(1) != when {
				return true
			}
			go p.Cut()
			return false
		})
		body := fmt.Sprint(i)
		err := w.append(body)
		for errors.Is(err, commitlog.ErrUntried) {
			p.Filter(nil)
			err = w.append(body)
		}
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, body)
	}
	p.Filter(nil)
	expect(t, bodies(t, cellOf(t, dsn, "reader"), commitlog.Position{}), want...)
}

// The standby that commits wait for is gone. A wait that is cancelled or terminated does
// not make the append succeed; it does when the owner no longer asks for a standby.
func cancelledWait(t *testing.T, s *postgrestest.Server, dsn string) {
	w := acquire(t, cellOf(t, dsn, "one"), "one")
	mustAppend(t, w, "a")
	alone := func() {
		s.Do("ALTER SYSTEM RESET synchronous_standby_names")
		s.Do("SELECT pg_reload_conf()")
	}
	defer alone()
	s.Do("ALTER SYSTEM SET synchronous_standby_names = 'gone'")
	s.Do("SELECT pg_reload_conf()")
	await(t, "the setting is in force", func() bool {
		return s.Do("SHOW synchronous_standby_names")[0] == "gone"
	})
	done := make(chan error, 1)
	go func() { done <- w.append("b") }()
	for _, end := range []string{"cancel", "terminate", "cancel"} {
		await(t, "an append waits", func() bool {
			return len(s.Do("SELECT pg_"+end+"_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' "+
				"AND datname = '"+postgrestest.Name(dsn)+"'")) > 0
		})
	}
	select {
	case err := <-done:
		t.Fatalf("the append returned %v while no standby has it", err)
	default:
	}
	alone()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	expect(t, bodies(t, cellOf(t, dsn, "reader"), commitlog.Position{}), "a", "b")
}

// A request arrives only after the connection was given up and the entry was sent again.
func backendWakes(t *testing.T, s *postgrestest.Server, dsn string) {
	p := postgrestest.NewProxy(t, s)
	w := acquire(t, cellOf(t, p.DSN(dsn), "one"), "one")
	mustAppend(t, w, "a")
	held, late := make(chan []byte, 1), make(chan struct{})
	p.Hold(func(toServer bool, b []byte) bool {
		return toServer && bytes.Contains(b, []byte("the late one"))
	}, held, late)
	done := make(chan error, 1)
	go func() { done <- w.append("the late one") }()
	<-held
	p.CutClients()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mustAppend(t, w, "c")
	close(late)
	p.AwaitServers()
	expect(t, bodies(t, cellOf(t, dsn, "reader"), commitlog.Position{}), "a", "the late one", "c")
}

// The connection swallows everything, and nothing closes it.
func halfOpen(t *testing.T, s *postgrestest.Server, dsn string) {
	for _, lost := range []bool{true, false} { // the request, the answer
		p := postgrestest.NewProxy(t, s)
		w := acquire(t, cellOf(t, p.DSN(dsn), "one"), "one")
		mustAppend(t, w, "a")
		var once atomic.Bool
		p.Filter(func(toServer bool, _ []byte) bool { return toServer != lost || !once.CompareAndSwap(false, true) })
		mustAppend(t, w, "b")
		if !once.Load() {
			t.Fatal("nothing was swallowed")
		}
	}
	expect(t, bodies(t, cellOf(t, dsn, "reader"), commitlog.Position{}), "a", "b", "a", "b")
}

// The first commit of an owner does not fail because an idle connection has ended.
func idleEnded(t *testing.T, s *postgrestest.Server, dsn string) {
	p := postgrestest.NewProxy(t, s)
	w := acquire(t, cellOf(t, p.DSN(dsn), "one"), "one")
	p.CutClients()
	mustAppend(t, w, "a")
	expect(t, bodies(t, cellOf(t, dsn, "reader"), commitlog.Position{}), "a")
}

// Nothing fails while the server takes no connections, and readers that ask then are
// answered together.
func outOfReach(t *testing.T, s *postgrestest.Server, dsn string) {
	p := postgrestest.NewProxy(t, s)
	l := cellOf(t, p.DSN(dsn), "one")
	w := acquire(t, l, "one")
	mustAppend(t, w, "a")
	touched := func() (n int) {
		n, err := strconv.Atoi(s.DoIn(postgrestest.Name(dsn), "SELECT touched FROM switchboard.cell")[0])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := touched()
	const readers = 50
	done := make(chan error, readers+1)
	again := func(what string) {
		n := p.Refused()
		await(t, what, func() bool { return p.Refused() > n })
	}
	p.Down(true)
	for range readers {
		go func() { done <- w.Confirm(t.Context()) }()
	}
	again("a reader asks")
	go func() { done <- w.append("b") }()
	again("a connection is tried")
	again("one is tried again")
	select {
	case err := <-done:
		t.Fatalf("%v without a server", err)
	default:
	}
	p.Down(false)
	for range readers + 1 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if n := touched() - before; n < 1 || n > 3 { // the first reader, all others, what the append asks
		t.Errorf("%d readers were answered by %d writes", readers, n)
	}
	expect(t, bodies(t, cellOf(t, dsn, "reader"), commitlog.Position{}), "a", "b")
}

func releaseEnds(t *testing.T, s *postgrestest.Server, dsn string) {
	p := postgrestest.NewProxy(t, s)
	w := acquire(t, cellOf(t, p.DSN(dsn), "one"), "one")
	mustAppend(t, w, "a")
	var once atomic.Bool
	swallowed := make(chan struct{})
	p.Filter(func(toServer bool, _ []byte) bool {
		if toServer && once.CompareAndSwap(false, true) {
			close(swallowed)
		}
		return false
	})
	done := make(chan error, 1)
	go func() { done <- w.append("b") }()
	<-swallowed
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = w.Release(ended)
	expectFenced(t, <-done)
	expect(t, bodies(t, cellOf(t, dsn, "reader"), commitlog.Position{}), "a")
}

func snapshotAndTruncation(t *testing.T, _ *postgrestest.Server, dsn string) {
	l := cellOf(t, dsn, "one")
	if _, _, err := l.Snapshot(t.Context()); !errors.Is(err, commitlog.ErrNone) {
		t.Fatal(err)
	}
	w := acquire(t, l, "one")
	mustAppend(t, w, "a", "b")
	at := w.at
	for _, size := range []int{0, 1, 1 << 20, 2<<20 + 5} {
		want := bytes.Repeat([]byte("snapshot"), size/8+1)[:size]
		if err := l.PutSnapshot(t.Context(), w, at, bytes.NewReader(want)); err != nil {
			t.Fatal(err)
		}
		got, r, err := l.Snapshot(t.Context())
		if err != nil || got != at {
			t.Fatalf("%+v, %v", got, err)
		}
		if read, err := io.ReadAll(r); err != nil || !bytes.Equal(read, want) {
			t.Fatalf("%d bytes instead of %d: %v", len(read), size, err)
		}
	}
	mustAppend(t, w, "c")
	if err := l.Truncate(t.Context(), w, 100); err != nil {
		t.Fatal(err)
	}
	nothing := func(commitlog.Entry) error { return nil }
	if err := l.Read(t.Context(), 0, nothing); !errors.Is(err, commitlog.ErrTruncated) {
		t.Fatal(err)
	}
	expect(t, bodies(t, l, at), "c") // nothing after the snapshot is gone
	if s, err := l.Head(t.Context()); err != nil || s.First != 3 || *s.Snapshot != at {
		t.Fatalf("%+v, %v", s, err)
	}
}

func files(t *testing.T, _ *postgrestest.Server, dsn string) {
	l := cellOf(t, dsn, "one")
	want := strings.Repeat("file", 600_000)
	sum := sha256.Sum256([]byte(want))
	hash := hex.EncodeToString(sum[:])
	if _, err := l.Blob(t.Context(), hash); !errors.Is(err, commitlog.ErrNone) {
		t.Fatal(err)
	}
	if err := l.PutBlob(t.Context(), hash, strings.NewReader("other")); !errors.Is(err, commitlog.ErrBroken) {
		t.Fatal(err)
	}
	if _, err := l.Blob(t.Context(), hash); !errors.Is(err, commitlog.ErrNone) {
		t.Fatalf("a file with other bytes is stored: %v", err)
	}
	for range 2 {
		if err := l.PutBlob(t.Context(), hash, strings.NewReader(want)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := l.Blob(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != want {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if err := l.DeleteBlob(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	if r, err := l.Blob(t.Context(), hash); err != nil {
		t.Fatalf("a restore cannot read it: %v", err)
	} else if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
