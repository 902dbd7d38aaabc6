package bus

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/effect"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Effect is a kind of effect. The package that implements a kind registers it
// with Options.Effects; nothing else in the kernel lists kinds.
type Effect struct {
	Kind any // a nil pointer of the kind's type, such as (*busv1.Effect_Put)(nil)
	// Permission is what a manifest lists under "permissions: {effects: [...]}" to be
	// granted the effect. Empty: no listing is needed.
	Permission string
	// Grant refuses an actor for another reason; the error names the line that its
	// manifest lacks. nil: no other reason. The kernel itself is never refused.
	Grant func(a *Actor, e *busv1.Effect) error
	// Apply makes the change. It reads and writes only through tx, and neither
	// waits nor calls out.
	Apply func(tx *Tx, e *busv1.Effect) (*busv1.EffectResult, error)
}

// Hooks let other packages of the kernel take part in the commits of the bus. Each
// runs in the commit that it is about, under the rules of Effect.Apply. A nil
// hook does nothing.
type Hooks struct {
	// Accept decides about an event before it is stored. route applies its consequences
	// once it is stored; without one, nothing of the event is kept. Both return an error
	// only when the store does.
	Accept func(tx *Tx, e *busv1.Event) (route func() error, err error)
	// Output applies the publishing of agent.output, which ends the turn of the
	// lane.
	Output func(tx *Tx, payload []byte) (*busv1.EffectResult, error)
	// Ack may refuse the acknowledgement of an input or a command, whose lease is
	// tx.Lease. content is what the extension answers to a command.
	Ack func(tx *Tx, content string) error
	// Dead follows the death of a delivery of the extension.
	Dead func(tx *Tx, d *journal.Delivery, e *busv1.Event, extension string) error
	// Receipt follows the receipt of a channel for the send e; the handle is that
	// of the conversation that it went to.
	Receipt func(tx *Tx, e *busv1.Event, r *busv1.Receipt) (handle string, err error)
	// Repeat is the send e as a channel gets it when people may have seen it before.
	Repeat func(channel string, e *busv1.Event) *busv1.Event
	// Resend returns what replaces the dead send e when it is resubmitted; nil: it is
	// queued again.
	Resend func(tx *Tx, e *busv1.Event) (send func() error, err error)
	// Withdraw says how an event is withdrawn.
	Withdraw func(tx *Tx, e *busv1.Event) (Withdrawal, error)
	// Rest runs at the end of a commit that settled an input of the session.
	Rest func(tx *Tx, session int64) error
	// Turn returns the context that an agent gets with an input, to begin or resume
	// its turn.
	Turn func(r journal.Reader, e *busv1.Event) (*busv1.TurnContext, error)
}

// coreEffects are the effects that the bus itself implements.
var coreEffects = []Effect{
	{Kind: (*busv1.Effect_Publish)(nil), Grant: mayPublish, Apply: (*Tx).publish},
	{Kind: (*busv1.Effect_Put)(nil), Apply: (*Tx).put},
	{Kind: (*busv1.Effect_Delete)(nil), Apply: (*Tx).delete},
	{Kind: (*busv1.Effect_Withdraw)(nil), Permission: "withdraw", Apply: (*Tx).withdrawEffect},
	{Kind: (*busv1.Effect_Receipt)(nil), Grant: Channels, Apply: (*Tx).receipt},
}

// registry finds an effect by the type of its kind.
type registry map[reflect.Type]*Effect

func newRegistry(effects []Effect) registry {
	r := registry{}
	for _, list := range [][]Effect{coreEffects, effects} {
		for i := range list {
			r[reflect.TypeOf(list[i].Kind)] = &list[i]
		}
	}
	return r
}

// Permissions are the permissions of these effects and of those of the bus, sorted.
func Permissions(effects []Effect) (names []string) {
	for _, e := range slices.Concat(coreEffects, effects) {
		if e.Permission != "" && !slices.Contains(names, e.Permission) {
			names = append(names, e.Permission)
		}
	}
	slices.Sort(names)
	return names
}

// granted refuses an actor that may not have the effect.
func (k *Effect) granted(a *Actor, e *busv1.Effect) error {
	switch {
	case a.kernel:
		return nil
	case k.Permission != "" && !slices.Contains(a.Effects, k.Permission):
		return fmt.Errorf("%w: the manifest of %q lacks \"permissions: {effects: [%s]}\"",
			contract.ErrDenied, a.ID, k.Permission)
	case k.Grant != nil:
		return k.Grant(a, e)
	}
	return nil
}

