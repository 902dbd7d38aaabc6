// Package sqlite is the embedded journal engine: one file in WAL mode with
// synchronous=FULL, one goroutine that writes. It commits whatever is waiting
// as one group, without lingering. A member that fails takes nothing with it: if
// it has written something, the group is applied again, with a savepoint for
// each member. Reads run beside it on connections of their own.
//
// # How deliveries are stored
//
// Nearly every delivery waits, is handled once, and is done. A row for each,
// with its place in an index of what waits, costs more than its event does. So
// such deliveries share rows: a block (block.go) holds those of one subscription
// for 256 events in a row, each with whether it is done, when its attempt started
// and when it was settled. The writer keeps the blocks in memory that it has
// changed lately (blocks.go), and writes each of them once for a group, in the
// group's own transaction: what is durable when is the same as with a row for
// each.
//
// What does not go that way has a row of its own in the table delivery: whatever
// is in flight, has failed, died or was queued again, and whatever has a reason
// or a receipt. A delivery is in one of the two places. It begins in a block if
// it can, moves to a row when the block has no room for what is to be said of it,
// and does not come back. Stores that were written before there were blocks have
// rows alone. All of that is known here and nowhere else: deliveries.go makes one
// of the two for everybody who reads.
//
// A block does not hold the keys of lanes, which are those of the events. For
// what waits it has 16 bits of a hash of the key, so that reading a lane leaves
// out nearly all events of others without looking at them.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

const (
	readers     = 2
	queueLength = 4096 // submitters beyond it wait
	groupLimit  = 1024 // members of one transaction
)

// Store implements journal.Store.
type Store struct {
	path    string
	write   *sqlite.Conn
	read    *sqlitex.Pool
	epoch   int64
	replica journal.Log // nil: none
	owner   *owner
	lost    atomic.Pointer[error] // of the last check of the owner; nil: none

	queue   chan journal.Update
	closed  chan struct{}
	once    sync.Once
	closing error        // of Close
	submit  sync.RWMutex // held for reading while submitting, for writing to close
	done    bool
	syncing atomic.Pointer[func()]
	damage  atomic.Pointer[error] // the first that was met

	copying     context.Context // of backups
	stopCopying context.CancelFunc
	copies      sync.WaitGroup

	// Of the writing goroutine.
	seq    int64    // newest event
	log    *os.File // nil: it has its size
	groups int      // after which nothing was waiting
	pruned int64    // where the walk of Prune goes on; 0: at the oldest event
	hot    [hots]*sqlite.Stmt
	blocks blocks
	newest struct { // the event that was appended last
		seq int64
		key string
	}
}

var _ journal.Store = (*Store)(nil)

// BeforeSync has f called by the goroutine that writes, before each commit is
// made durable. It is for tests of what a slow disk does.
func (s *Store) BeforeSync(f func()) { s.syncing.Store(&f) }

// Options says how to open a store; the zero value is a store by itself.
type Options struct {
	// Log gets each group of updates as a SQLite patchset before it is committed.
	Log journal.Log
	// Volatile leaves it to the system when commits reach the disk, which is quick: a
	// loss of power can cost the store. It is for tests.
	Volatile bool
}

// Open opens or creates the store and brings it to the current version, after a
// backup beside the file when there was an older one.
func Open(path string) (*Store, error) { return OpenWith(path, Options{}) }

// OpenWith is Open with options.
func OpenWith(path string, o Options) (*Store, error) {
	s, err := open(path, o)
	if err != nil {
		return nil, fmt.Errorf("open the store %s: %w", path, explain(err))
	}
	return s, nil
}

