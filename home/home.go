// Package home manages one installation on disk: its configuration, secrets,
// extensions, logs and backups, and the kernel that runs on it.
//
// # Promises
//
// One kernel at a time runs on a home. Edits of config.yaml, secrets.env and
// manifests take effect without a restart. A bad edit changes nothing: the old
// settings stay, and the owner gets a notice. A problem of one extension affects only
// that extension and those that require it.
package home

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/install"
	"github.com/switchboard-run/switchboard/home/launch"
	"github.com/switchboard-run/switchboard/home/limits"
	"github.com/switchboard-run/switchboard/home/orphans"
	"github.com/switchboard-run/switchboard/home/pin"
	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/kernel/blobs"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/store/blobfiles"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// Options configure an installation.
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
	// Confine is the command that enforces a sandbox and then executes the rest of
	// its arguments: for extensions that are not built in.
	Confine []string
	// Program names commands of this program in texts for people.
	Program directory.Program
	// Cluster, if set, opens the store in place of the file of the home, and Files keeps the
	// files that come with messages. Ready is called when no process is being started any
	// more.
	Cluster func(context.Context) (journal.Store, error)
	Files   blobs.Files
	Ready   func()
	// Node names this node of the cluster for extensions; empty: there is no cluster.
	Node string
	// Changed counts the changes of files that another node of the cluster made; nil: none.
	Changed func() int64
	// Pinned: only programs run that were allowed on this machine, see package pin.
	Pinned bool
	// Processes are those of this program; nil: the installation's own. Installations in one
	// program share them.
	Processes *orphans.Processes
	// Wrap, if set, wraps the store, for tests of crashes.
	Wrap func(journal.Store) journal.Store
}

// Installation is a home with a kernel on it. Its methods are safe for concurrent
// use.
type Installation struct {
	Kernel *kernel.Kernel

	options  Options
	log      hclog.Logger
	logs     *logs
	lock     *os.File
	files    *files
	keeper   *backup.Keeper
	launcher *launch.Launcher
	running  running

	backupMu sync.Mutex // one backup at a time
	planMu   sync.Mutex // one plan at a time
	plan     atomic.Pointer[plan]
}

// Open locks the home, completes an interrupted restore, and opens a kernel on it.
// The caller must call Close, also without Run. On a full disk it wraps
// journal.ErrFull: try again when there is room. Open changes the umask and os.Stdin
// of this process, which extensions inherit.
func Open(ctx context.Context, o Options) (_ *Installation, err error) {
	i := &Installation{options: o}
	defer func() {
		if err != nil {
			_ = i.Close()
		}
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			err = fmt.Errorf("%w: %w", journal.ErrFull, err)
		}
	}()
	unix.Umask(0o077) // also for extensions: their files are the user's alone
	lock := lockHome
	if o.Cluster != nil {
		lock = lockFile
	}
	if i.lock, err = lock(o.Home, heldByKernel); err != nil {
		return nil, err
	}
	if err := finishRestore(o.Home); err != nil {
		return nil, err
	}
	if _, err := os.Stat(o.Home.Joining()); err == nil {
		return nil, fmt.Errorf("%w: finish that with `switchboard cluster join`, or take it back with `switchboard cluster "+
			"leave`", ErrJoining)
	}
	if err := install.Recover(o.Home); err != nil {
		return nil, err
	}
	if i.logs, err = openLogs(o.Home); err != nil {
		return nil, err
	}
	i.log = i.logs.kernel()
	if err := isolateStdin(); err != nil {
		return nil, err
	}
	live := config.Open(o.Home, o.Env)
	if configErr, secretsErr := live.Errors(); configErr != nil || secretsErr != nil {
		return nil, fmt.Errorf("the configuration has errors; fix them and start again:\n%w",
			errors.Join(configErr, secretsErr))
	}
	if err := i.keepBackups(); err != nil {
		return nil, err
	}
	if err := prepareConsent(o.Home); err != nil {
		return nil, err
	}
	token := randomToken() // in a cluster the file has that of the owner until the store is open
	if o.Cluster == nil {
		if token, err = newToken(o.Home); err != nil {
			return nil, err
		}
	}
	store := sync.OnceValues(func() (journal.Store, error) { return i.openStore(ctx, token) })
	go func() { _, _ = store() }() // while manifests are read and processes start
	defer func() {
		if s, openErr := store(); err != nil && i.Kernel == nil && openErr == nil {
			_ = s.Close()
		}
	}()
	changed := i.changed()
	if i.files, err = openFiles(o, live); err != nil {
		return nil, err
	}
	if err := i.files.consent.Create(); err != nil {
		return nil, err
	}
	i.keeper = i.newKeeper()
	first := i.files.plan(nil)
	i.report(nil, first)
	specs := i.files.specs(first)
	i.plan.Store(first)
	processes := o.Processes
	if processes == nil {
		if processes, err = orphans.New(); err != nil {
			return nil, err
		}
	}
	i.launcher, err = launch.New(launch.Options{
		RunDir: filepath.Join(o.Home.RuntimeDir(), "x"), Output: i.logs.output, Processes: processes,
		Log: i.log.Named("launch"),
	})
	if err != nil {
		return nil, err
	}
	i.Kernel, err = kernel.Open(ctx, kernel.Options{
		Store: store, Files: cmp.Or(o.Files, blobs.Files(blobfiles.Dir(o.Home.Files()))), RunDir: o.Home.RuntimeDir(),
		Extensions: specs, Settings: i.files.settings(first),
		Log: i.log, Launcher: limits.Guarded(i.running.noted(i.launch()), check(processes)),
		Admin: kernel.AdminOptions{Token: token, Installation: described{i}},
	})
	if err == nil && i.changed() != changed { // while this node held the extensions ready
		err = i.reread()
	}
	return i, withBackups(o.Home, err)
}

