package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/commitlog/commitlogtest"
)

// sameState fails unless a copy has the rows of a store.
func sameState(t *testing.T, s *Store, f *Follower) {
	t.Helper()
	if want, got := rows(t, reader(t, s)), rows(t, f.conn); !slices.Equal(got, want) {
		t.Errorf("the copy has %d rows, the owner %d", len(got), len(want))
	}
}

// A new owner fences the old one, which neither commits nor reads any more.
func TestAFencedOwnerStops(t *testing.T) {
	t.Parallel()
	log := &commitlogtest.Memory{Lease: time.Nanosecond}
	old := newNode(t, log)
	must(t, change(old.Store, 1))
	next := newNode(t, log)
	must(t, change(next.Store, 2))
	err := old.View(context.Background(), func(journal.Reader) error { return nil })
	if !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the old owner reads: %v", err)
	}
	undone := false
	done := make(chan error, 1)
	old.Submit(journal.Update{Undo: func() { undone = true }, Done: func(err error) { done <- err },
		Apply: func(tx journal.Tx) error { _, err := tx.KVPut("x", "k", nil); return err }})
	if err := <-done; !errors.Is(err, journal.ErrFenced) || undone {
		t.Errorf("the old owner's commit: %v, undone: %t", err, undone)
	}
	if err := <-old.ended; !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the end was reported as %v", err)
	}
	if err := old.Damage(); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the old owner's damage is %v", err)
	}
	if next.Epoch() <= old.Epoch() {
		t.Errorf("epoch %d follows epoch %d", next.Epoch(), old.Epoch())
	}
}

// With the lease in doubt, an update that changes nothing is fenced too.
func TestAnUpdateWithoutChangesIsFenced(t *testing.T) {
	t.Parallel()
	log := &commitlogtest.Memory{Lease: time.Nanosecond}
	old := newNode(t, log)
	newNode(t, log)
	for _, outcome := range []error{nil, errStop} {
		err := journal.Do(context.Background(), old.Store, func(journal.Tx) error { return outcome })
		if !errors.Is(err, journal.ErrFenced) {
			t.Errorf("an update that returned %v and changed nothing: %v", outcome, err)
		}
	}
}

// pendingSend stores a channel's send that is not done.
func pendingSend(s *Store) (subscription int64, err error) {
	err = journal.Do(context.Background(), s, func(tx journal.Tx) error {
		sub := &journal.Subscription{Extension: "tg", Pattern: contract.TopicChannelSend + "tg"}
		e := &busv1.Event{Topic: sub.Pattern, Source: "x", Payload: []byte("{}"), CreatedAtUs: 1}
		if err := errors.Join(tx.PutSubscription(sub), tx.AppendEvent(e)); err != nil {
			return err
		}
		subscription = sub.ID
		return tx.AddDelivery(journal.Delivery{Seq: e.GetSeq(), Subscription: sub.ID})
	})
	return subscription, err
}

