// Package sqlite is the embedded journal engine: one file in WAL mode with
// synchronous=FULL, and one goroutine that writes. It commits all waiting updates as
// one group, without delay. A failed member does not affect the others: if it has
// written something, the group is applied again, with a savepoint for each member.
// Reads run concurrently on their own connections.
//
// # How deliveries are stored
//
// Nearly every delivery waits, is handled once, and is done. A row and an index entry
// for each would cost more than its event. So such deliveries share rows: a block
// (block.go) holds those of one subscription for 256 consecutive events, each with its
// state, the start of its attempt and its settlement. The writer caches recently
// changed blocks (blocks.go) and writes each once per group, in the group's own
// transaction, so deliveries are as durable as with rows.
//
// Other deliveries have a row in the table delivery: those that are in flight, have
// failed, are dead or were queued again, and those with a reason or a receipt. A
// delivery starts in a block if possible, moves to a row when a block cannot represent
// it, and never moves back. Stores older than blocks only have rows. deliveries.go
// hides all of this from readers.
//
// A block does not store the keys of lanes, which are those of the events. For waiting
// deliveries it has a 16-bit hash of the key, so that reading a lane skips nearly all
// events of other lanes.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

const (
	readers     = 2
	queueLength = 4096 // Submit blocks beyond it
	groupLimit  = 1024 // members of one transaction
)

// Store implements journal.Store.
type Store struct {
	path    string
	write   *sqlite.Conn
	read    *sqlitex.Pool
	epoch   int64
	logged  *logged // nil: without a commit log
	owner   *owner
	lost    atomic.Pointer[error] // of the last check of the owner; nil: none
	checked time.Time             // when that was; the writer's

	queue   chan journal.Update
	closed  chan struct{}
	once    sync.Once
	closing error        // of Close
	submit  sync.RWMutex // held for reading while submitting, for writing to close
	done    bool
	syncing atomic.Pointer[func()]
	damage  atomic.Pointer[error] // the first one found

	copying     context.Context // of backups
	stopCopying context.CancelFunc
	copies      sync.WaitGroup

	// Owned by the writing goroutine.
	seq    int64    // newest event
	log    *os.File // nil: fully reserved
	groups int      // number of groups after which the queue was empty
	pruned int64    // Prune continues after this event; 0: at the oldest
	hot    [hots]*sqlite.Stmt
	blocks blocks
	// valuesKeep: a value has kept a blob, so values that are replaced are looked at.
	valuesKeep bool
	newest     struct { // the event appended last
		seq int64
		key string
	}
}

var _ journal.Store = (*Store)(nil)

// BeforeSync makes the writing goroutine call f before each commit. It is for tests
// that simulate a slow disk.
func (s *Store) BeforeSync(f func()) { s.syncing.Store(&f) }

// Options configure a store; the zero value is valid.
type Options struct {
	// Volatile does not sync commits: they are fast, but a power loss can destroy the
	// store. It is for tests.
	Volatile bool
	// DigestEvery is the number of entries of a commit log between two digests of the
	// state; 0: 65,536. All nodes have the same.
	DigestEvery int64
	// Ended is called once when a store over a commit log has lost its ownership, by the
	// writing goroutine. It must not block.
	Ended func(error)
}

// Open opens or creates the store. It migrates an older version, after a backup beside
// the file.
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
	if err := quickCheck(path); err != nil {
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
	if err := refuseCopy(conn); err != nil {
		return nil, err
	}
	if err := migrate(conn, path); err != nil {
		return nil, err
	}
	if err := configure(conn, synchronous(o.Volatile)); err != nil {
		return nil, err
	}
	epoch, err := number(conn, "UPDATE epoch SET number = number + 1 RETURNING number")
	if err != nil {
		return nil, err
	}
	return serve(path, conn, owner, int64(epoch), nil)
}

// configure sets the pragmas of the writing connection.
func configure(conn *sqlite.Conn, synchronous string) error {
	for _, pragma := range []string{
		synchronous, "PRAGMA foreign_keys=OFF", "PRAGMA temp_store=MEMORY",
		fmt.Sprintf("PRAGMA journal_size_limit=%d", maxLog),
	} {
		if err := sqlitex.ExecuteTransient(conn, pragma, nil); err != nil {
			return err
		}
	}
	return nil
}

// serve starts a store on a connection that is ready.
func serve(path string, conn *sqlite.Conn, owner *owner, epoch int64, l *logged) (*Store, error) {
	pool, err := sqlitex.NewPool(path, sqlitex.PoolOptions{
		Flags: sqlite.OpenReadOnly, PoolSize: readers,
	})
	if err != nil {
		return nil, err
	}
	s := &Store{
		path: path, write: conn, read: pool, epoch: epoch, logged: l, owner: owner,
		queue: make(chan journal.Update, queueLength), closed: make(chan struct{}),
	}
	if s.seq, err = (&tx{conn: conn}).LastSeq(); err != nil {
		_ = pool.Close()
		return nil, err
	}
	kept, err := number(conn,
		fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM blob_keeper WHERE kind = %d)", journal.KeptByValue))
	if err != nil {
		_ = pool.Close()
		return nil, err
	}
	s.valuesKeep = kept > 0
	if l == nil { // only a commit that is synced gains from it
		s.log = openLog(path)
	}
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
	hintOpen = "the file cannot be opened for writing: check that its directory exists and is writable, " +
		"or choose another SWITCHBOARD_HOME"
	hintDamaged = "restore a backup, or move the file away to start with an empty store"
)

// explain adds advice for the owner to an error of SQLite.
func explain(err error) error {
	if sqlite.ErrCode(err) == sqlite.ResultIOErrSHMSize { // its index of the log has no room
		return fmt.Errorf("%w: free some space; nothing accepted is lost: %w", journal.ErrFull, err)
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultNotADB, sqlite.ResultCorrupt:
		return fmt.Errorf("%w (%w): %s", journal.ErrDamaged, err, hintDamaged)
	case sqlite.ResultFull:
		return fmt.Errorf("%w: free some space; nothing accepted is lost: %w", journal.ErrFull, err)
	case sqlite.ResultIOErr:
		return fmt.Errorf("%w: the disk cannot be read or written, or is full: check `df` and the system's log: %w",
			journal.ErrRefused, err)
	case sqlite.ResultReadOnly, sqlite.ResultCantOpen:
		return fmt.Errorf("%w: %s: %w", journal.ErrRefused, hintOpen, err)
	}
	return err
}

// View implements journal.Store.
func (s *Store) View(ctx context.Context, read func(journal.Reader) error) error {
	err := s.snapshot(ctx, read)
	if err == nil && s.logged != nil { // another node may have become the owner before it was read
		err = s.logged.confirm(ctx)
	}
	return s.noteDamage(err)
}

func (s *Store) snapshot(ctx context.Context, read func(journal.Reader) error) error {
	conn, err := s.read.Take(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.Join(journal.ErrClosed, err)
	}
	defer s.read.Put(conn)
	return view(ctx, conn, read)
}

// view reads a snapshot of a store.
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

// Damage returns the first damage found so far; nil: none. Open reads all of a store
// only if it is small.
func (s *Store) Damage() error {
	if err := s.lost.Load(); err != nil {
		return *err
	}
	if err := s.damage.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *Store) noteDamage(err error) error {
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
	return journal.ErrClosed // Close interrupts views
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
