package sqlite_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	engine "github.com/switchboard-run/switchboard/store/sqlite"
)

// fill makes a store with some content and closes it.
func fill(t *testing.T, path string) {
	t.Helper()
	s, err := engine.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if err := put(t.Context(), s, "k", make([]byte, 4000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func put(ctx context.Context, s journal.Store, key string, value []byte) error {
	return journal.Do(ctx, s, func(tx journal.Tx) error {
		e := &busv1.Event{Topic: "a.b", Source: "test", Payload: value}
		if err := tx.AppendEvent(e); err != nil {
			return err
		}
		_, err := tx.KVPut("x", key, value)
		return err
	})
}

// exec runs a statement on the file itself.
func execFile(t *testing.T, path, query string) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteTransient(conn, query, nil); err != nil {
		t.Fatal(err)
	}
}

func TestNewerStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	fill(t, path)
	execFile(t, path, "PRAGMA user_version=99")
	before := read(t, path)
	_, err := engine.Open(path)
	if !errors.Is(err, journal.ErrNewer) || !strings.Contains(err.Error(), "99") ||
		!strings.Contains(err.Error(), "install the newer program") {
		t.Errorf("opening a store of version 99: %v", err)
	}
	if err := engine.Check(path); !errors.Is(err, journal.ErrNewer) {
		t.Errorf("checking a store of version 99: %v", err)
	}
	if read(t, path) != before {
		t.Error("a newer store was changed")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDamageFoundLater overwrites pages that opening does not read: commits fail
// as damaged, not as if the disk were full, and the kernel goes on.
func TestDamageFoundLater(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	fill(t, path)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := f.Stat()
	for at := int64(4096); at < info.Size(); at += 4096 { // every page but the first
		if _, err := f.WriteAt([]byte("damage"), at); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	if err := engine.Check(path); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("checking a damaged store: %v, want ErrDamaged", err)
	}
	s, err := engine.Open(path)
	if err == nil {
		defer func() { _ = s.Close() }()
		err = put(t.Context(), s, "k", nil)
	}
	if !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("using a damaged store: %v, want ErrDamaged", err)
	}
}

// TestDamageThatIsMet is in a store that is too large to be read when it is
// opened: what meets it first is remembered.
func TestDamageThatIsMet(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	grow(t, path, 3000)
	edit(t, path, func(b []byte) []byte { // all but what is read when it is opened
		for page := 40; page < len(b)/4096; page++ {
			copy(b[page*4096:(page+1)*4096], strings.Repeat("garbage!", 512))
		}
		return b
	})
	s, err := engine.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Damage(); err != nil {
		t.Errorf("before anything was read: %v", err)
	}
	if err := s.View(t.Context(), func(r journal.Reader) error {
		_, err := r.KVScan("test", "", "", 10_000)
		return err
	}); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("reading: %v, want ErrDamaged", err)
	}
	if err := s.Damage(); !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), "restore a backup") {
		t.Errorf("afterwards: %v, want ErrDamaged", err)
	}
}

func TestUnusablePlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"no directory":   filepath.Join(dir, "missing", "test.db"),
		"a directory":    dir,
		"inside of file": filepath.Join(file, "test.db"),
	} {
		_, err := engine.Open(path)
		if err == nil || !strings.Contains(err.Error(), path) ||
			!strings.Contains(err.Error(), "check that its directory exists and is writable") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFileIsPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	s, err := engine.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := put(t.Context(), s, "k", nil); err != nil {
		t.Fatal(err)
	}
	backup := path + ".copy"
	if err := s.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, path + "-wal", backup} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v (%v), want 0600", p, info.Mode(), err)
		}
	}
	copied, err := engine.Open(backup)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = copied.Close() }()
	if err := copied.View(t.Context(), func(r journal.Reader) error {
		if last, err := r.LastSeq(); err != nil || last != 1 {
			t.Errorf("the backup ends with event %d (%v), want 1", last, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// inChild runs the calling test again in a process of its own, and returns true
// in that one.
func inChild(t *testing.T, attributes *syscall.SysProcAttr) bool {
	t.Helper()
	if os.Getenv("SQLITE_TEST_CHILD") == t.Name() {
		return true
	}
	dir := childDir(t)
	exe := copyTo(t, filepath.Join(dir, "child"))
	work := filepath.Join(dir, "work")
	if err := errors.Join(os.Mkdir(work, 0o777), os.Chmod(work, 0o777)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), "SQLITE_TEST_CHILD="+t.Name(), "SQLITE_TEST_DIR="+work)
	cmd.Dir, cmd.SysProcAttr = dir, attributes
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("in a process of its own: %v\n%s", err, out)
	}
	return false
}

// copyTo copies the test's binary, which lies where only its owner can get.
func copyTo(t *testing.T, path string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return path
}

// childDir is a directory that another user can get to.
func childDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "switchboard-sqlite")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // another user has to get there
		t.Fatal(err)
	}
	return dir
}

// TestReadOnly opens stores whose file or directory cannot be written. For root
// that is no obstacle, so it becomes somebody else.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		readOnly(t, t.TempDir())
		return
	}
	inChild(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
}

func readOnly(t *testing.T, dir string) {
	path := filepath.Join(dir, "test.db")
	fill(t, path)
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	for _, mode := range []struct {
		file, dir os.FileMode
	}{{0o400, 0o700}, {0o600, 0o500}, {0o400, 0o500}} {
		if err := errors.Join(os.Chmod(path, mode.file), os.Chmod(dir, mode.dir)); err != nil {
			t.Fatal(err)
		}
		_, err := engine.Open(path)
		if err == nil || !strings.Contains(err.Error(), "choose another SWITCHBOARD_HOME") {
			t.Errorf("file %v, directory %v: %v", mode.file, mode.dir, err)
		}
	}
	if err := errors.Join(os.Chmod(dir, 0o700), os.Chmod(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := engine.Open(path)
	if err != nil {
		t.Fatalf("writable again: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing the store: %v", err)
	}
}

// TestFullDisk runs out of room in the middle of large and small updates. What
// was accepted stays, what was refused is not there, and with room it goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs a limit of file sizes")
	}
	if !inChild(t, nil) {
		return
	}
	fullDisk(t, os.Getenv("SQLITE_TEST_DIR"))
}
