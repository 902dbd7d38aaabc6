package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/home/config"
)

func home0() time.Time { return time.Unix(1, 0) }

var errKilled = errors.New("killed")

// TestKilledWhileRestoring dies in front of each step of a restoration. After
// the next start the home is as it was, or as the backup is, never in between,
// and nothing of the old is lost.
func TestKilledWhileRestoring(t *testing.T) { // replaces rename: not in parallel
	for steps, whole := 0, false; !whole; steps++ {
		home := house(t, "before")
		file := backUp(t, home)
		fill(t, home, "after")
		// A log beside the store, as a kernel that was killed leaves it.
		if err := os.WriteFile(home.Database()+"-wal", []byte("of the old store"), 0o600); err != nil {
			t.Fatal(err)
		}
		left := steps
		rename = func(from, to string) error {
			if left--; left < 0 {
				return errKilled
			}
			return os.Rename(from, to)
		}
		_, err := Restore(t.Context(), home, file, false)
		rename = os.Rename
		if whole = err == nil; !whole && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		// Opening a home creates its missing directories.
		if _, err := config.OpenHomeAt(home.Path()); err != nil {
			t.Fatal(err)
		}
		if left := steps % 2; left == 1 { // and leaves something in one
			if err := os.WriteFile(filepath.Join(home.Extensions(), "note"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before, err := Finish(home)
		if err != nil {
			t.Fatalf("killed after %d steps: %v", steps, err)
		}
		if again, err := Finish(home); err != nil || again != "" {
			t.Errorf("killed after %d steps: once more: %q, %v", steps, again, err)
		}
		Sweep(home)
		want := "before"
		if steps == 0 { // it had not begun
			want = "after"
			if err := os.Remove(home.Database() + "-wal"); err != nil {
				t.Error(err)
			}
		}
		if got := says(t, home); got != want {
			t.Errorf("killed after %d steps: the store says %q, want %q", steps, got, want)
		}
		for name, text := range map[string]string{"config.yaml": "# " + want, "extensions/shop/shop": want,
			"data/shop/deep/file": want} {
			if got := content(t, home, name); got != text {
				t.Errorf("killed after %d steps: %s is %q, want %q", steps, name, got, text)
			}
		}
		if steps > 0 {
			kept, err := filepath.Glob(filepath.Join(home.Path(), KeptPrefix+"*"))
			if err != nil || len(kept) != 1 {
				t.Fatalf("killed after %d steps: kept in %q (%v), said %q", steps, kept, err, before)
			}
			got := slices.DeleteFunc(names(t, kept[0]), func(name string) bool { return name == "extensions-2" }) // made since
			if !slices.Equal(got, []string{"config.yaml", "data", "extensions", "switchboard.db", "switchboard.db-wal"}) {
				t.Errorf("killed after %d steps: kept are %q", steps, got)
			}
		}
		for _, name := range names(t, home.Path()) {
			if strings.HasPrefix(name, ".") || name == restoring {
				t.Errorf("killed after %d steps: %s is left", steps, name)
			}
		}
		if steps > 30 {
			t.Fatal("it does not come to an end")
		}
	}
}

func TestTwoRestorationsAtOnce(t *testing.T) {
	t.Parallel()
	home := house(t, "before")
	file := backUp(t, home)
	kept := map[string]bool{}
	for range 3 { // within a second
		r, err := Restore(t.Context(), home, file, false)
		if err != nil {
			t.Fatal(err)
		}
		kept[r.Before] = true
	}
	if len(kept) != 3 {
		t.Errorf("three restorations keep what they replace in %v", kept)
	}
}

// TestAStartLeavesWhatIsVerified starts a kernel while a backup is being verified.
func TestAStartLeavesWhatIsVerified(t *testing.T) {
	t.Parallel()
	home := house(t, "before")
	file := backUp(t, home)
	ctx, stop := context.WithCancel(t.Context())
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		for ctx.Err() == nil {
			Sweep(home)
		}
	})
	verified := 0
	for range 20 { // between its making and its being held, a directory may go: then there is no verdict
		if _, err := Verify(t.Context(), file, home.Backups()); errors.Is(err, ErrUnusable) {
			t.Errorf("a good one: %v", err)
		} else if err == nil {
			verified++
		}
	}
	stop()
	sweeping.Wait()
	if verified == 0 {
		t.Error("none could be verified")
	}
}
