package sdktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/store/blobfiles"
)

// Kernel is a kernel with one extension under test. Its methods may be called from
// any goroutine of the test; those that fail the test only from the test's own.
type Kernel struct {
	t        testing.TB
	options  Options
	dir      string // of sockets
	manifest *manifests.Manifest
	store    *store
	news     *news

	applying sync.Mutex // one change of what runs at a time
	kernel   *kernel.Kernel
	settings kernel.Settings

	mu       sync.Mutex
	id       string
	spec     *kernel.Spec // of the extension under test; nil: it was never started
	tools    []string     // that it has, by their full names
	starts   int
	life     *life // nil: it does not run
	attempts []*attempt
	statuses map[string]supervisor.Status
	changes  map[string]int // of a status
	cast     cast
}

// Start runs an extension. It is stopped at the end of the test.
func Start(t testing.TB, ext sdk.Extension, options Options) *Kernel {
	t.Helper()
	k := New(t, options)
	if err := k.TryStart(ext); err != nil {
		t.Fatalf("sdktest: start of the extension: %v", err)
	}
	return k
}

// New is a kernel that runs nothing yet: TryStart or Restart begin.
func New(t testing.TB, options Options) *Kernel {
	t.Helper()
	dir, err := os.MkdirTemp("", "sb") // short: the path of a socket has at most 104 bytes
	if err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	k := &Kernel{
		t: t, options: options, dir: dir, news: newNews(), id: options.ID,
		statuses: map[string]supervisor.Status{}, changes: map[string]int{}, cast: newCast(),
	}
	if k.manifest, err = options.manifest(); err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	if k.manifest != nil {
		k.id = k.manifest.ID
	}
	if k.options.DataDir == "" {
		k.options.DataDir = t.TempDir()
	}
	if err := os.Mkdir(k.RunDir(), 0o700); err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	if k.store, err = openStore(filepath.Join(dir, "store.db"), k.ID, k.news); err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	k.settings.Location, err = time.LoadLocation(options.Timezone)
	if err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	t.Cleanup(k.close)
	return k
}

// TryStart starts an extension, or returns why it did not start.
func (k *Kernel) TryStart(ext sdk.Extension) error {
	k.t.Helper()
	if k.running() != nil {
		k.t.Fatal("sdktest: the extension runs already")
	}
	return k.start(ext)
}

// Restart shuts the extension down, if it runs, and starts another one on the same
// store.
func (k *Kernel) Restart(ext sdk.Extension) {
	k.t.Helper()
	if err := k.start(ext); err != nil {
		k.t.Fatalf("sdktest: restart of the extension: %v", err)
	}
}

// start has the kernel exchange what runs under the extension's id.
func (k *Kernel) start(ext sdk.Extension) error {
	k.t.Helper()
	if _, err := sdk.NewServer(Logger(k.t), ext); err != nil {
		return err
	}
	spec, err := k.options.spec(k.manifest, ext)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.starts++
	number := k.starts
	first := k.spec == nil
	spec.DataDir, spec.RunDir = k.options.DataDir, k.RunDir()
	spec.Process = supervisor.Spec{
		Serve: k.serve(ext, number), StartTimeout: Patience, ShutdownGrace: Patience,
		Restart: supervisor.Restart{Policy: supervisor.Never}, Fingerprint: fmt.Sprint(number),
	}
	k.id, k.spec, k.tools = spec.ID, &spec, nil
	for _, t := range ext.Tools {
		k.tools = append(k.tools, spec.ID+"/"+t.Name)
	}
	k.mu.Unlock()
	if first {
		k.playOptions()
		for key, value := range k.options.KV {
			k.Put(key, value)
		}
	}
	return k.apply()
}

// apply makes what the test has chosen run, and returns when all of it is active, or
// why the extension under test is not.
func (k *Kernel) apply() error {
	k.t.Helper()
	k.applying.Lock()
	defer k.applying.Unlock()
	k.mu.Lock()
	specs := append(k.cast.specs(), *k.spec)
	k.cast.arrange(&k.settings, k.spec)
	settings := k.settings
	before := maps.Clone(k.changes)
	number, id := k.starts, k.id
	k.mu.Unlock()
	if k.kernel == nil {
		if err := k.open(specs, settings); err != nil {
			return err
		}
	} else if err := k.kernel.Apply(specs, settings); err != nil {
		return err
	}
	var failed error
	k.WaitFor("the extensions are active", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, s := range specs {
			status := k.statuses[s.ID]
			if status.State == supervisor.Failed && k.changes[s.ID] > before[s.ID] {
				failed = fmt.Errorf("%s: %s", s.ID, status.LastError)
				return true
			}
			if status.State != supervisor.Active || s.ID == id && (k.life == nil || k.life.number != number) {
				return false
			}
		}
		return true
	})
	return failed
}

