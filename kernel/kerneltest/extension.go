package kerneltest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Extension is an extension that the test plays.
type Extension struct {
	w     *World
	Actor *bus.Actor

	sink *bus.Sink
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	running *bus.Actor // nil: it does not run
	waiting []*busv1.Delivery
	cancels []string
}

// Extension returns a running extension with its grants and subscriptions.
func (w *World) Extension(a bus.Actor, subs ...bus.Subscription) *Extension {
	w.T.Helper()
	x := &Extension{w: w, Actor: &a}
	if err := w.Bus.Subscribe(a.ID, subs); err != nil {
		w.T.Fatal(err)
	}
	w.subscribed[a.ID], w.extensions[a.ID] = subs, x
	x.connect()
	return x
}

// On is a subscription with the defaults of a manifest.
func On(pattern string) bus.Subscription {
	return bus.Subscription{
		Pattern:    pattern,
		Ordered:    true,
		AckWait:    30 * time.Second,
		MaxDeliver: 4,
		MaxAge:     24 * time.Hour,
	}
}

func (x *Extension) connect() {
	x.w.generation++
	a := *x.Actor
	a.Generation = x.w.generation
	x.Actor = &a
	x.sink = x.w.Bus.Attach(x.Actor)
	ctx, stop := context.WithCancel(context.Background())
	x.stop, x.done = stop, make(chan struct{})
	x.mu.Lock()
	x.running, x.waiting, x.cancels = x.Actor, nil, nil
	x.mu.Unlock()
	sink, done := x.sink, x.done
	go func() {
		defer close(done)
		for {
			f, ok := sink.Next(ctx)
			if !ok {
				return
			}
			x.mu.Lock()
			x.waiting = append(x.waiting, f.Deliveries...)
			x.cancels = append(x.cancels, f.Cancels...)
			x.mu.Unlock()
		}
	}()
	x.sink.Credit(1000)
}

func (x *Extension) disconnect() {
	x.mu.Lock()
	x.running = nil
	x.mu.Unlock()
	x.stop()
	<-x.done
}

// Dies ends the process, as a crash does.
func (x *Extension) Dies() { x.gone("it crashed", false) }

// Stops ends the process on purpose.
func (x *Extension) Stops() { x.gone("the extension was stopped", true) }

func (x *Extension) gone(reason string, onPurpose bool) {
	x.w.Settle()
	x.disconnect()
	x.w.Bus.Gone(x.Actor.ID, x.Actor.Generation, reason, onPurpose)
	x.w.Settle()
}

// Starts runs the next generation.
func (x *Extension) Starts() { x.connect() }

// Running is who the process is; nil: there is none.
func (x *Extension) Running() *bus.Actor {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.running
}

// Next takes the next delivery; nil: none waits.
func (x *Extension) Next() *busv1.Delivery {
	x.w.Settle()
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.waiting) == 0 {
		return nil
	}
	d := x.waiting[0]
	x.waiting = x.waiting[1:]
	x.sink.Credit(1) // a handler has it
	return d
}

// Take is Next for a test that expects a delivery.
func (x *Extension) Take() *busv1.Delivery {
	x.w.T.Helper()
	d := x.Next()
	if d == nil {
		x.w.T.Fatalf("nothing waits for %s", x.Actor.ID)
	}
	return d
}

// Cancelled says whether the handler that holds a token was told to end.
func (x *Extension) Cancelled(token string) bool {
	x.w.Settle()
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Contains(x.cancels, token)
}

// Outcome answers a delivery.
func (x *Extension) Outcome(d *busv1.Delivery, kind busv1.Outcome_Kind, reason string, effects ...*busv1.Effect) {
	x.w.Bus.Outcome(x.Actor, &busv1.Outcome{Token: d.GetToken(), Kind: kind, Reason: reason, Effects: effects})
	x.w.Settle()
}

// Acks acknowledges a delivery together with effects.
func (x *Extension) Acks(d *busv1.Delivery, effects ...*busv1.Effect) {
	x.Outcome(d, busv1.Outcome_KIND_ACK, "", effects...)
}

// Drops ends a delivery as one that can never be handled.
func (x *Extension) Drops(d *busv1.Delivery, reason string) {
	x.Outcome(d, busv1.Outcome_KIND_DROP, reason)
}

// Fails ends an attempt with an error.
func (x *Extension) Fails(d *busv1.Delivery, reason string) {
	x.Outcome(d, busv1.Outcome_KIND_FAIL, reason)
}

// Commits commits effects under a token; an empty one holds nothing.
func (x *Extension) Commits(token string, effects ...*busv1.Effect) ([]*busv1.EffectResult, error) {
	done := make(chan *busv1.CommitReceipt, 1)
	x.w.Bus.Submit(
		x.Actor,
		[]*busv1.Commit{{Lane: token, Effects: effects}},
		func(r []*busv1.CommitReceipt) { done <- r[0] },
	)
	r := <-done
	x.w.Settle()
	return r.GetResults(), contract.FromProto(r.GetError())
}

// Must is Commits for a test that expects no refusal.
func (x *Extension) Must(token string, effects ...*busv1.Effect) []*busv1.EffectResult {
	x.w.T.Helper()
	results, err := x.Commits(token, effects...)
	if err != nil {
		x.w.T.Fatalf("%s: %v", x.Actor.ID, err)
	}
	return results
}

// Publish is the effect that publishes an event.
func Publish(topic string, payload any) *busv1.Effect {
	b, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	return &busv1.Effect{Kind: &busv1.Effect_Publish{Publish: &busv1.Publish{Topic: topic, Payload: b}}}
}

// PutAt is the effect that writes a key that must have a version.
func PutAt(key, value string, version int64) *busv1.Effect {
	return &busv1.Effect{Kind: &busv1.Effect_Put{Put: &busv1.Put{Key: key, Value: []byte(value), Version: &version}}}
}

// Ensure is the effect that makes a session whose final texts go to its maker.
func Ensure(agent, key string) *busv1.Effect {
	return &busv1.Effect{Kind: &busv1.Effect_SessionEnsure{SessionEnsure: &busv1.SessionEnsure{
		Agent: agent, Key: key, Outbound: &busv1.Outbound{Kind: busv1.Outbound_KIND_EXTENSION},
	}}}
}

// Input is the effect that queues something for a session to hear.
func Input(agent, key, kind, text string) *busv1.Effect {
	return &busv1.Effect{Kind: &busv1.Effect_Input{Input: &busv1.Input{Agent: agent, Key: key, Kind: kind, Text: text}}}
}

// CancelTurn is the effect that ends the turns of a session.
func CancelTurn(session int64, reason string) *busv1.Effect {
	return &busv1.Effect{
		Kind: &busv1.Effect_TurnCancel{TurnCancel: &busv1.TurnCancel{Session: journal.SessionID(session), Reason: reason}},
	}
}
