package host_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// provides makes an instance a provider of models that answers with answer.
func (w *world) provides(
	id string,
	answer func(*extensionv1.CompleteRequest, extensionv1.Models_CompleteServer) error,
) *instance {
	w.T.Helper()
	g := w.admit(bus.Actor{ID: id})
	g.runs(&process{complete: answer}, &extensionv1.Description{Models: true})
	w.Know(func(d *directory.Snapshot) {
		d.Models = append(d.Models, directory.Provider{
			Extension: id,
			Models:    []string{id + "/*"},
			State:     contract.StateActive,
			Readiness: &extensionv1.Readiness{State: extensionv1.Readiness_STATE_READY},
		})
	})
	return g
}

// completes asks a model and returns what it says.
func (g *instance) completes(r *kernelv1.CompleteRequest) (text string, err error) {
	g.w.T.Helper()
	stream, err := g.models.Complete(g.w.T.Context(), r)
	if err != nil {
		return "", contract.FromStatus(err)
	}
	for {
		d, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return text, contract.FromStatus(err)
		}
		text += d.GetText()
	}
}

func used(t *testing.T, usage <-chan *busv1.Event) (contract.ModelUsage, *busv1.Event) {
	t.Helper()
	var u contract.ModelUsage
	e := <-usage
	if err := json.Unmarshal(e.GetPayload(), &u); err != nil {
		t.Fatal(err)
	}
	return u, e
}

// An extension asks the models that its manifest names, with or without a lane.
func TestAnExtensionCompletes(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	asked := make(chan *extensionv1.CompleteRequest, 10)
	w.provides("openai", func(r *extensionv1.CompleteRequest, stream extensionv1.Models_CompleteServer) error {
		asked <- r
		return stream.Send(
			&extensionv1.Delta{Text: "noop", Finish: "stop", Usage: &extensionv1.Usage{InputTokens: 5, OutputTokens: 1}},
		)
	})
	usage := w.follow(contract.TopicModelUsage)
	heartbeat := w.admit(bus.Actor{ID: "heartbeat", Models: []string{"scout"}})

	text, err := heartbeat.completes(&kernelv1.CompleteRequest{Model: "scout", Purpose: "triage"})
	if err != nil || text != "noop" {
		t.Errorf("it hears %q, %v", text, err)
	}
	if r := <-asked; r.GetAgent() != "heartbeat" || r.GetSession() != "" || r.GetPurpose() != "triage" {
		t.Errorf("the provider was asked %v", r)
	}
	want := contract.ModelUsage{Agent: "heartbeat", Model: "openai/*", InputTokens: 5, OutputTokens: 1, Purpose: "triage"}
	if u, e := used(t, usage); u != want || e.GetCausationId() != "" {
		t.Errorf("recorded is %+v, following from %q", u, e.GetCausationId())
	}

	_, err = heartbeat.completes(&kernelv1.CompleteRequest{Model: "default"})
	if !errors.Is(err, contract.ErrDenied) ||
		!strings.Contains(err.Error(), `the manifest of "heartbeat" lacks "permissions: {models: [default]}"`) {
		t.Errorf("another model: %v", err)
	}

	// A tool asks in its own name: the model of the agent that calls it is not its.
	d := s.says("anna", "hello")
	turn, err := w.Bus.Lease(s.agent.actor, d.GetToken())
	if err != nil {
		t.Fatal(err)
	}
	lane := w.Bus.LeaseCall(heartbeat.actor, turn, turn.Event, 1).Token
	if _, err := heartbeat.completes(
		&kernelv1.CompleteRequest{Lane: lane, Model: "default"},
	); !errors.Is(
		err,
		contract.ErrDenied,
	) {
		t.Errorf("the model of the agent: %v", err)
	}
	if _, err := heartbeat.completes(&kernelv1.CompleteRequest{Lane: lane, Model: "scout"}); err != nil {
		t.Error(err)
	}
	<-asked
	if u, e := used(
		t,
		usage,
	); u.Agent != "heartbeat" || u.Session != d.GetTurn().GetSession() ||
		e.GetCausationId() != d.GetEvent().GetId() {
		t.Errorf("recorded is %+v, following from %q", u, e.GetCausationId())
	}
}

