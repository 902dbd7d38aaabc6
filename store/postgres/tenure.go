package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
)

// tenure is the time in which this process is the writer of a cell.
type tenure struct {
	cell  *Cell
	state commitlog.State
	ctx   context.Context // ends with the tenure
	end   context.CancelFunc
	lock  atomic.Int64 // Cell.lock when this was last known to be the writer

	mu         sync.Mutex
	now        *conn         // that an append uses; nil: none runs
	confirming bool          // a confirmation runs
	next       *confirmation // begins after it; nil: none is asked for
	Figures
	latest [256]time.Duration // of appends, in a ring
	count  int
}

var _ commitlog.Tenure = (*tenure)(nil)

// A build with crash points may spoil what is a promise.
var (
	wrapTenure = func(t *tenure) commitlog.Tenure { return t }
	leaseEnd   = func(sent time.Time) time.Time { return sent.Add(LeaseTime) }
)

func newTenure(l *Cell, s commitlog.State, lock int64) *tenure {
	t := &tenure{cell: l, state: s}
	t.lock.Store(lock)
	t.ctx, t.end = context.WithCancel(context.Background())
	return t
}

func errFenced(s commitlog.State) error {
	return fmt.Errorf("%w: the epoch %d of this node is over", journal.ErrFenced, s.Epoch)
}

// State implements commitlog.Tenure.
func (t *tenure) State() commitlog.State { return t.state }

// LeaseUntil implements commitlog.Tenure.
func (t *tenure) LeaseUntil() time.Time {
	if t.cell.Lease == nil || t.ctx.Err() != nil {
		return time.Time{}
	}
	if t.cell.lock != nil {
		if now := t.cell.lock(); now == 0 || now != t.lock.Load() { // others do not wait for the lease
			return time.Time{}
		}
	}
	return t.cell.Lease()
}

// Append implements commitlog.Tenure.
func (t *tenure) Append(e commitlog.Entry) error {
	if t.ctx.Err() != nil {
		return errFenced(t.state)
	}
	return commitlog.Append(t.ctx, steps{t}, e)
}

// confirmation is one write that answers all who asked before it began.
type confirmation struct {
	done chan struct{}
	err  error
}

// Confirm implements commitlog.Tenure. After a restart of PostgreSQL all readers ask for a
// while: one confirmation runs at a time, and the next one is for all who came meanwhile.
func (t *tenure) Confirm(ctx context.Context) error {
	t.mu.Lock()
	if t.next == nil {
		t.next = &confirmation{done: make(chan struct{})}
	}
	c := t.next
	if !t.confirming {
		t.confirming = true
		go t.confirmAll()
	}
	t.mu.Unlock()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *tenure) confirmAll() {
	for {
		t.mu.Lock()
		c := t.next
		t.next, t.confirming = nil, c != nil
		t.mu.Unlock()
		if c == nil {
			return
		}
		c.err = t.confirm()
		close(c.done)
	}
}

// confirm makes sure that this is the writer. A read would not do: a primary that was
// replaced answers it.
func (t *tenure) confirm() error {
	for {
		var got result
		lock := t.cell.held()
		err := t.cell.database.with(t.ctx, func(ctx context.Context, c *conn) (err error) {
			got, err = c.exec(ctx, "UPDATE cell SET touched = touched + 1 WHERE id = $1 AND epoch = $2 AND incarnation = $3",
				t.cell.id, t.state.Epoch, t.state.Incarnation[:])
			return err
		})
		switch {
		case t.ctx.Err() != nil, err == nil && got.affected == 0:
			return errFenced(t.state)
		case err == nil:
			t.lock.Store(lock)
			return nil
		}
		pause(t.ctx, reconnectPause)
	}
}

