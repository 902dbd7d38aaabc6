package e2e

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is an unprivileged user: file modes do not stop root.
const nobody = 65534

// TestAHomeThatCannotBeWritten looks at one on which no kernel has left a place
// for sockets. Who only looks can; who would write says what is wrong.
func TestAHomeThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.must("backup", "create")
	w.stop()
	backups, _ := filepath.Glob(w.file("backups", "*.gz"))
	if len(backups) != 1 {
		t.Fatalf("the backups are %q", backups)
	}
	if err := os.RemoveAll(w.file("run")); err != nil {
		t.Fatal(err)
	}
	temp := w.file("temp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	w.env["TMPDIR"] = temp
	as := w.unprivileged()
	for _, dir := range []string{w.file("backups"), w.home} {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, error) {
		c := w.command(args...)
		c.SysProcAttr, c.Dir = as, w.home
		out, err := c.CombinedOutput()
		return string(out), err
	}
	for want, args := range map[string][]string{
		"manual":                {"backup", "list"},
		"is intact":             {"backup", "verify", backups[0]},
		"the kernel is running": {"logs"},
	} {
		if out, err := run(args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v, %s", args, err, out)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("among temporary files there are %v, %v", left, err)
	}
	out, err := run("doctor")
	if err == nil || !strings.Contains(out, "the directory is not writable") || !strings.Contains(out, "is intact") {
		t.Errorf("doctor: %v, %s", err, out)
	}
	for _, args := range [][]string{{}, {"run"}, {"setup", "--yes", "--timezone", "UTC"}, {"backup", "create"},
		{"backup", "restore", backups[0]}} {
		if out, err := run(args...); err == nil || !strings.Contains(out,
			"permission denied; make it writable, or set SWITCHBOARD_HOME to another directory") {
			t.Errorf("%q: %v, %s", args, err, out)
		}
	}
}

// unprivileged has the world belong to a user who is not root, and is how to run
// the program as that one.
func (w *world) unprivileged() *syscall.SysProcAttr {
	w.t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	err := os.Chmod(built, 0o711)
	if err == nil {
		err = filepath.WalkDir(w.home, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, nobody, nobody))
		})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}
