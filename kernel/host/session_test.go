package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/channel"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// chat is an agent that is reached over Telegram, both on the other side of a
// socket. The agent holds what it is given.
type chat struct {
	w               *world
	telegram, agent *instance
	held            chan *busv1.Delivery
}

func withChat(w *world) chat {
	w.T.Helper()
	s := chat{w: w, held: make(chan *busv1.Delivery, 1000)}
	w.Know(func(d *directory.Snapshot) {
		d.Commands = []command.Slash{{Name: "shout", Description: "shouts", Extension: "lab"}}
		d.Channels = []directory.Channel{
			{
				ID:    "telegram",
				Name:  "Telegram",
				State: contract.StateActive,
				Spec: channel.Spec{
					AllowFrom: []string{"*"},
					Drafts:    true,
					MaxLength: 4096,
				},
				Readiness: &extensionv1.Readiness{State: extensionv1.Readiness_STATE_READY},
			},
		}
		d.Agents = []directory.Agent{
			{ID: "chat", Spec: &extensionv1.AgentSpec{Model: "default", UsesTools: []string{"core/*", "notes/*"}}},
			{ID: "other", Spec: &extensionv1.AgentSpec{Model: "scout"}},
		}
		d.DefaultAgent = "chat"
	})
	w.subscribe("telegram", contract.TopicChannelSend+"telegram")
	w.subscribe("chat", contract.TopicAgentInput+"chat")
	s.telegram = w.admit(bus.Actor{ID: "telegram", Channel: true, Publish: []string{contract.TopicUserMessage}})
	s.agent = w.admit(bus.Actor{ID: "chat", Agent: true})
	s.agent.runs(handles(func(d *busv1.Delivery) *busv1.Outcome {
		s.held <- d
		return nil
	}), &extensionv1.Description{Events: true})
	return s
}

func draft(lane, text string) *kernelv1.DraftRequest {
	return &kernelv1.DraftRequest{Lane: lane, Text: text}
}

// says reports a message and returns what the agent is given.
func (s chat) says(person, text string) *busv1.Delivery {
	s.w.T.Helper()
	s.telegram.mustCommit(
		kerneltest.Publish(
			contract.TopicUserMessage,
			contract.UserMessage{UserID: person, ConversationID: person, Text: text},
		),
	)
	return <-s.held
}

func TestALaneOpensItsOwnSessionOnly(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	anna, boris := s.says("anna", "hello"), s.says("boris", "hello")
	lane, own, foreign := anna.GetToken(), anna.GetTurn().GetSession(), boris.GetTurn().GetSession()
	stranger := w.admit(bus.Actor{ID: "stranger", Agent: true})
	w.subscribe("stranger", "notes.added")
	ask := map[string]func(g *instance, lane, session string) error{
		"get": func(g *instance, lane, session string) error {
			_, err := g.sessions.Get(t.Context(), &kernelv1.SessionRequest{Lane: lane, Session: session})
			return err
		},
		"history": func(g *instance, lane, session string) error {
			_, err := g.sessions.History(t.Context(), &kernelv1.HistoryRequest{Lane: lane, Session: session})
			return err
		},
	}
	for name, call := range ask {
		tests := []struct {
			name          string
			g             *instance
			lane, session string
			want          error
		}{
			{"its own", s.agent, lane, own, nil},
			{"its own, unnamed", s.agent, lane, "", nil},
			{"a foreign one", s.agent, lane, foreign, contract.ErrDenied},
			{"one that does not exist", s.agent, lane, "s999", contract.ErrDenied},
			{"without a lane", s.agent, "", own, contract.ErrStale},
			{"with another's lane", stranger, lane, own, contract.ErrStale},
		}
		for _, test := range tests {
			if err := contract.FromStatus(call(test.g, test.lane, test.session)); !errors.Is(err, test.want) {
				t.Errorf("%s of %s: %v, want %v", name, test.name, err, test.want)
			}
		}
	}
}

