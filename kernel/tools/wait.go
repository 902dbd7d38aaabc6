package tools

import (
	"context"
	"errors"
	"slices"

	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// errInterrupted ends a waiting call: the user sent a message that may interrupt
// its turn.
var errInterrupted = errors.New("interrupted by a new message of the user")

// wait begins a wait without a timeout: until done is called, the clock of the turn
// is stopped, and a new message of the user that may interrupt the turn ends the
// context with errInterrupted.
func (r *running) wait(ctx context.Context) (waiting context.Context, done func()) {
	waiting, interrupt := context.WithCancelCause(ctx)
	r.mu.Lock()
	r.interrupt = interrupt
	for _, l := range r.holders {
		r.Bus.StopClock(l)
	}
	r.mu.Unlock()
	r.interruptIfWanted() // a message may have come before
	return waiting, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.interrupt = nil
		for _, l := range r.holders {
			r.Bus.StartClock(l)
		}
		interrupt(nil)
	}
}

// addHolder adds a lease whose clock stops while the call waits. The caller holds
// r.mu.
func (r *running) addHolder(l *bus.Lease) {
	if slices.Contains(r.holders, l) {
		return
	}
	r.holders = append(r.holders, l)
	if r.interrupt != nil {
		r.Bus.StopClock(l)
	}
}

// wasInterrupted reports whether a message of the user ended a wait.
func wasInterrupted(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errInterrupted) }

func (r *running) interruptIfWanted() {
	var wanted bool
	err := r.Bus.View(context.Background(), func(j journal.Reader) (err error) {
		wanted, err = r.Sessions.Interruptible(j, r.Bus, r.lease)
		return err
	})
	if err != nil {
		r.Log.Warn("look for new messages; the call keeps waiting", "call", journal.CallID(r.call.ID), "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if wanted && r.interrupt != nil {
		r.interrupt(errInterrupted)
	}
}
