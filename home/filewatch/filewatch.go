// Package filewatch looks at files again when they may have changed.
//
// What it gets from the operating system is a hint only: Run calls Scan soon
// after something happened to one of the paths, and every Poll in any case, so
// a lost hint, a file system without any, or a limit on watches costs time and
// nothing else. Whether there is a change, Scan finds out itself.
//
// Scan and Paths are called from one goroutine, Run's own, which is also the
// only one that Run leaves running until it returns. Nothing outlives Run.
package filewatch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	settle  = 50 * time.Millisecond  // between a hint and the scan, and between scans while settling
	unaided = 500 * time.Millisecond // poll without help from the operating system
)

// Target is what is watched.
type Target struct {
	// Paths returns the files and directories to get hints about; of those
	// that do not exist none come. It is asked again before every scan.
	Paths func() []string
	// Scan looks at everything. True: something is still being written, look
	// again in a moment.
	Scan func() bool
	// Poll is the time between two scans without a hint.
	Poll time.Duration
}

// Run scans at once and then until the context ends.
func Run(ctx context.Context, t Target) {
	var hints chan fsnotify.Event
	var errs chan error
	poll := t.Poll
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		hints, errs = watcher.Events, watcher.Errors
	} else {
		poll = min(poll, unaided)
	}
	scan := func() (again bool) {
		// Watching one path may come too late to hear of the next one below it,
		// so ask until there is nothing to add. Two names of one directory take
		// turns, and so would never end.
		for range 16 {
			if watcher == nil {
				break
			}
			added, all := follow(watcher, t.Paths())
			if !all {
				poll = min(poll, unaided)
			}
			if !added {
				break
			}
		}
		return t.Scan()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	soon := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-hints:
			if !soon {
				soon = true
				timer.Reset(settle)
			}
		case <-errs: //nolint:errcheck // that something was missed is a hint as well
			if !soon {
				soon = true
				timer.Reset(settle)
			}
		case <-timer.C:
			soon = scan()
			if soon {
				timer.Reset(settle)
			} else {
				timer.Reset(poll)
			}
		}
	}
}

// follow makes the watcher watch exactly the paths that exist. Added: it
// watches one more than before; all: every one that exists is watched.
func follow(w *fsnotify.Watcher, paths []string) (added, all bool) {
	have := w.WatchList()
	for _, p := range have {
		if !slices.Contains(paths, p) {
			_ = w.Remove(p)
		}
	}
	all = true
	for _, p := range paths {
		if slices.Contains(have, p) {
			continue
		}
		switch err := w.Add(p); {
		case err == nil:
			added = true
		case !errors.Is(err, fs.ErrNotExist):
			all = false
		}
	}
	return added, all
}

// Existing returns the path if it exists, else the nearest directory above it
// that does: watching that one tells when the path appears.
func Existing(path string) string {
	path = filepath.Clean(path)
	for {
		if _, err := os.Stat(path); err == nil {
			return path
		}
		up := filepath.Dir(path)
		if up == path {
			return path
		}
		path = up
	}
}
