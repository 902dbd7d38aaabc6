package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/sdk"
)

// DeliveryOption refines an event that is published for the extension.
type DeliveryOption func(*published)

type published struct{ source, key string }

// From names the extension that publishes the event; without it, it is the kernel.
func From(source string) DeliveryOption { return func(p *published) { p.source = source } }

// Keyed gives the event an ordering key.
func Keyed(key string) DeliveryOption { return func(p *published) { p.key = key } }

// Outcome is how the first attempt of a delivery ended. Effects are those that were
// committed with it; Refused is why the kernel refused them.
type Outcome struct {
	Event      *busv1.Event
	Kind       busv1.Outcome_Kind
	RetryAfter time.Duration
	Reason     string
	Effects    []*busv1.Effect
	Refused    error
	Lost       error // the extension ended without an answer
}

// Acked reports that the event was handled and its effects are committed.
func (o Outcome) Acked() bool {
	return o.Kind == busv1.Outcome_KIND_ACK && o.Refused == nil && o.Lost == nil
}

// MustAck fails the test unless the event was acked.
func (o Outcome) MustAck(tb testing.TB) Outcome {
	tb.Helper()
	if !o.Acked() {
		tb.Fatalf("the delivery was not acked: %s", o)
	}
	return o
}

// MustBe fails the test unless the outcome has this kind.
func (o Outcome) MustBe(tb testing.TB, kind busv1.Outcome_Kind) Outcome {
	tb.Helper()
	if o.Kind != kind || o.Lost != nil {
		tb.Fatalf("the delivery ended otherwise than by %s: %s", kind, o)
	}
	return o
}

// Receipt is the receipt of a send; nil if there is none.
func (o Outcome) Receipt() *busv1.Receipt {
	for _, e := range o.Effects {
		if r := e.GetReceipt(); r != nil {
			return r
		}
	}
	return nil
}

// String tells the outcome for a failure message.
func (o Outcome) String() string {
	switch {
	case o.Lost != nil:
		return fmt.Sprintf("no answer: %v", o.Lost)
	case o.Refused != nil:
		return fmt.Sprintf("%s, refused: %v", o.Kind, o.Refused)
	default:
		return fmt.Sprintf("%s %s", o.Kind, o.Reason)
	}
}

// Deliver publishes an event that the extension has subscribed to and waits for the
// outcome of the first attempt; after a failure the kernel makes others. The payload
// is encoded as JSON unless it is []byte.
func (k *Kernel) Deliver(topic string, payload any, options ...DeliveryOption) Outcome {
	k.t.Helper()
	return k.Begin(topic, payload, options...).Wait()
}

// Begin is Deliver without waiting.
func (k *Kernel) Begin(topic string, payload any, options ...DeliveryOption) *Handling {
	k.t.Helper()
	k.now()
	if !k.subscribes(topic) {
		k.t.Fatalf("sdktest: %s has not subscribed to %s", k.ID(), topic)
	}
	var p published
	for _, o := range options {
		o(&p)
	}
	payload = json.RawMessage(encode(k.t, payload))
	if p.source != "" {
		return k.handling(k.Publish(p.source, topic, payload, sdk.Key(p.key)))
	}
	id, err := k.kernel.Publish(topic, p.key, payload)
	if err != nil {
		k.t.Fatalf("sdktest: publish %s: %v", topic, err)
	}
	return k.handling(id)
}

func (k *Kernel) subscribes(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Contains(topics(k.spec), name) {
		return true
	}
	for _, sub := range k.spec.Permissions.Subscribe {
		if topic.Match(sub.Pattern, name) {
			return true
		}
	}
	return false
}

// Send has the extension's channel send a message.
func (k *Kernel) Send(m contract.ChannelSend) Outcome {
	k.t.Helper()
	return k.BeginSend(m).Wait()
}

// BeginSend is Send without waiting.
func (k *Kernel) BeginSend(m contract.ChannelSend) *Handling {
	k.t.Helper()
	if m.Kind == "" {
		m.Kind = contract.SendReply
	}
	return k.Begin(contract.TopicChannelSend+k.ID(), m, Keyed(m.Conversation))
}

// Hear has the extension's agent hear a message of a person. What of it is empty is
// made up.
func (k *Kernel) Hear(m contract.UserMessage) Outcome {
	k.t.Helper()
	return k.BeginHear(m).Wait()
}

// BeginHear is Hear without waiting.
func (k *Kernel) BeginHear(m contract.UserMessage) *Handling {
	k.t.Helper()
	said, input := k.says(&m), contract.TopicAgentInput+k.ID()
	return &Handling{k: k, of: func(e *busv1.Event) bool {
		return e.GetCausationId() == said && e.GetTopic() == input
	}}
}

