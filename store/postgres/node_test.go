package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/store/postgres"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// member is a node whose looks a test follows.
type member struct {
	*postgres.Node
	database *postgres.Database
	stop     func()

	mu   sync.Mutex
	view postgres.View
	err  error // of Run
}

func enter(t *testing.T, dsn, name string) *member {
	t.Helper()
	m := &member{database: open(t, dsn, name)}
	var err error
	if m.Node, err = m.database.Enter(t.Context(), name, "1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := m.Run(ctx, func(time.Time) {}, func(v postgres.View) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.view = v
		})
		m.mu.Lock()
		defer m.mu.Unlock()
		m.err = err
	}()
	m.stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(m.stop)
	return m
}

func (m *member) seen() postgres.View {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view
}

// sees returns what the node sees of another one.
func (m *member) sees(name string) postgres.Member {
	for _, other := range m.seen().Members {
		if other.Name == name {
			return other
		}
	}
	return postgres.Member{}
}

func (m *member) sawLive(t *testing.T, name string, live bool) {
	t.Helper()
	await(t, fmt.Sprintf("%s is seen as live: %t", name, live), func() bool {
		other := m.sees(name)
		return other.Name != "" && other.Live == live && other.Beat > 1
	})
}

func TestNodes(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, "max_connections=100")
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s *postgrestest.Server, dsn string)
	}{
		{"TheEndOfAProcessIsSeen", processEnds},
		{"WithoutItsLockANodeAsks", lostLock},
		{"AStoppedNodeIsTerminated", stoppedNode},
		{"ANameIsOneProcess", oneProcess},
		{"ACellIsTakenOnce", takenOnce},
		{"Orders", orders},
		{"TransfersHoldNothingUp", transfers},
		{"ManyCellsShareConnections", shareConnections},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, server, server.Database())
		})
	}
}

