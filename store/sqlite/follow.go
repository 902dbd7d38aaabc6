package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
)

// Follower keeps a copy of the state that a commit log leads to, while another node is
// its owner. It is used by one goroutine at a time.
//
// A copy that the log does not continue is discarded and built again, from the snapshot
// if there is one: the file is damaged, the log was truncated after it, its digest is
// another one, or its newest entry is not in the log. The last case is reported as
// Progress.Lost, because the log has lost what it reported as durable.
type Follower struct {
	path   string
	log    commitlog.Log
	every  int64
	conn   *sqlite.Conn
	owner  *owner
	at     place
	schema int

	digests map[int64][]byte // of this copy, not compared yet
	since   Progress         // since the last call of CatchUp
}

// Progress is what CatchUp has done.
type Progress struct {
	Position commitlog.Position
	Entries  int64
	// Rebuilt says why the copy was discarded; empty: it was not.
	Rebuilt string
	// Lost is the position of a copy that is not in the log: entries that were durable are
	// gone. The next owner must log doubts. nil: nothing is known to be lost.
	Lost *commitlog.Position
}

// errRebuild means that the copy cannot be continued.
var errRebuild = errors.New("the copy has to be built again")

// errBranch means that the copy's newest entry is not in the log.
var errBranch = fmt.Errorf("%w: its newest entry is not in the log", errRebuild)

// Discarded is where the last copy is kept that was discarded because it was damaged or
// was not in the log.
func Discarded(path string) string { return path + ".discarded" }

// Follow opens the copy at a path, or begins one. It refuses a store that is none with
// journal.ErrRefused: Seed brings that into a log.
func Follow(path string, log commitlog.Log, o Options) (*Follower, error) {
	f := &Follower{path: path, log: log, every: digestEvery(o), digests: map[int64][]byte{}}
	err := f.open()
	if errors.Is(err, errRebuild) || errors.Is(err, journal.ErrDamaged) {
		f.since.Rebuilt = err.Error()
		if err = f.discard(true); err == nil {
			err = f.open()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the copy %s: %w", path, explain(err))
	}
	return f, nil
}

func (f *Follower) open() (err error) {
	if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
		if err := createWith(f.path, false, begin); err != nil {
			return err
		}
	}
	if err := checkKinds(f.path); err != nil {
		return err
	}
	if err := checkSize(f.path); err != nil {
		return err
	}
	if f.owner, err = own(f.path); err != nil {
		return err
	}
	if f.conn, err = sqlite.OpenConn(f.path, sqlite.OpenReadWrite); err == nil {
		f.conn.SetBlockOnBusy()
		err = f.load()
	}
	if err != nil {
		err = errors.Join(explain(err), f.Close())
	}
	return err
}

func (f *Follower) load() error {
	copied, err := isCopy(f.conn)
	if err != nil {
		return err
	}
	if !copied {
		return fmt.Errorf("%w: it is a store of its own, which a cluster would replace: "+
			"let it join the cluster first, or move it away", journal.ErrRefused)
	}
	if f.schema, err = knownVersion(f.conn); err != nil {
		return err
	}
	if info, err := os.Stat(f.path); err == nil && info.Size() <= smallStore {
		if err := runCheck(f.conn, "PRAGMA quick_check(1)"); err != nil {
			return err
		}
	}
	if f.at, err = readPlace(f.conn); err != nil {
		return err
	}
	return configure(f.conn, "PRAGMA synchronous=NORMAL") // the log has what a power loss takes
}

// Close closes the copy.
func (f *Follower) Close() (err error) {
	if f.conn != nil {
		err = f.conn.Close()
	}
	if f.owner != nil {
		f.owner.close()
	}
	f.conn, f.owner = nil, nil
	return err
}

// discard removes the closed copy; kept, it stays under another name.
func (f *Follower) discard(keep bool) error {
	if err := f.Close(); err != nil && !keep {
		return err
	}
	clear(f.digests)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		err := os.Remove(Discarded(f.path) + suffix)
		if keep && (err == nil || errors.Is(err, fs.ErrNotExist)) {
			err = os.Rename(f.path+suffix, Discarded(f.path)+suffix)
		} else if !keep {
			err = os.Remove(f.path + suffix)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("discard the copy: %w", err)
		}
	}
	return nil
}

// CatchUp applies the entries that the copy does not have yet, and returns when it has
// all that were in the log when it began. A copy with entries refuses an empty log with
// commitlog.ErrEmpty, and stays.
func (f *Follower) CatchUp(ctx context.Context) (Progress, error) {
	err := f.catchUp(ctx)
	for tries := 0; errors.Is(err, errRebuild) && tries < 2; tries++ {
		if f.at.Head > 0 { // else it is new, and begins with the snapshot
			f.since.Rebuilt = err.Error()
		}
		branch := errors.Is(err, errBranch)
		if branch && f.since.Lost == nil {
			lost := f.at.Position
			f.since.Lost = &lost
		}
		if err = f.rebuild(ctx, branch); err == nil {
			err = f.catchUp(ctx)
		}
	}
	f.since.Position = f.at.Position
	if err != nil {
		if errors.Is(err, errRebuild) {
			err = fmt.Errorf("%w: %w", commitlog.ErrBroken, err)
		}
		return f.since, fmt.Errorf("follow the log with %s: %w", f.path, explain(err))
	}
	p := f.since
	f.since = Progress{}
	return p, nil
}

func (f *Follower) catchUp(ctx context.Context) error {
	if f.conn == nil {
		return journal.ErrClosed
	}
	head, err := f.log.Head(ctx)
	if err != nil {
		return err
	}
	switch {
	case head.Head == 0 && f.at.Head > 0:
		return commitlog.ErrEmpty
	case f.at.Head > head.Head, f.at.Head == head.Head && f.at.Hash != head.Hash:
		return fmt.Errorf("%w: it is at %d (%x), and the log at %d (%x)", errBranch, f.at.Head, f.at.Hash[:4], head.Head,
			head.Hash[:4])
	case f.at.Head == head.Head:
		return nil
	case f.at.Head == 0 && head.Snapshot != nil:
		return fmt.Errorf("%w: a new one begins with the snapshot", errRebuild)
	case head.First > f.at.Head+1:
		return fmt.Errorf("%w: the log begins after it", errRebuild)
	}
	b := &batch{f: f}
	err = f.log.Read(ctx, f.at.Head, b.add)
	if errors.Is(err, commitlog.ErrTruncated) {
		err = fmt.Errorf("%w: %w", errRebuild, err)
	}
	return b.end(err)
}

// rebuild replaces the copy by the snapshot, or by one without entries.
func (f *Follower) rebuild(ctx context.Context, keep bool) error {
	if err := f.discard(keep); err != nil {
		return err
	}
	if err := f.download(ctx); err != nil && !errors.Is(err, commitlog.ErrNone) {
		return err
	}
	return f.open()
}

// begin makes an empty database a copy at the beginning of the log.
func begin(conn *sqlite.Conn) error { return script(conn, "PRAGMA journal_mode=WAL", logTables) }

// Values returns the keys of an owner with a prefix in the copy.
func (f *Follower) Values(ctx context.Context, owner, prefix string) (values []journal.KV, err error) {
	if f.conn == nil || f.schema == 0 { // it begins with the log's first entry
		return nil, nil
	}
	err = view(ctx, f.conn, func(r journal.Reader) (err error) {
		values, err = r.KVScan(owner, prefix, "", 0)
		return err
	})
	return values, err
}
