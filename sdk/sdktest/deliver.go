package sdktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

// DeliveryOption refines a delivery.
type DeliveryOption func(*busv1.Delivery)

// From names the source of the event; without it, it is the kernel.
func From(source string) DeliveryOption {
	return func(d *busv1.Delivery) { d.Event.Source = source }
}

// Keyed gives the event an ordering key.
func Keyed(key string) DeliveryOption { return func(d *busv1.Delivery) { d.Event.Key = key } }

// Identified gives the event its id, to deliver one event again.
func Identified(id string) DeliveryOption { return func(d *busv1.Delivery) { d.Event.Id = id } }

// Attempt numbers the attempt, from 1.
func Attempt(n int32) DeliveryOption { return func(d *busv1.Delivery) { d.Attempt = n } }

// Uncertain says that an earlier attempt may have had its effect. A send bears the
// mark of a repetition.
func Uncertain() DeliveryOption {
	return func(d *busv1.Delivery) {
		d.Uncertain, d.Attempt = true, 2
		if strings.HasPrefix(d.GetEvent().GetTopic(), contract.TopicChannelSend) {
			d.Event = router.Marked(d.GetEvent(), 0)
		}
	}
}

// Deduped is Uncertain for a channel whose platform drops the repetition.
func Deduped() DeliveryOption { return func(d *busv1.Delivery) { d.Uncertain, d.Attempt = true, 2 } }

// Until sets the deadline.
func Until(deadline time.Time) DeliveryOption {
	return func(d *busv1.Delivery) { d.DeadlineUs = deadline.UnixMicro() }
}

// Turn sets the context of an agent's input.
func Turn(turn *busv1.TurnContext) DeliveryOption {
	return func(d *busv1.Delivery) { d.Turn = turn }
}