// A log that has lost entries is noticed by their owner, whether it has others now or
// not; the first entry of the new epoch marks what may have been sent.
func TestLostCommitsBecomeDoubts(t *testing.T) {
	t.Parallel()
	for _, more := range []int{0, 1, 2, 5} { // entries of another branch: a lower, an equal and a higher head
		t.Run(fmt.Sprint(more), func(t *testing.T) {
			t.Parallel()
			log := &commitlogtest.Memory{}
			n := newNode(t, log)
			sub, err := pendingSend(n.Store)
			must(t, err)
			must(t, change(n.Store, 1))
			must(t, change(n.Store, 2))
			must(t, n.Close())
			log.Lose(2)
			if more > 0 {
				other := newNode(t, log) // one entry
				for i := range more - 1 {
					must(t, change(other.Store, 100+i))
				}
				if other.progress.Lost != nil {
					t.Errorf("a new node has lost %v", other.progress.Lost)
				}
				must(t, other.Close())
			}
			head := must1(log.Head(context.Background())).Head
			n = ownAt(t, log, n.path)
			if n.progress.Lost == nil || n.progress.Rebuilt == "" {
				t.Fatalf("nothing was noticed: %+v", n.progress)
			}
			var first commitlog.Entry
			_ = log.Read(context.Background(), head, func(e commitlog.Entry) error { first = e; return errStop })
			if first.Kind != commitlog.Doubts {
				t.Errorf("the first entry of the epoch is of kind %d", first.Kind)
			}
			must(t, n.View(context.Background(), func(r journal.Reader) error {
				d, err := r.Delivery(1, sub)
				if err != nil || d == nil || !d.Uncertain {
					t.Errorf("the waiting send is %+v, %v", d, err)
				}
				kv, err := r.KVGet(contract.KernelSource, journal.KeyRestored)
				last, _ := r.LastSeq()
				if string(kv.Value) != fmt.Sprint(last) {
					t.Errorf("restored up to %s of %d, %v", kv.Value, last, err)
				}
				return err
			}))
			sameState(t, n.Store, follow(t, log, "other"))
			if _, err := os.Stat(Discarded(n.path)); err != nil {
				t.Errorf("the discarded copy: %v", err)
			}
		})
	}
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A commit that fails here after the append has happened: it is reported, the ownership
// ends, and the next owner has it.
func TestALocalCommitFailsAfterTheAppend(t *testing.T) {
	t.Parallel()
	log := &commitlogtest.Memory{}
	n := newNode(t, log)
	must(t, change(n.Store, 1))
	n.BeforeSync(func() { must(t, sqlitex.ExecuteTransient(n.write, "DROP TABLE log_position", nil)) })
	outcomes := make(chan error, 2)
	hold := make(chan struct{})
	n.Submit(journal.Update{Apply: func(journal.Tx) error { <-hold; return nil }})
	for i := range 2 {
		n.Submit(journal.Update{Done: func(err error) { outcomes <- err }, Apply: func(tx journal.Tx) error {
			_, err := tx.KVPut("x", fmt.Sprint("late", i), []byte("v"))
			return err
		}})
	}
	close(hold)
	for range 2 {
		if err := <-outcomes; err != nil {
			t.Errorf("what is in the log was reported as %v", err)
		}
	}
	if err := <-n.ended; !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the ownership ended with %v", err)
	}
	if err := change(n.Store, 3); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the store goes on: %v", err)
	}
	if err := n.View(context.Background(), func(journal.Reader) error { return nil }); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the store is read: %v", err)
	}
	must(t, n.Close())
	next := ownAt(t, log, n.path)
	must(t, next.View(context.Background(), func(r journal.Reader) error {
		for i := range 2 {
			if kv, err := r.KVGet("x", fmt.Sprint("late", i)); err != nil || kv.Version == 0 {
				t.Errorf("late%d is lost: %v", i, err)
			}
		}
		return nil
	}))
}

// An error of the log that was resolved as committed undoes no member and applies none
// again.
func TestMembersAreNotRetriedAfterAnAppend(t *testing.T) {
	t.Parallel()
	fault := commitlogtest.None
	log := &commitlogtest.Memory{Faulty: func() commitlogtest.Fault { f := fault; fault = commitlogtest.None; return f }}
	n := newNode(t, log)
	for _, f := range []commitlogtest.Fault{commitlogtest.LostAnswer, commitlogtest.LostCall, commitlogtest.Late} {
		hold, outcomes := make(chan struct{}), make(chan error, 3)
		runs, undone := 0, 0
		n.Submit(journal.Update{Apply: func(journal.Tx) error { <-hold; fault = f; return nil }})
		for range 3 {
			n.Submit(journal.Update{Undo: func() { undone++ }, Done: func(err error) { outcomes <- err },
				Apply: func(tx journal.Tx) error {
					runs++
					return tx.AppendEvent(&busv1.Event{Topic: "a.b", Source: "x", Payload: []byte("{}"), CreatedAtUs: 1})
				}})
		}
		close(hold)
		for range 3 {
			must(t, <-outcomes)
		}
		log.Wake()
		if runs != 3 || undone != 0 {
			t.Errorf("fault %d: 3 members ran %d times, and %d were undone", f, runs, undone)
		}
	}
	must(t, change(n.Store, 1))
	sameState(t, n.Store, follow(t, log, "other"))
}

