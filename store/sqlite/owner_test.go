package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

func TestStoreHasOneProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	if err := sqlite.Free(path); err != nil {
		t.Errorf("a store that does not exist: %v", err)
	}
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if other, err := sqlite.Open(path); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("a second process opens %v, %v, want %v", other, err, journal.ErrFenced)
	}
	if err := put(t.Context(), s, "a", []byte("1")); err != nil {
		t.Errorf("the first process: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Free(path); err != nil {
		t.Errorf("a store that was closed: %v", err)
	}
}

func TestStoreWhoseFileIsGoneAcceptsNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"moved": func(path string) error { return os.Rename(path, path+".away") },
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".away"), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "test.db")
				s, err := sqlite.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = s.Close() }()
				if err := errors.Join(put(t.Context(), s, "a", nil), s.Damage(), change(path)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if err := put(t.Context(), s, "b", nil); !errors.Is(err, journal.ErrLost) {
					t.Errorf("an update: %v, want %v", err, journal.ErrLost)
				}
				if err := os.Rename(path+".away", path); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(put(t.Context(), s, "c", nil), s.Damage()); err != nil {
					t.Errorf("once the file is back: %v", err)
				}
				if err := change(path); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if err := s.Damage(); !errors.Is(err, journal.ErrLost) {
					t.Errorf("at rest the store says %v, want %v", err, journal.ErrLost)
				}
			})
		})
	}
}