// Outcome is how a delivery ended. Effects are those that were committed with
// it; Refused is why the kernel refused them.
type Outcome struct {
	Kind       busv1.Outcome_Kind
	RetryAfter time.Duration
	Reason     string
	Content    string // of a command: the answer to who gave it
	Effects    []*busv1.Effect
	Results    []*busv1.EffectResult
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

// Deliver hands the extension one event and waits for the outcome. The payload
// is encoded as JSON unless it is []byte.
func (k *Kernel) Deliver(topic string, payload any, options ...DeliveryOption) Outcome {
	k.t.Helper()
	return k.Begin(topic, payload, options...).Wait()
}

// Send has the extension's channel send a message.
func (k *Kernel) Send(m contract.ChannelSend, options ...DeliveryOption) Outcome {
	k.t.Helper()
	if m.Kind == "" {
		m.Kind = contract.SendReply
	}
	return k.Deliver(contract.TopicChannelSend+k.ID(), m, append([]DeliveryOption{Keyed(m.Conversation)}, options...)...)
}

// Hear has the extension's agent hear an input.
func (k *Kernel) Hear(in contract.AgentInput, turn *busv1.TurnContext, options ...DeliveryOption) Outcome {
	k.t.Helper()
	if in.Kind == "" {
		in.Kind = contract.InputUser
	}
	return k.Deliver(contract.TopicAgentInput+k.ID(), in, append([]DeliveryOption{Keyed(in.Session), Turn(turn)}, options...)...)
}

// Command has somebody give one of the extension's slash commands; text is what
// stands behind its name. The fields of given that are empty are made up.
func (k *Kernel) Command(name, text string, given contract.Command, options ...DeliveryOption) Outcome {
	k.t.Helper()
	given.Name, given.Text = name, text
	for _, field := range []struct {
		value *string
		made  string
	}{{&given.Session, "s1"}, {&given.Agent, "agent"}, {&given.ReplyTo, "handle"}, {&given.Channel, "cli_channel"}, {&given.Sender, "Anna"}} {
		if *field.value == "" {
			*field.value = field.made
		}
	}
	d := k.delivery(contract.TopicCommand+name, given, append([]DeliveryOption{Keyed(given.ReplyTo)}, options...)...)
	defer k.state.endLane(d.GetToken())
	r := k.now()
	offered := k.Describe().GetTools()
	i := slices.IndexFunc(offered, func(t *extensionv1.Tool) bool { return t.GetCommand() == name })
	if i < 0 {
		k.t.Fatalf("sdktest: no tool is the command /%s", name)
	}
	tool := offered[i]
	ctx, cancel := context.WithCancelCause(k.t.Context())
	defer cancel(nil)
	if d.GetDeadlineUs() > 0 {
		defer time.AfterFunc(time.Until(time.UnixMicro(d.GetDeadlineUs())), func() { cancel(command.ErrTimeout) }).Stop()
	}
	o, answer := command.Run(ctx, d, &command.Tool{Tool: tool, Schema: tools.Entry(k.ID(), tool).Schema}, k.options.Timezone,
		func(ctx context.Context, q *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
			result, err := extensionv1.NewToolsClient(r.conn).Call(ctx, q)
			return result, contract.FromStatus(err)
		})
	return k.settled(o, answer)
}

// MustCommand is Command that is acked, and returns the answer.
func (k *Kernel) MustCommand(name, text string) string {
	k.t.Helper()
	return k.Command(name, text, contract.Command{}).MustAck(k.t).Content
}

// Handling is a delivery that has no outcome yet.
type Handling struct {
	k     *Kernel
	r     *running
	token string
	done  chan struct{}
	out   Outcome
}

// Begin hands the extension one event and does not wait.
func (k *Kernel) Begin(topic string, payload any, options ...DeliveryOption) *Handling {
	k.t.Helper()
	r := k.now()
	d := k.delivery(topic, payload, options...)
	h := &Handling{k: k, r: r, token: d.GetToken(), done: make(chan struct{})}
	r.deliveries.send(h, d)
	return h
}

// delivery is an event that is about to be handed over.
func (k *Kernel) delivery(topic string, payload any, options ...DeliveryOption) *busv1.Delivery {
	k.t.Helper()
	d := &busv1.Delivery{
		Attempt: 1, Subscription: topic,
		Event: &busv1.Event{
			Topic: topic, Source: contract.KernelSource, Payload: encode(k.t, payload), CreatedAtUs: time.Now().UnixMicro(),
		},
	}
	for _, o := range options {
		o(d)
	}
	k.state.admit(d)
	return d
}

// admit gives a delivery its token and its event a place in the order.
func (s *state) admit(d *busv1.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	d.Token = fmt.Sprintf("lane%d", s.calls)
	e := d.GetEvent()
	if e.GetId() == "" {
		e.Seq = int64(len(s.events)) + 1
		e.Id = fmt.Sprintf("e%d", e.GetSeq())
		e.CorrelationId = e.GetId()
		s.events = append(s.events, e)
	}
	s.lanes[d.GetToken()] = e
}

// Token is the lane token of the delivery.
func (h *Handling) Token() string { return h.token }

// Wait returns the outcome.
func (h *Handling) Wait() Outcome {
	h.k.t.Helper()
	select {
	case <-h.done:
		return h.out
	case <-time.After(Patience):
		h.k.t.Fatalf("sdktest: no outcome within %s", Patience)
		return Outcome{}
	}
}

// Done is closed when the outcome is there.
func (h *Handling) Done() <-chan struct{} { return h.done }

// Cancel ends the delivery's context.
func (h *Handling) Cancel() { h.r.deliveries.cancelled(h.token) }

// deliveries is the kernel's end of the event stream.
type deliveries struct {
	k      *Kernel
	ctx    context.Context
	open   func() (extensionv1.Events_DeliverClient, error)
	once   sync.Once
	ended  chan struct{}
	frames chan struct{} // capacity 1: something is to be sent

	mu      sync.Mutex
	stream  extensionv1.Events_DeliverClient
	failed  error
	credit  int32
	queue   []*busv1.Delivery
	cancels []string
	waiting map[string]*Handling
}

func newDeliveries(ctx context.Context, k *Kernel, conn grpc.ClientConnInterface) *deliveries {
	return &deliveries{
		k: k, ctx: ctx, ended: make(chan struct{}), frames: make(chan struct{}, 1), waiting: map[string]*Handling{},
		open: func() (extensionv1.Events_DeliverClient, error) {
			return extensionv1.NewEventsClient(conn).Deliver(ctx)
		},
	}
}

// begin opens the stream with the first delivery.
func (d *deliveries) begin() {
	d.once.Do(func() {
		stream, err := d.open()
		if err != nil {
			d.fail(err)
			close(d.ended)
			return
		}
		d.stream = stream
		go d.write()
		go d.read()
	})
}

// wait returns when the stream is over.
func (d *deliveries) wait() {
	d.once.Do(func() { close(d.ended) })
	<-d.ended
}

func (d *deliveries) send(h *Handling, delivery *busv1.Delivery) {
	d.begin()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		d.settle(h, Outcome{Lost: d.failed})
		return
	}
	d.waiting[h.token] = h
	d.queue = append(d.queue, delivery)
	d.wake()
}

