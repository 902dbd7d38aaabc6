package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/models"
)

// handles is a process that hands every delivery to handle and answers with
// what that returns, one after the other.
func handles(handle func(*busv1.Delivery) *busv1.Outcome) *process {
	return &process{deliver: func(s extensionv1.Events_DeliverServer) error {
		if err := s.Send(&extensionv1.OutcomeFrame{Credit: 1000}); err != nil {
			return err
		}
		for {
			frame, err := s.Recv()
			if err != nil {
				return err
			}
			for _, d := range frame.GetDeliveries() {
				if o := handle(d); o != nil {
					o.Token = d.GetToken()
					if err := s.Send(&extensionv1.OutcomeFrame{Outcomes: []*busv1.Outcome{o}, Credit: 1}); err != nil {
						return err
					}
				}
			}
		}
	}}
}

func ack(effects ...*busv1.Effect) *busv1.Outcome {
	return &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK, Effects: effects}
}

func (w *world) subscribe(extension string, patterns ...string) {
	w.T.Helper()
	var subs []bus.Subscription
	for _, p := range patterns {
		subs = append(subs, kerneltest.On(p))
	}
	if err := w.Bus.Subscribe(extension, subs); err != nil {
		w.T.Fatal(err)
	}
}

func TestDeliveriesAndOutcomesCrossTheSocket(t *testing.T) {
	w := newWorld(t)
	w.subscribe("relay", "notes.added")
	w.subscribe("sink", "relay.passed")
	notes := w.admit(bus.Actor{ID: "notes", Publish: []string{"notes.added"}})
	relay := w.admit(bus.Actor{ID: "relay", Publish: []string{"relay.passed"}})
	relay.runs(handles(func(d *busv1.Delivery) *busv1.Outcome {
		return ack(
			&busv1.Effect{
				Kind: &busv1.Effect_Publish{Publish: &busv1.Publish{Topic: "relay.passed", Payload: d.GetEvent().GetPayload()}},
			},
		)
	}), &extensionv1.Description{Events: true})
	got := make(chan string, 200)
	sink := w.admit(bus.Actor{ID: "sink"})
	sink.runs(handles(func(d *busv1.Delivery) *busv1.Outcome {
		got <- string(d.GetEvent().GetPayload())
		return ack()
	}), &extensionv1.Description{Events: true})
	seen := map[string]bool{}
	for i := range 100 {
		notes.mustCommit(kerneltest.Publish("notes.added", i))
	}
	for range 100 {
		seen[<-got] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d of 100 events arrived", len(seen))
	}
}

// What waits is more than a message holds.
func TestABacklogLargerThanAMessage(t *testing.T) {
	w := newWorld(t)
	w.subscribe("sink", "notes.added")
	notes := w.admit(bus.Actor{ID: "notes", Publish: []string{"notes.added"}})
	text := strings.Repeat("x", contract.MaxPayload-100)
	const n = 20
	for range n {
		notes.mustCommit(kerneltest.Publish("notes.added", text))
	}
	got := make(chan int, n)
	sink := w.admit(bus.Actor{ID: "sink"})
	sink.runs(handles(func(d *busv1.Delivery) *busv1.Outcome {
		got <- len(d.GetEvent().GetPayload())
		return ack()
	}), &extensionv1.Description{Events: true})
	for range n {
		select {
		case size := <-got:
			if size != len(text)+2 {
				t.Errorf("an event of %d bytes", size)
			}
		case extension := <-w.stuck:
			t.Fatalf("%s is stuck", extension)
		}
	}
}

func TestAProcessWithoutItsEventStreamIsRestarted(t *testing.T) {
	for name, end := range map[string]error{"it ends": nil, "it fails": errors.New("broken")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.host.StreamLossGrace(time.Millisecond)
			g := w.admit(bus.Actor{ID: "notes"})
			g.runs(
				&process{deliver: func(extensionv1.Events_DeliverServer) error { return end }},
				&extensionv1.Description{Events: true},
			)
			if got := <-w.stuck; got != "notes" {
				t.Errorf("%s is stuck", got)
			}
		})
	}
}

