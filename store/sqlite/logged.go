package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
)

// logged is the commit log's side of a store. A group is applied to the file, captured,
// appended, and only then committed to the file, together with its position. After an
// append was tried, the group has happened or the tenure is over: the store then takes
// nothing more, and the file is brought up to date from the log by the next one that
// opens it.
type logged struct {
	tenure   commitlog.Tenure
	at       place // of the writer
	schema   int
	began    time.Time    // when the tenure's store was opened
	floor    time.Time    // the newest entry's time then
	newest   atomic.Int64 // the newest entry's time now
	every    int64        // entries between two digests
	onEnd    func(error)
	ended    atomic.Pointer[error]
	head     atomic.Int64 // of at
	appended atomic.Int64 // bytes
	digested int64        // the newest position of which a digest was begun
	digest   atomic.Pointer[[]byte]
}

// A build with crash points may set the clock wrong.
var clock = time.Now

func newLogged(t commitlog.Tenure, at place, schema int, o Options) *logged {
	l := &logged{tenure: t, at: at, schema: schema, began: clock(), floor: time.UnixMicro(at.time),
		every: digestEvery(o), onEnd: o.Ended}
	l.head.Store(at.Head)
	l.newest.Store(at.time)
	return l
}

// logError is an error of the log: its members are not tried alone.
type logError struct{ error }

func (e logError) Unwrap() error { return e.error }

// wall is a clock that is never below the newest entry's time. Where the system's was lower
// when the tenure began, it runs at half speed until that has caught up; where that is set
// back later, it stands still.
func (l *logged) wall() time.Time {
	now := clock()
	if slow := l.floor.Add(now.Sub(l.began) / 2); now.Before(slow) {
		now = slow
	}
	if newest := time.UnixMicro(l.newest.Load()); now.Before(newest) {
		return newest
	}
	return now
}

// end ends the ownership: the first error counts.
func (l *logged) end(err error) error {
	if !errors.Is(err, journal.ErrFenced) {
		err = fmt.Errorf("%w, after what was accepted could not be stored here: %w", journal.ErrFenced, err)
	}
	if l.ended.CompareAndSwap(nil, &err) && l.onEnd != nil {
		l.onEnd(err)
	}
	return *l.ended.Load()
}

// over returns the error that ended the ownership; nil: none did.
func (l *logged) over() error {
	if l == nil {
		return nil
	}
	if err := l.ended.Load(); err != nil {
		return *err
	}
	return nil
}

// confirm returns nil if the store was the owner's at a moment after the call began.
func (l *logged) confirm(ctx context.Context) error {
	err := l.over()
	if err != nil || time.Now().Before(l.tenure.LeaseUntil()) {
		return err
	}
	if err = l.tenure.Confirm(ctx); errors.Is(err, journal.ErrFenced) {
		return l.end(err)
	}
	return err
}

// append appends an entry. An error is one of the log: fenced, or nothing was sent.
func (l *logged) append(kind commitlog.Kind, body []byte) (commitlog.Entry, error) {
	if err := l.over(); err != nil {
		return commitlog.Entry{}, logError{err}
	}
	e := l.seal(kind, body)
	err := l.tenure.Append(e)
	if errors.Is(err, journal.ErrFenced) {
		err = l.end(err)
	}
	if err != nil {
		return e, logError{err}
	}
	l.appended.Add(int64(len(body)))
	return e, nil
}

// seal makes the next entry.
func (l *logged) seal(kind commitlog.Kind, body []byte) commitlog.Entry {
	began := l.tenure.State()
	return commitlog.Seal(l.at.Position, commitlog.Entry{
		Epoch: began.Epoch, Incarnation: began.Incarnation, Kind: kind, Schema: l.schema,
		Time: max(l.wall().UnixMicro(), l.at.time), Body: body,
	})
}

// conclude ends a transaction: its changes are appended, and then committed here with
// their position. An error means that nothing was appended, or that the tenure is over.
// If only the commit here fails, the changes have happened, and the tenure is over.
func (l *logged) conclude(t *tx, kind commitlog.Kind, c *changes) error {
	if err := storeCounters(t); err != nil {
		return err
	}
	body, err := c.patchset()
	if err != nil {
		return err
	}
	if len(body) == 0 && kind == commitlog.Changes {
		if err := l.confirm(context.Background()); err != nil {
			return logError{err}
		}
		return t.exec("COMMIT")
	}
	return l.store(t, kind, body)
}

// store appends an entry and commits the transaction that has made its changes.
func (l *logged) store(t *tx, kind commitlog.Kind, body []byte) error {
	e, err := l.append(kind, body)
	if err != nil {
		return err
	}
	l.at = place{e.At(), e.Time}
	l.head.Store(e.Position)
	l.newest.Store(e.Time)
	err = setPlace(t.conn, e)
	if err == nil {
		err = t.exec("COMMIT")
	}
	if err != nil {
		_ = l.end(explain(err))
		if !t.conn.AutocommitEnabled() {
			_ = t.exec("ROLLBACK")
		}
	}
	return nil
}

// change logs one group while the store is not open yet.
func (l *logged) change(conn *sqlite.Conn, kind commitlog.Kind, change func() error) (err error) {
	t := &tx{conn: conn}
	if err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	var c *changes
	if kind != commitlog.Schema {
		c, err = record(conn)
	}
	defer c.end()
	if err == nil {
		err = change()
	}
	switch {
	case err == nil && kind == commitlog.Schema:
		err = l.store(t, kind, nil)
	case err == nil:
		err = l.conclude(t, kind, c)
	}
	if err != nil && !conn.AutocommitEnabled() {
		_ = t.exec("ROLLBACK")
	}
	return errors.Join(err, l.over())
}

// release ends a tenure whose append is stalled, so that closing does not wait for it. An
// append within the lease has its time.
func (l *logged) release(closed <-chan struct{}) {
	for l != nil {
		select {
		case <-closed:
			return
		case <-time.After(max(time.Until(l.tenure.LeaseUntil()), 0) + releasePause):
		}
		if time.Now().After(l.tenure.LeaseUntil()) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = l.tenure.Release(ctx)
		}
	}
}

const releasePause = 100 * time.Millisecond

// Wall returns the clock of a store over a commit log, which is never below the time of
// the log's newest entry; nil: the system's clock will do.
func (s *Store) Wall() func() time.Time {
	if s.logged == nil {
		return nil
	}
	return s.logged.wall
}

func (s *Store) now() time.Time {
	if s.logged == nil {
		return time.Now()
	}
	return s.logged.wall()
}

// Head returns the newest entry of the commit log that the store includes; 0 without one.
func (s *Store) Head() int64 {
	if s.logged == nil {
		return 0
	}
	return s.logged.head.Load()
}

// Appended returns how many bytes the store has appended to its commit log since it was
// opened, without the entries' headers.
func (s *Store) Appended() int64 {
	if s.logged == nil {
		return 0
	}
	return s.logged.appended.Load()
}