// An agent asks the model of its manifest, and in a turn whose input names
// another one, that.
func TestAnInputNamesTheModelOfItsTurn(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	w.provides("openai", func(r *extensionv1.CompleteRequest, stream extensionv1.Models_CompleteServer) error {
		return stream.Send(&extensionv1.Delta{Text: "by " + r.GetModel(), Finish: "stop"})
	})
	boss := w.admit(bus.Actor{ID: "boss", Effects: []string{"session.ensure", "input"}})
	given := func(model string) *busv1.Delivery {
		t.Helper()
		input := kerneltest.Input("chat", "task:"+model, contract.InputTask, "do it")
		input.GetInput().Meta = fmt.Appendf(nil, `{%q: %q}`, contract.MetaModel, model)
		boss.mustCommit(kerneltest.Ensure("chat", "task:"+model), input)
		return <-s.held
	}
	for _, tt := range []struct {
		input *busv1.Delivery
		model string
		says  string
		fails error
	}{
		{given("openai/big"), "openai/big", "by big", nil},
		{given("openai/big2"), "default", "by ", nil},
		{given("openai/big3"), "openai/small", `grants the model "default", not "openai/small"`, contract.ErrDenied},
		{given("big"), "big", `there is no model "big": name it with its extension, as openai/big`, contract.ErrInvalid},
		{s.says("anna", "hello"), "openai/big", `grants the model "default"`, contract.ErrDenied},
	} {
		text, err := s.agent.completes(&kernelv1.CompleteRequest{Lane: tt.input.GetToken(), Model: tt.model})
		if !errors.Is(err, tt.fails) || err == nil && text != tt.says ||
			err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %q, %v", tt.model, text, err)
		}
	}
}

// A run loop that asks a model without end is stopped.
func TestATurnThatAsksWithoutEnd(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	w.provides("openai", func(_ *extensionv1.CompleteRequest, stream extensionv1.Models_CompleteServer) error {
		return stream.Send(&extensionv1.Delta{Text: "hm", Finish: "stop"})
	})
	w.Know(func(d *directory.Snapshot) { d.Agent("chat").Spec.MaxSteps = 3 })
	d := s.says("anna", "hello")
	n := 0
	for ; n < 100; n++ {
		_, err := s.agent.completes(&kernelv1.CompleteRequest{Lane: d.GetToken(), Model: "default"})
		if err == nil {
			continue
		}
		if !errors.Is(err, contract.ErrInvalid) ||
			!strings.Contains(err.Error(), `agent.limits.max_steps in the manifest of "chat" allows 3 steps`) {
			t.Errorf("it is refused with %v", err)
		}
		break
	}
	if n < 2*3 || n > 2*3+20 {
		t.Errorf("a turn of 3 steps has asked %d times", n)
	}
}

// An agent has a recording of its session written down, if the configuration names a model.
// The provider may read the file while it does that, and nothing else. It takes no slot.
func TestTranscription(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	var openai *instance
	var lane string
	heard := make(chan *extensionv1.Recording, 10)
	answering, release := make(chan struct{}), make(chan struct{})
	openai = w.provides("openai", func(r *extensionv1.CompleteRequest, stream extensionv1.Models_CompleteServer) error {
		if r.GetRecording() == nil {
			close(answering)
			<-release
			return stream.Send(&extensionv1.Delta{Text: "hello"})
		}
		heard <- r.GetRecording()
		lane = r.GetRecording().GetLane()
		l, err := w.Bus.Lease(openai.actor, lane)
		if err != nil || l.Session == 0 || l.Agent != "" {
			return fmt.Errorf("the lane of the provider: %w", err)
		}
		note := &busv1.Entry{Kind: contract.EntryNote, Text: "forged"}
		for _, e := range []*busv1.Effect{kerneltest.Publish("openai.said", nil), kerneltest.AppendAt(l.Session, 0, note)} {
			err := w.Bus.DoAs(openai.actor, l, func(tx *bus.Tx) error {
				_, err := tx.Apply([]*busv1.Effect{e})
				return err
			})
			if err == nil {
				return fmt.Errorf("the provider committed %v", e)
			}
		}
		return stream.Send(&extensionv1.Delta{Text: "buy milk", Usage: &extensionv1.Usage{AudioMs: 12_000}})
	})
	usage := w.follow(contract.TopicModelUsage)
	turn := s.says("anna", "hello").GetToken()
	ask := &kernelv1.CompleteRequest{
		Lane: turn, Model: contract.ModelTranscribe, Purpose: contract.PurposeTranscribe,
		Recording: &extensionv1.Recording{Blob: "3f2a9c", Name: "0:12"},
	}
	if _, err := s.agent.completes(ask); !errors.Is(err, contract.ErrDenied) {
		t.Errorf("without a model for it: %v", err)
	}
	w.Know(func(d *directory.Snapshot) {
		d.Completions = 1
		d.ModelNames = map[string][]string{contract.ModelTranscribe: {"openai/whisper-1"}}
	})
	answered := make(chan error, 1)
	go func() {
		_, err := s.agent.completes(&kernelv1.CompleteRequest{Lane: turn, Model: "default"})
		answered <- err
	}()
	<-answering
	if text, err := s.agent.completes(ask); err != nil || text != "buy milk" {
		t.Errorf("got %q, %v", text, err)
	}
	if r := <-heard; r.GetBlob() != "3f2a9c" || r.GetName() != "0:12" {
		t.Errorf("the provider got %v", r)
	}
	if _, err := w.Bus.Lease(openai.actor, lane); !errors.Is(err, contract.ErrStale) {
		t.Errorf("the lane of the provider after its answer: %v", err)
	}
	if u, _ := used(t, usage); u.AudioMS != 12_000 || u.Purpose != contract.PurposeTranscribe || u.Model != "openai/whisper-1" {
		t.Errorf("recorded is %+v", u)
	}
	close(release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
