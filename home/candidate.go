package home

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/launch"
	"github.com/switchboard-run/switchboard/home/orphans"
	"github.com/switchboard-run/switchboard/home/output"
	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/manifests"
)

// Candidate is an extension that is started without a home and without a kernel, as often
// as its verification needs it: in the sandbox, with the environment and the grants that
// it has when it is installed.
type Candidate struct {
	Manifest *manifests.Manifest
	Builtin  bool        // it is part of this program
	Spec     kernel.Spec // its process and its grants, the configuration and the secrets
	// SocketDir is where it may open sockets of the kernel.
	SocketDir string

	dir      string // everything that the candidate leaves, below the temporary directory
	launcher *launch.Launcher

	mu      sync.Mutex
	written *written // of the last start
}

// CandidateSettings are what a candidate gets that no manifest has.
type CandidateSettings struct {
	Config  map[string]any // over the defaults of the manifest
	Secrets map[string]string
}

// OpenCandidate reads the manifest in a directory, or that of a built-in extension by its
// id. The caller must call Close.
func OpenCandidate(dir string, set CandidateSettings, o Options) (c *Candidate, err error) {
	c = &Candidate{}
	if c.Manifest, c.Builtin, err = readCandidate(dir, o); err != nil {
		return c, err
	}
	if c.Manifest.Run.Builtin != "" && !c.Builtin {
		return c, nil // it needs no process of its own
	}
	if c.dir, err = os.MkdirTemp("", "sbv"); err != nil {
		return c, fmt.Errorf("create a directory for its sockets: %w", err)
	}
	if err := c.open(set, o); err != nil {
		c.Close()
		return c, err
	}
	return c, nil
}

// readCandidate reads a manifest and refuses one that a kernel would refuse.
func readCandidate(dir string, o Options) (m *manifests.Manifest, builtin bool, err error) {
	if !strings.ContainsRune(dir, filepath.Separator) {
		if _, err := os.Stat(filepath.Join(dir, manifests.FileName)); errors.Is(err, os.ErrNotExist) {
			if m := builtinManifest(dir, o); m != nil {
				return m, true, nil
			}
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, false, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, false, fmt.Errorf("%s is not a directory: give the directory that has %s", dir, manifests.FileName)
	}
	if m, err = manifests.Load(dir); err != nil {
		return m, false, err
	}
	set := manifests.Resolve([]manifests.Entry{{ID: m.ID, File: m.File, Manifest: m}}, manifests.Options{
		KernelVersion: o.Version, Refuse: refuseFor(o, config.Default()),
	})
	for _, d := range set.Disabled {
		if d.Cause != manifests.Missing { // the home may have the required extensions
			return m, false, errors.New(d.Reason)
		}
	}
	return m, false, nil
}

// builtinManifest is the manifest of a built-in extension; nil: there is none.
func builtinManifest(id string, o Options) *manifests.Manifest {
	if o.Builtins == nil {
		return nil
	}
	entries, err := manifests.LoadBuiltin(o.Builtins, o.BuiltinsPrefix)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(entries, func(e manifests.Entry) bool { return e.ID == id && e.Err == nil })
	if i < 0 {
		return nil
	}
	return entries[i].Manifest
}

func (c *Candidate) open(set CandidateSettings, o Options) (err error) {
	if o.Home, err = config.OpenHomeAt(filepath.Join(c.dir, "home")); err != nil { // a temporary one, for its data
		return fmt.Errorf("create a directory for its data: %w", err)
	}
	c.SocketDir = o.Home.RuntimeDir()
	c.launcher, err = launch.New(launch.Options{
		RunDir: filepath.Join(c.dir, "x"), Processes: orphans.Unwatched{}, Log: hclog.NewNullLogger(),
		Output: func(ids []string) launch.Output {
			w := &written{Output: output.New(ids, func(string) io.Writer { return io.Discard })}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.written = w
			return w
		},
	})
	if err != nil {
		return err
	}
	m := &member{manifest: c.Manifest, builtin: c.Builtin, secrets: set.Secrets, env: o.Env}
	m.config = maps.Clone(c.Manifest.Config)
	if m.config == nil {
		m.config = map[string]any{}
	}
	maps.Copy(m.config, set.Config)
	for _, p := range c.Manifest.CheckConfig(m.config) {
		if len(set.Config) > 0 || !p.Missing {
			return fmt.Errorf("the configuration: %s: %s", strings.Join(p.Path, "."), p.Fault.Message)
		}
	}
	for _, s := range c.Manifest.SecretsOf(m.config) {
		if s.Required && set.Secrets[s.Name] == "" {
			m.missing = append(m.missing, s.Name)
		}
	}
	group := map[string][]string{m.group(config.Default()): {c.Manifest.Run.Builtin + ":" + c.Manifest.ID}}
	c.Spec, err = (&files{options: o}).spec(&plan{config: config.Default()}, m, group)
	p := &c.Spec.Process
	p.ID, p.Name, p.Requires = c.Spec.ID, c.Spec.Name, nil
	return err
}

// HasProcess reports whether the candidate has something to start.
func (c *Candidate) HasProcess() bool { return c.launcher != nil }

// Started is a process of a candidate with the first lines that it wrote.
type Started struct {
	*supervisor.Process
	written *written
}

// Start starts its process and returns when it can be called.
func (c *Candidate) Start(ctx context.Context) (*Started, error) {
	p, err := c.launcher.Launch(ctx, supervisor.Launch{Spec: c.Spec.Process, IDs: []string{c.Spec.ID}})
	c.mu.Lock()
	started := &Started{Process: p, written: c.written}
	c.mu.Unlock()
	if err != nil && started.written != nil {
		if lines := started.Lines("stderr"); len(lines) > 0 {
			err = fmt.Errorf("%w\nits first lines:\n%s", err, strings.Join(lines[:min(len(lines), shownLines)], "\n"))
		}
	}
	if err != nil {
		return nil, err
	}
	return started, nil
}

// Lines are the first lines that the process wrote to a stream, stdout or stderr.
func (s *Started) Lines(stream string) []string {
	s.written.mu.Lock()
	defer s.written.mu.Unlock()
	return slices.Clone(s.written.first[stream])
}

// Close removes everything that the candidate has left. Its processes must have ended.
func (c *Candidate) Close() {
	if c.launcher != nil {
		c.launcher.Close()
	}
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}

// written is the output of one process.
type written struct {
	*output.Output
	mu    sync.Mutex
	first map[string][]string
}

const (
	keepFirst  = 20 // lines of each stream that are kept
	shownLines = 8  // of stderr, if the start fails
)

// Line implements launch.Output.
func (w *written) Line(stream string, line []byte) {
	w.mu.Lock()
	if w.first == nil {
		w.first = map[string][]string{}
	}
	if text := strings.TrimRight(w.Clean(string(line)), "\r\n"); len(w.first[stream]) < keepFirst && text != "" {
		w.first[stream] = append(w.first[stream], text)
	}
	w.mu.Unlock()
	w.Output.Line(stream, line)
}
