package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/store/blobfiles"
	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/postgres"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// Seat is the place of a home in a cluster.
type Seat struct {
	Home *config.Home
	DSN  string
	Node string
	Cell string
	// Configure writes the place into the configuration, and Unconfigure removes it.
	Configure, Unconfigure func() error
	// Note, if set, tells what is being done.
	Note func(format string, args ...any)
}

func (s Seat) note(format string, args ...any) {
	if s.Note != nil {
		s.Note(format, args...)
	}
}

// open opens the cell; nil: there is none. The name of the connections is not that of a node.
func (s Seat) open(ctx context.Context, what string) (*postgres.Database, *postgres.Cell, error) {
	d, err := postgres.Open(ctx, postgres.Options{DSN: s.DSN, Name: "switchboard-" + what + " " + s.Node})
	if err != nil {
		return nil, nil, err
	}
	cell, err := d.Reserved(ctx, s.Cell, s.Node)
	if errors.Is(err, postgres.ErrNoCell) {
		return d, nil, nil
	}
	if err != nil {
		d.Close()
		return nil, nil, err
	}
	return d, cell, nil
}

// Joined is what Join has done.
type Joined struct {
	// Moved: the state of the home has become that of the cell.
	Moved bool
	Files int      // of messages that were moved
	Lost  []string // files that the home had lost before
	// Kept is where the home's own store is kept; empty: it had none.
	Kept string
}

// Join makes a home one that serves a cell. If it has a state and the cell has none, its
// state becomes that of the cell: all of it, compared, or nothing. It may be killed at any
// instant and repeated; meanwhile no kernel starts on the home. The caller holds the lock
// of the home.
func Join(ctx context.Context, s Seat) (Joined, error) {
	j := &joining{Seat: s}
	err := j.run(ctx)
	if err != nil {
		err = fmt.Errorf("join the cell %s: %w", s.Cell, err)
	}
	return j.done, err
}

type joining struct {
	Seat
	database *postgres.Database
	cell     *postgres.Cell // nil: there is none yet
	done     Joined
}

// mark is what the file of a home that joins says.
type mark struct {
	Cell     string
	Node     string
	Position int64
	Hash     commitlog.Hash
	Digest   sqlite.Digest
	Kept     string
	Files    int
}

func readMark(h *config.Home) (*mark, error) {
	text, err := os.ReadFile(h.Joining())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	m := new(mark)
	if err == nil {
		err = json.Unmarshal(text, m)
	}
	if err != nil {
		return nil, fmt.Errorf("read how far it is: %w", err)
	}
	return m, nil
}

// Joining is the cell that a home has begun to join, and as which node; empty: it has not.
func Joining(h *config.Home) (cell, node string) {
	m, err := readMark(h)
	if m == nil || err != nil {
		return "", ""
	}
	return m.Cell, m.Node
}

func (m *mark) at() commitlog.Position { return commitlog.Position{Head: m.Position, Hash: m.Hash} }

