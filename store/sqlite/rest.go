package sqlite

import (
	"context"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

const (
	// restsAfter is how long nothing is written before a store gives back the pages
	// and blocks that it keeps in memory. Whoever comes later reads them again, from
	// the system's cache.
	restsAfter = 10 * time.Second
	// busy is how long readers are waited for: one that reads for longer keeps its pages.
	busy = 100 * time.Millisecond
)

// next waits for an update, and rests if none comes; false: there will be none.
func (s *Store) next(timer *time.Timer) (journal.Update, bool) {
	select {
	case u, ok := <-s.queue:
		return u, ok
	default:
	}
	timer.Reset(restsAfter)
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
	ctx, cancel := context.WithTimeout(context.Background(), busy)
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
