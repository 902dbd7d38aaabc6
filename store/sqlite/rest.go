package sqlite

import (
	"context"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

const (
	// restAfter is how long the writer is idle before the store frees its cached pages and
	// blocks. Later reads come from the system's cache.
	restAfter = 10 * time.Second
	// readerWait bounds the wait for readers: one that is busy for longer keeps its pages.
	readerWait = 100 * time.Millisecond
)

// next waits for an update, and calls rest if none comes; false: the queue is closed.
func (s *Store) next(timer *time.Timer) (journal.Update, bool) {
	select {
	case u, ok := <-s.queue:
		return u, ok
	default:
	}
	timer.Reset(restAfter)
	defer timer.Stop()
	select {
	case u, ok := <-s.queue:
		return u, ok
	case <-timer.C:
		s.rest()
	}
	for {
		timer.Reset(ownerCheck)
		select {
		case u, ok := <-s.queue:
			return u, ok
		case <-timer.C:
			_ = s.checkOwner() // Damage returns it
		}
	}
}

// rest frees the cached memory of the store. The writing goroutine calls it between
// two groups.
func (s *Store) rest() {
	s.blocks.drop()
	shrink(s.write)
	ctx, cancel := context.WithTimeout(context.Background(), readerWait)
	defer cancel()
	var taken []*sqlite.Conn
	for range readers {
		if conn, err := s.read.Take(ctx); err == nil {
			taken = append(taken, conn)
		}
	}
	for _, conn := range taken {
		shrink(conn)
		s.read.Put(conn)
	}
}

func shrink(conn *sqlite.Conn) {
	t := &tx{conn: conn}
	_ = t.exec("PRAGMA shrink_memory") // a failure only keeps memory
}
