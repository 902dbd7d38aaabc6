package kerneltest

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/session"
	"github.com/switchboard-run/switchboard/kernel/tools"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// World is a kernel without processes.
type World struct {
	T         *testing.T
	Store     journal.Store
	Bus       *bus.Bus
	Sessions  *session.Store
	Router    *router.MessageRouter
	Tools     *tools.Runner
	Directory *directory.Directory

	path       string
	generation int64
	extensions map[string]*Extension
	subscribed map[string][]bus.Subscription
	serving    map[string]func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error)
	closed     bool
	stop       context.CancelFunc // ends Tools.Serve
	run        atomic.Int64       // of the kernel
}

// Run plays a test in a world of its own, in parallel to others.
func Run(t *testing.T, play func(w *World)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		t.Cleanup(func() { time.Sleep(24 * time.Hour) }) // what still waits gives up
		play(New(t))
	})
}

// New returns a world outside of a bubble, for tests whose extensions are on
// the other side of a connection. What looks at the world by itself (Hears,
// Shows, Settle and so on) works inside of a bubble only.
func New(t *testing.T) *World {
	t.Helper()
	w := &World{
		T:          t,
		path:       filepath.Join(t.TempDir(), "switchboard.db"),
		Directory:  &directory.Directory{},
		extensions: map[string]*Extension{},
		subscribed: map[string][]bus.Subscription{},
		serving:    map[string]func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error){},
	}
	w.Directory.Set(&directory.Snapshot{
		Settings: directory.Settings{Location: time.UTC, Hold: 15 * time.Minute, MaxTurns: 200},
	})
	w.Know(func(s *directory.Snapshot) {
		for _, t := range coretool.All() {
			s.Tools = append(s.Tools, tools.Entry(coretool.Extension, t))
		}
	})
	w.open()
	t.Cleanup(w.close)
	return w
}

