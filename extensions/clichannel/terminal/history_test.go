package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHistoryKeepsLines(t *testing.T) {
	t.Parallel()
	h := history{filepath.Join(t.TempDir(), "history")}
	if lines, err := h.load(); err != nil || lines != nil {
		t.Fatalf("no file: got %q, %v", lines, err)
	}
	want := []string{"one", "two\nlines", `a \n that is none`, `\`, "чайник"}
	for _, l := range append(want, "", strings.Repeat("x", historyLine+1)) {
		if err := h.add(l); err != nil {
			t.Fatal(err)
		}
	}
	got, err := h.load()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if info, err := os.Stat(h.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestHistoryIsShortened(t *testing.T) {
	t.Parallel()
	h := history{filepath.Join(t.TempDir(), "history")}
	for i := range 2*historyLimit + 5 {
		if err := h.add(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		lines, err := h.load()
		if err != nil || len(lines) != historyLimit || lines[historyLimit-1] != fmt.Sprint(2*historyLimit+4) {
			t.Fatalf("%d lines, %v", len(lines), err)
		}
	}
	info, err := os.Stat(h.path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() > 6*historyLimit {
		t.Errorf("%v, %v", info, err)
	}
}

func TestUnwritableHistory(t *testing.T) {
	t.Parallel()
	h := history{t.TempDir()} // a directory
	if err := h.add("x"); err == nil {
		t.Error("added to a directory")
	}
	if err := (history{}).add("x"); err != nil {
		t.Error("without a file:", err)
	}
}