// What was begun on a copy behind the truncated log begins with the snapshot.
func TestASnapshotReplacesWhatWasTruncated(t *testing.T) {
	t.Parallel()
	log := &commitlogtest.Memory{}
	n := newNode(t, log)
	standby := follow(t, log, "standby")
	for i := range 30 {
		must(t, change(n.Store, i))
	}
	at, err := n.Snapshot(context.Background(), log, nil)
	must(t, err)
	must(t, log.Truncate(context.Background(), n.logged.tenure, at.Head))
	for i := range 10 {
		must(t, change(n.Store, 50+i))
	}
	p, err := standby.CatchUp(context.Background())
	must(t, err)
	if p.Rebuilt == "" || p.Lost != nil || p.Entries >= 30 {
		t.Errorf("the standby: %+v", p)
	}
	sameState(t, n.Store, standby)
	sameState(t, n.Store, follow(t, log, "new"))
	next, _, err := standby.Own(context.Background(), must1(log.Acquire(context.Background(), "standby")), nil, Options{})
	must(t, err)
	defer func() { _ = next.Close() }()
	must(t, change(next, 99))
}

// Ids that were given and deleted in one group are not given again by the next owner,
// and rows that replace each other in one group replace each other elsewhere.
func TestWhatAPatchsetDoesNotCarry(t *testing.T) {
	t.Parallel()
	log := &commitlogtest.Memory{}
	n := newNode(t, log)
	var gone, version int64
	event := func(tx journal.Tx, dedupe string) error {
		return tx.AppendEvent(&busv1.Event{Topic: "a.b", Source: "x", Payload: []byte("{}"), CreatedAtUs: 1,
			DedupeKey: dedupe})
	}
	sub := &journal.Subscription{Extension: "x", Pattern: "a.b"}
	must(t, journal.Do(context.Background(), n.Store, func(tx journal.Tx) error {
		return errors.Join(event(tx, "d"), event(tx, ""), tx.PutSubscription(sub))
	}))
	must(t, journal.Do(context.Background(), n.Store, func(tx journal.Tx) error {
		s := &journal.Session{Agent: "a", Key: "k"}
		err := errors.Join(tx.PutSession(s), tx.DeleteSession(s.ID))
		gone = s.ID
		_, prune := tx.Prune(2, 2, 10)
		again := &journal.Subscription{Extension: "x", Pattern: "a.b"}
		err = errors.Join(err, prune, event(tx, "d"), tx.DeleteSubscription(sub.ID), tx.PutSubscription(again))
		_, put := tx.KVPut("x", "k", nil)
		err = errors.Join(err, put, tx.KVDelete("x", "k"))
		version, put = tx.KVPut("x", "k", nil)
		return errors.Join(err, put, tx.KVDelete("x", "k"))
	}))
	next := newNode(t, log)
	must(t, journal.Do(context.Background(), next.Store, func(tx journal.Tx) error {
		s := &journal.Session{Agent: "a", Key: "k"}
		err := tx.PutSession(s)
		if s.ID <= gone {
			t.Errorf("session %d was deleted, and the next one is %d", gone, s.ID)
		}
		v, put := tx.KVPut("x", "k", nil)
		if v <= version {
			t.Errorf("version %d follows %d", v, version)
		}
		return errors.Join(err, put)
	}))
	digests := [2][32]byte{must1(stateDigest(reader(t, next.Store))), must1(stateDigest(follow(t, log, "f").conn))}
	if digests[0] != digests[1] {
		t.Error("the digests of the same state differ")
	}
}

// Every table has a primary key, or a patchset would not carry it.
func TestEveryTableHasAPrimaryKey(t *testing.T) {
	t.Parallel()
	n := newNode(t, &commitlogtest.Memory{})
	keyless, err := number(reader(t, n.Store), "SELECT count(*) FROM sqlite_schema s WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "+
		"AND NOT EXISTS (SELECT 1 FROM pragma_table_info(s.name) WHERE pk > 0)")
	if err != nil || keyless > 0 {
		t.Errorf("%d tables have no primary key, %v", keyless, err)
	}
}

