package e2e

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unpackHome puts a home as an earlier version of the program has left it, killed
// with kill -9, in the place of the world's own.
func (w *world) unpackHome(version string) {
	w.t.Helper()
	f, err := os.Open(filepath.Join("testdata", "homes", version+".tar.gz"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		w.t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			w.t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			w.t.Fatal(err)
		}
		text := string(content)
		if h.Name == "config.yaml" {
			text = patiently(w.t, text)
		}
		w.write(text, 0o600, strings.Split(h.Name, "/")...)
	}
}

// A home of version 0.1.0, whose store has version 3, goes on with this one:
// nothing in it is lost, and the store is kept as it was beside the new one.
func TestAHomeOfAnEarlierVersionIsMigrated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unpackHome("v0.1.0")
	w.start()
	for _, want := range []struct{ command, text string }{
		{"schedules list", "renew the passport"}, {"schedules list", "water the plants"}, {"memory list", "I like green tea"},
		{"tasks list", "hi"}, {"sessions list", "orchestrator"}, {"sessions list", "echo"}, {"agents list", "tutor"},
	} {
		if got := w.must(strings.Fields(want.command)...); !strings.Contains(got, want.text) {
			t.Errorf("`switchboard %s` lacks %q:\n%s", want.command, want.text, got)
		}
	}
	if got := w.must("sessions", "show", "s1"); !strings.Contains(got, "in 400 days remind me to renew the passport") {
		t.Errorf("the conversation is gone:\n%s", got)
	}
	if _, err := os.Stat(w.file("switchboard.db.v3.backup")); err != nil {
		t.Errorf("the store was not kept as it was: %v", err)
	}
	w.stop()

	if err := os.Rename(w.file("switchboard.db.v3.backup"), w.file("switchboard.db")); err != nil {
		t.Fatal(err)
	}
	w.start()
	if got := w.must("schedules", "list"); !strings.Contains(got, "renew the passport") {
		t.Errorf("from the backup that the migration made:\n%s", got)
	}
	w.stop()
}