func (d *deliveries) cancelled(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cancels = append(d.cancels, token)
	d.wake()
}

func (d *deliveries) wake() {
	select {
	case d.frames <- struct{}{}:
	default:
	}
}

func (d *deliveries) write() {
	for {
		select {
		case <-d.ended:
			return
		case <-d.frames:
		}
		d.mu.Lock()
		n := min(len(d.queue), int(d.credit))
		frame := &extensionv1.DeliverFrame{Deliveries: d.queue[:n:n], Cancels: d.cancels}
		d.queue, d.cancels = d.queue[n:], nil
		d.credit -= int32(n)
		d.mu.Unlock()
		if n == 0 && len(frame.GetCancels()) == 0 {
			continue
		}
		if d.stream.Send(frame) != nil {
			return // read learns why
		}
	}
}

func (d *deliveries) read() {
	defer close(d.ended)
	for {
		frame, err := d.stream.Recv()
		if err != nil {
			d.fail(err)
			return
		}
		for _, o := range frame.GetOutcomes() {
			d.outcome(o)
		}
		d.mu.Lock()
		d.credit += frame.GetCredit()
		d.wake()
		d.mu.Unlock()
	}
}

// outcome commits what an outcome carries and ends its lane.
func (d *deliveries) outcome(o *busv1.Outcome) {
	out := d.k.settled(o, "")
	d.k.state.endLane(o.GetToken())
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.waiting[o.GetToken()]; h != nil {
		delete(d.waiting, o.GetToken())
		d.settle(h, out)
	}
}

// settled commits what an outcome carries.
func (k *Kernel) settled(o *busv1.Outcome, answer string) Outcome {
	out := Outcome{
		Kind: o.GetKind(), Reason: o.GetReason(), Content: answer, Effects: o.GetEffects(),
		RetryAfter: time.Duration(o.GetRetryAfterMs()) * time.Millisecond,
	}
	if len(o.GetEffects()) > 0 {
		receipt := k.commit(&busv1.Commit{Lane: o.GetToken(), Effects: o.GetEffects()})
		out.Results, out.Refused = receipt.GetResults(), contract.FromProto(receipt.GetError())
		if out.Refused != nil {
			out.Effects, out.Content = nil, ""
		}
	}
	return out
}

func (s *state) endLane(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lanes, token)
	s.notify()
}

// fail answers for everything that is still with the extension.
func (d *deliveries) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = fmt.Errorf("the event stream is over: %w", err)
	for token, h := range d.waiting {
		d.k.state.endLane(token)
		d.settle(h, Outcome{Lost: d.failed})
	}
	clear(d.waiting)
}

func (d *deliveries) settle(h *Handling, o Outcome) {
	h.out = o
	close(h.done)
}
