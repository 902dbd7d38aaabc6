package sdk

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// Readiness states that an extension reports of itself.
const (
	Ready        = extensionv1.Readiness_STATE_READY
	Unconfigured = extensionv1.Readiness_STATE_UNCONFIGURED
	Degraded     = extensionv1.Readiness_STATE_DEGRADED
	Offline      = extensionv1.Readiness_STATE_OFFLINE
)

// reportTimeout bounds a report: the kernel answers at once or is gone.
const reportTimeout = 5 * time.Second

// readiness is what the extension last said of itself. Until Init is answered
// it is only kept, since the answer carries it.
type readiness struct {
	reporting sync.Mutex // held while a report is under way, so that reports keep their order

	mu       sync.Mutex
	announce bool
	last     *extensionv1.Readiness
}

// SetReadiness tells the kernel whether the extension can do its work, as soon
// as it changes; detail says why and what to do. Without a call it is ready.
// Deliveries to a channel that is not ready are held. Saying the same again
// costs nothing.
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
	if same || !announce {
		return
	}
	ctx, cancel := context.WithTimeout(k.ctx, reportTimeout)
	defer cancel()
	if _, err := k.runtime.Report(ctx, next); err != nil {
		k.log.Debug("reporting readiness failed", "error", err)
	}
}

// announced returns the readiness for the answer to Init; what is set later is
// reported at once.
func (r *readiness) announced() *extensionv1.Readiness {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.announce = true
	return r.current()
}

// now is the readiness for Health.
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
