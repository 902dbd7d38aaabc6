package filewatch_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/switchboard-run/switchboard/internal/filewatch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// With an hour between polls, whatever is seen was hinted at.
func TestRunIsHinted(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b")
	scans := make(chan struct{}, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		filewatch.Run(ctx, filewatch.Target{
			Paths: func() []string { return []string{filewatch.Existing(deep), filepath.Join(root, "none")} },
			Scan: func() bool {
				_, err := os.Stat(filepath.Join(deep, "file"))
				scans <- struct{}{}
				if err == nil {
					cancel()
				}
				return false
			},
			Poll: time.Hour,
		})
	}()
	<-scans // at once
	for _, dir := range []string{filepath.Join(root, "a"), deep} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		<-scans
	}
	if err := os.WriteFile(filepath.Join(deep, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-done
}

// Without any hint a scan comes with the poll, and soon while it asks for it.
func TestRunPolls(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	filewatch.Run(ctx, filewatch.Target{
		Paths: func() []string { return nil },
		Scan: func() bool {
			if n++; n == 4 {
				cancel()
			}
			return n < 2
		},
		Poll: time.Millisecond,
	})
	if n < 4 {
		t.Errorf("%d scans", n)
	}
}

func TestExisting(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for path, want := range map[string]string{root: root, root + "/a/b/../c": root, "/": "/"} {
		if got := filewatch.Existing(path); got != want {
			t.Errorf("Existing(%s) = %s, want %s", path, got, want)
		}
	}
}
