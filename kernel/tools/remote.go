package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/kernel/session"
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

// input is an input with the current reply target, the channel of that, and whose
// things the turn may use.
type input struct {
	contract.AgentInput
	channel   string
	principal contract.Principal
	guest     bool   // who may only chat
	timezone  string // of the person; empty: the configured one
}

// describe fills in the caller of a tool: the session of the lane, and the sender
// and place of the input that the turn answers.
func (r *Runner) describe(q *extensionv1.CallRequest, l *bus.Lease, in input) {
	q.Session, q.Sender, q.ReplyTo, q.Channel = journal.SessionID(l.Session), in.Sender, in.ReplyTo, in.channel
	q.Group, q.Thread, q.Person, q.Principal = in.Group, in.Thread, in.Person, in.principal.Proto()
	q.Timezone = cmp.Or(in.timezone, r.Directory.Current().Location.String())
	if agent := r.Directory.Current().Agent(l.Agent); agent != nil {
		q.Memory = agent.Spec.GetMemory()
	}
}

func readInput(j journal.Reader, l *bus.Lease, e *busv1.Event) (in input, err error) {
	if err := json.Unmarshal(e.GetPayload(), &in.AgentInput); err != nil {
		return in, fmt.Errorf("%w: read the input %s: %w", contract.ErrInvalid, e.GetId(), err)
	}
	s := &journal.Session{Group: in.Group}
	if in.ReplyTo == "" || in.Group {
		stored, err := j.Session(l.Session)
		if err != nil {
			return in, err
		}
		if s = cmp.Or(stored, s); in.ReplyTo == "" && s.OutboundKind == directory.OutboundConversation {
			in.ReplyTo = s.OutboundTarget
		}
	}
	of, person, err := session.For(j, s, in.Person)
	if err != nil {
		return in, err
	}
	in.principal, in.guest, in.timezone = of, !person.May(people.RoleMember), person.Timezone
	in.principal.Conversation = cmp.Or(in.principal.Conversation, in.ReplyTo)
	in.channel, err = channelOf(j, in.ReplyTo)
	return in, err
}

// channelOf returns the channel of a reply target; empty: unknown.
func channelOf(j journal.Reader, target string) (string, error) {
	if channel, isDefault := strings.CutPrefix(target, "#"); isDefault {
		return channel, nil
	}
	c, err := j.ConversationByHandle(target)
	if c == nil {
		return "", err
	}
	return c.Channel, err
}

func unknownOutcome(name string) string {
	return name + " was interrupted while it ran: it is unknown whether it had its effect. " +
		"Do not simply repeat it: find out first, or tell the user."
}
