package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// This file has the calls that extensions make by the effect call. The effect stores a
// row, which has no turn, and an event; the runner handles the event as it runs the call
// of a turn. The commit with the result publishes it and deletes the row.

const (
	callAge    = 24 * time.Hour // how long a call may wait for the extension of its tool
	callCredit = 256            // events of calls that no goroutine has yet
)

// caller handles the events of calls.
var caller = &bus.Actor{ID: coretool.Extension}

// Subscription is that of the runner, for the extension coretool.Extension.
func Subscription() bus.Subscription {
	return bus.Subscription{
		Pattern: contract.TopicToolCall + "*", Ordered: true, AckWait: callAge, MaxAge: callAge,
	}
}

// Effects are the effects that concern tools.
func Effects() []bus.Effect {
	return []bus.Effect{{Kind: (*busv1.Effect_Call)(nil), Grant: mayCall, Apply: create}}
}

func mayCall(a *bus.Actor, e *busv1.Effect) error {
	if name := e.GetCall().GetTool(); !coretool.Matches(a.Tools, name) {
		return fmt.Errorf("%w: the manifest of %q lacks \"permissions: {tools: [%s]}\"", contract.ErrDenied, a.ID, name)
	}
	return nil
}

// create stores a call of an extension.
func create(tx *bus.Tx, effect *busv1.Effect) (*busv1.EffectResult, error) {
	q, by := effect.GetCall(), tx.Actor.ID
	extension, _, _ := strings.Cut(q.GetTool(), "/")
	e := &busv1.Event{
		Topic: contract.TopicToolCall + extension, Key: by + "/" + q.GetId(), Source: by, DedupeKey: "call:" + q.GetId(),
	}
	seq, known, err := tx.EventByDedupe(by, e.GetDedupeKey())
	if known || err != nil {
		return &busv1.EffectResult{EventId: journal.EventID(seq), Duplicate: true}, err
	}
	row := &journal.Call{Owner: by, ProviderID: q.GetId(), Name: q.GetTool(), Arguments: q.GetArguments()}
	if err := tx.PutCall(row); err != nil {
		return nil, err
	}
	if e.Payload, err = json.Marshal(contract.ToolCall{
		ID: q.GetId(), Call: journal.CallID(row.ID), Tool: q.GetTool(), Arguments: arguments(q.GetArguments()),
		ReplyTo: q.GetReplyTo(),
	}); err != nil {
		return nil, err
	}
	if _, err := tx.Accept(e); err != nil {
		return nil, err
	}
	if e.GetHop() >= contract.MaxHops { // there is no room for the result
		return nil, fmt.Errorf("%w: the result of %s would follow more than %d others without a turn of a model "+
			"(the chain began with %s)", contract.ErrInvalid, q.GetTool(), contract.MaxHops, e.GetCorrelationId())
	}
	return &busv1.EffectResult{EventId: e.GetId()}, nil
}

// Serve runs the calls of extensions until ctx ends.
func (r *Runner) Serve(ctx context.Context) {
	sink := r.Bus.Attach(caller)
	sink.Credit(callCredit)
	for {
		frame, ok := sink.Next(ctx)
		if !ok {
			return
		}
		for _, d := range frame.Deliveries {
			sink.Take(d.GetToken())
			r.working.Go(func() { r.serve(d) })
		}
		for _, token := range frame.Cancels {
			if l, err := r.Bus.Lease(caller, token); err == nil {
				r.Stop(journal.ParseCallID(givenBy(l.Event).Call))
			}
		}
	}
}

// serve runs the call of a delivery.
func (r *Runner) serve(d *busv1.Delivery) {
	l, err := r.Bus.Lease(caller, d.GetToken())
	if err != nil {
		return // the kernel is stopping
	}
	o := &busv1.Outcome{Token: d.GetToken(), Kind: busv1.Outcome_KIND_ACK}
	_, err = r.Call(context.Background(), l, givenBy(d.GetEvent()).Call)
	switch {
	case err == nil, errors.Is(err, contract.ErrNotFound): // the result is stored
	case errors.Is(err, contract.ErrUnavailable): // the extension of the tool has ended
		o.Kind, o.RetryAfterMs, o.Reason = busv1.Outcome_KIND_RETRY, time.Second.Milliseconds(), err.Error()
	default:
		o.Kind, o.Reason = busv1.Outcome_KIND_FAIL, err.Error()
	}
	r.Bus.Outcome(caller, o)
}