const reconnectPause = 20 * time.Millisecond

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Release implements commitlog.Tenure. The cell shows that it has no writer, so an append
// that still runs somewhere is fenced.
func (t *tenure) Release(ctx context.Context) error {
	first := t.ctx.Err() == nil
	t.end()
	t.mu.Lock()
	if t.now != nil {
		t.now.drop()
	}
	t.mu.Unlock()
	if !first {
		return nil
	}
	return t.cell.database.with(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, "UPDATE cell SET incarnation = '', node = '' "+
			"WHERE id = $1 AND epoch = $2 AND incarnation = $3 RETURNING pg_notify('"+channel+"', '')::text",
			t.cell.id, t.state.Epoch, t.state.Incarnation[:])
		return err
	})
}

// ownTenure returns a tenure of a Cell, also inside another one; nil: it is none.
func ownTenure(t commitlog.Tenure) *tenure {
	if x, ok := t.(interface{ itself() *tenure }); ok {
		return x.itself()
	}
	return nil
}

func (t *tenure) itself() *tenure { return t }

// Figures are those of a tenure.
type Figures struct {
	Appends int64         // that were tried
	P99     time.Duration // of the newest 256 of them
	Standby int64         // seconds in which one waited for a standby
	Unknown int64         // times an unknown outcome was asked about
}