func (j *joining) run(ctx context.Context) error {
	d, cell, err := j.open(ctx, "join")
	if err != nil {
		return err
	}
	defer d.Close()
	j.database, j.cell = d, cell
	connected, err := d.Connected(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(connected, j.Node) {
		return fmt.Errorf("a node with the name %s is running already: choose another one with --node", j.Node)
	}
	m, err := readMark(j.Home)
	if err != nil {
		return err
	}
	if m != nil && m.Cell != j.Cell {
		return fmt.Errorf("this home began to join the cell %s: finish that with --cell %[1]s, or take it back with "+
			"`switchboard cluster leave`", m.Cell)
	}
	var head commitlog.State
	if cell != nil {
		if head, err = cell.Head(ctx); err != nil {
			return ended(err)
		}
	}
	if m != nil && head.Head > 0 {
		moved, err := moved(ctx, cell, m)
		if err != nil {
			return err
		}
		if moved {
			return j.finish(ctx, m)
		}
	}
	return j.begin(ctx, head, m)
}

// ended adds what to do to an error of a cell that has ended.
func ended(err error) error {
	if errors.Is(err, postgres.ErrEnded) {
		return fmt.Errorf("%w: choose another name with --cell", err)
	}
	return err
}

// moved reports whether the state of a home that began to join has become the cell's.
func moved(ctx context.Context, cell *postgres.Cell, m *mark) (bool, error) {
	e, err := cell.Entry(ctx, m.Position)
	if errors.Is(err, commitlog.ErrNone) {
		at, r, err := cell.SnapshotAt(ctx, m.Position)
		if err == nil {
			_ = r.Close()
		}
		return err == nil && at == m.at(), nil
	}
	return err == nil && e.Hash == m.Hash, err
}

func (j *joining) begin(ctx context.Context, head commitlog.State, m *mark) error {
	db := j.Home.Database()
	if m != nil && !present(db) && present(m.Kept) { // PostgreSQL has lost the state that it had reported
		if err := rename(m.Kept, db); err != nil {
			return err
		}
	}
	copied, empty, about, err := examine(ctx, db)
	switch {
	case err != nil:
		return err
	case copied && m == nil:
		if err := belongs(ctx, j.cell, db, head); err != nil {
			return err
		}
		return j.configure()
	case head.Head > 0 && empty:
		if present(db) {
			if err := rename(db, j.keptName()); err != nil {
				return err
			}
			j.done.Kept = j.keptName()
		}
		return j.configure()
	case head.Head > 0:
		return fmt.Errorf("nothing was changed, because both have a state: the cell (%s) and this home (%s). To serve the "+
			"cell, move %s away first; to bring this home's state into the cluster, choose a new cell with --cell",
			lastEntry(ctx, j.cell, head), about, db)
	case !present(db):
		return j.configure()
	}
	return j.move(ctx)
}

// examine looks at the store of a home.
func examine(ctx context.Context, db string) (copied, empty bool, about string, err error) {
	if !present(db) && !present(db+"-wal") {
		return false, true, "", nil
	}
	if copied, err = sqlite.IsCopy(db); err != nil {
		return false, false, "", err
	}
	c, err := sqlite.Examine(ctx, db)
	if err != nil {
		return false, false, "", err
	}
	return copied, c.Events == 0 && c.Sessions == 0, fmt.Sprintf("%d events and %d conversations, the newest of %s",
		c.Events, c.Sessions, c.LastEvent.Format("2006-01-02 15:04 MST")), nil
}

// lastEntry describes the state of a cell.
func lastEntry(ctx context.Context, cell *postgres.Cell, head commitlog.State) string {
	words := fmt.Sprintf("%d commits", head.Head)
	if e, err := cell.Entry(ctx, head.Head); err == nil {
		words += ", the newest of " + entryTime(e).UTC().Format("2006-01-02 15:04 MST")
	}
	return words
}

// belongs returns an error if the copy of a home is evidently not one of the cell.
func belongs(ctx context.Context, cell *postgres.Cell, db string, head commitlog.State) error {
	at, err := copyOf(db, head)
	if err != nil || at.Head == 0 || at.Head < head.First {
		return err
	}
	e, err := cell.Entry(ctx, at.Head)
	if err == nil && e.Hash == at.Hash {
		return nil
	}
	if err == nil || errors.Is(err, commitlog.ErrNone) {
		err = fmt.Errorf("this home has a copy of another cell, or PostgreSQL has lost commits: if it is another one, "+
			"move %s away first", db)
	}
	return err
}

// copyOf returns the position of a copy of the cell with a log. ErrEmpty: the log has no
// entries, and the copy has.
func copyOf(db string, head commitlog.State) (commitlog.Position, error) {
	at, err := sqlite.PositionOf(db)
	if err == nil && at.Head > 0 && head.Head == 0 {
		err = fmt.Errorf("open the copy %s: %w", db, commitlog.ErrEmpty)
	}
	return at, err
}

// move makes the home's state that of the empty cell.
func (j *joining) move(ctx context.Context) error {
	db := j.Home.Database()
	if copied, err := sqlite.IsCopy(db); err != nil {
		return err
	} else if !copied { // brings it to this program's version, with nothing left in its log
		s, err := sqlite.Open(db)
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			return err
		}
	}
	var err error
	if j.cell, err = j.database.Reserve(ctx, j.Cell, j.Node); err != nil {
		return err
	}
	if err := j.moveFiles(ctx, db); err != nil {
		return err
	}
	j.note("Moving the state of this home into the cell %s.", j.Cell)
	m := &mark{Cell: j.Cell, Node: j.Node, Kept: j.keptName(), Files: j.done.Files}
	var tenure commitlog.Tenure
	_, err = sqlite.Seed(ctx, db, j.cell, func() (t commitlog.Tenure, err error) {
		tenure, err = j.cell.Acquire(ctx, j.Node)
		return tenure, ended(err)
	}, sqlite.Seeding{
		Ready: func(at commitlog.Position, digest sqlite.Digest) error {
			m.Position, m.Hash, m.Digest = at.Head, at.Hash, digest
			if err := write(j.Home.Joining(), m); err != nil {
				return err
			}
			return sqlite.MarkMoved(db, at) // from here on it is no store of its own
		},
	})
	if tenure != nil {
		defer func() { _ = tenure.Release(context.WithoutCancel(ctx)) }()
	}
	if err != nil {
		return err
	}
	return j.finish(ctx, m)
}

