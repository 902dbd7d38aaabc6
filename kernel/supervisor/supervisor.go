package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

var (
	errStopped = errors.New("the supervisor is stopped")
	errAborted = errors.New("the start was cancelled")

	errNoLauncher = errors.New("this kernel cannot start processes: give it a Launcher, or the extension a Serve")
)

// Options of a Supervisor.
type Options struct {
	Observer Observer
	Log      hclog.Logger
	// Launcher starts processes. Nil: only extensions with Spec.Serve can run.
	Launcher Launcher
	// ProbeInterval is the time between two health probes, each of which times out
	// after ProbeTimeout. Zero: 10 s, 5 s.
	ProbeInterval time.Duration
	ProbeTimeout  time.Duration
}

func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, hclog.NewNullLogger())
	if o.Launcher == nil {
		o.Launcher = func(context.Context, Launch) (*Process, error) {
			return nil, Failure{Err: errNoLauncher, Permanent: true}
		}
	}
	o.ProbeInterval = cmp.Or(o.ProbeInterval, 10*time.Second)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, 5*time.Second)
	return o
}

// Supervisor keeps extensions running. All methods are safe for concurrent
// use; none but Wait and Stop blocks.
type Supervisor struct {
	options Options
	work    sync.WaitGroup

	mu         sync.Mutex
	specs      map[string]Spec // of the last Apply
	units      map[string]*unit
	members    map[string]*member
	calls      map[string][]func() // of the observer, by id; an entry is being made
	generation int64
	stopping   bool
	settled    *sync.Cond    // signaled whenever no change may be in progress any more
	begun      chan struct{} // closed by Begin
}

// New returns a Supervisor that runs nothing yet.
func New(o Options) *Supervisor {
	s := &Supervisor{
		options: o.withDefaults(),
		specs:   map[string]Spec{}, units: map[string]*unit{}, members: map[string]*member{},
		calls: map[string][]func(){}, begun: make(chan struct{}),
	}
	s.settled = sync.NewCond(&s.mu)
	return s
}

// Begin is called once. Before it, processes start, but no extension is called: they
// start while the kernel opens. Generation is the last one of the kernel's earlier
// runs: those of this run are greater.
func (s *Supervisor) Begin(generation int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation = generation
	close(s.begun)
}

// Apply sets which extensions run, and returns at once; Wait waits for the changes.
// New extensions start, removed ones stop, those with another Fingerprint (and those
// that share a process with one) are swapped, and nothing else is disturbed. Applying
// the same again does nothing; failed extensions stay so.
func (s *Supervisor) Apply(specs []Spec) error {
	wanted := make(map[string]Spec, len(specs))
	for _, spec := range specs {
		spec = spec.withDefaults()
		if spec.ID == "" || spec.Init == nil {
			return fmt.Errorf("apply extensions: %q has no id or no Init", spec.Name)
		}
		if _, double := wanted[spec.ID]; double {
			return fmt.Errorf("apply extensions: two have the id %s", spec.ID)
		}
		wanted[spec.ID] = spec
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return errStopped
	}
	s.specs = wanted
	for _, u := range s.units {
		clear(u.wanted)
	}
	for id, spec := range wanted {
		key := groupKey(spec)
		u := s.units[key]
		if u == nil {
			u = &unit{key: key, members: map[string]*member{}, wanted: map[string]Spec{}}
			s.units[key] = u
		}
		u.wanted[id] = spec
		if m := s.members[id]; m == nil {
			s.members[id] = &member{id: id, spec: spec}
		} else if m.unit == u && m.runs(spec) {
			m.spec = spec
		}
	}
	s.reconcile()
	return nil
}

// runs reports whether the extension was started as the spec says.
func (m *member) runs(spec Spec) bool {
	return m.spec.Fingerprint == spec.Fingerprint && slices.Equal(m.spec.Command, spec.Command)
}

// current reports whether the unit has the wanted extensions, with their specs.
func (u *unit) current() bool { return maps.EqualFunc(u.members, u.wanted, (*member).runs) }

