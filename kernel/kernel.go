// Package kernel is the nano-kernel: it hosts the durable bus and the
// MessageRouter, and runs everything else as extensions. A program embeds it with
// Open: extensions are Go values, the store is given, and nothing else is read or
// written but sockets in the runtime directory. This package wires its parts
// together and owns their life; each of them documents what it promises:
//
//	journal     the one durable store, as an interface
//	bus         events, deliveries, lanes, commits
//	session     sessions, turns, tool calls
//	router      who is admitted, which agent hears, where texts go
//	questions   what people are asked
//	tools       tool calls made once; the core tools
//	models      which provider completes, and when
//	spending    what completions cost, and may cost
//	supervisor  when processes start and end
//	blobs       the files that come with messages
//	sandbox     what a process may use
//	host        the kernel's side of the contract
//	directory   what is known of all of them at one moment
//
// # Promises
//
// Killed at any instant, a kernel goes on from the store at the next start:
// recovery is the normal start. One kernel at a time runs on a store and in a
// runtime directory; the caller sees to that.
package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/ownuser"
	"github.com/switchboard-run/switchboard/kernel/admin"
	"github.com/switchboard-run/switchboard/kernel/blobs"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/host"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/models"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/session"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

// Options are what a kernel needs to know.
type Options struct {
	// Store opens the store while the processes of extensions start. The kernel
	// closes it.
	Store func() (journal.Store, error)
	// RunDir is for sockets: private to the user, with a short path, and used by one
	// kernel at a time.
	RunDir string
	// Files stores the files that come with messages; nil: none are stored.
	Files      blobs.Files
	Extensions []Spec // see Apply
	Settings   Settings
	Log        hclog.Logger // nil: nothing is logged
	// Launcher starts the processes of extensions; nil: only those that are Go values run.
	Launcher supervisor.Launcher
	// Changed, if set, is called after each change of an extension's state or readiness.
	// Calls for one extension never overlap. It must not call Apply.
	Changed func(supervisor.Status)
	Admin   AdminOptions
}

const (
	stopTimeout = 20 * time.Second
	detourEvery = 5 * time.Second
)

// Kernel is a running kernel. Its methods are safe for concurrent use.
type Kernel struct {
	options    Options
	log        hclog.Logger
	started    time.Time
	store      journal.Store
	bus        *bus.Bus
	directory  *directory.Directory
	sessions   *session.Store
	router     *router.MessageRouter
	tools      *tools.Runner
	ledger     *models.Ledger
	blobs      *blobs.Store
	host       *host.Host
	super      *supervisor.Supervisor
	listener   net.Listener
	fenced     context.Context // ends when another process writes to the store
	fence      context.CancelCauseFunc
	generation int64

	planning   sync.Mutex     // one plan at a time
	refreshing sync.Mutex     // one snapshot at a time
	telling    sync.WaitGroup // what tells of states of extensions
	mu         sync.Mutex     // guards what follows
	plan       *plan
	status     map[string]supervisor.Status
	actors     map[string]*bus.Actor // of the latest generation
	// described is what extensions said of themselves last.
	described map[string]offer
}

// Open opens the store and recovers what was under way. Meanwhile the processes of
// extensions start, but nothing is asked of them before Run. Close must be called
// after it, also without Run.
func Open(ctx context.Context, o Options) (_ *Kernel, err error) {
	o.Log = cmp.Or(o.Log, hclog.NewNullLogger())
	k := &Kernel{
		options: o, log: o.Log, started: time.Now(), directory: &directory.Directory{}, host: host.New(),
		status: map[string]supervisor.Status{}, actors: map[string]*bus.Actor{}, described: map[string]offer{},
	}
	k.fenced, k.fence = context.WithCancelCause(context.Background())
	defer func() {
		if err != nil {
			_ = k.Close()
		}
	}()
	first, err := newPlan(o.Extensions, o.Settings)
	if err != nil {
		return nil, err
	}
	var storeErr error
	var opening sync.WaitGroup
	opening.Go(func() { storeErr = k.openStore() })
	err = k.launch(first)
	opening.Wait()
	if err = cmp.Or(storeErr, err); err != nil {
		return nil, err
	}
	k.tools = &tools.Runner{Directory: k.directory, Remote: k.host, Log: k.log.Named("tools")}
	k.sessions = session.New(k.directory, k.tools)
	k.router = router.New(k.directory, k.sessions, k.statusText)
	k.bus, err = bus.New(ctx, bus.Options{
		Store: k.store, Effects: slices.Concat(k.sessions.Effects(), tools.Effects()),
		Hooks: tools.Hooks(k.router.Hooks()), Log: k.log.Named("bus"), Stuck: k.stuck, Fenced: k.fence,
		Events: first.KeepEvents, Dead: first.KeepDead,
	})
	if err != nil {
		return nil, err
	}
	k.tools.Bus, k.tools.Sessions, k.tools.Router = k.bus, k.sessions, k.router
	k.ledger = models.NewLedger(k.bus, k.directory, k.log.Named("spending"))
	if o.Files != nil {
		k.blobs = &blobs.Store{Bus: k.bus, Files: o.Files, Directory: k.directory, Log: k.log.Named("files")}
	}
	k.host.Options = host.Options{
		Blobs: k.blobs, Bus: k.bus, Sessions: k.sessions, Directory: k.directory, Tools: k.tools,
		Models: &models.Router{Directory: k.directory, Remote: k.host, Ledger: k.ledger}, Log: k.log.Named("host"),
		OwnerToken: o.Admin.Token, Report: k.report, Stuck: k.stuck,
	}
	(&admin.Service{
		Installation: cmp.Or(o.Admin.Installation, admin.Installation(alone{})), Started: k.started,
		Journal: k.store, Bus: k.bus, Store: k.sessions, Known: k.directory,
		Router: k.router, Tools: k.tools, Ledger: k.ledger, Supervisor: k.super,
	}).Register(k.host)
	return k, k.enforce(first)
}