func (r registry) find(e *busv1.Effect) (*Effect, error) {
	if known := r[reflect.TypeOf(e.GetKind())]; known != nil {
		return known, nil
	}
	return nil, fmt.Errorf("%w: effect of an unknown kind: the extension is newer than this kernel", contract.ErrInvalid)
}

// check reports whether every effect is right by itself. It runs before the commit is
// queued, so that it delays no other commit. If not, the commit repeats the checks one by
// one, for the error.
func (r registry) check(effects []*busv1.Effect) bool {
	for _, e := range effects {
		if _, err := r.find(e); err != nil || effect.Check(e) != nil {
			return false
		}
	}
	return true
}

// Apply applies effects in order, each after its grant was checked.
func (t *Tx) Apply(effects []*busv1.Effect) ([]*busv1.EffectResult, error) {
	return t.apply(effects, false)
}

// apply is Apply for effects that have passed registry.check before, or not.
func (t *Tx) apply(effects []*busv1.Effect, checked bool) ([]*busv1.EffectResult, error) {
	if len(effects) > contract.MaxEffects {
		return nil, fmt.Errorf("%w: commit of %d effects, the limit is %d: make several", contract.ErrTooLarge,
			len(effects), contract.MaxEffects)
	}
	results := make([]*busv1.EffectResult, len(effects))
	for i, e := range effects {
		known, err := t.bus.effects.find(e)
		if err == nil {
			err = known.granted(t.Actor, e)
		}
		if err == nil && !checked {
			err = effect.Check(e)
		}
		if err == nil {
			results[i], err = known.Apply(t, e)
		}
		if err != nil {
			return nil, err
		}
		if results[i] == nil {
			results[i] = &busv1.EffectResult{}
		}
	}
	return results, nil
}

func (t *Tx) publish(published *busv1.Effect) (*busv1.EffectResult, error) {
	p := published.GetPublish()
	if p.GetTopic() == contract.TopicAgentOutput && t.bus.hooks.Output != nil {
		return t.bus.hooks.Output(t, p.GetPayload())
	}
	e := &busv1.Event{Topic: p.GetTopic(), Key: p.GetKey(), Source: t.Actor.ID, Payload: p.GetPayload(),
		DedupeKey: p.GetDedupeKey()}
	duplicate, err := t.Accept(e)
	if err == nil && !duplicate && e.GetSeq() != 0 {
		err = t.KeepBlobs(journal.Keeper{Kind: journal.KeptByEvent, ID: e.GetSeq()}, p.GetBlobs())
	}
	if err != nil {
		return nil, err
	}
	return &busv1.EffectResult{EventId: e.GetId(), Duplicate: duplicate}, nil
}

func (t *Tx) put(e *busv1.Effect) (*busv1.EffectResult, error) {
	p := e.GetPut()
	if err := t.expect(p.GetKey(), p.Version); err != nil {
		return nil, err
	}
	if err := t.mayUse(p.GetBlobs()); err != nil { // also what only the value before it keeps
		return nil, err
	}
	version, err := t.KVPut(t.Actor.ID, p.GetKey(), p.GetValue())
	if err == nil {
		keeper := journal.Keeper{Kind: journal.KeptByValue, Owner: t.Actor.ID, Key: p.GetKey()}
		err = t.Tx.KeepBlobs(keeper, p.GetBlobs())
	}
	return &busv1.EffectResult{Version: version}, err
}

func (t *Tx) delete(e *busv1.Effect) (*busv1.EffectResult, error) {
	d := e.GetDelete()
	if err := t.expect(d.GetKey(), d.Version); err != nil {
		return nil, err
	}
	return nil, t.KVDelete(t.Actor.ID, d.GetKey())
}

// expect refuses a key whose version is not the one that the effect names.
func (t *Tx) expect(key string, version *int64) error {
	if version == nil {
		return nil
	}
	current, err := t.KVGet(t.Actor.ID, key)
	if err == nil && current.Version != *version {
		err = fmt.Errorf("%w: key %q has version %d, not %d: read it again", contract.ErrConflict, key, current.Version,
			*version)
	}
	return err
}

func (t *Tx) receipt(e *busv1.Effect) (*busv1.EffectResult, error) {
	l, r := t.Lease, e.GetReceipt()
	if l == nil || l.item == nil || l.item.lane.sub.class() != classSend || !t.Ending {
		return nil, fmt.Errorf("%w: a receipt belongs to the acknowledgement of a %s* delivery", contract.ErrInvalid,
			contract.TopicChannelSend)
	}
	t.providerID = r.GetProviderId()
	result := &busv1.EffectResult{}
	if t.bus.hooks.Receipt != nil {
		var err error
		if result.Conversation, err = t.bus.hooks.Receipt(t, l.Event, r); err != nil {
			return nil, err
		}
	}
	return result, nil
}
