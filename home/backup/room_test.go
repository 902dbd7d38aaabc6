package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestABackupLeavesRoomForMessages has a disk that becomes full while a backup is
// made, checked and restored: each gives up before messages are refused, and
// leaves nothing.
func TestABackupLeavesRoomForMessages(t *testing.T) { // replaces freeIn: not in parallel
	home := house(t, "before")
	file := backUp(t, home)
	fill(t, home, "after")
	defer func(before func(string) (uint64, error)) { freeIn = before }(freeIn)
	for asked, done := 0, false; !done; asked++ {
		left := asked
		freeIn = func(string) (uint64, error) {
			if left--; left < 0 {
				return 0, nil
			}
			return 1 << 40, nil
		}
		dir := t.TempDir()
		_, made := Create(t.Context(), source(home), filepath.Join(dir, "b"+Extension))
		left = asked
		_, verified := Verify(t.Context(), file, dir)
		left = asked
		before := names(t, home.Path())
		_, restored := Restore(t.Context(), home, file, false)
		done = made == nil && verified == nil && restored == nil
		for what, err := range map[string]error{"making": made, "verifying": verified, "restoring": restored} {
			if errors.Is(err, ErrUnusable) {
				t.Errorf("%s blames the backup: %v", what, err)
			}
			if err != nil && !strings.Contains(err.Error(), "not enough disk space: the disk of ") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if left := names(t, dir); made != nil && len(left) > 0 {
			t.Errorf("it has left %q", left)
		}
		if restored != nil && (says(t, home) != "after" || len(names(t, home.Path())) != len(before)) {
			t.Errorf("the home has %q, then %q", before, names(t, home.Path()))
		}
		if restored == nil {
			fill(t, home, "after")
		}
		if asked == 0 && (made == nil || verified == nil || restored == nil) {
			t.Errorf("without room: %v, %v, %v", made, verified, restored)
		}
	}
}

// TestManyWithinASecond have names of their own.
func TestManyWithinASecond(t *testing.T) {
	t.Parallel()
	home, now := house(t, "before"), time.Now()
	for range 3 {
		if _, err := Create(t.Context(), source(home), Name(home, now)); err != nil {
			t.Error(err)
		}
	}
	if found := List(home); len(found) != 3 {
		t.Errorf("there are %+v", found)
	}
}

// TestAFileThatGrows copies what it had when it was opened.
func TestAFileThatGrows(t *testing.T) {
	t.Parallel()
	home := house(t, "before")
	path := filepath.Join(home.Path(), "data", "shop", "log")
	if err := os.WriteFile(path, []byte("begun"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if _, err := f.Write(make([]byte, 1<<16)); err != nil {
				stopped <- err
				return
			}
			if err := f.Truncate(5); err != nil { // the disk does not become full
				stopped <- err
				return
			}
		}
		stopped <- nil
	}()
	file := backUp(t, home)
	cancel()
	if err := errors.Join(<-stopped, f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), file, home.Backups()); err != nil {
		t.Error(err)
	}
}
