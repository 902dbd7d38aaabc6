package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/commitlog/commitlogtest"
)

// node is an owner of a cell.
type node struct {
	*Store
	log      *commitlogtest.Memory
	path     string
	progress Progress
	ended    chan error
}

// newNode opens a node on an empty disk.
func newNode(t *testing.T, log *commitlogtest.Memory) *node {
	t.Helper()
	return ownAt(t, log, filepath.Join(t.TempDir(), "test.db"))
}

// ownAt makes a node the owner, with what it has at the path.
func ownAt(t *testing.T, log *commitlogtest.Memory, path string) *node {
	t.Helper()
	n := &node{log: log, path: path, ended: make(chan error, 1)}
	tenure, err := log.Acquire(context.Background(), filepath.Dir(path))
	must(t, err)
	n.Store, n.progress, err = OpenOver(context.Background(), path, log, tenure,
		Options{DigestEvery: 10, Ended: func(err error) { n.ended <- err }})
	must(t, err)
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// follow brings a standby's new file up to date.
func follow(t *testing.T, log commitlog.Log, name string) *Follower {
	t.Helper()
	f, err := Follow(filepath.Join(t.TempDir(), name+".db"), log, Options{DigestEvery: 10})
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	_, err = f.CatchUp(context.Background())
	must(t, err)
	return f
}

// reader is a connection of the test's own to an open store.
func reader(t *testing.T, s *Store) *sqlite.Conn {
	t.Helper()
	conn, err := sqlite.OpenConn(s.path, sqlite.OpenReadOnly)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func mkdir(path string) error { return os.MkdirAll(filepath.Dir(path), 0o700) }
