package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Do applies an update of the kernel's own and waits until it is durable.
func (b *Bus) Do(apply func(*Tx) error) error { return b.doContext(context.Background(), apply) }

// doContext is Do that gives up waiting when ctx ends.
func (b *Bus) doContext(ctx context.Context, apply func(*Tx) error) error {
	done := make(chan error, 1)
	b.update(Kernel, "", apply, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Lazily applies an update of the kernel's own with the next commit, before any
// that is submitted later, and without waiting for it: for what is counted, not
// for what is acted on. A crash within journal.LazyDelay loses it, together with
// what it would have counted. done must not block.
func (b *Bus) Lazily(apply func(*Tx) error, done func(error)) {
	b.submit(Kernel, "", true, apply, done)
}

// DoAs applies an update under a lease, as the actor, and waits until it is
// durable.
func (b *Bus) DoAs(a *Actor, l *Lease, apply func(*Tx) error) error {
	done := make(chan error, 1)
	b.share.Note(a.ID)
	b.update(a, "", func(tx *Tx) error {
		if err := tx.hold(l); err != nil {
			return err
		}
		return apply(tx)
	}, func(err error) { done <- err })
	return <-done
}

// hold makes tx a commit under the lease, if that is still valid.
func (t *Tx) hold(l *Lease) error {
	t.bus.mu.Lock()
	revoked := l.revoked
	t.bus.mu.Unlock()
	if revoked {
		return errTaken
	}
	t.Lease, t.cause = l, l.Event
	if l.Call == 0 {
		return nil
	}
	c, err := t.Call(l.Call)
	if err == nil && (c == nil || c.State == journal.CallFinished || c.State == journal.CallClosed) {
		err = fmt.Errorf("%w: the call %s has ended", contract.ErrStale, journal.CallID(l.Call))
	}
	return err
}

// holdToken is hold for the lease of a token, if there is one.
func (t *Tx) holdToken(token string) error {
	if token == "" {
		return nil
	}
	l, err := t.bus.Lease(t.Actor, token)
	if err != nil {
		return err
	}
	return t.hold(l)
}

// update submits one transaction: apply under the token, if there is one, and
// afterwards what the bus has to do.
func (b *Bus) update(a *Actor, token string, apply func(*Tx) error, done func(error)) {
	b.submit(a, token, false, apply, done)
}

func (b *Bus) submit(a *Actor, token string, lazy bool, apply func(*Tx) error, done func(error)) {
	tx := &Tx{}
	b.store.Submit(journal.Update{
		Lazy: lazy,
		Apply: func(j journal.Tx) error {
			tx.begin(b, a, j)
			if err := tx.holdToken(token); err != nil {
				return err
			}
			if err := apply(tx); err != nil {
				return err
			}
			return tx.rest()
		},
		Undo: func() { b.rollback(tx) },
		Done: func(err error) {
			if err == nil {
				b.committed(tx)
			}
			done(err)
		},
	})
}

// rollback takes back what a commit that came to nothing did to the bus.
func (b *Bus) rollback(t *Tx) {
	if len(t.undo) == 0 && len(t.claims) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t.unclaim()
	for _, f := range slices.Backward(t.undo) {
		f()
	}
	t.undo = nil
}

// committed does what follows from durable commits.
func (b *Bus) committed(all ...*Tx) {
	b.mu.Lock()
	var sinks []*Sink
	touched := func(s *subscription) {
		if s != nil && s.sink != nil && !slices.Contains(sinks, s.sink) {
			sinks = append(sinks, s.sink)
		}
	}
	for _, t := range all {
		b.follow(t)
		for _, p := range t.gone {
			touched(p.sub)
		}
		for _, a := range t.added {
			touched(a.sub)
		}
	}
	for _, s := range sinks {
		b.dispatch(s)
	}
	for _, t := range all {
		for _, a := range t.added {
			if a.sub.class() != classPlain {
				b.notHandedOut(a.sub.lane(a.delivery.Key, a.delivery.Seq))
			}
		}
		if len(b.watchers) == 0 {
			continue
		}
		for _, e := range t.seen {
			for w := range b.watchers {
				w.offer(e)
			}
		}
	}
	b.mu.Unlock()
	for _, t := range all {
		for _, f := range t.after {
			f()
		}
	}
}

// follow brings what is in memory to where a durable commit has brought the
// store. The caller holds b.mu.
func (b *Bus) follow(t *Tx) {
	t.unclaim()
	for _, f := range t.then {
		f()
	}
	for _, p := range t.gone {
		if p.lease != nil {
			b.release(p.lease)
		}
		b.remove(p.sub, p.delivery.Key, p.delivery.Seq)
		b.tellSettled(p.delivery)
	}
	for _, f := range t.kept {
		f()
	}
	for _, a := range t.added {
		b.add(a)
	}
}

// Apply applies effects in the order given, each after its grant was checked.
func (t *Tx) Apply(effects []*busv1.Effect) ([]*busv1.EffectResult, error) {
	if len(effects) > contract.MaxEffects {
		return nil, fmt.Errorf("%w: a commit of %d effects, the limit is %d: make several", contract.ErrTooLarge, len(effects), contract.MaxEffects)
	}
	results := make([]*busv1.EffectResult, len(effects))
	for i, e := range effects {
		if err := t.Actor.allowed(e); err != nil {
			return nil, err
		}
		result, err := t.effect(e)
		if err != nil {
			return nil, err
		}
		t.countAnew(e)
		if result == nil {
			result = &busv1.EffectResult{}
		}
		results[i] = result
	}
	t.valid = false // this was about these effects
	return results, nil
}

func (t *Tx) effect(e *busv1.Effect) (*busv1.EffectResult, error) {
	switch k := e.GetKind().(type) {
	case *busv1.Effect_Publish:
		return t.publish(k.Publish)
	case *busv1.Effect_Put:
		return t.put(k.Put)
	case *busv1.Effect_Delete:
		return t.delete(k.Delete)
	case *busv1.Effect_SessionEnsure:
		return t.bus.sessions.Ensure(t, k.SessionEnsure)
	case *busv1.Effect_Input:
		return t.bus.sessions.Input(t, k.Input)
	case *busv1.Effect_Append:
		r, err := t.bus.sessions.Append(t, k.Append)
		if err == nil {
			r.Waiting = t.bus.WaitingBehind(t.Lease)
		}
		return r, err
	case *busv1.Effect_Steer:
		return t.bus.sessions.Steer(t, k.Steer)
	case *busv1.Effect_TurnCancel:
		return t.bus.sessions.Cancel(t, k.TurnCancel)
	case *busv1.Effect_SessionIdle:
		return t.bus.sessions.WhenIdle(t, k.SessionIdle)
	case *busv1.Effect_Withdraw:
		return t.withdrawEffect(k.Withdraw)
	case *busv1.Effect_Receipt:
		return t.receipt(k.Receipt)
	}
	return nil, fmt.Errorf("%w: an effect without a kind", contract.ErrInvalid)
}

// payloadsValid looks at payloads before their commit is queued, so that those
// behind it need not wait for that. What it does not find to be valid is looked
// at again in its place, where the error has to come from.
func payloadsValid(effects []*busv1.Effect) bool {
	for _, e := range effects {
		if p := e.GetPublish(); p != nil && (len(p.GetPayload()) > contract.MaxPayload || !validJSON(p.GetPayload())) {
			return false
		}
	}
	return true
}

func (t *Tx) publish(p *busv1.Publish) (*busv1.EffectResult, error) {
	if len(p.GetPayload()) > contract.MaxPayload {
		return nil, fmt.Errorf("%w: the payload of %s has %d bytes, the limit is %d", contract.ErrTooLarge, p.GetTopic(), len(p.GetPayload()), contract.MaxPayload)
	}
	if !t.valid && !validJSON(p.GetPayload()) {
		return nil, fmt.Errorf("%w: the payload of %s is no JSON", contract.ErrInvalid, p.GetTopic())
	}
	if p.GetTopic() == contract.TopicAgentOutput {
		return t.bus.sessions.Output(t, p.GetPayload())
	}
	e := &busv1.Event{Topic: p.GetTopic(), Key: p.GetKey(), Source: t.Actor.ID, Payload: p.GetPayload(), DedupeKey: p.GetDedupeKey()}
	duplicate, err := t.Accept(e)
	if err != nil {
		return nil, err
	}
	return &busv1.EffectResult{EventId: e.GetId(), Duplicate: duplicate}, nil
}

const maxKey = 1024

func (t *Tx) put(p *busv1.Put) (*busv1.EffectResult, error) {
	if len(p.GetValue()) > contract.MaxPayload {
		return nil, fmt.Errorf("%w: the value of key %q has %d bytes, the limit is %d", contract.ErrTooLarge, p.GetKey(), len(p.GetValue()), contract.MaxPayload)
	}
	if p.GetKey() == "" || len(p.GetKey()) > maxKey {
		return nil, fmt.Errorf("%w: a key has 1 to %d bytes", contract.ErrInvalid, maxKey)
	}
	if err := t.expect(p.GetKey(), p.Version); err != nil {
		return nil, err
	}
	version, err := t.KVPut(t.Actor.ID, p.GetKey(), p.GetValue())
	return &busv1.EffectResult{Version: version}, err
}

func (t *Tx) delete(d *busv1.Delete) (*busv1.EffectResult, error) {
	if err := t.expect(d.GetKey(), d.Version); err != nil {
		return nil, err
	}
	return nil, t.KVDelete(t.Actor.ID, d.GetKey())
}

func (t *Tx) expect(key string, version *int64) error {
	if version == nil {
		return nil
	}
	current, err := t.KVGet(t.Actor.ID, key)
	if err != nil {
		return err
	}
	if current.Version != *version {
		return fmt.Errorf("%w: key %q has version %d, not %d: read it again", contract.ErrConflict, key, current.Version, *version)
	}
	return nil
}

func (t *Tx) receipt(r *busv1.Receipt) (*busv1.EffectResult, error) {
	l := t.Lease
	if l == nil || l.item == nil || l.item.lane.sub.class() != classSend || !t.Ending {
		return nil, fmt.Errorf("%w: a receipt belongs to the acknowledgement of a %s* delivery", contract.ErrInvalid, contract.TopicChannelSend)
	}
	handle, err := t.bus.router.Delivered(t, l.Event, r)
	if err != nil {
		return nil, err
	}
	t.providerID = r.GetProviderId()
	return &busv1.EffectResult{Conversation: handle}, nil
}

// permanent says that repeating a commit cannot help.
func permanent(err error) bool {
	return errors.Is(err, contract.ErrDenied) || errors.Is(err, contract.ErrInvalid) || errors.Is(err, contract.ErrTooLarge) || errors.Is(err, contract.ErrNotFound)
}