// A copy whose state differs is noticed by its digest, and built again.
func TestADigestNoticesAnotherState(t *testing.T) {
	t.Parallel()
	log := &commitlogtest.Memory{}
	n := newNode(t, log)
	must(t, change(n.Store, 1))
	standby := follow(t, log, "standby")
	must(t, sqlitex.ExecuteTransient(standby.conn, "UPDATE turn SET reply_to = 'other'", nil))
	var p Progress
	for i := 0; p.Rebuilt == "" && i < 500; i++ {
		must(t, change(n.Store, 2+i))
		p = must1(standby.CatchUp(context.Background()))
		time.Sleep(time.Millisecond) // the digest is computed meanwhile
	}
	if p.Rebuilt == "" || p.Lost != nil {
		t.Fatalf("nothing was noticed: %+v", p)
	}
	sameState(t, n.Store, standby)
}

// A schema is raised by an entry; a program that does not know it stops following.
func TestASchemaIsRaisedByAnEntry(t *testing.T) {
	t.Parallel()
	log := &commitlogtest.Memory{}
	raise := func(by commitlog.Tenure, schema int) {
		began := by.State()
		must(t, by.Append(commitlog.Seal(began.Position, commitlog.Entry{Epoch: began.Epoch,
			Incarnation: began.Incarnation, Kind: commitlog.Schema, Schema: schema})))
	}
	raise(must1(log.Acquire(context.Background(), "old program")), len(migrations)-2)
	standby := follow(t, log, "standby")
	n := newNode(t, log)
	must(t, change(n.Store, 1))
	must1(standby.CatchUp(context.Background()))
	if standby.schema != len(migrations) {
		t.Errorf("the standby has version %d of %d", standby.schema, len(migrations))
	}
	sameState(t, n.Store, standby)
	raise(must1(log.Acquire(context.Background(), "new program")), len(migrations)+1)
	if _, err := standby.CatchUp(context.Background()); !errors.Is(err, journal.ErrNewer) {
		t.Errorf("the standby follows a newer program: %v", err)
	}
}

// Close does not wait for an append that is stalled.
func TestCloseEndsAStalledAppend(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log := &commitlogtest.Memory{Lease: 2 * time.Second}
		n := ownAt(t, log, filepath.Join(dir, "test.db"))
		must(t, change(n.Store, 1))
		log.SetDown(true)
		done := make(chan error, 1)
		go func() { done <- change(n.Store, 2) }()
		synctest.Wait()
		must(t, n.Close())
		if err := <-done; !errors.Is(err, journal.ErrFenced) {
			t.Errorf("the stalled commit ended with %v", err)
		}
	})
}

// The clock is never below the newest entry's time, and catches up where it is ahead.
func TestTheClockDoesNotGoBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ahead := time.Now().Add(time.Hour)
		l := newLogged(nil, place{time: ahead.UnixMicro()}, 0, Options{})
		for range 100 {
			before := l.wall()
			time.Sleep(2 * time.Minute)
			if now := l.wall(); now.Before(before) || now.Before(ahead) {
				t.Fatalf("the clock went from %v to %v", before, now)
			}
		}
		if now := l.wall(); !now.Equal(time.Now()) {
			t.Errorf("after two hours the clock shows %v at %v", now, time.Now())
		}
		l.newest.Store(time.Now().Add(time.Minute).UnixMicro()) // the system's clock was set back by a minute
		if now := l.wall(); now.Before(time.Now().Add(time.Minute)) {
			t.Errorf("after an entry of the next minute the clock shows %v at %v", now, time.Now())
		}
		log := &commitlogtest.Memory{}
		n := ownAt(t, log, filepath.Join(dir, "test.db"))
		if n.Wall() == nil || n.now().Before(time.Now()) {
			t.Error("the store has no clock")
		}
		must(t, n.Close())
	})
}

// A copy is no store, and a store is no copy.
func TestACopyIsNotOpenedWithoutItsLog(t *testing.T) {
	t.Parallel()
	log := &commitlogtest.Memory{}
	n := newNode(t, log)
	must(t, change(n.Store, 1))
	backup := filepath.Join(t.TempDir(), "backup.db")
	must(t, n.Backup(context.Background(), backup))
	must(t, n.Close())
	if _, err := Open(n.path); !errors.Is(err, ErrCopy) {
		t.Errorf("a copy was opened: %v", err)
	}
	must(t, MarkUncertain(backup)) // a restored backup is a store
	for _, path := range []string{backup, n.path} {
		if path == n.path {
			must(t, Detach(path))
		}
		s, err := Open(path)
		must(t, err)
		must(t, change(s, 2))
		must(t, s.Close())
		if _, err := Follow(path, log, Options{}); !errors.Is(err, journal.ErrRefused) {
			t.Errorf("a store was followed: %v", err)
		}
	}
}

