package sqlite_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
	engine "github.com/switchboard-run/switchboard/store/sqlite"
)

// killed leaves a store as a process that was killed does: the newest changes
// are in the log only.
func killed(t *testing.T, path string) {
	t.Helper()
	s, err := engine.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		if err := put(t.Context(), s, string(rune('a'+i%26)), make([]byte, 4000)); err != nil {
			t.Fatal(err)
		}
	}
	left := files(t, filepath.Dir(path))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		if err := os.WriteFile(path+suffix, []byte(left[filepath.Base(path)+suffix]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// files are the contents of a directory by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "-shm") || strings.HasSuffix(e.Name(), "-wal") &&
			read(t, filepath.Join(dir, e.Name())) == "" {
			continue // holds nothing
		}
		if e.IsDir() {
			all[e.Name()] = "a directory"
			continue
		}
		all[e.Name()] = read(t, filepath.Join(dir, e.Name()))
	}
	return all
}

// edit changes a file of a store.
func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	if err := os.WriteFile(path, change([]byte(read(t, path))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// overwrite replaces bytes with garbage.
func overwrite(at, n int) func([]byte) []byte {
	return func(b []byte) []byte {
		copy(b[at:at+n], bytes.Repeat([]byte("garbage"), n))
		return b
	}
}

const frame = 24 + 4096

// TestDamage damages each file of a store in every way that is known. It has to
// be noticed at the start and by Check, which say what to do, and change nothing.
func TestDamage(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, path string){
		"no database": func(t *testing.T, path string) {
			edit(t, path, func([]byte) []byte { return []byte(strings.Repeat("no database", 9000)) })
		},
		"one byte":   func(t *testing.T, path string) { edit(t, path, func([]byte) []byte { return []byte("x") }) },
		"zero bytes": func(t *testing.T, path string) { edit(t, path, func([]byte) []byte { return nil }) },
		"zero bytes and no log": func(t *testing.T, path string) {
			edit(t, path, func([]byte) []byte { return nil })
			if err := os.Remove(path + "-wal"); err != nil {
				t.Fatal(err)
			}
		},
		"only the log": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
		"truncated": func(t *testing.T, path string) {
			edit(t, path, func(b []byte) []byte { return b[:20<<10] })
		},
		"cut inside of a page": func(t *testing.T, path string) {
			edit(t, path, func(b []byte) []byte { return b[:len(b)/2+17] })
		},
		"header": func(t *testing.T, path string) {
			fill(t, path) // closed: the log has none of it
			edit(t, path, overwrite(0, 100))
		},
		"a page of garbage": func(t *testing.T, path string) { edit(t, path, overwrite(6*4096, 4096)) },
		"a page of zeros": func(t *testing.T, path string) {
			edit(t, path, func(b []byte) []byte { clear(b[7*4096 : 8*4096]); return b })
		},
		"header of the log": func(t *testing.T, path string) { edit(t, path+"-wal", overwrite(0, 32)) },
		"beginning of the log, zeroed": func(t *testing.T, path string) {
			edit(t, path+"-wal", func(b []byte) []byte { clear(b[:4096]); return b })
		},
		"first frame of the log": func(t *testing.T, path string) { edit(t, path+"-wal", overwrite(32+50, 10)) },
		"one byte in the middle of the log": func(t *testing.T, path string) {
			edit(t, path+"-wal", overwrite(32+30*frame+99, 1))
		},
		"a frame in the middle of the log": func(t *testing.T, path string) {
			edit(t, path+"-wal", overwrite(32+30*frame, frame))
		},
		"many frames in the middle of a log": func(t *testing.T, path string) {
			edit(t, path+"-wal", overwrite(32+20*frame+7, 30*frame))
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "test.db")
			killed(t, path)
			damage(t, path)
			before := files(t, filepath.Dir(path))
			_, openErr := engine.Open(path)
			for attempt, err := range map[string]error{"checking": engine.Check(path), "opening": openErr} {
				if !errors.Is(err, journal.ErrDamaged) {
					t.Fatalf("%s: %v, want ErrDamaged", attempt, err)
				}
				for _, want := range []string{path, "restore a backup", "move the file away"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: the error does not say %q: %v", attempt, want, err)
					}
				}
			}
			if after := files(t, filepath.Dir(path)); !maps.Equal(before, after) {
				t.Errorf("the files have changed: %v, then %v", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
			}
		})
	}
}

// TestTornLog cuts the log where losing power may: the last commit goes, and
// nobody complains.
func TestTornLog(t *testing.T) {
	t.Parallel()
	for name, tear := range map[string]func([]byte) []byte{
		"short":            func(b []byte) []byte { return b[:len(b)-1] },
		"half a frame":     func(b []byte) []byte { return b[:len(b)-frame/2] },
		"garbage at end":   func(b []byte) []byte { return append(b, bytes.Repeat([]byte("x"), 3*frame)...) },
		"last frame wrong": func(b []byte) []byte { return overwrite(len(b)-100, 100)(b) },
		"only a header":    func(b []byte) []byte { return b[:32] },
		"half a header":    func(b []byte) []byte { return b[:20] },
		"empty":            func(b []byte) []byte { return b[:0] },
		"zeros":            func([]byte) []byte { return make([]byte, 200) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "test.db")
			killed(t, path)
			edit(t, path+"-wal", tear)
			if err := engine.Check(path); err != nil {
				t.Errorf("checking: %v", err)
			}
			s, err := engine.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := put(t.Context(), s, "k", nil); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCutTheLogAsTold does what the error says for those who have no backup.
func TestCutTheLogAsTold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	killed(t, path)
	edit(t, path+"-wal", overwrite(32+60*frame+99, 1))
	_, err := engine.Open(path)
	if err == nil {
		t.Fatal("a damaged log was taken")
	}
	_, command, found := strings.Cut(err.Error(), "truncate -s ")
	if !found {
		t.Fatalf("the error does not say how to go on: %v", err)
	}
	size, _, _ := strings.Cut(command, " ")
	if want := "247232"; size != want { // 32 + 60 frames
		t.Fatalf("the log is to be cut at %s, want %s", size, want)
	}
	if err := os.Truncate(path+"-wal", 247232); err != nil {
		t.Fatal(err)
	}
	s, err := engine.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestCheckLeavesNoTrace looks at a store that was closed, and at one that was
// not.
func TestCheckLeavesNoTrace(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(*testing.T, string){"closed": fill, "killed": killed} {
		path := filepath.Join(t.TempDir(), "test.db")
		make(t, path)
		before := files(t, filepath.Dir(path))
		if err := engine.Check(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c, err := engine.Examine(t.Context(), path); err != nil || c.Events == 0 {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		if err := engine.Copy(t.Context(), path, filepath.Join(t.TempDir(), "copy")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if after := files(t, filepath.Dir(path)); !maps.Equal(before, after) {
			t.Errorf("%s: the files have changed: %v, then %v", name, slices.Sorted(maps.Keys(before)),
				slices.Sorted(maps.Keys(after)))
		}
	}
	if err := engine.Check(filepath.Join(t.TempDir(), "test.db")); err != nil {
		t.Errorf("a store that is not there yet: %v", err)
	}
}

// TestHalfMade leaves what a process that was killed while it made the store
// leaves: the next one makes it.
func TestHalfMade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
		if err := os.WriteFile(path+".new"+suffix, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, path)
	if left := slices.Sorted(maps.Keys(files(t, filepath.Dir(path)))); !slices.Equal(left, []string{"test.db"}) {
		t.Errorf("there are %v", left)
	}
}
