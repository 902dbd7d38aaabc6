package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// handling starts an extension that handles events with one function.
func handling(t *testing.T, handle sdk.Handler) *sdktest.Kernel {
	t.Helper()
	return sdktest.Start(t, sdk.Extension{ID: "subject", Handle: handle}, sdktest.Options{})
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	big := strings.Repeat("x", 9<<20)
	tests := []struct {
		name    string
		effects sdk.Effects
		err     error
		want    busv1.Outcome_Kind
		after   time.Duration
		reason  string
		effect  int // number of effects that arrive
	}{
		{"nil acks", sdk.Effects{sdk.Put("a", 1)}, nil, busv1.Outcome_KIND_ACK, 0, "", 1},
		{"an error fails", sdk.Effects{sdk.Put("a", 1)}, boom, busv1.Outcome_KIND_FAIL, 0, "boom", 0},
		{"retry", nil, sdk.Retry(time.Minute, boom), busv1.Outcome_KIND_RETRY, time.Minute, "boom", 0},
		{"retry without an error", nil, sdk.Retry(time.Second, nil), busv1.Outcome_KIND_RETRY, time.Second, "retry", 0},
		{"drop keeps effects", sdk.Effects{sdk.Put("a", 1)}, sdk.Drop("no use"), busv1.Outcome_KIND_DROP, 0, "no use", 1},
		{"unknown", nil, sdk.Unknown(boom), busv1.Outcome_KIND_UNKNOWN, 0, "boom", 0},
		{"a wrapped drop drops", nil, fmt.Errorf("context: %w", sdk.Drop("no use")), busv1.Outcome_KIND_DROP, 0,
			"context: no use", 0},
		{"a conflict is retried", nil, fmt.Errorf("save: %w", contract.ErrConflict), busv1.Outcome_KIND_RETRY,
			20 * time.Millisecond, "version conflict", 0},
		{"effects that are not JSON drop", sdk.Effects{sdk.Publish("subject.x", make(chan int))}, nil,
			busv1.Outcome_KIND_DROP, 0, "payload of subject.x", 0},
		{"effects that are too large drop", sdk.Effects{sdk.Put("a", big), sdk.Put("b", big)}, nil, busv1.Outcome_KIND_DROP,
			0, "too large", 0},
		{"a reason is cut and valid", nil, errors.New(strings.Repeat("é", 5000) + "\xff"), busv1.Outcome_KIND_FAIL,
			0, "éé", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := handling(t, func(context.Context, sdk.Event) (sdk.Effects, error) { return tt.effects, tt.err })
			o := k.Deliver("subject.test", map[string]int{}).MustBe(t, tt.want)
			if o.RetryAfter != tt.after || len(o.Effects) != tt.effect || o.Refused != nil {
				t.Errorf("after %s with %d effects: %s", o.RetryAfter, len(o.Effects), o)
			}
			if !strings.Contains(o.Reason, tt.reason) || len(o.Reason) > 4<<10 {
				t.Errorf("reason %q", o.Reason)
			}
		})
	}
}

func TestPanicFailsItsDelivery(t *testing.T) {
	t.Parallel()
	k := handling(t, func(_ context.Context, e sdk.Event) (sdk.Effects, error) {
		if e.Key == "bad" {
			panic("went wrong")
		}
		return nil, nil
	})
	o := k.Deliver("subject.test", 1, sdktest.Keyed("bad")).MustBe(t, busv1.Outcome_KIND_FAIL)
	if !strings.Contains(o.Reason, "went wrong") {
		t.Errorf("reason %q", o.Reason)
	}
	k.Deliver("subject.test", 1).MustAck(t)
}

func TestEventHasAllFields(t *testing.T) {
	t.Parallel()
	got := make(chan sdk.Event, 1)
	k := handling(t, func(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
		got <- e
		return nil, nil
	})
	o := k.Deliver("subject.test", []byte(`{"a":1}`), sdktest.From("other"), sdktest.Keyed("key")).MustAck(t)
	e := <-got
	if e.ID != o.Event.GetId() || e.Topic != "subject.test" || e.Key != "key" || e.Source != "other" ||
		string(e.Payload) != `{"a":1}` || e.CreatedAt.IsZero() {
		t.Errorf("event %+v", e)
	}
	var wrong []string
	if err := e.Decode(&wrong); err == nil || !strings.Contains(err.Error(), "subject.test") {
		t.Errorf("decode: %v", err)
	}
}

func TestHandlersRunConcurrently(t *testing.T) {
	t.Parallel()
	const n = 200
	var arrived sync.WaitGroup
	arrived.Add(n)
	k := handling(t, func(context.Context, sdk.Event) (sdk.Effects, error) {
		arrived.Done()
		arrived.Wait() // returns only if all run concurrently
		return nil, nil
	})
	var running []*sdktest.Handling
	for range n {
		running = append(running, k.Begin("subject.test", 1))
	}
	for _, h := range running {
		h.Wait().MustAck(t)
	}
}