// exchanges reports whether the process can continue with other specs of the
// extensions that share it: it would be started in the same way.
func (u *unit) exchanges() bool {
	if u.phase != running || len(u.wanted) < 2 {
		return false
	}
	before, after := u.started, merge(u.wanted)
	return slices.Equal(before.IDs, after.IDs) && before.AutoMTLS == after.AutoMTLS &&
		slices.Equal(before.Env, after.Env) && reflect.DeepEqual(before.Policy, after.Policy)
}

// Restart ends the process of an extension gracefully, if it runs, and starts it
// again, also if it had failed. Earlier failures are forgotten. It returns all
// extensions that share the process: they restart together.
func (s *Supervisor) Restart(id string) (restarted []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[id]
	if m == nil {
		return nil, fmt.Errorf("restart extension %s: %w", id, contract.ErrNotFound)
	}
	if s.stopping {
		return nil, fmt.Errorf("restart extension %s: %w", id, errStopped)
	}
	restarted = []string{id}
	if u := m.unit; u != nil {
		restarted = sortedKeys(u.members)
		u.resetFailures()
		u.restart = u.phase != idle && u.phase != quitting
	}
	s.reconcile()
	return restarted, nil
}

// Kill ends the process of an extension with SIGKILL, which counts as a crash. It
// kills only the given generation; 0 means any.
func (s *Supervisor) Kill(id string, generation int64, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[id]
	if m == nil || m.unit == nil || m.unit.proc == nil || (generation != 0 && generation != m.announced) {
		return fmt.Errorf("kill extension %s (generation %d): %w: it has ended", id, generation, contract.ErrNotFound)
	}
	s.options.Log.Warn("killing extension", "extension", id, "generation", m.announced, "reason", reason)
	m.unit.proc.Kill(reason)
	return nil
}

// Report records the readiness that an extension reports. Reports of older
// generations are ignored.
func (s *Supervisor) Report(id string, generation int64, r *extensionv1.Readiness) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.members[id]; m != nil && m.announced == generation {
		s.setReadiness(m, r)
		s.publish()
	}
}

// Statuses lists all extensions by id.
func (s *Supervisor) Statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	statuses := make([]Status, 0, len(s.members))
	for _, id := range sortedKeys(s.members) {
		statuses = append(statuses, s.members[id].shown)
	}
	return statuses
}

// Wait returns when no start, stop or swap is under way and the Observer knows:
// every extension is active, or has failed, or waits for its next start or for
// another extension.
func (s *Supervisor) Wait(ctx context.Context) error {
	wake := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.settled.Broadcast()
	})
	defer wake()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.calls) > 0 || s.busy() {
		if ctx.Err() != nil {
			return fmt.Errorf("wait for extensions to start or stop: %w", context.Cause(ctx))
		}
		s.settled.Wait()
	}
	return nil
}

// Stop stops all extensions, those that require others before those, and
// returns when their processes are gone and the Observer knows. When ctx ends,
// it kills the others and names them in the error. A second call waits likewise.
func (s *Supervisor) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	for _, u := range s.units {
		u.resetFailures()
	}
	s.reconcile() //nolint:contextcheck // each shutdown is bounded by its own grace
	s.mu.Unlock()

	err := s.Wait(ctx)
	if err != nil {
		err = fmt.Errorf("stop extensions: killed before they were done: %s: %w", s.killAll(), context.Cause(ctx))
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), quitGrace)
		defer cancel()
		if s.Wait(last) != nil {
			return err // a process that SIGKILL does not end hangs in the system
		}
	}
	s.work.Wait()
	return err
}

// killAll kills what runs and returns the ids.
func (s *Supervisor) killAll() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, key := range sortedKeys(s.units) {
		u := s.units[key]
		if u.proc != nil {
			ids = append(ids, sortedKeys(u.members)...)
			u.proc.Kill("the process was killed: it still ran when the time to stop was over")
			u.phase = quitting
		}
	}
	return strings.Join(ids, ", ")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func anyOf[V any](m map[string]V, fits func(V) bool) bool {
	for _, v := range m {
		if fits(v) {
			return true
		}
	}
	return false
}
