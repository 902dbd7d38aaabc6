package tools

import (
	"context"
	"errors"
	"slices"

	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// errInterrupted ends a call that waits: a new message of the user has come that
// may interrupt its turn.
var errInterrupted = errors.New("a new message of the user has come")

const interrupted = "interrupted: the user has written something new meanwhile; nothing was done. Call it again if it is still needed."

// wait begins a time in which the call waits for somebody else, as long as that
// takes: the clock of its turn stands still, and a new message of the user, if
// it may interrupt the turn, ends the context with errInterrupted. It lasts
// until done is called.
func (r *running) wait(ctx context.Context) (waiting context.Context, done func()) {
	waiting, interrupt := context.WithCancelCause(ctx)
	r.mu.Lock()
	r.interrupt = interrupt
	for _, l := range r.holders {
		r.Bus.StopClock(l)
	}
	r.mu.Unlock()
	r.interruptIfWanted() // it may have come before
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

// hold has the clock of a lease stand still as long as the call waits. The
// caller holds r.mu.
func (r *running) hold(l *bus.Lease) {
	if slices.Contains(r.holders, l) {
		return
	}
	r.holders = append(r.holders, l)
	if r.interrupt != nil {
		r.Bus.StopClock(l)
	}
}

// wasInterrupted says whether a message of the user has ended a wait.
func wasInterrupted(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errInterrupted) }

// newMessage ends the call, if it waits, when a message of the user was queued
// that may interrupt the turn.
func (r *running) newMessage() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.interrupt != nil {
		go r.interruptIfWanted()
	}
}

func (r *running) interruptIfWanted() {
	var wanted bool
	err := r.Bus.View(context.Background(), func(j journal.Reader) (err error) {
		wanted, err = r.Sessions.Interruptible(j, r.Bus, r.lease)
		return err
	})
	if err != nil {
		r.Log.Warn("looking for new messages failed; a call goes on waiting", "call", journal.CallID(r.call.ID), "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if wanted && r.interrupt != nil {
		r.interrupt(errInterrupted)
	}
}