// An empty log is that of another database, not one that lost everything.
func TestACopyRefusesAnEmptyLog(t *testing.T) {
	t.Parallel()
	log := &commitlogtest.Memory{}
	n := newNode(t, log)
	must(t, change(n.Store, 1))
	must(t, n.Close())
	ctx := context.Background()
	f := must1(Follow(n.path, &commitlogtest.Memory{}, Options{}))
	_, err := f.CatchUp(ctx)
	must(t, f.Close())
	if !errors.Is(err, commitlog.ErrEmpty) {
		t.Errorf("an empty log: %v", err)
	}
	f = must1(Follow(n.path, log, Options{}))
	if p := must1(f.CatchUp(ctx)); p.Rebuilt != "" || p.Lost != nil || p.Entries != 0 {
		t.Errorf("the log of the copy: %+v", p)
	}
	must(t, f.Close())
}

// A home joins with its state; without replace only an empty log.
func TestAStoreJoins(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "home.db")
	s, err := Open(path)
	must(t, err)
	for i := range 20 {
		must(t, change(s, i))
	}
	epoch := s.Epoch()
	must(t, s.Close())
	ctx, log := context.Background(), &commitlogtest.Memory{}
	acquire := func() (commitlog.Tenure, error) { return log.Acquire(ctx, "joining") }
	must1(Seed(ctx, path, log, acquire, Seeding{}))
	n := newNode(t, log)
	if n.Epoch() <= epoch {
		t.Errorf("epoch %d follows epoch %d", n.Epoch(), epoch)
	}
	standby := follow(t, log, "standby")
	must(t, change(n.Store, 21))
	must1(standby.CatchUp(ctx))
	sameState(t, n.Store, standby)
	if _, err := Seed(ctx, path, log, acquire, Seeding{}); !errors.Is(err, journal.ErrRefused) {
		t.Errorf("a second home joined: %v", err)
	}
	must1(Seed(ctx, path, log, acquire, Seeding{Replace: true, Doubt: true}))
	if p := must1(standby.CatchUp(ctx)); p.Rebuilt == "" || p.Lost != nil {
		t.Errorf("the standby after a restore: %+v", p)
	}
	sameState(t, ownAt(t, log, filepath.Join(t.TempDir(), "restored.db")).Store, follow(t, log, "another"))
}

// A damaged copy is built again.
func TestADamagedCopyIsBuiltAgain(t *testing.T) {
	t.Parallel()
	log := &commitlogtest.Memory{}
	n := newNode(t, log)
	must(t, change(n.Store, 1))
	must(t, n.Close())
	must(t, os.WriteFile(n.path, make([]byte, 10_000), 0o600))
	n = ownAt(t, log, n.path)
	if n.progress.Rebuilt == "" || n.progress.Lost != nil {
		t.Errorf("the damaged copy: %+v", n.progress)
	}
	must(t, n.View(context.Background(), func(r journal.Reader) error {
		e, err := r.Event(1)
		if e == nil {
			t.Error("event 1 is lost")
		}
		return err
	}))
}

// A log that does not fit together is not followed, by no copy.
func TestABrokenLogIsNotFollowed(t *testing.T) {
	t.Parallel()
	log := &commitlogtest.Memory{Spoiled: commitlogtest.Spoiled{NoHead: true}}
	n := newNode(t, log)
	must(t, change(n.Store, 1))
	began := n.logged.tenure.State()
	must(t, n.logged.tenure.Append(commitlog.Seal(commitlog.Position{Head: 1}, commitlog.Entry{Epoch: began.Epoch,
		Incarnation: began.Incarnation, Kind: commitlog.Changes, Schema: len(migrations)})))
	f, err := Follow(filepath.Join(t.TempDir(), "f.db"), log, Options{})
	must(t, err)
	defer func() { _ = f.Close() }()
	if _, err := f.CatchUp(context.Background()); !errors.Is(err, commitlog.ErrBroken) {
		t.Errorf("the broken log: %v", err)
	}
}
