package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

const (
	returnTimeout = 30 * time.Second       // how long a call waits for its extension to restart
	retryDelay    = 100 * time.Millisecond // between two attempts
)

// remote runs the call in the tool's extension, and retries where that is safe.
func (r *running) remote(ctx context.Context, t *directory.Tool) (*extensionv1.CallResult, error) {
	repeatable := t.Tool.GetReadOnly() || t.Tool.GetIdempotent()
	if r.call.State == journal.CallRunning && !repeatable {
		return r.fail(unknownOutcome(r.call.Name))
	}
	request := &extensionv1.CallRequest{
		CallId: journal.CallID(r.call.ID), Name: t.Tool.GetName(), Arguments: arguments(r.call.Arguments),
		Agent: r.lease.Agent, Language: r.in.Language,
		Input: bus.OwnInput(t.Extension, r.event), Repeat: r.call.State == journal.CallRunning,
	}
	r.describe(request, r.lease, r.in)
	switch {
	case t.Tool.GetInterruptible():
		var done func()
		ctx, done = r.wait(ctx)
		defer done()
	case !t.Tool.GetWaits():
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	deadline := time.Now().Add(returnTimeout)
	for conflicts, marked := 0, repeatable; ; {
		actor, began := r.Remote.Actor(t.Extension), time.Now()
		if actor != nil && !marked {
			if err := r.Bus.Do(func(tx *bus.Tx) error { return r.Sessions.Start(tx, r.call.ID, "") }); err != nil {
				return nil, err
			}
			marked = true
		}
		result, err := r.attempt(ctx, actor, t, request)
		if time.Since(began) > returnTimeout { // the attempt waited: its extension was running until now
			deadline = time.Now().Add(returnTimeout)
		}
		ended := r.Remote.Actor(t.Extension) != actor // else the extension itself is unavailable
		switch {
		case err == nil, errors.Is(err, contract.ErrStale):
			return result, err
		case wasInterrupted(ctx):
			return r.fail(contract.InterruptedCall)
		case errors.Is(err, contract.ErrConflict) && conflicts < maxConflicts:
			conflicts++
			request.Repeat = true
		case errors.Is(err, contract.ErrGone) && !repeatable:
			return r.fail(unknownOutcome(r.call.Name))
		case actor == nil, errors.Is(err, contract.ErrGone), errors.Is(err, contract.ErrUnavailable) && ended:
			request.Repeat = request.GetRepeat() || errors.Is(err, contract.ErrGone)
			if sleep(ctx, deadline) || wasInterrupted(ctx) {
				continue
			}
			if r.byExtension() {
				return nil, fmt.Errorf("%w: the extension %s is not running", contract.ErrUnavailable, t.Extension)
			}
			advice := "Tell the user; nothing was done."
			if request.GetRepeat() {
				advice = "Tell the user. It was interrupted before: calling it again later does no harm."
			}
			return r.fail(fmt.Sprintf("%s cannot run: its extension %s is not running. %s", r.call.Name, t.Extension, advice))
		case ctx.Err() != nil && repeatable:
			return r.fail(fmt.Sprintf("%s took longer than %s and was stopped.", r.call.Name, callTimeout))
		case ctx.Err() != nil:
			return r.fail(unknownOutcome(r.call.Name))
		default:
			return r.fail(err.Error())
		}
	}
}

// sleep waits for retryDelay. It returns false after until, and when ctx ends.
func sleep(ctx context.Context, until time.Time) bool {
	if !time.Now().Before(until) {
		return false
	}
	select {
	case <-time.After(retryDelay):
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt runs the tool once. A nil actor means that its extension is not running.
func (r *running) attempt(
	ctx context.Context, actor *bus.Actor, t *directory.Tool, request *extensionv1.CallRequest,
) (*extensionv1.CallResult, error) {
	if actor == nil {
		return nil, contract.ErrUnavailable
	}
	lease := r.Bus.LeaseCall(actor, r.lease, r.event, r.call.ID)
	defer r.Bus.Release(lease)
	request.Lane = lease.Token
	result, err := r.Remote.CallTool(ctx, t.Extension, request)
	if err != nil {
		return nil, err
	}
	if t.Tool.GetReadOnly() && len(result.GetEffects()) == 0 && len(result.GetBlobs()) == 0 {
		return r.note(result.GetContent(), result.GetIsError())
	}
	// One commit, by the tool's extension: result, effects and the row of the history.
	content, isError := cut(result.GetContent()), result.GetIsError()
	return &extensionv1.CallResult{Content: content, IsError: isError}, r.Bus.DoAs(actor, lease, func(tx *bus.Tx) error {
		if _, err := tx.Apply(result.GetEffects()); err != nil {
			return err
		}
		return r.store(tx, content, isError, result.GetBlobs())
	})
}

func unknownOutcome(name string) string {
	return name + " was interrupted while it ran: it is unknown whether it had its effect. " +
		"Do not simply repeat it: find out first, or tell the user."
}