// Snapshots and files that are stored slowly neither keep a node from seeing that another one
// has ended, nor from taking its cells.
func transfers(t *testing.T, s *postgrestest.Server, dsn string) {
	p := postgrestest.NewProxy(t, s)
	a := enter(t, dsn, "a")
	enter(t, p.DSN(dsn), "b")
	a.sawLive(t, "b", true)
	l, err := a.database.Create(t.Context(), "home")
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Repeat("x", 3<<20)
	sum := sha256.Sum256([]byte(body))
	for n := range 5 {
		slow, sends := io.Pipe()
		t.Cleanup(func() { _ = sends.Close() })
		go func() { _, _ = l.Upload(t.Context(), slow) }()
		if _, err := io.WriteString(sends, body); err != nil { // some of it is stored
			t.Fatal(err)
		}
		file, stores := io.Pipe()
		t.Cleanup(func() { _ = stores.Close() })
		go func() { _ = l.PutBlob(t.Context(), hex.EncodeToString(sum[:]), file) }()
		if n == 0 {
			if _, err := io.WriteString(stores, body); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.Down(true)
	a.sawLive(t, "b", false)
	acquire(t, l, "a")
	if until := a.Until(); time.Now().After(until) {
		t.Errorf("the lease of a ended %s ago", time.Since(until))
	}
}

func processEnds(t *testing.T, s *postgrestest.Server, dsn string) {
	p := postgrestest.NewProxy(t, s)
	a, b := enter(t, dsn, "a"), enter(t, p.DSN(dsn), "b")
	a.sawLive(t, "b", true)
	b.sawLive(t, "a", true)
	beat := a.sees("b").Beat
	p.Down(true) // as the system does with the connections of a process that ends
	a.sawLive(t, "b", false)
	if after := a.sees("b").Beat; after > beat+2 {
		t.Errorf("its lease was renewed from %d to %d", beat, after)
	}
	p.Down(false)
	a.sawLive(t, "b", true)
}

// Others take over within the lease from a node without its lock, so its reads ask.
func lostLock(t *testing.T, s *postgrestest.Server, dsn string) {
	p := postgrestest.NewProxy(t, s)
	m := enter(t, p.DSN(dsn), "a")
	if _, err := m.database.Create(t.Context(), "lostlock"); err != nil {
		t.Fatal(err)
	}
	var cell postgres.Seen
	await(t, "the cell is seen", func() bool {
		for _, c := range m.seen().Cells {
			cell = c
		}
		return cell.Name == "lostlock"
	})
	tenure, err := m.Cell(cell).Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	leased := func() bool { return time.Now().Before(tenure.LeaseUntil()) }
	await(t, "the lease counts", leased)
	p.Down(true)
	await(t, "the lease does not count without the lock", func() bool { return !leased() })
	if time.Now().After(m.Until()) {
		t.Skip("this machine is too slow: the lease has ended meanwhile")
	}
	p.Down(false)
	await(t, "the lease counts again after the fence was asked", func() bool {
		return tenure.Confirm(t.Context()) == nil && leased()
	})
}

// The node's process is stopped: its connections stay, and hold its lock.
func stoppedNode(t *testing.T, s *postgrestest.Server, dsn string) {
	p := postgrestest.NewProxy(t, s)
	a, b := enter(t, dsn, "a"), enter(t, p.DSN(dsn), "b")
	a.sawLive(t, "b", true)
	b.sawLive(t, "a", true)
	sessions := func() int {
		return len(s.Do("SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'switchboard % b' AND datname = '" +
			postgrestest.Name(dsn) + "'"))
	}
	p.Filter(func(toServer bool, _ []byte) bool { return !toServer })
	a.sawLive(t, "b", false)
	await(t, "its sessions end", func() bool { return sessions() == 0 })
	p.Filter(nil)
	a.sawLive(t, "b", true)
}

func oneProcess(t *testing.T, s *postgrestest.Server, dsn string) {
	first := enter(t, dsn, "a")
	await(t, "it renews its lease", func() bool { return !first.Until().IsZero() })
	if _, err := open(t, dsn, "second").Enter(t.Context(), "a", "1"); !errors.Is(err, postgres.ErrNameTaken) {
		t.Fatalf("a second process with the name: %v", err)
	}
	first.stop()
	first.database.Close()
	second := enter(t, dsn, "a") // at once: the first one's connection has ended
	await(t, "it renews its lease", func() bool { return !second.Until().IsZero() })

	p := postgrestest.NewProxy(t, s)
	enter(t, p.DSN(dsn), "b")
	p.Filter(func(toServer bool, _ []byte) bool { return !toServer })
	stopped := enter(t, dsn, "b") // after LeaseTime, and the stopped one is ended
	p.Filter(nil)
	await(t, "it renews its lease", func() bool { return !stopped.Until().IsZero() })
}

func takenOnce(t *testing.T, _ *postgrestest.Server, dsn string) {
	l := cellOf(t, dsn, "one")
	var taken sync.Map
	var all sync.WaitGroup
	for i := range 8 {
		other := cellOf(t, dsn, fmt.Sprint(i))
		all.Go(func() {
			tenure, err := other.Take(t.Context(), fmt.Sprint(i), 0)
			switch {
			case err == nil:
				taken.Store(i, tenure.State().Epoch)
				_ = tenure.Release(t.Context())
			case !errors.Is(err, postgres.ErrTaken):
				t.Error(err)
			}
		})
	}
	all.Wait()
	n := 0
	taken.Range(func(_, epoch any) bool {
		n++
		return epoch == int64(1)
	})
	if s, err := l.Head(t.Context()); err != nil || n != 1 || s.Epoch != 1 {
		t.Fatalf("%d nodes took it, and its epoch is %d, %v", n, s.Epoch, err)
	}
}

func orders(t *testing.T, _ *postgrestest.Server, dsn string) {
	a := enter(t, dsn, "a")
	b := open(t, dsn, "command")
	l, err := b.Create(t.Context(), "flat")
	if err != nil {
		t.Fatal(err)
	}
	flat := func() (s postgres.Seen) {
		cells := a.seen().Cells
		if i := slices.IndexFunc(cells, func(s postgres.Seen) bool { return s.Name == "flat" }); i >= 0 {
			return cells[i]
		}
		return s
	}
	if err := b.Want(t.Context(), "flat", "a"); err != nil {
		t.Fatal(err)
	}
	await(t, "the node sees what is wanted", func() bool { return flat().Wanted == "a" })
	if err := a.Ready(t.Context(), flat()); err != nil {
		t.Fatal(err)
	}
	await(t, "it is ready", func() bool { return flat().Ready == "a" })
	w := acquire(t, l, "a")
	mustAppend(t, w, "x")
	await(t, "the wish is fulfilled", func() bool { s := flat(); return s.Wanted == "" && s.Ready == "" && s.Head == 1 })
	if err := a.HandOver(t.Context(), flat(), "b"); err != nil {
		t.Fatal(err)
	}
	await(t, "it is to be handed over", func() bool { return flat().Wanted == "b" })
	if err := b.Drain(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	await(t, "the node drains", func() bool { return a.sees("a").Draining })
	for _, err := range []error{
		b.Want(t.Context(), "none", "a"), b.Drain(t.Context(), "none", true), b.Retire(t.Context(), "none"),
	} {
		if !errors.Is(err, postgres.ErrNoCell) && !errors.Is(err, postgres.ErrNoNode) {
			t.Errorf("of what is not there: %v", err)
		}
	}
	if err := b.Retire(t.Context(), "flat"); err != nil {
		t.Fatal(err)
	}
	await(t, "it is gone", func() bool { return flat().Gone })
	if _, err := l.Take(t.Context(), "a", flat().Epoch); !errors.Is(err, postgres.ErrTaken) {
		t.Fatalf("a cell that is deleted is taken: %v", err)
	}
	if err := b.Erase(t.Context(), flat()); err != nil {
		t.Fatal(err)
	}
	expectFenced(t, w.append("y"))
	await(t, "nothing is left", func() bool { return flat().Name == "" })
	running := func() bool {
		names, err := b.Connected(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.Equal(names, []string{"a"})
	}
	await(t, "the node runs", running)
	a.stop()
	await(t, "it does not run", func() bool { return !running() })
}

// Sixty cells append at once over the connections of one process.
func shareConnections(t *testing.T, s *postgrestest.Server, dsn string) {
	d := open(t, dsn, "many")
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			l, err := d.Create(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Error(err)
				return
			}
			tenure, err := l.Acquire(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			w := &writer{tenure, tenure.State().Position}
			for n := range 20 {
				if err := w.append(fmt.Sprint(n)); err != nil {
					t.Error(err)
				}
			}
			if f := postgres.FiguresOf(tenure); f.Appends != 20 || f.P99 <= 0 || f.Unknown != 0 {
				t.Errorf("its figures are %+v", f)
			}
			if err := tenure.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	n := len(s.Do("SELECT 1 FROM pg_stat_activity WHERE datname = '" + postgrestest.Name(dsn) + "'"))
	if n > 12 {
		t.Errorf("%d connections for 60 cells", n)
	}
}
