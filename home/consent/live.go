package consent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/internal/filewatch"
)

// Live has the decisions in force. After a bad edit those before it stay. Its methods are
// safe for concurrent use.
type Live struct {
	home *config.Home

	mu    sync.Mutex
	now   Decisions
	err   error
	first func() Decisions // those of a home that has none yet

	applied string // state of the file when it was last read
}

// Open reads the decisions of a home. Of one that has none yet they
// are those of first.
func Open(h *config.Home, first func() Decisions) *Live {
	l := &Live{home: h, now: Decisions{}, first: first}
	l.read()
	return l
}

// Current returns the decisions in force, which must not be changed, and the error of the
// file. An edit counts at once.
func (l *Live) Current() (Decisions, error) {
	l.mu.Lock()
	same := l.state() == l.applied
	l.mu.Unlock()
	if !same {
		l.read()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now, l.err
}

// Create makes the file of a home that has none yet.
func (l *Live) Create() error {
	if _, err := Read(l.home); !errors.Is(err, ErrNone) {
		return nil
	}
	return l.Update(func(Decisions) (bool, error) { return false, nil })
}

// Update changes the decisions; see the function Update.
func (l *Live) Update(change func(Decisions) (bool, error)) error {
	d, err := Update(l.home, l.first, change)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.err = d, nil
	return nil
}

// read reads the file again.
func (l *Live) read() {
	state := l.state()
	d, err := Read(l.home)
	if errors.Is(err, ErrNone) {
		d, err = l.first(), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.applied, l.err = state, err
	if err == nil {
		l.now = d
	}
}

// Watch calls onChange, on the calling goroutine, after each edit of the file since Open,
// until the context ends.
func (l *Live) Watch(ctx context.Context, onChange func()) {
	seen := ""
	filewatch.Run(ctx, filewatch.Target{
		Paths: func() []string { return []string{File(l.home)} },
		Scan: func() bool {
			now := l.state()
			l.mu.Lock()
			same := now == l.applied
			l.mu.Unlock()
			if same {
				return false
			}
			if now != seen {
				seen = now
				return true
			}
			l.read()
			onChange()
			return false
		},
		Poll: 5 * time.Second,
	})
}

// state returns a value that changes when the file is replaced or written.
func (l *Live) state() string {
	info, err := os.Stat(File(l.home))
	if err != nil {
		return err.Error()
	}
	inode := uint64(0)
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = s.Ino
	}
	return fmt.Sprintf("%d %d %d %v", inode, info.Size(), info.ModTime().UnixNano(), info.Mode())
}