func (k *Kernel) open(specs []kernel.Spec, settings kernel.Settings) error {
	opened, err := kernel.Open(context.Background(), kernel.Options{
		Store:  func() (journal.Store, error) { return k.store, nil },
		Files:  blobfiles.Dir(filepath.Join(k.dir, "blobs")),
		RunDir: k.dir, Extensions: specs, Settings: settings, Log: Logger(k.t), Changed: k.changed,
	})
	if err != nil {
		return err
	}
	k.kernel = opened
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- opened.Run(ctx) }()
	k.cast.stop = func() error {
		stop()
		return errors.Join(<-ended, opened.Close())
	}
	return nil
}

// changed is told each change of a state by the kernel.
func (k *Kernel) changed(s supervisor.Status) {
	k.mu.Lock()
	k.statuses[s.ID] = s
	k.changes[s.ID]++
	k.mu.Unlock()
	k.news.tell()
}

// close ends the kernel with all that runs on it.
func (k *Kernel) close() {
	k.t.Helper()
	k.cast.leave()
	var err error
	if k.cast.stop != nil {
		err = k.cast.stop()
	} else {
		err = k.store.Close()
	}
	if err = errors.Join(err, os.RemoveAll(k.dir)); err != nil {
		k.t.Errorf("sdktest: end of the kernel: %v", err)
	}
}

// Stop shuts the extension down, within Patience.
func (k *Kernel) Stop() {
	k.t.Helper()
	if err := k.Shutdown(Patience); err != nil {
		k.t.Errorf("sdktest: shutdown: %v", err)
	}
}

// Shutdown asks the extension to end within a grace, and then ends it.
func (k *Kernel) Shutdown(grace time.Duration) error {
	if k.running() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace+Patience)
	defer cancel()
	r := &extensionv1.ShutdownRequest{GraceMs: grace.Milliseconds()}
	_, err := extensionv1.NewExtensionClient(k.Conn()).Shutdown(ctx, r)
	k.Lose()
	return contract.FromStatus(err)
}

// Lose cuts the extension off, as when the kernel dies, and waits until the
// extension has ended itself. What it had taken, the kernel hands out again at the
// next start.
func (k *Kernel) Lose() {
	k.t.Helper()
	l := k.running()
	if l == nil {
		return
	}
	l.cut()
	<-l.done
	k.WaitFor("the kernel knows that the extension has ended", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		s := k.statuses[k.id].State
		return s != supervisor.Active && s != supervisor.Stopping && s != supervisor.Starting
	})
}

func (k *Kernel) running() *life {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.life
}

// now is the running extension; the test fails if none runs.
func (k *Kernel) now() *life {
	k.t.Helper()
	l := k.running()
	if l == nil {
		k.t.Fatal("sdktest: the extension does not run")
	}
	return l
}

// ID is the extension's id.
func (k *Kernel) ID() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.id
}

// Conn is a connection to the extension beside that of the kernel, for requests that
// the kernel would not make.
func (k *Kernel) Conn() grpc.ClientConnInterface {
	k.t.Helper()
	return k.now().conn
}

// RunDir is the directory for sockets that Init names.
func (k *Kernel) RunDir() string { return filepath.Join(k.dir, "x") }

// DataDir is the directory for files that Init names.
func (k *Kernel) DataDir() string { return k.options.DataDir }

// Health asks the extension.
func (k *Kernel) Health(ctx context.Context) (*extensionv1.Readiness, error) {
	k.t.Helper()
	r, err := extensionv1.NewExtensionClient(k.Conn()).Health(ctx, &extensionv1.HealthRequest{})
	return r, contract.FromStatus(err)
}

// Describe asks the extension.
func (k *Kernel) Describe() *extensionv1.Description {
	k.t.Helper()
	d, err := extensionv1.NewExtensionClient(k.Conn()).Describe(k.t.Context(), &extensionv1.DescribeRequest{})
	if err != nil {
		k.t.Fatalf("sdktest: describe: %v", err)
	}
	return d
}

// Configure replaces the configuration and the secrets for the next start.
func (k *Kernel) Configure(config any, secrets map[string]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.options.Config, k.options.Secrets = config, secrets
}

// sorted are the values of a map, in the order of their keys.
func sorted[T any](m map[string]T) (all []T) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[key])
	}
	return all
}