func TestAProcessThatEndsIsNotStuck(t *testing.T) {
	w := newWorld(t)
	w.host.StreamLossGrace(time.Hour)
	w.subscribe("notes", "notes.added")
	g := w.admit(bus.Actor{ID: "notes", Publish: []string{"notes.added"}})
	held := make(chan string, 2)
	holding := handles(func(d *busv1.Delivery) *busv1.Outcome {
		held <- d.GetToken()
		return nil
	})
	g.runs(holding, &extensionv1.Description{Events: true})
	g.mustCommit(kerneltest.Publish("notes.added", 1))
	first := <-held
	g.dies()
	next := w.admit(bus.Actor{ID: "notes"})
	next.runs(holding, &extensionv1.Description{Events: true})
	second := <-held
	if first == second {
		t.Error("the next generation has the old token")
	}
	for name, token := range map[string]string{"of the older generation": first, "that does not exist": "0123"} {
		if _, err := next.commit(token, kerneltest.PutAt(name, "v", 0)); !errors.Is(err, contract.ErrStale) {
			t.Errorf("a token %s: %v", name, err)
		}
	}
	other := w.admit(bus.Actor{ID: "other"})
	if _, err := other.commit(second, kerneltest.PutAt("k", "v", 0)); !errors.Is(err, contract.ErrStale) {
		t.Errorf("another's token: %v", err)
	}
	if _, err := next.commit(second, kerneltest.PutAt("k", "v", 0)); err != nil {
		t.Errorf("its own token: %v", err)
	}
	if len(w.stuck) != 0 {
		t.Errorf("%s is stuck", <-w.stuck)
	}
}

// An extension answers while it shuts down, and ends its stream. The kernel reads that
// also after it knows that the extension has ended: otherwise a text that was sent would
// be sent again as a new one.
func TestLastAnswersOfAStoppedExtensionAreRead(t *testing.T) {
	w := newWorld(t)
	w.subscribe("notes", "notes.added")
	g := w.admit(bus.Actor{ID: "notes", Publish: []string{"notes.*"}})
	held, ended := make(chan *busv1.Delivery, 1), make(chan struct{})
	g.runs(&process{deliver: func(s extensionv1.Events_DeliverServer) error {
		if err := s.Send(&extensionv1.OutcomeFrame{Credit: 1}); err != nil {
			return err
		}
		frame, err := s.Recv()
		if err != nil {
			return err
		}
		held <- frame.GetDeliveries()[0]
		<-ended
		o := ack(kerneltest.Publish("notes.kept", 1))
		o.Token = frame.GetDeliveries()[0].GetToken()
		return s.Send(&extensionv1.OutcomeFrame{Outcomes: []*busv1.Outcome{o}, Credit: 1})
	}}, &extensionv1.Description{Events: true})
	kept := w.follow("notes.kept")
	g.mustCommit(kerneltest.Publish("notes.added", 1))
	<-held
	w.host.Stopping("notes")
	g.cancel()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		w.host.Gone("notes", g.actor.Generation)
		w.Bus.Gone("notes", g.actor.Generation, "it was stopped", true)
	}()
	close(ended)
	<-gone
	again := make(chan struct{})
	next := w.admit(bus.Actor{ID: "notes"})
	next.runs(handles(func(*busv1.Delivery) *busv1.Outcome {
		close(again)
		return ack()
	}), &extensionv1.Description{Events: true})
	select {
	case <-kept:
	case <-again:
		t.Error("it is handed out again, although it was answered")
	}
}

