package home

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/manifests"
)

// Verification is what was found of an extension before it is dropped in.
type Verification struct {
	Manifest    *manifests.Manifest
	Description *extensionv1.Description // nil: it has no process of its own
	Crash       string                   // the last output of its process before it failed
}

// errVerified ends the start of an extension of which enough is known.
var errVerified = errors.New("verified")

// Verify reads the manifest of an extension's directory, starts its executable,
// has it describe itself and checks that against the manifest. It needs no
// home and no kernel, and initializes nothing: secrets are not needed.
func Verify(ctx context.Context, dir string, o Options) (v Verification, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return v, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return v, fmt.Errorf("%s is not a directory: name the one with the %s", dir, manifests.FileName)
	}
	entries, err := manifests.LoadDir(filepath.Dir(dir))
	if err != nil {
		return v, err
	}
	for _, e := range entries {
		if e.ID == filepath.Base(dir) {
			if v.Manifest = e.Manifest; e.Err != nil {
				return v, e.Err
			}
		}
	}
	if v.Manifest == nil {
		return v, fmt.Errorf("%s cannot be an extension: its name begins with a dot", dir)
	}
	entry := manifests.Entry{ID: v.Manifest.ID, File: v.Manifest.File, Manifest: v.Manifest}
	set := manifests.Resolve([]manifests.Entry{entry}, manifests.Options{
		KernelVersion: o.Version, Refuse: refuseFor(o, config.Default()),
	})
	for _, d := range set.Disabled {
		if d.Cause != manifests.Missing { // what it requires may be there in the home
			return v, errors.New(d.Reason)
		}
	}
	if v.Manifest.Run.Builtin != "" {
		return v, nil
	}
	return v, v.start(ctx, o)
}

// stopTimeout is how long an extension that was verified may take to end.
const stopTimeout = 20 * time.Second

// start runs the executable until it has described itself.
func (v *Verification) start(ctx context.Context, o Options) error {
	runDir, err := os.MkdirTemp("", "sbv")
	if err != nil {
		return fmt.Errorf("create a directory for its socket: %w", err)
	}
	defer os.RemoveAll(runDir)
	if o.Home, err = config.OpenHomeAt(filepath.Join(runDir, "home")); err != nil { // for its data: nothing is changed
		return fmt.Errorf("create a directory for its data: %w", err)
	}
	w := &witness{over: make(chan struct{})}
	super, err := supervisor.New(supervisor.Options{Observer: w, RunDir: filepath.Join(runDir, "x")})
	if err != nil {
		return err
	}
	spec, err := (&files{options: o}).spec(&plan{config: config.Default()}, &member{manifest: v.Manifest}, nil)
	if err != nil {
		return err
	}
	process := spec.Process
	process.ID, process.Name, process.Requires = spec.ID, spec.Name, nil
	process.Restart = supervisor.Restart{Policy: supervisor.Never, Max: 1}
	process.Check = func(d *extensionv1.Description) error {
		err := spec.Check(d)
		w.described(d, err)
		return errors.Join(errVerified, err)
	}
	process.Init = func(int64) (*extensionv1.InitRequest, error) { return nil, errVerified }
	if err := super.Apply([]supervisor.Spec{process}); err != nil {
		return err
	}
	select {
	case <-w.over:
	case <-ctx.Done():
		w.failed(ctx.Err().Error(), "")
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := super.Stop(stop); err != nil {
		return err
	}
	v.Description, v.Crash = w.description, w.crash
	return w.err
}

// witness observes how the start of one extension ends.
type witness struct {
	once        sync.Once
	over        chan struct{}
	description *extensionv1.Description
	err         error
	crash       string
}

func (w *witness) described(d *extensionv1.Description, err error) {
	w.once.Do(func() {
		w.description, w.err = d, err
		close(w.over)
	})
}

func (w *witness) failed(reason, crash string) {
	w.once.Do(func() {
		w.err, w.crash = errors.New(reason), strings.TrimSpace(crash)
		close(w.over)
	})
}

// Active implements supervisor.Observer.
func (w *witness) Active(*supervisor.Instance) {}

// Gone implements supervisor.Observer.
func (w *witness) Gone(string, int64, string) {}

// Changed implements supervisor.Observer.
func (w *witness) Changed(s supervisor.Status) {
	if s.LastError != "" {
		w.failed(s.LastError, s.Crash)
	}
}

// Summary is the description in words.
func (v *Verification) Summary() string {
	var b bytes.Buffer
	d := v.Description
	if d.GetChannel() {
		b.WriteString("a channel; ")
	}
	if d.GetModels() {
		b.WriteString("a model provider; ")
	}
	for _, t := range d.GetTools() {
		fmt.Fprintf(&b, "the tool %s; ", t.GetName())
	}
	if d.GetEvents() && !d.GetChannel() {
		b.WriteString("handles events; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}
