// Package filewatch scans files again when they may have changed.
//
// Notifications of the operating system are only hints: Run calls Scan soon after
// one, and every Poll in any case. So a lost notification, a file system without
// any, or a limit on watches only delays the scan. Scan itself finds the changes.
//
// Scan and Paths are called on the goroutine of Run. No goroutine outlives Run.
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
	settle      = 50 * time.Millisecond  // between a hint and the scan, and between scans while settling
	pollUnaided = 500 * time.Millisecond // poll interval without notifications
)

// Target describes what to watch.
type Target struct {
	// Paths returns the files and directories to watch; missing ones are ignored.
	// It is called before every scan.
	Paths func() []string
	// Scan looks for changes. It returns true if a file is still being written, to
	// be called again after a moment.
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
		poll = min(poll, pollUnaided)
	}
	scan := func() (again bool) {
		// A path may appear below one before that is watched, so repeat until there
		// is nothing to add. The bound is for two names of one directory, which
		// replace each other endlessly.
		for range 16 {
			if watcher == nil {
				break
			}
			added, all := follow(watcher, t.Paths())
			if !all {
				poll = min(poll, pollUnaided)
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
		case <-errs: //nolint:errcheck // a lost notification is a hint as well
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

// follow makes the watcher watch exactly the existing paths. Added: there is a new
// one; all: every existing one is watched.
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

// Existing returns the path if it exists, else its nearest existing parent, to
// watch for the path to appear.
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
