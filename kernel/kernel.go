// Package kernel is the nano-kernel: it hosts the durable bus and the
// MessageRouter, and runs everything else as extensions. This package wires its
// parts together and owns their life; what they promise stands in each of them:
//
//	journal     the one durable store, and its engines
//	bus         events, deliveries, lanes, commits
//	session     sessions, turns, tool calls
//	router      who is admitted, which agent hears, where texts go
//	questions   what people are asked
//	tools       tool calls made once; the core tools
//	models      which provider completes, and when
//	spending    what completions cost, and may cost
//	backup      copies of the home, and the way back
//	manifest    what extensions declare
//	config      what the user set
//	supervisor  processes
//	host        the kernel's side of the contract
//	directory   what is known of all of them at one moment
//	control     the socket of the command line
//
// # Promises
//
// One kernel runs on a home. Killed at any instant, it goes on from the store
// at the next start: recovery is the normal start.
package kernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/host"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/models"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/sandbox"
	"github.com/switchboard-run/switchboard/kernel/session"
	"github.com/switchboard-run/switchboard/kernel/spending"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/kernel/tools"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// Options are what a kernel needs to know.
type Options struct {
	Home    *config.Home
	Version string
	// Env looks up the environment, Environ lists it: os.LookupEnv and
	// os.Environ.
	Env     func(string) (string, bool)
	Environ []string
	// Builtins holds the manifests of the built-in extensions; Builtin is the
	// command that runs some of them in one process, given as <builtin>:<id>.
	Builtins       fs.FS
	BuiltinsPrefix string
	Builtin        func(members []string) []string
	// Confine is the command that puts a sandbox in force and becomes the command
	// behind it: for extensions that are not built in.
	Confine []string
	// MaxTurns bounds the turns that follow from one event; 0: 200.
	MaxTurns int
	// Wrap, if set, stands between the kernel and its store. It is there for
	// tests of what a crash leaves.
	Wrap func(journal.Store) journal.Store
}

const (
	defaultMaxTurns = 200
	stopTimeout     = 20 * time.Second
	detourEvery     = 5 * time.Second
)

// Kernel is a running kernel. Its methods are safe for concurrent use.
type Kernel struct {
	options    Options
	log        hclog.Logger
	logs       *logs
	lock       *os.File
	started    time.Time
	live       *config.Live
	dropped    *manifests.Dir
	builtins   []manifests.Entry
	store      journal.Store
	damage     func() error // of the store, as far as it was met
	bus        *bus.Bus
	directory  *directory.Directory
	sessions   *session.Book
	router     *router.MessageRouter
	tools      *tools.Runner
	ledger     *spending.Ledger
	host       *host.Host
	super      *supervisor.Supervisor
	keeper     *backup.Keeper
	listener   net.Listener
	generation int64

	first      *plan      // that of the start
	planning   sync.Mutex // one plan at a time
	refreshing sync.Mutex // one snapshot at a time
	backing    sync.Mutex // one backup at a time
	mu         sync.Mutex // guards what follows
	plan       *plan
	status     map[string]supervisor.Status
	active     map[string]*supervisor.Instance
	actors     map[string]*bus.Actor // of the latest generation
	// described is what extensions said of themselves when they were last active.
	described map[string]*offer
	stopping  map[string]bool            // being stopped on purpose
	policies  map[string]*sandbox.Policy // of the plan
}

// Open takes the home, opens the store and recovers what was under way. Beside
// that the processes of extensions start, but nothing is asked of them before Run.
// Close must be called, also without Run.
func Open(ctx context.Context, o Options) (_ *Kernel, err error) {
	k := &Kernel{
		options: o, started: time.Now(), directory: &directory.Directory{}, host: host.New(), status: map[string]supervisor.Status{},
		active: map[string]*supervisor.Instance{}, actors: map[string]*bus.Actor{}, stopping: map[string]bool{},
		described: map[string]*offer{},
	}
	defer func() {
		if err != nil {
			_ = k.Close()
		}
	}()
	unix.Umask(0o077) // also for extensions: what they make is the user's alone
	if k.lock, err = lockHome(o.Home, heldByKernel); err != nil {
		return nil, err
	}
	if err := completeHome(o.Home); err != nil {
		return nil, err
	}
	if k.logs, err = openLogs(o.Home); err != nil {
		return nil, err
	}
	k.log = k.logs.kernel()
	if err := isolateStdin(); err != nil {
		return nil, err
	}
	k.live = config.Open(o.Home, o.Env)
	if configErr, secretsErr := k.live.Errors(); configErr != nil || secretsErr != nil {
		return nil, fmt.Errorf("the configuration cannot be used; correct it and start again:\n%w", errors.Join(configErr, secretsErr))
	}
	if k.dropped, err = manifests.OpenDir(o.Home.Extensions()); err != nil {
		return nil, err
	}
	if err := k.keepBackups(); err != nil {
		return nil, err
	}
	var storeErr error
	var opening sync.WaitGroup
	opening.Go(func() { storeErr = k.openStore() })
	err = k.launch()
	if opening.Wait(); storeErr != nil {
		return nil, withBackups(o.Home, storeErr)
	}
	if err != nil {
		return nil, err
	}
	k.keeper = k.newKeeper()
	k.sessions = session.New(k.directory)
	k.router = router.New(k.directory, k.sessions, k.statusText)
	retention := k.live.Config().Retention
	k.bus, err = bus.New(ctx, bus.Options{
		Store: k.store, Router: k.router, Sessions: k.sessions, Log: k.log.Named("bus"),
		Stuck: k.stuck, Events: retention.Events, Dead: retention.Dead,
	})
	if err != nil {
		return nil, withBackups(o.Home, err)
	}
	k.tools = &tools.Runner{
		Bus: k.bus, Sessions: k.sessions, Directory: k.directory, Router: k.router, Remote: k.host, Log: k.log.Named("tools"),
	}
	k.sessions.Run(k.tools)
	k.ledger = spending.New(k.bus, k.directory, k.log.Named("spending"))
	k.host.Options = host.Options{
		Bus: k.bus, Sessions: k.sessions, Directory: k.directory, Tools: k.tools,
		Models: &models.Router{Directory: k.directory, Remote: k.host, Ledger: k.ledger}, Log: k.log.Named("host"), Report: k.report, Stuck: k.stuck,
	}
	return k, nil
}

