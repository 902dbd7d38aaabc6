package manifests_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/switchboard-run/switchboard/manifests"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// replace writes a file as careful editors do.
func replace(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+"~", text)
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

func text(id, name string) string {
	return "api: 1\nid: " + id + "\nname: " + name + "\nversion: 1.0.0\nrun: {command: ./bin/run, args: [main.py]}\n"
}

// watch opens and watches a directory. The function it returns waits for a
// change and fails if it is another than the one named.
func watch(t *testing.T, path string) (*manifests.Dir, func(want string)) {
	t.Helper()
	d, err := manifests.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	changes := make(chan manifests.Change, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Watch(ctx, func(all []manifests.Change) {
			for _, c := range all {
				changes <- c
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return d, func(want string) {
		t.Helper()
		c := <-changes
		if got := c.ID + " " + string(c.Kind); got != want {
			t.Fatalf("change %q, want %q", got, want)
		}
	}
}

func only(t *testing.T, d *manifests.Dir, id string) manifests.Entry {
	t.Helper()
	all := d.Entries()
	i := slices.IndexFunc(all, func(e manifests.Entry) bool { return e.ID == id })
	if i < 0 {
		t.Fatalf("%s is not in %+v", id, all)
	}
	return all[i]
}

func TestWatch(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "not", "yet")
	d, expect := watch(t, root)
	if len(d.Entries()) != 0 {
		t.Fatalf("entries of nothing: %+v", d.Entries())
	}
	file := filepath.Join(root, "a", "manifest.yaml")

	// Built aside and moved, so that a slow machine sees no half of it.
	aside := t.TempDir()
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(aside, "a", "bin", "run"), "1")
	write(t, filepath.Join(aside, "a", "manifest.yaml"), text("a", "One"))
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	move(filepath.Join(aside, "a"), filepath.Join(root, "a"))
	expect("a manifest")
	if e := only(t, d, "a"); e.Err != nil || e.Manifest.Name != "One" ||
		e.Manifest.Executable() != filepath.Join(root, "a", "bin", "run") {
		t.Fatalf("entry: %+v", e)
	}

	replace(t, filepath.Join(root, "a", "bin", "run"), "2")
	expect("a executable")
	replace(t, filepath.Join(root, "a", "main.py"), "print()")
	expect("a executable")
	if err := os.Chmod(filepath.Join(root, "a", "bin", "run"), 0o644); err != nil {
		t.Fatal(err)
	}
	expect("a executable")

	replace(t, file, text("a", "Two"))
	expect("a manifest")
	good := only(t, d, "a").Manifest
	if good.Name != "Two" {
		t.Fatalf("name %q", good.Name)
	}

	replace(t, file, text("a", "Three")+"nmae: x\n")
	expect("a manifest")
	if e := only(t, d, "a"); e.Manifest != good || e.Err == nil ||
		!strings.Contains(e.Err.Error(), file+":6:1: nmae: unknown field (did you mean name?)") {
		t.Fatalf("after a bad edit: %+v", e)
	}
	replace(t, filepath.Join(root, "a", "bin", "run"), "executable of the last good one")
	expect("a executable")

	replace(t, file, text("a", "Two"))
	expect("a manifest")
	if e := only(t, d, "a"); e.Err != nil || e.Manifest.Digest != good.Digest {
		t.Fatalf("after the bad edit was taken back: %+v", e)
	}

	// A second one, moved into place as a whole, and one without a manifest.
	write(t, filepath.Join(aside, "b", "manifest.yaml"), text("b", "B"))
	move(filepath.Join(aside, "b"), filepath.Join(root, "b"))
	expect("b manifest")
	write(t, filepath.Join(aside, "c", "manifest.yml"), text("c", "C"))
	move(filepath.Join(aside, "c"), filepath.Join(root, "c"))
	expect("c manifest")
	if e := only(t, d, "c"); e.Manifest != nil || e.Err == nil ||
		!strings.Contains(e.Err.Error(), "rename manifest.yml?") {
		t.Fatalf("without a manifest: %+v", e)
	}
	write(t, filepath.Join(root, ".hidden", "manifest.yaml"), "rubbish")

	if err := os.Remove(filepath.Join(root, "b", "manifest.yaml")); err != nil {
		t.Fatal(err)
	}
	expect("b removed")
	move(filepath.Join(root, "a"), filepath.Join(aside, "a"))
	expect("a removed")
	move(filepath.Join(root, "c"), filepath.Join(aside, "c"))
	expect("c removed")
	if all := d.Entries(); len(all) != 1 || all[0].ID != "b" || all[0].Err == nil {
		t.Fatalf("left: %+v", all)
	}
}

// Two names for one directory do not keep each other from being watched.
func TestWatchLinkedDirectory(t *testing.T) {
	t.Parallel()
	root, elsewhere := t.TempDir(), t.TempDir()
	file := filepath.Join(elsewhere, "manifest.yaml")
	write(t, file, text("a", "One"))
	for _, name := range []string{"a", "twin"} {
		if err := os.Symlink(elsewhere, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	d, expect := watch(t, root)
	if e := only(t, d, "twin"); e.Err == nil {
		t.Fatalf("the id of another directory: %+v", e)
	}
	replace(t, file, text("a", "Two"))
	expect("a manifest")
	expect("twin manifest")
	if e := only(t, d, "a"); e.Manifest.Name != "Two" {
		t.Fatalf("entry: %+v", e)
	}
}

// What happens between opening and watching is not lost, and what was there
// at opening is no change.
func TestWatchSeesWhatHappenedBefore(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "a", "manifest.yaml"), text("a", "One"))
	write(t, filepath.Join(root, "b", "manifest.yaml"), text("b", "One"))
	d, err := manifests.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Entries()) != 2 {
		t.Fatalf("entries: %+v", d.Entries())
	}
	write(t, filepath.Join(root, "b", "manifest.yaml"), text("b", "Two"))
	ctx, cancel := context.WithCancel(context.Background())
	var got []manifests.Change
	d.Watch(ctx, func(all []manifests.Change) { got = append(got, all...); cancel() })
	if len(got) != 1 || got[0] != (manifests.Change{ID: "b", Kind: manifests.ManifestChanged}) {
		t.Fatalf("changes: %+v", got)
	}
}

func TestLoadDir(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "good", "manifest.yaml"), text("good", "x"))
	write(t, filepath.Join(root, "Bad", "manifest.yaml"), text("bad", "x"))
	write(t, filepath.Join(root, "stray.yaml"), "x")
	if err := os.MkdirAll(filepath.Join(root, "odd", "manifest.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := manifests.LoadDir(root)
	if err != nil || len(entries) != 3 {
		t.Fatalf("%+v, %v", entries, err)
	}
	if e := entries[0]; e.ID != "Bad" || e.Err == nil || !strings.Contains(e.Err.Error(), `the directory is named "Bad"`) {
		t.Errorf("Bad: %+v", e)
	}
	if e := entries[1]; e.ID != "good" || e.Err != nil || e.Manifest.Dir() != filepath.Join(root, "good") {
		t.Errorf("good: %+v", e)
	}
	if e := entries[2]; e.ID != "odd" || e.Err == nil {
		t.Errorf("odd: %+v", e)
	}
	if entries, err := manifests.LoadDir(root + "/gone"); err != nil || len(entries) != 0 {
		t.Errorf("of nothing: %+v, %v", entries, err)
	}
}