// launch starts the processes of a plan.
func (k *Kernel) launch(p *plan) error {
	if err := os.MkdirAll(k.options.RunDir, 0o700); err != nil {
		return fmt.Errorf("create the runtime directory: %w", err)
	}
	k.super = supervisor.New(supervisor.Options{
		Observer: observer{k}, Log: k.log.Named("supervisor"), Launcher: k.options.Launcher,
	})
	return k.super.Apply(k.processes(p))
}

func (k *Kernel) openStore() (err error) {
	if k.store, err = k.options.Store(); err != nil {
		k.store = nil // an interface that holds a nil pointer is not nil
		return err
	}
	k.generation = k.store.Epoch() << 20 // generations are never used twice
	return nil
}

// Run initializes the extensions and serves them until ctx ends; then it stops
// them. It is called once. It returns an error of class journal.ErrFenced when another
// process writes to the store.
func (k *Kernel) Run(ctx context.Context) error {
	var background sync.WaitGroup
	defer background.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer k.host.Stop() // last: until then the owner can see what is being stopped
	serve := func(socket string, by func(net.Listener) error) (net.Listener, error) {
		listener, err := ownuser.ListenAt(filepath.Join(k.options.RunDir, socket))
		if err == nil {
			background.Go(func() {
				if err := by(listener); err != nil {
					k.log.Error("a socket is no longer served", "error", err)
				}
			})
		}
		return listener, err
	}
	var err error
	if k.listener, err = serve("kernel.sock", k.host.Serve); err != nil {
		return err
	}
	if k.options.Admin.Token != "" {
		if _, err := serve(contract.ControlSocket, k.host.ServeOwner); err != nil {
			return errors.Join(err, k.super.Stop(ctx))
		}
	}
	k.super.Begin(k.generation)
	k.planning.Lock()
	if err := k.declareSchedules(k.plan); err != nil {
		k.log.Error("declaring schedules failed", "error", err)
	}
	k.planning.Unlock()
	background.Go(func() { k.detourLoop(ctx) })
	background.Go(func() { k.tools.Serve(ctx) })
	if k.blobs != nil {
		background.Go(func() { k.blobs.Run(ctx) })
	}
	var fenced error
	select {
	case <-ctx.Done():
	case <-k.fenced.Done():
		fenced = context.Cause(k.fenced)
		k.log.Error("stopping at once: another process writes to the store", "error", fenced)
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return errors.Join(fenced, k.super.Stop(stop))
}

// Close ends what Run has not ended, and closes the store.
func (k *Kernel) Close() error {
	if k.super != nil { // extensions that did not run were never asked for anything
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = k.super.Stop(ended)
	}
	k.telling.Wait()
	if k.bus != nil {
		k.bus.Close()
	}
	var err error
	if k.store != nil {
		err = k.store.Close()
	}
	if k.tools != nil {
		k.tools.Close()
	}
	return err
}

// Publish publishes an event as the kernel's own. A payload is encoded as JSON.
// Events with the same key are handled in order.
func (k *Kernel) Publish(topic, key string, payload any) (id string, err error) {
	return k.PublishOnce("", topic, key, payload)
}

// PublishOnce is Publish, but publishes nothing if an event with the same dedupe key is
// stored; empty: none.
func (k *Kernel) PublishOnce(dedupe, topic, key string, payload any) (id string, err error) {
	body, err := json.Marshal(payload)
	e := &busv1.Event{Topic: topic, Key: key, Source: contract.KernelSource, Payload: body, DedupeKey: dedupe}
	if err == nil {
		err = k.bus.Do(func(tx *bus.Tx) error {
			_, err := tx.Accept(e)
			return err
		})
	}
	return e.GetId(), err
}

// Snapshot writes a consistent copy of the store to a file that does not exist
// yet, while everything goes on.
func (k *Kernel) Snapshot(ctx context.Context, file string) error { return k.store.Backup(ctx, file) }

// RestFiles keeps every stored file where it is until release is called, so that those
// which a snapshot names can be copied after it.
func (k *Kernel) RestFiles() (release func()) {
	if k.blobs == nil {
		return func() {}
	}
	return k.blobs.Rest()
}

// stuck restarts an extension with a handler that does not end.
func (k *Kernel) stuck(extension string, generation int64, reason string) {
	if err := k.super.Kill(extension, generation, reason); err != nil {
		k.log.Warn("restarting a stuck extension failed", "extension", extension, "error", err)
	}
}

func (k *Kernel) detourLoop(ctx context.Context) {
	var damage error
	ticks := time.Tick(detourEvery)
	for {
		select {
		case now := <-ticks:
			before := damage
			if damage = k.store.Damage(); damage != nil && before == nil {
				k.log.Error("the store can't be trusted", "error", damage)
			}
			err := errors.Join(k.router.Release(ctx, k.bus, now), k.router.Detour(k.bus, now),
				k.router.EndQuestions(ctx, k.bus, now))
			if err != nil && ctx.Err() == nil && !errors.Is(err, journal.ErrClosed) {
				k.log.Error("sending or moving held messages or ending old questions failed", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