// launch makes the first plan and starts the processes of extensions.
func (k *Kernel) launch() (err error) {
	if k.builtins, err = manifests.LoadBuiltin(k.options.Builtins, k.options.BuiltinsPrefix); err != nil {
		return err
	}
	k.super, err = supervisor.New(supervisor.Options{
		Observer: observer{k}, Log: k.log.Named("supervisor"), RunDir: filepath.Join(k.options.Home.RuntimeDir(), "x"),
		LogSink: k.logs.extension, Hold: true, Adopt: true,
	})
	if err != nil {
		return err
	}
	k.first = k.makePlan()
	return k.super.Apply(k.keepPolicies(k.specs(k.first)))
}

func (k *Kernel) openStore() error {
	store, err := sqlite.Open(k.options.Home.Database())
	if err != nil {
		return err
	}
	k.store, k.damage = store, store.Damage
	if k.options.Wrap != nil {
		k.store = k.options.Wrap(store)
	}
	k.generation = k.store.Epoch() << 20
	return nil
}

// Run starts the extensions and serves until ctx ends; then it stops them.
func (k *Kernel) Run(ctx context.Context) error {
	listener, err := listenPrivate(filepath.Join(k.options.Home.RuntimeDir(), "kernel.sock"))
	if err != nil {
		return err
	}
	k.listener = listener
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() {
		if err := k.host.Serve(listener); err != nil && ctx.Err() == nil {
			k.log.Error("serving extensions ended", "error", err)
		}
	})
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	answer, err := k.serveControl()
	if err != nil {
		k.host.Stop()
		return errors.Join(err, k.super.Stop(ctx))
	}
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing() // last: until then it tells what is being stopped
	background.Go(func() { answer(serving) })
	k.enforce(k.first)
	k.super.Begin(k.generation)
	k.declareSchedules(k.first)
	background.Go(func() { k.live.Watch(watching, func(config.Change) { k.Replan() }) })
	background.Go(func() { k.dropped.Watch(watching, func([]manifests.Change) { k.Replan() }) })
	background.Go(func() { k.detourLoop(watching) })
	background.Go(func() { k.keeper.Run(watching) })
	k.log.Info("the kernel is running", "home", k.options.Home.Path(), "version", k.options.Version)
	<-ctx.Done()
	hold(k.lock, heldToStop)
	stopWatching()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err = k.super.Stop(stop)
	k.host.Stop()
	return err
}

// Close releases the store and the home.
func (k *Kernel) Close() error {
	var errs []error
	if k.super != nil { // what Run has not stopped was never asked for anything
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = k.super.Stop(ended)
	}
	if k.bus != nil {
		k.bus.Close()
	}
	if k.store != nil {
		errs = append(errs, k.store.Close())
	}
	if k.logs != nil {
		errs = append(errs, k.logs.close())
	}
	if k.lock != nil {
		errs = append(errs, k.lock.Close())
	}
	return errors.Join(errs...)
}

// stuck restarts an extension with a handler that does not end.
func (k *Kernel) stuck(extension string, generation int64, reason string) {
	if err := k.super.Kill(extension, generation, reason); err != nil {
		k.log.Warn("restarting a stuck extension failed", "extension", extension, "error", err)
	}
}

func (k *Kernel) detourLoop(ctx context.Context) {
	ticker := time.NewTicker(detourEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			if err := k.router.Detour(k.bus, now); err != nil && !errors.Is(err, journal.ErrClosed) {
				k.log.Error("moving held messages failed", "error", err)
			}
			if err := k.router.EndQuestions(ctx, k.bus, now); err != nil && ctx.Err() == nil && !errors.Is(err, journal.ErrClosed) {
				k.log.Error("ending old questions failed", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
