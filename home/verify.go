package home

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/manifests"
)

// Verification is the result of Verify.
type Verification struct {
	Manifest    *manifests.Manifest
	Description *extensionv1.Description // nil: built in, so not started
	Crash       string                   // the last output of a process that failed
}

// errVerified ends the start of an extension that has described itself.
var errVerified = errors.New("verified")

// Verify reads the manifest in an extension's directory, starts its executable, asks
// it to describe itself and checks the answer against the manifest. It needs neither
// home nor kernel, and no secrets: it does not initialize the extension.
func Verify(ctx context.Context, dir string, o Options) (v Verification, err error) {
	c, err := OpenCandidate(dir, CandidateSettings{}, o)
	v.Manifest = c.Manifest
	if err != nil {
		return v, err
	}
	defer c.Close()
	if c.launcher == nil {
		return v, nil
	}
	return v, v.start(ctx, c)
}

// stopTimeout bounds the shutdown of a verified extension.
const stopTimeout = 20 * time.Second

// start runs the executable until it has described itself.
func (v *Verification) start(ctx context.Context, c *Candidate) error {
	w := &observer{done: make(chan struct{})}
	super := supervisor.New(supervisor.Options{Observer: w, Launcher: c.launcher.Launch})
	super.Begin(0)
	process := c.Spec.Process
	process.Restart = supervisor.Restart{Policy: supervisor.Never, Max: 1}
	process.Check = func(d *extensionv1.Description) error {
		err := c.Spec.Check(d)
		w.described(d, err)
		return errors.Join(errVerified, err)
	}
	process.Init = func(int64) (*extensionv1.InitRequest, error) { return nil, errVerified }
	if err := super.Apply([]supervisor.Spec{process}); err != nil {
		return err
	}
	select {
	case <-w.done:
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

// observer records the end of the start of one extension.
type observer struct {
	once        sync.Once
	done        chan struct{}
	description *extensionv1.Description
	err         error
	crash       string
}

func (w *observer) described(d *extensionv1.Description, err error) {
	w.once.Do(func() {
		w.description, w.err = d, err
		close(w.done)
	})
}

func (w *observer) failed(reason, crash string) {
	w.once.Do(func() {
		w.err, w.crash = errors.New(reason), strings.TrimSpace(crash)
		close(w.done)
	})
}

// Active implements supervisor.Observer.
func (w *observer) Active(*supervisor.Instance) {}

// Gone implements supervisor.Observer.
func (w *observer) Gone(string, int64, string) {}

// Changed implements supervisor.Observer.
func (w *observer) Changed(s supervisor.Status) {
	if s.LastError != "" {
		w.failed(s.LastError, s.Crash)
	}
}

// Summary returns the description in words.
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