func (w *World) open() {
	w.T.Helper()
	run := w.run.Add(1)
	var err error
	if w.Store, err = sqlite.Open(w.path); err != nil {
		w.T.Fatal(err)
	}
	w.Tools = &tools.Runner{Directory: w.Directory, Remote: remote{w, run}, Log: hclog.NewNullLogger()}
	w.Sessions = session.New(w.Directory, w.Tools)
	w.Router = router.New(w.Directory, w.Sessions, func(string) string { return "all is well" })
	if w.Bus, err = bus.New(w.T.Context(), bus.Options{
		Store:   w.Store,
		Effects: slices.Concat(w.Sessions.Effects(), tools.Effects()),
		Hooks:   tools.Hooks(w.Router.Hooks()),
		Log:     hclog.NewNullLogger(),
		Events:  30 * 24 * time.Hour,
		Dead:    90 * 24 * time.Hour,
	}); err != nil {
		w.T.Fatal(err)
	}
	w.Tools.Bus, w.Tools.Sessions, w.Tools.Router = w.Bus, w.Sessions, w.Router
	w.closed = false
	if err := w.Bus.Subscribe(coretool.Extension, []bus.Subscription{tools.Subscription()}); err != nil {
		w.T.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go w.Tools.Serve(ctx)
}

func (w *World) close() {
	if w.closed {
		return
	}
	w.closed = true
	w.stop()
	for _, x := range w.extensions {
		x.disconnect()
	}
	w.Bus.Close()
	if err := w.Store.Close(); err != nil {
		w.T.Error(err)
	}
	go w.Tools.Close() // a tool may go on after the kernel
}

// Restart kills the kernel and starts it anew on the same store, with the same
// extensions. What they had taken is in nobody's hands any more.
func (w *World) Restart() {
	w.T.Helper()
	w.close()
	w.open()
	for id, subs := range w.subscribed {
		if err := w.Bus.Subscribe(id, subs); err != nil {
			w.T.Fatal(err)
		}
	}
	for _, x := range w.extensions {
		x.connect()
	}
	w.Know(func(*directory.Snapshot) {}) // what waits for an extension looks again
}

// Settle waits until nothing happens any more by itself.
func (w *World) Settle() { synctest.Wait() }

// Wait lets time pass.
func (w *World) Wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Know changes what the kernel knows of the extensions.
func (w *World) Know(change func(*directory.Snapshot)) {
	next := *w.Directory.Current()
	next.Channels, next.Agents, next.Tools = slices.Clone(
		next.Channels,
	), slices.Clone(
		next.Agents,
	), slices.Clone(
		next.Tools,
	)
	next.Models = slices.Clone(next.Models)
	change(&next)
	slices.SortFunc(next.Channels, func(a, b directory.Channel) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(next.Agents, func(a, b directory.Agent) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(next.Tools, func(a, b directory.Tool) int { return strings.Compare(a.Name, b.Name) })
	w.Directory.Set(&next)
	w.hold()
}

func (w *World) hold() {
	if w.Bus == nil {
		return
	}
	now := w.Directory.Current()
	for i := range now.Channels {
		w.Bus.Hold(now.Channels[i].ID, !now.Channels[i].Ready())
	}
}

// Do applies an update of the kernel's own.
func (w *World) Do(apply func(*bus.Tx) error) {
	w.T.Helper()
	if err := w.Bus.Do(apply); err != nil {
		w.T.Fatal(err)
	}
}

// Read reads the store.
func (w *World) Read(read func(journal.Reader) error) {
	w.T.Helper()
	if err := w.Bus.View(w.T.Context(), read); err != nil {
		w.T.Fatal(err)
	}
}

// Emits has the kernel itself publish an event, as the scheduler would.
func (w *World) Emits(topic string, payload any) *busv1.Event {
	w.T.Helper()
	var e *busv1.Event
	w.Do(func(tx *bus.Tx) (err error) {
		e, err = tx.Emit(topic, "", payload)
		return err
	})
	return e
}

// Dead returns the reasons of the dead letters of a topic, oldest first.
func (w *World) Dead(topic string) (reasons []string) {
	w.T.Helper()
	w.Settle()
	w.Read(func(r journal.Reader) error {
		ds, err := r.Deliveries(journal.DeliveryFilter{States: []journal.DeliveryState{journal.Dead}})
		if err != nil {
			return err
		}
		for _, d := range ds {
			e, err := r.Event(d.Seq)
			if err != nil {
				return err
			}
			if e.GetTopic() == topic {
				reasons = append(reasons, d.Reason)
			}
		}
		return nil
	})
	slices.Reverse(reasons)
	return reasons
}

// Events returns the events of a topic, oldest first.
func (w *World) Events(topic string) (events []*busv1.Event) {
	w.T.Helper()
	w.Settle()
	w.Read(func(r journal.Reader) (err error) {
		events, err = r.Events(journal.EventFilter{Topic: topic, Ascending: true, Limit: 10_000})
		return err
	})
	return events
}

// Session is the session of an agent under a key; the test fails if there is
// none.
func (w *World) Session(agent, key string) *journal.Session {
	w.T.Helper()
	w.Settle()
	var s *journal.Session
	w.Read(func(r journal.Reader) (err error) {
		s, err = r.SessionByKey(agent, key)
		return err
	})
	if s == nil {
		w.T.Fatalf("there is no session %q of %s", key, agent)
	}
	return s
}

// History is the rows of a session, each as "kind: text".
func (w *World) History(session int64) (rows []string) {
	w.T.Helper()
	w.Settle()
	w.Read(func(r journal.Reader) error {
		entries, _, err := r.History(session, 0, 1<<20)
		for _, e := range entries {
			rows = append(rows, e.GetKind()+": "+e.GetText())
		}
		return err
	})
	return rows
}

// Decode reads the payload of an event.
func Decode[T any](t testing.TB, e *busv1.Event) (v T) {
	t.Helper()
	if err := json.Unmarshal(e.GetPayload(), &v); err != nil {
		t.Fatalf("payload of %s (%s): %v", e.GetId(), e.GetTopic(), err)
	}
	return v
}

// Detours does what the kernel does every few seconds: it sends what was held for quiet
// hours that are over, and moves what was held for too long to another channel.
func (w *World) Detours() {
	w.T.Helper()
	w.Settle()
	err := errors.Join(w.Router.Release(w.T.Context(), w.Bus, time.Now()), w.Router.Detour(w.Bus, time.Now()))
	if err != nil {
		w.T.Fatal(err)
	}
}
