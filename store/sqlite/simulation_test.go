package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog/commitlogtest"
)

// simulation has three nodes take a cell from each other, on a log whose statements get
// lost, wake up late, or wait for a standby that is promoted.
type simulation struct {
	r     *rand.Rand
	log   *commitlogtest.Memory
	paths [3]string
	nodes [3]*Store
	owner int

	mu      sync.Mutex
	next    int
	outcome map[string]error // of each update; nil: it was reported as durable
	wrong   []string
}

func (s *simulation) failed(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// simulate returns what went wrong in a run of a seed.
func simulate(t *testing.T, number uint64, spoiled commitlogtest.Spoiled) (wrong []string) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(*testing.T) {
		s := &simulation{r: rand.New(rand.NewPCG(number, 15)), //nolint:gosec // reproducible
			log:     &commitlogtest.Memory{Lease: 2 * time.Second, Spoiled: spoiled},
			outcome: map[string]error{}}
		for i := range s.paths {
			s.paths[i] = filepath.Join(dir, fmt.Sprint("node", i), "test.db")
			must(t, mkdir(s.paths[i]))
		}
		faults := []commitlogtest.Fault{commitlogtest.LostAnswer, commitlogtest.LostCall, commitlogtest.Late,
			commitlogtest.Unsafe, commitlogtest.Unsent, commitlogtest.Slow}
		var mu sync.Mutex
		s.log.Faulty = func() commitlogtest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if s.r.IntN(4) > 0 {
				return commitlogtest.None
			}
			return faults[s.r.IntN(len(faults))]
		}
		draw := func(n int) int { mu.Lock(); defer mu.Unlock(); return s.r.IntN(n) }
		s.takeOver(0)
		for range 40 {
			if len(s.wrong) > 0 {
				break
			}
			switch n := draw(20); {
			case n < 12:
				s.work(s.owner, 1+draw(4)).Wait()
			case n < 16: // while the old owner works
				work := s.work(s.owner, 1+draw(3))
				time.Sleep(time.Duration(draw(12)) * time.Millisecond)
				s.takeOver((s.owner + 1 + draw(2)) % 3)
				work.Wait()
			case n < 17: // an old owner that was paused
				s.work((s.owner+1+draw(2))%3, 1).Wait()
			case n < 19:
				s.log.Wake()
			default:
				s.log.Promote()
			}
		}
		s.finish()
		wrong = s.wrong
	})
	return wrong
}

// work submits updates to a node, as one group if it is busy. What was refused is tried
// again, as a caller would.
func (s *simulation) work(node, updates int) *sync.WaitGroup {
	var all sync.WaitGroup
	store := s.nodes[node]
	if store == nil {
		return &all
	}
	for range updates {
		s.mu.Lock()
		s.next++
		name := fmt.Sprint("u", s.next)
		s.mu.Unlock()
		all.Go(func() {
			for range 3 {
				err := journal.Do(context.Background(), store, func(tx journal.Tx) error {
					if _, err := tx.KVPut("x", name, []byte(name)); err != nil {
						return err
					}
					return tx.AppendEvent(&busv1.Event{Topic: "a.b", Key: name, Source: "x", Payload: []byte("{}"), CreatedAtUs: 1})
				})
				s.mu.Lock()
				s.outcome[name] = err
				s.mu.Unlock()
				if err == nil || errors.Is(err, journal.ErrFenced) || errors.Is(err, journal.ErrClosed) {
					return
				}
			}
		})
	}
	return &all
}

// takeOver makes a node the owner; its store of an earlier time ends first, those of
// others do not.
func (s *simulation) takeOver(node int) {
	if s.nodes[node] != nil {
		_ = s.nodes[node].Close()
		s.nodes[node] = nil
	}
	for range 20 { // while nothing can be sent
		tenure, err := s.log.Acquire(context.Background(), fmt.Sprint(node))
		if err != nil {
			s.failed("acquire: %v", err)
			return
		}
		time.Sleep(12 * time.Millisecond) // what is slow arrives
		store, p, err := OpenOver(context.Background(), s.paths[node], s.log, tenure, Options{DigestEvery: 16})
		if errors.Is(err, journal.ErrStalled) {
			continue
		}
		if err != nil {
			s.failed("the newest owner cannot open its store: %v", err)
			return
		}
		if p.Lost != nil {
			s.failed("entry %d was lost", p.Lost.Head)
		}
		s.owner, s.nodes[node] = node, store
		return
	}
	s.failed("nothing can be sent")
}

// finish compares what is there in the end with what was reported.
func (s *simulation) finish() {
	s.log.Wake()
	s.log.Promote()
	s.log.Faulty = nil
	for i, n := range s.nodes {
		if n != nil {
			_ = n.Close()
		}
		s.nodes[i] = nil
	}
	s.paths[0] += ".fresh"
	s.takeOver(0)
	store := s.nodes[0]
	if store == nil {
		return
	}
	defer func() { _ = store.Close() }()
	count := map[string]int{}
	err := store.View(context.Background(), func(r journal.Reader) error {
		events, err := r.Events(journal.EventFilter{Limit: 1 << 20})
		for _, e := range events {
			count[e.GetKey()]++
		}
		return err
	})
	if err != nil {
		s.failed("read: %v", err)
	}
	for name, outcome := range s.outcome {
		switch n := count[name]; {
		case n > 1:
			s.failed("%s was applied %d times", name, n)
		case outcome == nil && n == 0:
			s.failed("%s was reported, and is lost", name)
		case outcome != nil && !errors.Is(outcome, journal.ErrFenced) && !errors.Is(outcome, journal.ErrClosed) && n > 0:
			s.failed("%s was reported as not stored (%v), and is there", name, outcome)
		}
	}
	conn, err := sqlite.OpenConn(s.paths[0], sqlite.OpenReadOnly)
	if err != nil {
		s.failed("read: %v", err)
		return
	}
	defer conn.Close()
	digest, _ := stateDigest(conn)
	for i, path := range s.paths { // copies that were owners agree
		if i == 0 {
			continue
		}
		f, err := Follow(path, s.log, Options{DigestEvery: 16})
		if err == nil {
			var p Progress
			if p, err = f.CatchUp(context.Background()); err == nil && p.Lost != nil {
				s.failed("node %d had what the log has lost", i)
			}
			if other, _ := stateDigest(f.conn); err == nil && other != digest {
				s.failed("the state of node %d differs", i)
			}
			_ = f.Close()
		}
		if err != nil {
			s.failed("node %d cannot follow: %v", i, err)
		}
	}
}

// TestSimulation runs some seeds. Each is reproducible as far as goroutines allow.
func TestSimulation(t *testing.T) {
	t.Parallel()
	first := seed.Number(t) * 1000
	for n := range uint64(8) {
		for _, wrong := range simulate(t, first+n, commitlogtest.Spoiled{}) {
			t.Errorf("run %d: %s", n, wrong)
		}
	}
}

// TestTheSimulationNotices leaves out one rule at a time.
func TestTheSimulationNotices(t *testing.T) {
	t.Parallel()
	for name, spoiled := range map[string]commitlogtest.Spoiled{
		"no fence":                                {NoFence: true},
		"no check of the head":                    {NoHead: true},
		"an answer before the append":             {AnswerFirst: true},
		"resolved by a plain read":                {PlainRead: true},
		"members tried again after an append was": {CallUntried: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range uint64(60) {
				if wrong := simulate(t, n, spoiled); len(wrong) > 0 {
					t.Logf("run %d: %s", n, wrong[0])
					return
				}
			}
			t.Error("nothing was noticed")
		})
	}
}
