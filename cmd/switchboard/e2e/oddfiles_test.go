package e2e

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A manifest, a configuration or secrets that are no regular file keep nothing else
// from working.
func TestFilesThatAreNoFilesAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config("")
	if err := errors.Join(
		os.MkdirAll(w.file("extensions", "pipe"), 0o700), os.MkdirAll(w.file("extensions", "endless"), 0o700),
		syscall.Mkfifo(w.file("extensions", "pipe", "manifest.yaml"), 0o600),
		os.Symlink("/dev/zero", w.file("extensions", "endless", "manifest.yaml")),
	); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.works()
	for _, args := range [][]string{{"doctor"}, {"extensions", "list"}} {
		out, _, _ := w.cli(args...)
		contains(t, strings.Join(args, " "), out, "is a pipe, not a regular file", "is a device, not a regular file")
	}
	config := w.file("config.yaml")
	if err := errors.Join(os.Remove(config), syscall.Mkfifo(config, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.eventually("status names the configuration", func() bool {
		out, _, _ := w.cli("status")
		return strings.Contains(out, "config.yaml is a pipe, not a regular file")
	})
	w.works()
	w.stop()
	_, complaints, code := w.cli("run")
	if code != 1 {
		t.Errorf("a start with a pipe as its configuration: exit status %d", code)
	}
	contains(t, "stderr", complaints, "config.yaml is a pipe, not a regular file")
}