func TestTheServicesOfATurn(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	d := s.says("anna", "hello")
	lane, session := d.GetToken(), d.GetTurn().GetSession()
	in := kerneltest.Decode[contract.AgentInput](t, d.GetEvent())
	receipt, err := s.agent.commit(
		lane,
		&busv1.Effect{Kind: &busv1.Effect_Append{Append: &busv1.Append{Session: session, Entries: []*busv1.Entry{
			kerneltest.Row(d.GetEvent().GetId(), in),
			{
				Kind:  contract.EntryAnswer,
				Calls: []*busv1.Call{{Name: "core/list_channels", ProviderId: "p1"}, {Name: "core/list_agents"}},
			},
		}}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	calls := receipt.GetResults()[0].GetCalls()

	got, err := s.agent.sessions.Get(t.Context(), &kernelv1.SessionRequest{Lane: lane})
	if err != nil || got.GetId() != session || got.GetAgent() != "chat" || got.GetState() != "running" ||
		got.GetHistorySeq() != 2 {
		t.Errorf("the session is %v, %v", got, err)
	}
	history, err := s.agent.sessions.History(t.Context(), &kernelv1.HistoryRequest{Lane: lane, Session: session})
	if err != nil || len(history.GetEntries()) != 2 || history.GetTruncated() {
		t.Errorf("the history is %v, %v", history, err)
	}
	history, err = s.agent.sessions.History(
		t.Context(),
		&kernelv1.HistoryRequest{Lane: lane, Session: session, AfterSeq: 1},
	)
	if err != nil || len(history.GetEntries()) != 1 {
		t.Errorf("the history is %v, %v", history, err)
	}

	s.telegram.mustCommit(
		kerneltest.Publish(
			contract.TopicUserMessage,
			contract.UserMessage{UserID: "anna", ConversationID: "anna", Text: "and more"},
		),
	)
	pending, err := s.agent.sessions.Pending(t.Context(), &kernelv1.PendingRequest{Lane: lane})
	if err != nil || len(pending.GetInputs()) != 1 ||
		kerneltest.Decode[contract.AgentInput](t, pending.GetInputs()[0]).Text != "and more" {
		t.Errorf("what waits is %v, %v", pending, err)
	}
	sessions, err := s.agent.sessions.List(t.Context(), &kernelv1.ListSessionsRequest{Lane: lane})
	if err != nil || len(sessions.GetSessions()) != 1 {
		t.Errorf("the sessions are %v, %v", sessions, err)
	}

	tools, err := s.agent.tools.List(t.Context(), &kernelv1.ListToolsRequest{Lane: lane})
	if err != nil || len(tools.GetTools()) != 8 {
		t.Errorf("the tools are %v, %v", tools, err)
	}
	result, err := s.agent.tools.Call(t.Context(), &kernelv1.CallToolRequest{Lane: lane, CallId: calls[0].GetCallId()})
	if err != nil || !strings.Contains(result.GetContent(), `"id":"telegram"`) {
		t.Errorf("the result is %v, %v", result, err)
	}
	asked, err := s.agent.tools.Call(t.Context(), &kernelv1.CallToolRequest{Lane: lane, Name: "core/list_channels"})
	if err != nil || asked.GetContent() != result.GetContent() {
		t.Errorf("asked without a row: %v, %v", asked, err)
	}
	for name, c := range map[string]struct {
		request *kernelv1.CallToolRequest
		want    error
	}{
		"one with effects":            {&kernelv1.CallToolRequest{Lane: lane, Name: "core/send_to_channel"}, contract.ErrInvalid},
		"one that does not exist":     {&kernelv1.CallToolRequest{Lane: lane, Name: "core/nothing"}, contract.ErrNotFound},
		"outside of turns, ungranted": {&kernelv1.CallToolRequest{Name: "core/list_channels"}, contract.ErrDenied},
	} {
		if _, err := s.agent.tools.Call(t.Context(), c.request); !errors.Is(contract.FromStatus(err), c.want) {
			t.Errorf("%s without a row: %v", name, err)
		}
	}
	boris := s.says("boris", "hello")
	if _, err := s.agent.tools.Call(
		t.Context(),
		&kernelv1.CallToolRequest{Lane: boris.GetToken(), CallId: calls[1].GetCallId()},
	); !errors.Is(
		contract.FromStatus(err),
		contract.ErrNotFound,
	) {
		t.Errorf("a foreign call: %v", err)
	}
	channels, err := s.agent.channels.List(t.Context(), &kernelv1.ListChannelsRequest{})
	if err != nil || len(channels.GetChannels()) != 1 || channels.GetChannels()[0].GetMaxLength() != 4096 {
		t.Errorf("the channels are %v, %v", channels, err)
	}
	var commands []string
	for _, c := range channels.GetCommands() {
		commands = append(commands, c.GetName()+": "+c.GetDescription())
	}
	if !slices.Contains(commands, "stop: stop everything here, or only the running answer") || !slices.Contains(commands, "shout: shouts") {
		t.Errorf("the commands are %q", commands)
	}
}

// An agent may ask the model that its manifest names, and no tool may ask in its
// name for another.
func TestAnAgentCompletesWithItsModel(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	provider := w.admit(bus.Actor{ID: "openai"})
	asked := make(chan *extensionv1.CompleteRequest, 1)
	provider.runs(&process{complete: func(r *extensionv1.CompleteRequest, stream extensionv1.Models_CompleteServer) error {
		asked <- r
		return stream.Send(
			&extensionv1.Delta{Text: "hi", Finish: "stop", Usage: &extensionv1.Usage{InputTokens: 11, OutputTokens: 3}},
		)
	}}, &extensionv1.Description{Models: true})
	usage := w.follow(contract.TopicModelUsage)
	w.Know(func(d *directory.Snapshot) {
		d.Models = []directory.Provider{
			{
				Extension: "openai",
				Models:    []string{"openai/*"},
				State:     contract.StateActive,
				Readiness: &extensionv1.Readiness{State: extensionv1.Readiness_STATE_READY},
			},
		}
	})
	d := s.says("anna", "hello")
	complete := func(g *instance, lane, model string) (*extensionv1.Delta, error) {
		stream, err := g.models.Complete(t.Context(), &kernelv1.CompleteRequest{Lane: lane, Model: model, MaxTokens: 7})
		if err != nil {
			return nil, err
		}
		first, err := stream.Recv()
		if err == nil {
			if _, end := stream.Recv(); !errors.Is(end, io.EOF) {
				t.Errorf("after the last delta: %v", end)
			}
		}
		return first, contract.FromStatus(err)
	}
	delta, err := complete(s.agent, d.GetToken(), "default")
	if err != nil || delta.GetText() != "hi" || delta.GetModel() != "openai/*" {
		t.Errorf("got %v, %v", delta, err)
	}
	if r := <-asked; r.GetAgent() != "chat" || r.GetSession() != d.GetTurn().GetSession() || r.GetMaxTokens() != 7 {
		t.Errorf("the provider was asked %v", r)
	}
	var used contract.ModelUsage
	if e := <-usage; json.Unmarshal(e.GetPayload(), &used) != nil || e.GetCausationId() != d.GetEvent().GetId() ||
		used.Person == "" || used != (contract.ModelUsage{
		Agent: "chat", Session: d.GetTurn().GetSession(), Person: used.Person, Model: "openai/*",
		InputTokens: 11, OutputTokens: 3,
	}) {
		t.Errorf("the usage is %v", e)
	}
	if _, err := complete(
		s.agent,
		d.GetToken(),
		"scout",
	); !errors.Is(err, contract.ErrDenied) ||
		!strings.Contains(err.Error(), `"default"`) {
		t.Errorf("another model: %v", err)
	}
	if _, err := complete(s.agent, "0123", "default"); !errors.Is(err, contract.ErrStale) {
		t.Errorf("under a lane that it does not hold: %v", err)
	}
	if _, err := complete(s.agent, "", "default"); !errors.Is(err, contract.ErrDenied) {
		t.Errorf("without a lane: %v", err)
	}
}

// A handler of plain events holds a lane as well, but no session.
func TestALaneWithoutASession(t *testing.T) {
	w := newWorld(t)
	withChat(w)
	w.subscribe("notes", "notes.added")
	g := w.admit(bus.Actor{ID: "notes", Publish: []string{"notes.added"}})
	held := make(chan *busv1.Delivery, 1)
	g.runs(handles(func(d *busv1.Delivery) *busv1.Outcome {
		held <- d
		return nil
	}), &extensionv1.Description{Events: true})
	g.mustCommit(kerneltest.Publish("notes.added", 1))
	lane := (<-held).GetToken()
	if _, err := g.sessions.Get(
		t.Context(),
		&kernelv1.SessionRequest{Lane: lane},
	); !errors.Is(
		contract.FromStatus(err),
		contract.ErrDenied,
	) {
		t.Errorf("a session: %v", err)
	}
	if _, err := g.sessions.History(
		t.Context(),
		&kernelv1.HistoryRequest{Lane: lane},
	); !errors.Is(
		contract.FromStatus(err),
		contract.ErrDenied,
	) {
		t.Errorf("a history: %v", err)
	}
	if r, err := g.tools.List(t.Context(), &kernelv1.ListToolsRequest{Lane: lane}); err != nil || len(r.GetTools()) != 0 {
		t.Errorf("tools: %v, %v", r, err)
	}
	stream, err := g.models.Complete(t.Context(), &kernelv1.CompleteRequest{Lane: lane, Model: "default"})
	if err == nil {
		_, err = stream.Recv()
	}
	if !errors.Is(contract.FromStatus(err), contract.ErrDenied) {
		t.Errorf("a completion: %v", err)
	}
}

func TestWhatWaitsIsBoundedByBytes(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	d := s.says("anna", "hello")
	text := strings.Repeat("x", contract.MaxPayload-1000)
	for range 11 {
		s.telegram.mustCommit(
			kerneltest.Publish(
				contract.TopicUserMessage,
				contract.UserMessage{UserID: "anna", ConversationID: "anna", Text: text},
			),
		)
	}
	r, err := s.agent.sessions.Pending(t.Context(), &kernelv1.PendingRequest{Lane: d.GetToken()})
	if err != nil || len(r.GetInputs()) < 5 || len(r.GetInputs()) > 8 || proto.Size(r) > contract.MaxMessage {
		t.Errorf("%d inputs of %d bytes: %v", len(r.GetInputs()), proto.Size(r), err)
	}
}

// A tool that runs for a turn reads that turn's session under its own lane.
func TestAToolWorksForTheSessionThatAsked(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	notes := w.admit(bus.Actor{ID: "notes"})
	var problems []string
	notes.runs(&process{call: func(ctx context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
		got, err := notes.sessions.Get(ctx, &kernelv1.SessionRequest{Lane: r.GetLane()})
		if err != nil || got.GetId() != r.GetSession() {
			problems = append(problems, fmt.Sprint(got, err))
		}
		if _, err := s.agent.sessions.Get(ctx, &kernelv1.SessionRequest{Lane: r.GetLane()}); err == nil {
			problems = append(problems, "the agent uses the tool's lane")
		}
		if _, err := notes.sessions.Get(ctx, &kernelv1.SessionRequest{Lane: r.GetLane(), Session: "s2"}); err == nil {
			problems = append(problems, "the tool reads another session")
		}
		return &extensionv1.CallResult{Content: "done"}, nil
	}}, &extensionv1.Description{})
	w.Tool("notes", &extensionv1.Tool{Name: "add"}, nil)
	d := s.says("anna", "hello")
	s.says("boris", "hello")
	receipt, err := s.agent.commit(d.GetToken(), &busv1.Effect{Kind: &busv1.Effect_Append{Append: &busv1.Append{
		Session: d.GetTurn().GetSession(),
		Entries: []*busv1.Entry{{Kind: contract.EntryAnswer, Calls: []*busv1.Call{{Name: "notes/add"}}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	call := &kernelv1.CallToolRequest{Lane: d.GetToken(), CallId: receipt.GetResults()[0].GetCalls()[0].GetCallId()}
	if r, err := s.agent.tools.Call(t.Context(), call); err != nil || r.GetContent() != "done" {
		t.Errorf("the result is %v, %v", r, err)
	}
	if len(problems) > 0 {
		t.Error(problems)
	}
}