func open(path string, o Options) (s *Store, err error) {
	if err := prepare(path, o.Volatile); err != nil {
		return nil, err
	}
	if err := glance(path); err != nil {
		return nil, err
	}
	owner, err := own(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			owner.close()
		}
	}()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	conn.SetBlockOnBusy()
	if err := migrate(conn, path); err != nil {
		return nil, err
	}
	for _, pragma := range []string{synchronous(o.Volatile), "PRAGMA foreign_keys=OFF", "PRAGMA temp_store=MEMORY", fmt.Sprintf("PRAGMA journal_size_limit=%d", logMost)} {
		if err := sqlitex.ExecuteTransient(conn, pragma, nil); err != nil {
			return nil, err
		}
	}
	epoch, err := number(conn, "UPDATE epoch SET number = number + 1 RETURNING number")
	if err != nil {
		return nil, err
	}
	pool, err := sqlitex.NewPool(path, sqlitex.PoolOptions{
		Flags: sqlite.OpenReadOnly, PoolSize: readers,
	})
	if err != nil {
		return nil, err
	}
	s = &Store{
		path: path, write: conn, read: pool, epoch: int64(epoch), replica: o.Log, owner: owner,
		queue: make(chan journal.Update, queueLength), closed: make(chan struct{}),
	}
	if s.seq, err = (&tx{conn: conn}).LastSeq(); err != nil {
		_ = pool.Close()
		return nil, err
	}
	s.log = openLog(path)
	s.copying, s.stopCopying = context.WithCancel(context.Background())
	go s.writeLoop()
	return s, nil
}

func synchronous(volatile bool) string {
	if volatile {
		return "PRAGMA synchronous=OFF"
	}
	return "PRAGMA synchronous=FULL"
}

const (
	hintOpen    = "the file cannot be opened for writing: check that its directory exists and is writable, or choose another SWITCHBOARD_HOME"
	hintDamaged = "restore a backup, or move the file away to start afresh"
)

// explain says in words what a person can do about an error of SQLite.
func explain(err error) error {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultNotADB, sqlite.ResultCorrupt:
		return fmt.Errorf("%w (%w): %s", journal.ErrDamaged, err, hintDamaged)
	case sqlite.ResultFull:
		return fmt.Errorf("%w: make room, nothing that was accepted is lost: %w", journal.ErrFull, err)
	case sqlite.ResultIOErr:
		return fmt.Errorf("%w: the disk cannot be read or written, or is full: look at `df` and the system's log: %w", journal.ErrRefused, err)
	case sqlite.ResultReadOnly, sqlite.ResultCantOpen:
		return fmt.Errorf("%w: %s: %w", journal.ErrRefused, hintOpen, err)
	}
	return err
}

// View implements journal.Store.
func (s *Store) View(ctx context.Context, read func(journal.Reader) error) error {
	conn, err := s.read.Take(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.Join(journal.ErrClosed, err)
	}
	defer s.read.Put(conn)
	return s.met(view(ctx, conn, read))
}

// view reads one moment of a store.
func view(ctx context.Context, conn *sqlite.Conn, read func(journal.Reader) error) error {
	t := &tx{conn: conn}
	if err := t.exec("BEGIN"); err != nil {
		return viewError(ctx, err)
	}
	defer func() {
		conn.SetInterrupt(nil)
		_ = t.exec("COMMIT")
	}()
	return viewError(ctx, read(t))
}

// Damage is what has been met of a damaged store so far; nil: nothing. A store is
// read whole when it is opened only if it is small.
func (s *Store) Damage() error {
	if err := s.lost.Load(); err != nil {
		return *err
	}
	if err := s.damage.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *Store) met(err error) error {
	if errors.Is(err, journal.ErrDamaged) || errors.Is(err, journal.ErrFenced) {
		s.damage.CompareAndSwap(nil, &err)
	}
	return err
}

func viewError(ctx context.Context, err error) error {
	if sqlite.ErrCode(err) != sqlite.ResultInterrupt {
		return explain(err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return journal.ErrClosed // interrupts what is being read
}

// Epoch implements journal.Store.
func (s *Store) Epoch() int64 { return s.epoch }

// Size implements journal.Store.
func (s *Store) Size() int64 {
	var size int64
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(s.path + suffix); err == nil {
			size += info.Size()
		}
	}
	return size
}