// FiguresOf returns the figures of a tenure of a Cell.
func FiguresOf(t commitlog.Tenure) (f Figures) {
	own := ownTenure(t)
	if own == nil {
		return f
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	f = own.Figures
	f.Appends = int64(own.count)
	if n := min(own.count, len(own.latest)); n > 0 {
		sorted := slices.Clone(own.latest[:n])
		slices.Sort(sorted)
		f.P99 = sorted[(n*99-1)/100]
	}
	return f
}

// steps are those of an append.
type steps struct{ *tenure }

const (
	appendName = "append"
	appendSQL  = `WITH f AS (
		UPDATE switchboard.cell SET head = head + 1, hash = $6, schema = $8, first = greatest(first, 1)
		WHERE id = $1 AND epoch = $2 AND incarnation = $3 AND head = $4 AND hash = $5 RETURNING head
	) INSERT INTO switchboard.log SELECT $1, head, $7 FROM f`
)

// TryAppend implements commitlog.Steps. It has no deadline: PostgreSQL may wait for its
// standby as long as it likes.
func (s steps) TryAppend(e commitlog.Entry) error {
	c, err := s.connection()
	if err != nil {
		return fmt.Errorf("%w: %w: %w", commitlog.ErrUntried, journal.ErrStalled, err)
	}
	previous := e.Previous[:]
	if e.Position == 1 {
		previous = nil // as the cell has it before its first entry
	}
	values, _, formats := parameters([]any{
		s.cell.id, e.Epoch, e.Incarnation[:], e.Position - 1, append([]byte{}, previous...), e.Hash[:], e.Encode(),
		e.Schema,
	})
	watched, began := s.watch(c), time.Now()
	c.warning = nil
	got, err := c.finish(c.pg.ExecPrepared(s.ctx, appendName, values, formats, nil).Read())
	watched()
	if err != nil {
		c.drop()
	}
	s.done(c, time.Since(began))
	switch {
	case err != nil:
		return err
	case got.affected != 1:
		return errors.New("nothing was appended: the log does not stand where this node left it")
	}
	return nil
}

// done gives the connection of an append back.
func (s steps) done(c *conn, took time.Duration) {
	s.mu.Lock()
	s.now = nil
	s.latest[s.count%len(s.latest)] = took
	s.count++
	s.mu.Unlock()
	s.cell.database.put(c)
	<-s.cell.database.appends
}

// connection returns one of the pool for an append, with its statement. It waits while
// PostgreSQL can't be reached: a restart delays commits, and fails none.
func (s steps) connection() (c *conn, err error) {
	d := s.cell.database
	select {
	case d.appends <- struct{}{}:
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
	defer func() {
		if err != nil {
			<-d.appends
		}
	}()
	for {
		if c = d.takeIdle(); c == nil || c.closed() {
			c, err = d.connect(s.ctx)
		}
		if err == nil {
			err = c.prepareAppends(s.ctx)
		}
		if err == nil {
			break
		}
		if !Unreachable(err) || s.ctx.Err() != nil {
			return nil, err
		}
		err = nil
		pause(s.ctx, reconnectPause)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err = s.ctx.Err(); err != nil {
		c.drop()
		return nil, err
	}
	s.now = c
	return c, nil
}

func (c *conn) prepareAppends(ctx context.Context) error {
	if c.appends {
		return nil
	}
	oids := []uint32{oidInt8, oidInt8, oidBytea, oidInt8, oidBytea, oidBytea, oidBytea, oidInt8}
	if _, err := c.pg.Prepare(ctx, appendName, appendSQL, oids); err != nil {
		c.drop()
		return err
	}
	c.appends = true
	return nil
}

// askEvery is how long an append may take before watch asks what it waits for.
const askEvery = time.Second

// watch drops the connection of an append when its backend no longer works on it: the
// answer, or the statement, is lost on the way.
func (s steps) watch(c *conn) (stop func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	go func() {
		for pause(ctx, askEvery); ctx.Err() == nil; pause(ctx, askEvery) {
			working, standby := s.working(ctx, c)
			if standby {
				s.mu.Lock()
				s.Standby++
				s.mu.Unlock()
			}
			if !working && ctx.Err() == nil {
				c.drop()
				return
			}
		}
	}()
	return cancel
}

// working tells whether a statement runs on the connection's backend, in doubt it does,
// and whether it waits for a standby.
func (s steps) working(ctx context.Context, c *conn) (working, standby bool) {
	ctx, done := context.WithTimeout(ctx, connectTimeout)
	defer done()
	var got result
	err := s.cell.database.with(ctx, func(ctx context.Context, other *conn) (err error) {
		got, err = other.exec(ctx, "SELECT coalesce(wait_event = 'SyncRep', false) FROM pg_stat_activity "+
			"WHERE pid = $1 AND backend_start::text = $2 AND state = 'active'", int64(c.pg.PID()), c.started)
		return err
	})
	return err != nil || len(got.rows) > 0, len(got.rows) > 0 && got.rows[0].int(0) != 0
}

// Settle implements commitlog.Steps. Its write locks the cell's row, so that no append
// comes between it and the read, and its commit is durable after all that was read. It is
// sent at once: a node that is stopped meanwhile holds no lock.
func (s steps) Settle(ctx context.Context, position int64) (state commitlog.State, e *commitlog.Entry, err error) {
	sql := fmt.Sprintf(`BEGIN; UPDATE cell SET touched = touched + 1 WHERE id = %[1]d;
		SELECT epoch, encode(incarnation, 'hex'), node, head, encode(hash, 'hex') FROM cell WHERE id = %[1]d;
		SELECT encode(entry, 'hex') FROM log WHERE cell = %[1]d AND position = %[2]d; COMMIT`, s.cell.id, position)
	s.mu.Lock()
	s.Unknown++
	s.mu.Unlock()
	err = s.cell.database.with(ctx, func(ctx context.Context, c *conn) error {
		got, err := c.script(ctx, sql)
		if err != nil {
			return err
		}
		if len(got[2].rows) == 0 {
			return fmt.Errorf("%w: %w", journal.ErrFenced, ErrNoCell)
		}
		r := got[2].rows[0]
		state.Epoch, state.Node, state.Head = number(r[0]), r.text(2), number(r[3])
		_, _ = hex.Decode(state.Incarnation[:], r[1])
		_, _ = hex.Decode(state.Hash[:], r[4])
		if len(got[3].rows) == 0 {
			return nil
		}
		body, err := hex.DecodeString(got[3].rows[0].text(0))
		if err != nil {
			return err
		}
		there, err := commitlog.Decode(body)
		e = &there
		return err
	})
	return state, e, err
}