// givenBy returns the call of an event.
func givenBy(e *busv1.Event) (c contract.ToolCall) {
	_ = json.Unmarshal(e.GetPayload(), &c) // the kernel has written it
	return c
}

// byExtension reports whether an extension made the call, outside of any turn.
func (r *running) byExtension() bool { return r.call.Turn == 0 }

// who is the agent or extension that makes the call.
func (r *running) who() string {
	if r.byExtension() {
		return r.call.Owner
	}
	return r.lease.Agent
}

// readCall reads the input of a call of an extension, which acts for the household.
func (r *running) readCall(j journal.Reader) (in input, err error) {
	in.Kind, in.Sender, in.ReplyTo = contract.InputTask, r.call.Owner, givenBy(r.event).ReplyTo
	in.principal = contract.Principal{Extension: r.call.Owner, Conversation: in.ReplyTo}
	in.channel, err = channelOf(j, in.ReplyTo)
	return in, err
}

// resolveForExtension waits until the extension of the tool runs, and returns the tool or why
// the call must not run.
func (r *running) resolveForExtension(
	ctx context.Context,
) (dir *directory.Snapshot, t *directory.Tool, refusal string) {
	id, _, _ := strings.Cut(r.call.Name, "/")
	runs := func(dir *directory.Snapshot) bool {
		return id == coretool.Extension || r.Remote.Actor(id) != nil && !slices.Contains(dir.Starting, id)
	}
	dir, ok := r.Directory.Await(ctx, runs)
	t = dir.Tool(r.call.Name)
	switch by := r.Remote.Actor(r.call.Owner); {
	case !ok:
		refusal = fmt.Sprintf("%s did not run: its extension %s was not running for %s.", r.call.Name, id, callAge)
	case t == nil && r.call.State == journal.CallRunning:
		refusal = unknownOutcome(r.call.Name)
	case t == nil:
		refusal = fmt.Sprintf("There is no tool %q.", r.call.Name)
	case by != nil && !t.Matches(by.Tools):
		refusal = fmt.Sprintf("The manifest of %s lacks \"permissions: {tools: [%s]}\".", by.ID, t.Name)
	default:
		refusal = checkArguments(t, r.call.Arguments)
	}
	return dir, t, refusal
}

// store stores the result of a call, in the commit of its effects.
func (r *running) store(tx *bus.Tx, content string, isError bool, blobs []string) error {
	if !r.byExtension() {
		if err := tx.KeepBlobs(journal.Keeper{Kind: journal.KeptBySession, ID: r.call.Session}, blobs); err != nil {
			return err
		}
		return r.Sessions.Finish(tx, r.call.ID, content, isError)
	}
	e, err := publishResult(tx, &r.call, content, isError)
	if err != nil {
		return err
	}
	return tx.KeepBlobs(journal.Keeper{Kind: journal.KeptByEvent, ID: e.GetSeq()}, blobs)
}

// publishResult ends a call of an extension.
func publishResult(tx *bus.Tx, c *journal.Call, content string, isError bool) (*busv1.Event, error) {
	if err := tx.DeleteCall(c.ID); err != nil {
		return nil, err
	}
	return tx.Emit(contract.TopicToolResult+c.Owner, c.Owner+"/"+c.ProviderID, contract.ToolResult{
		ID: c.ProviderID, Tool: c.Name, Content: content, Error: isError,
	})
}

// Hooks adds to the hooks what follows from calls of extensions: a delivery of one that
// dies publishes the reason as the result, and none can be withdrawn.
func Hooks(h bus.Hooks) bus.Hooks {
	isCall := func(e *busv1.Event) bool { return strings.HasPrefix(e.GetTopic(), contract.TopicToolCall) }
	died, withdraw := h.Dead, h.Withdraw
	h.Dead = func(tx *bus.Tx, d *journal.Delivery, e *busv1.Event, extension string) error {
		if extension == caller.ID && isCall(e) {
			c, err := tx.Call(journal.ParseCallID(givenBy(e).Call))
			if err == nil && c != nil {
				_, err = publishResult(tx, c, c.Name+" did not run: "+d.Reason+".", true)
			}
			return err
		}
		return died(tx, d, e, extension)
	}
	h.Withdraw = func(tx *bus.Tx, e *busv1.Event) (bus.Withdrawal, error) {
		if isCall(e) {
			return bus.WithdrawTooLate, nil
		}
		return withdraw(tx, e)
	}
	return h
}