func TestCallTool(t *testing.T) {
	w := newWorld(t)
	g := w.admit(bus.Actor{ID: "notes"})
	if _, err := w.host.CallTool(
		t.Context(),
		"notes",
		&extensionv1.CallRequest{},
	); !errors.Is(
		err,
		contract.ErrUnavailable,
	) {
		t.Errorf("one that does not run: %v", err)
	}
	if w.host.Actor("notes") != nil {
		t.Error("one that does not run is an actor")
	}
	began := make(chan struct{}, 1)
	g.runs(&process{call: func(ctx context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
		switch r.GetName() {
		case "hang":
			began <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		case "huge":
			return &extensionv1.CallResult{Content: strings.Repeat("x", contract.MaxMessage)}, nil
		case "fail":
			return nil, contract.ToStatus(fmt.Errorf("%w: no such note", contract.ErrNotFound))
		}
		return &extensionv1.CallResult{Content: r.GetName()}, nil
	}}, &extensionv1.Description{})
	if r, err := w.host.CallTool(
		t.Context(),
		"notes",
		&extensionv1.CallRequest{Name: "add"},
	); err != nil ||
		r.GetContent() != "add" {
		t.Errorf("got %v, %v", r, err)
	}
	if w.host.Actor("notes") != g.actor {
		t.Error("it runs as somebody else")
	}
	if _, err := w.host.CallTool(
		t.Context(),
		"notes",
		&extensionv1.CallRequest{Name: "fail"},
	); !errors.Is(err, contract.ErrNotFound) ||
		!strings.Contains(err.Error(), "no such note") {
		t.Errorf("an error of the tool: %v", err)
	}
	if _, err := w.host.CallTool(
		t.Context(),
		"notes",
		&extensionv1.CallRequest{Name: "huge"},
	); err == nil ||
		errors.Is(err, contract.ErrGone) {
		t.Errorf("a huge result: %v", err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := w.host.CallTool(context.Background(), "notes", &extensionv1.CallRequest{Name: "hang"})
		failed <- err
	}()
	<-began
	g.dies()
	if err := <-failed; !errors.Is(err, contract.ErrGone) {
		t.Errorf("the process ended: %v", err)
	}
}

func TestComplete(t *testing.T) {
	w := newWorld(t)
	g := w.admit(bus.Actor{ID: "openai"})
	emit := func(*extensionv1.Delta) error { return nil }
	if err := w.host.Complete(
		t.Context(),
		"openai",
		&extensionv1.CompleteRequest{},
		emit,
	); !errors.Is(
		err,
		models.ErrNotRunning,
	) {
		t.Errorf("one that does not run: %v", err)
	}
	began := make(chan struct{}, 1)
	g.runs(&process{complete: func(r *extensionv1.CompleteRequest, s extensionv1.Models_CompleteServer) error {
		if err := s.Send(&extensionv1.Delta{Text: "one"}); err != nil {
			return err
		}
		switch r.GetModel() {
		case "busy":
			return status.Error(codes.ResourceExhausted, "429")
		case "hang":
			began <- struct{}{}
			<-s.Context().Done()
			return s.Context().Err()
		}
		return s.Send(&extensionv1.Delta{Text: "two"})
	}}, &extensionv1.Description{})
	var text string
	collect := func(d *extensionv1.Delta) error {
		text += d.GetText()
		return nil
	}
	if err := w.host.Complete(
		t.Context(),
		"openai",
		&extensionv1.CompleteRequest{},
		collect,
	); err != nil ||
		text != "onetwo" {
		t.Errorf("got %q, %v", text, err)
	}
	if err := w.host.Complete(
		t.Context(),
		"openai",
		&extensionv1.CompleteRequest{Model: "busy"},
		emit,
	); err == nil ||
		!strings.Contains(err.Error(), "429") {
		t.Errorf("got %v", err)
	}
	enough := errors.New("enough")
	if err := w.host.Complete(
		t.Context(),
		"openai",
		&extensionv1.CompleteRequest{Model: "hang"},
		func(*extensionv1.Delta) error { return enough },
	); !errors.Is(
		err,
		enough,
	) {
		t.Errorf("got %v", err)
	}
	<-began
	failed := make(chan error, 1)
	go func() {
		failed <- w.host.Complete(context.Background(), "openai", &extensionv1.CompleteRequest{Model: "hang"}, emit)
	}()
	<-began
	g.dies()
	if err := <-failed; !errors.Is(err, contract.ErrGone) {
		t.Errorf("the process ended: %v", err)
	}
}
