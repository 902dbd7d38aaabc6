package ownuser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/contract/ownuser"
)

// TestListeningLeavesOthersAlone: the umask belongs to the process, and what
// others make at the same time needs its own modes.
func TestListeningLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stop := make(chan struct{})
	var beside sync.WaitGroup
	defer beside.Wait()
	defer close(stop)
	beside.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			made := filepath.Join(dir, fmt.Sprint("made", n))
			if err := os.Mkdir(made, 0o700); err != nil {
				t.Error(err)
				return
			}
			if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("a directory has the mode %s, %v", info.Mode(), err)
				return
			}
		}
	})
	path := filepath.Join(dir, "s")
	for range 1000 {
		l, err := ownuser.ListenAt(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the socket has the mode %s, %v", info.Mode(), err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
