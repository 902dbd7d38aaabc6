package sdk

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// Readiness states of an extension.
const (
	Ready        = extensionv1.Readiness_STATE_READY
	Unconfigured = extensionv1.Readiness_STATE_UNCONFIGURED
	Degraded     = extensionv1.Readiness_STATE_DEGRADED
	Offline      = extensionv1.Readiness_STATE_OFFLINE
)

// reportTimeout bounds a report. The kernel answers at once unless it has ended.
const reportTimeout = 5 * time.Second

// readiness is the last readiness that the extension has set. Before the answer to
// Init, which carries it, it is not reported.
type readiness struct {
	reporting sync.Mutex // held during a report, to keep reports in order

	mu       sync.Mutex
	announce bool
	last     *extensionv1.Readiness
}

// SetReadiness reports whether the extension can do its work; detail says why not
// and what to do. An extension that never calls it is ready. The kernel holds
// deliveries to a channel that is not ready. Setting the same readiness again costs
// nothing.
func (k *Kernel) SetReadiness(state extensionv1.Readiness_State, detail string) {
	r := &k.readiness
	r.reporting.Lock()
	defer r.reporting.Unlock()

	next := &extensionv1.Readiness{State: state, Detail: detail}
	r.mu.Lock()
	same := proto.Equal(r.last, next)
	r.last = next
	announce := r.announce
	r.mu.Unlock()
	if !same && announce {
		k.report(next)
	}
}

// SetTools replaces the tools of the extension, for one whose tools come and go. Calls
// that run go on. Call it from Run on: the kernel takes no other tools during Start.
func (k *Kernel) SetTools(tools []Tool) error {
	r := &k.readiness
	r.reporting.Lock()
	defer r.reporting.Unlock()
	d, err := k.describe(tools)
	if err != nil {
		return err
	}
	now := proto.CloneOf(r.now())
	now.Description = d
	k.report(now)
	return nil
}

// report tells the kernel; the caller holds reporting.
func (k *Kernel) report(next *extensionv1.Readiness) {
	ctx, cancel := context.WithTimeout(k.ctx, reportTimeout)
	defer cancel()
	if _, err := k.runtime.Report(ctx, next); err != nil {
		k.log.Debug("report readiness", "error", err)
	}
}

// announced returns the readiness for the answer to Init. Later changes are reported
// at once.
func (r *readiness) announced() *extensionv1.Readiness {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.announce = true
	return r.current()
}

// now returns the readiness for Health.
func (r *readiness) now() *extensionv1.Readiness {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current()
}

func (r *readiness) current() *extensionv1.Readiness {
	if r.last == nil {
		return &extensionv1.Readiness{State: Ready}
	}
	return r.last
}
