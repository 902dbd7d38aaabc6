package sqlite_test

import (
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/journal"
	engine "github.com/switchboard-run/switchboard/store/sqlite"
)

// fullDisk limits the size of files in this process, which makes a write fail
// as a full disk does.
func fullDisk(t *testing.T, dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := engine.Open(filepath.Join(dir, "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	limit(t, 600<<10)
	accepted := map[string]bool{}
	var mu sync.Mutex
	refused := 0
	for round := range 60 {
		var wg sync.WaitGroup
		for i := range 8 { // becomes groups
			key := fmt.Sprint(round, "/", i)
			wg.Go(func() {
				err := put(t.Context(), s, key, make([]byte, 40<<10*(i%2)+10))
				mu.Lock()
				defer mu.Unlock()
				if accepted[key] = err == nil; err != nil {
					refused++
				}
				if err != nil && !errors.Is(err, contract.ErrFull) {
					t.Errorf("without room: %v, want ErrFull", err)
				}
			})
		}
		wg.Wait()
	}
	if refused == 0 || refused == len(accepted) {
		t.Fatalf("%d of %d updates were refused: the limit has no effect", refused, len(accepted))
	}
	check := func() {
		t.Helper()
		if err := s.View(t.Context(), func(r journal.Reader) error {
			events := 0
			for key, want := range accepted {
				v, err := r.KVGet("x", key)
				if err != nil {
					return err
				}
				if want != (v.Version != 0) {
					t.Errorf("update %s: accepted %t, version %d", key, want, v.Version)
				}
				if want {
					events++
				}
			}
			last, err := r.LastSeq()
			if int(last) != events {
				t.Errorf("%d updates were accepted, the last seq is %d", events, last)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	check()
	limit(t, 1<<40)
	if err := put(t.Context(), s, "room", make([]byte, 100<<10)); err != nil {
		t.Errorf("with room again: %v", err)
	}
	accepted["room"] = true
	check()
	if err := s.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	if s, err = engine.Open(filepath.Join(dir, "test.db")); err != nil {
		t.Fatal(err)
	}
	check()
}

func limit(t *testing.T, size uint64) {
	t.Helper()
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &now); err != nil {
		t.Fatal(err)
	}
	now.Cur = min(size, now.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now); err != nil {
		t.Fatal(err)
	}
}