// moveFiles stores the files of messages, and reads each of them back.
func (j *joining) moveFiles(ctx context.Context, db string) error {
	sizes, err := sqlite.Blobs(db)
	if err != nil {
		return err
	}
	dir := blobfiles.Dir(j.Home.Files())
	if j.done.Lost, err = dir.Lost(sizes); err != nil {
		return err
	}
	if len(sizes) > 0 {
		j.note("Moving %d files of messages.", len(sizes))
	}
	for _, hash := range slices.Sorted(maps.Keys(sizes)) {
		if slices.Contains(j.done.Lost, hash) {
			continue
		}
		if stored(ctx, j.cell, hash) != nil {
			f, err := dir.Open(hash)
			if err == nil {
				err = errors.Join(j.cell.PutBlob(ctx, hash, f), f.Close())
			}
			if err == nil {
				err = stored(ctx, j.cell, hash)
			}
			if err != nil {
				return err
			}
		} else if _, err := j.cell.KeepBlobs(ctx, []string{hash}); err != nil {
			return err
		}
		j.done.Files++
	}
	return nil
}

// stored reads a file back and compares its hash.
func stored(ctx context.Context, blobs commitlog.Blobs, hash string) error {
	r, err := blobs.Blob(ctx, hash)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, r)
	if got := hex.EncodeToString(sum.Sum(nil)); err == nil && got != hash {
		err = fmt.Errorf("%w: the file %s is stored with the hash %s", commitlog.ErrBroken, hash, got)
	}
	return errors.Join(err, r.Close())
}

// finish makes the home a node's when its state is the cell's.
func (j *joining) finish(ctx context.Context, m *mark) error {
	j.done.Moved, j.done.Files, j.done.Kept = true, m.Files, m.Kept
	db := j.Home.Database()
	if !present(m.Kept) || same(db, m.Kept) {
		j.note("Reading it back.")
		if err := j.readBack(ctx, db, m); err != nil {
			return err
		}
	}
	if err := j.cell.Admit(ctx); err != nil {
		return err
	}
	return j.configure()
}

// readBack puts a copy of the cell's state in the place of the home's store, which is kept.
func (j *joining) readBack(ctx context.Context, db string, m *mark) error {
	read := db + ".joined"
	at, r, err := j.cell.SnapshotAt(ctx, m.Position)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if at != m.at() {
		return fmt.Errorf("%w: its snapshot at entry %d is another one", commitlog.ErrBroken, m.Position)
	}
	if _, err := sqlite.Build(ctx, read, j.cell, at, r, m.Position); err != nil {
		return err
	}
	digest, err := sqlite.DigestOf(read)
	if err == nil && digest != m.Digest {
		err = fmt.Errorf("%w: the state in the cluster is not that of this home, whose store stays at %s",
			commitlog.ErrBroken, db)
	}
	if err != nil {
		return err
	}
	if !present(m.Kept) {
		err = os.Link(db, m.Kept)
		if err != nil { // a file system without links
			err = rename(db, m.Kept)
		}
		if err != nil {
			return err
		}
	}
	return rename(read, db)
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return errors.Join(err, err2) == nil && os.SameFile(x, y)
}

// configure writes the configuration, and ends the joining.
func (j *joining) configure() error {
	if err := j.Configure(); err != nil {
		return err
	}
	if err := os.Remove(j.Home.Joining()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("finish joining: %w", err)
	}
	return nil
}

// keptName is a name for the home's own store that is free.
func (j *joining) keptName() string {
	name := j.Home.Database() + ".before-cluster"
	for n, first := 2, name; present(name); n++ {
		name = fmt.Sprintf("%s-%d", first, n)
	}
	return name
}

// write writes a small file durably.
func write(file string, value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		err = config.Replace(file, append(text, '\n'))
	}
	if err == nil {
		err = syncDir(file)
	}
	return err
}

func present(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// rename renames a store that is closed, durably.
func rename(from, to string) error {
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(to + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("move %s: %w", from, err)
		}
	}
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(from+suffix, to+suffix); err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("move %s: %w", from, err)
		}
	}
	return syncDir(to)
}

func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