func (i *Installation) changed() int64 {
	if i.options.Changed == nil {
		return 0
	}
	return i.options.Changed()
}

// reread applies the files as they are now, before the kernel runs.
func (i *Installation) reread() error {
	i.files.live.Reread()
	if err := i.files.dropped.Reread(); err != nil {
		return err
	}
	previous := i.plan.Load()
	next := i.files.plan(previous)
	i.report(previous, next)
	specs := i.files.specs(next)
	i.plan.Store(next)
	i.files.gate.forget(next)
	return i.Kernel.Apply(specs, i.files.settings(next))
}

// check checks limits, and now and then ends what running processes have left behind.
func check(processes *orphans.Processes) func(int, sandbox.Limits, bool) error {
	return func(pid int, l sandbox.Limits, disk bool) error {
		err := limits.Check(pid, l, disk)
		if err == nil && disk && pid != 0 {
			processes.Sweep(0)
		}
		return err
	}
}

// launch returns the launcher, which calls Options.Ready.
func (i *Installation) launch() supervisor.Launcher {
	if i.options.Ready == nil {
		return i.launcher.Launch
	}
	var starting atomic.Int64
	return func(ctx context.Context, l supervisor.Launch) (*supervisor.Process, error) {
		starting.Add(1)
		p, err := i.launcher.Launch(ctx, l)
		if starting.Add(-1) == 0 {
			i.options.Ready()
		}
		return p, err
	}
}

func (i *Installation) openStore(ctx context.Context, token string) (journal.Store, error) {
	open := i.options.Cluster
	if open == nil {
		open = func(context.Context) (journal.Store, error) { return sqlite.Open(i.options.Home.Database()) }
	}
	store, err := open(ctx)
	if err != nil {
		return nil, err
	}
	if i.options.Cluster != nil {
		if err := replaceToken(filepath.Join(i.options.Home.Path(), contract.ControlToken), token); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	if i.options.Wrap != nil {
		store = i.options.Wrap(store)
	}
	if err := adoptPeople(ctx, store); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// Run runs the kernel and follows edits of files until ctx ends.
func (i *Installation) Run(ctx context.Context) error {
	watchCtx, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { i.files.live.Watch(watchCtx, func(config.Change) { i.replan() }) })
	background.Go(func() { i.files.dropped.Watch(watchCtx, func([]manifests.Change) { i.replan() }) })
	background.Go(func() { i.files.consent.Watch(watchCtx, i.replan) })
	if i.options.Pinned {
		background.Go(func() { pin.Watch(watchCtx, i.options.Home, i.replan) })
	}
	background.Go(func() { i.followOffers(watchCtx) })
	background.Go(func() {
		i.planMu.Lock()
		defer i.planMu.Unlock()
		i.followUp(i.plan.Load())
	})
	background.Go(func() { i.keeper.Run(watchCtx) })
	release := context.AfterFunc(ctx, func() { recordHolder(i.lock, heldToStop) })
	i.log.Info("the kernel is running", "home", i.options.Home.Path(), "version", i.options.Version)
	err := i.Kernel.Run(ctx)
	release()
	stop()
	background.Wait()
	return err
}

// Close closes the kernel and its store, and unlocks the home.
func (i *Installation) Close() error {
	var errs []error
	if i.Kernel != nil {
		errs = append(errs, i.Kernel.Close())
	}
	if i.launcher != nil {
		i.launcher.Close()
	}
	if i.logs != nil {
		errs = append(errs, i.logs.close())
	}
	if i.lock != nil {
		errs = append(errs, i.lock.Close())
	}
	return errors.Join(errs...)
}

// replan reads the files again and applies them.
func (i *Installation) replan() {
	i.planMu.Lock()
	defer i.planMu.Unlock()
	previous := i.plan.Load()
	next := i.files.plan(previous)
	i.report(previous, next)
	specs := i.files.specs(next)
	i.plan.Store(next)
	i.files.gate.forget(next)
	if err := i.Kernel.Apply(specs, i.files.settings(next)); err != nil {
		i.log.Error("apply the changed files", "error", err)
	}
	i.followUp(next)
}

// report logs each problem once.
func (i *Installation) report(previous, next *plan) {
	for id, err := range next.problems {
		if previous == nil || previous.problems[id] == nil || previous.problems[id].Error() != err.Error() {
			i.log.Warn("a file of an extension has errors; the old version stays in force", "extension", id, "error", err)
		}
	}
	for _, problem := range newProblems(previous, next) {
		i.log.Warn("a link is not in force", "problem", problem.String())
	}
	if err := errors.Join(next.fileErrors...); err != nil {
		i.log.Warn("the configuration has errors; the old version stays in force", "error", err)
	}
}