// Handling is a delivery that may have no outcome yet.
type Handling struct {
	k  *Kernel
	of func(*busv1.Event) bool
}

func (k *Kernel) handling(id string) *Handling {
	return &Handling{k: k, of: func(e *busv1.Event) bool { return e.GetId() == id }}
}

// attempts are the attempts to deliver the event so far.
func (h *Handling) attempts() (all []attempt) {
	h.k.mu.Lock()
	defer h.k.mu.Unlock()
	for _, a := range h.k.attempts {
		if h.of(a.GetEvent()) && (len(all) == 0 || a.GetSubscription() == all[0].GetSubscription()) {
			all = append(all, *a)
		}
	}
	return all
}

// Wait returns the outcome of the first attempt.
func (h *Handling) Wait() (o Outcome) {
	h.k.t.Helper()
	h.k.WaitFor("the outcome of a delivery", func() (ended bool) {
		o, ended = h.outcome()
		return ended
	})
	return o
}

// outcome is the outcome of the first attempt, once the kernel has taken it.
func (h *Handling) outcome() (o Outcome, ended bool) {
	all := h.attempts()
	if len(all) == 0 {
		return o, false
	}
	first := all[0]
	o.Event = first.GetEvent()
	answer := first.outcome
	if answer == nil {
		if first.lost {
			o.Lost = errNoAnswer
		}
		return o, first.lost
	}
	o = outcomeOf(first.Delivery, answer)
	if len(o.Effects) == 0 && o.Kind != busv1.Outcome_KIND_ACK {
		return o, true
	}
	stored := h.k.delivery(first.Delivery)
	if len(o.Effects) == 0 { // the extension has sent it: the kernel may not have it yet
		return o, stored == nil || stored.State == journal.Done || len(all) > 1
	}
	all = h.attempts() // with the one that has settled it, if that is another one
	switch {
	case stored == nil:
		return o, false
	case stored.State == journal.Dead && o.Kind == busv1.Outcome_KIND_ACK:
		o.Refused = errors.New(stored.Reason)
	case len(all) > 1 && stored.Reason == "": // it was repeated at once, which conflicts are
		o.Refused = contract.ErrConflict
	case stored.State == journal.Done, stored.State == journal.Dead:
		return o, true
	case stored.Reason != "": // it is repeated after a while
		o.Refused = errors.New(stored.Reason)
	default:
		return o, false
	}
	o.Effects = nil
	return o, true
}

// delivery is a delivery as the store has it; nil: it has none.
func (k *Kernel) delivery(d *busv1.Delivery) (stored *journal.Delivery) {
	k.view(func(r journal.Reader) error {
		subs, err := r.Subscriptions()
		if err != nil {
			return err
		}
		for _, s := range subs {
			if s.Extension == k.ID() && s.Pattern == d.GetSubscription() {
				stored, err = r.Delivery(d.GetEvent().GetSeq(), s.ID)
			}
		}
		return err
	})
	return stored
}

// Hand hands the extension a delivery beside the kernel, and returns its outcome: one
// that the kernel would not make, or not now, such as a send to a channel that is not
// ready. The kernel knows nothing of it: its effects come to nothing, and its lane is
// refused. The payload is encoded as JSON unless it is []byte.
func (k *Kernel) Hand(topic string, payload any, refine ...func(*busv1.Delivery)) (o Outcome) {
	k.t.Helper()
	d := &busv1.Delivery{Token: "beside", Attempt: 1, Subscription: topic, Event: &busv1.Event{
		Id: "e1", CorrelationId: "e1", Topic: topic, Source: contract.KernelSource, Payload: encode(k.t, payload),
		CreatedAtUs: time.Now().UnixMicro(),
	}}
	for _, r := range refine {
		r(d)
	}
	ctx, cancel := context.WithTimeout(k.t.Context(), Patience)
	defer cancel()
	stream, err := extensionv1.NewEventsClient(k.Conn()).Deliver(ctx)
	if err == nil {
		err = stream.Send(&extensionv1.DeliverFrame{Deliveries: []*busv1.Delivery{d}})
	}
	for err == nil {
		var frame *extensionv1.OutcomeFrame
		if frame, err = stream.Recv(); len(frame.GetOutcomes()) > 0 {
			return outcomeOf(d, frame.GetOutcomes()[0])
		}
	}
	return Outcome{Event: d.GetEvent(), Lost: contract.FromStatus(err)}
}

func outcomeOf(d *busv1.Delivery, answer *busv1.Outcome) Outcome {
	return Outcome{
		Event: d.GetEvent(), Kind: answer.GetKind(), Reason: answer.GetReason(), Effects: answer.GetEffects(),
		RetryAfter: time.Duration(answer.GetRetryAfterMs()) * time.Millisecond,
	}
}