func TestMoreDeliveriesThanGoroutinesAllEnd(t *testing.T) {
	t.Parallel()
	const n = 3000
	release := make(chan struct{})
	var running, most atomic.Int64
	k := handling(t, func(context.Context, sdk.Event) (sdk.Effects, error) {
		now := running.Add(1)
		for {
			m := most.Load()
			if now <= m || most.CompareAndSwap(m, now) {
				break
			}
		}
		<-release
		running.Add(-1)
		return nil, nil
	})
	var handlings []*sdktest.Handling
	for range n {
		handlings = append(handlings, k.Begin("subject.test", 1))
	}
	k.WaitUntil("as many as possible run", func() bool { return running.Load() == 1024 })
	close(release)
	for _, h := range handlings {
		h.Wait().MustAck(t)
	}
	if m := most.Load(); m > 1024 {
		t.Errorf("%d handlers ran at once", m)
	}
}

func TestCancelEndsTheContextOfOneDelivery(t *testing.T) {
	t.Parallel()
	started := make(chan string, 2)
	release := make(chan struct{})
	k := handling(t, func(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
		started <- e.Key
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-release:
			return nil, ctx.Err()
		}
	})
	stream, err := extensionv1.NewEventsClient(k.Conn()).Deliver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send := func(f *extensionv1.DeliverFrame) {
		if err := stream.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	outcome := func() *busv1.Outcome {
		for {
			f, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if len(f.GetOutcomes()) > 0 {
				return f.GetOutcomes()[0]
			}
		}
	}
	for _, token := range []string{"a", "b"} {
		send(&extensionv1.DeliverFrame{Deliveries: []*busv1.Delivery{{
			Token: token, Attempt: 1, Event: &busv1.Event{Id: token, Topic: "subject.test", Key: token, Payload: []byte("1")},
		}}})
		<-started
	}
	send(&extensionv1.DeliverFrame{Cancels: []string{"a"}})
	if o := outcome(); o.GetToken() != "a" || o.GetKind() != busv1.Outcome_KIND_FAIL {
		t.Errorf("outcome %v", o)
	}
	close(release)
	if o := outcome(); o.GetToken() != "b" || o.GetKind() != busv1.Outcome_KIND_ACK {
		t.Errorf("outcome %v", o)
	}
}

func TestDeadlineOfADelivery(t *testing.T) {
	t.Parallel()
	k := handling(t, func(ctx context.Context, _ sdk.Event) (sdk.Effects, error) {
		if _, ok := ctx.Deadline(); !ok {
			return nil, sdk.Drop("no deadline")
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	o := k.Hand("subject.test", 1, func(d *busv1.Delivery) {
		d.DeadlineUs = time.Now().Add(-time.Second).UnixMicro()
	}).MustBe(t, busv1.Outcome_KIND_FAIL)
	if !strings.Contains(o.Reason, "deadline") {
		t.Errorf("reason %q", o.Reason)
	}
}

func TestDispatch(t *testing.T) {
	t.Parallel()
	var got sdk.Delivery
	k := sdktest.Start(t, sdk.Extension{
		ID: "subject",
		HandleAgent: func(_ context.Context, d sdk.Delivery) (sdk.Effects, error) {
			got = d
			return nil, nil
		},
	}, sdktest.Options{})
	k.Hand("agent.input.subject", contract.AgentInput{Session: "s", Text: "hi"}, func(d *busv1.Delivery) {
		d.Turn, d.Attempt, d.Event.Key = &busv1.TurnContext{Session: "s", HistorySeq: 7}, 3, "s"
	}).MustAck(t)
	if got.Turn.GetHistorySeq() != 7 || got.Attempt != 3 || got.Key != "s" || got.Token == "" {
		t.Errorf("delivery %+v", got)
	}
	for _, topic := range []string{"other.topic", "agent.input.other", "channel.send.subject"} {
		o := k.Hand(topic, 1).MustBe(t, busv1.Outcome_KIND_DROP)
		if !strings.Contains(o.Reason, topic) {
			t.Errorf("reason %q", o.Reason)
		}
	}
}

func TestUnreadableSendIsDropped(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, sdk.Extension{ID: "subject", Channel: uncertain{}}, sdktest.Options{})
	k.Hand("channel.send.subject", []byte(`[]`)).MustBe(t, busv1.Outcome_KIND_DROP)
	o := k.Send(contract.ChannelSend{Text: "x"}).MustBe(t, busv1.Outcome_KIND_UNKNOWN)
	if o.Receipt() != nil {
		t.Error("a receipt for a message that may not have been sent")
	}
}

type uncertain struct{}

func (uncertain) Send(context.Context, sdk.Message) (sdk.Receipt, error) {
	return sdk.Receipt{ProviderID: "1"}, sdk.Unknown(errors.New("the connection broke"))
}
