package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// rogue is a chat whose agent tries what its manifest does not grant, with the
// lane that it rightly holds: anna's. Boris's conversation is another one, and
// so is that of the agent "other".
type rogue struct {
	chat
	anna, boris *busv1.Delivery
}

func newRogue(t *testing.T) rogue {
	t.Helper()
	s := withChat(newWorld(t))
	notes := s.w.admit(bus.Actor{ID: "notes"})
	notes.runs(&process{call: func(_ context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
		return &extensionv1.CallResult{Content: "memory: " + strings.Join(r.GetMemory(), " ")}, nil
	}}, &extensionv1.Description{})
	for _, tool := range []*extensionv1.Tool{{Name: "read", ReadOnly: true}, {Name: "wipe", Private: true, ReadOnly: true}} {
		s.w.Tool("notes", tool, nil)
	}
	s.w.Tool("shell", &extensionv1.Tool{Name: "run", ReadOnly: true}, nil)
	s.w.Know(func(d *directory.Snapshot) { d.Agents[0].Spec.Memory = []string{"work"} })
	return rogue{s, s.says("anna", "hello"), s.says("boris", "hello")}
}

func appendTo(session string, rows ...*busv1.Entry) *busv1.Effect {
	return &busv1.Effect{Kind: &busv1.Effect_Append{Append: &busv1.Append{Session: session, Entries: rows}}}
}

func input(session, kind, text string) *busv1.Effect {
	return &busv1.Effect{Kind: &busv1.Effect_Input{Input: &busv1.Input{Session: session, Kind: kind, Text: text}}}
}

// What an agent may change, its manifest says, and the kernel keeps to it.
func TestARogueAgentChangesNothing(t *testing.T) {
	s := newRogue(t)
	own, foreign := s.anna.GetTurn().GetSession(), s.boris.GetTurn().GetSession()
	note := &busv1.Entry{Kind: contract.EntryNote, Text: "mine"}
	effects := map[string]struct {
		effect *busv1.Effect
		says   string
	}{
		"rows of another session":         {appendTo(foreign, note), foreign},
		"rows of one that does not exist": {appendTo("s999", note), "s999"},
		"an interruption of another session": {
			&busv1.Effect{Kind: &busv1.Effect_Steer{Steer: &busv1.Steer{Session: foreign, Inputs: []string{"e1"}}}},
			foreign,
		},
		"a session":                   {kerneltest.Ensure("chat", "task:1"), "effects: [session.ensure]"},
		"an input of another session": {input(foreign, contract.InputNotice, "obey"), "effects: [input]"},
		"an input of its own":         {input(own, contract.InputNotice, "obey"), "effects: [input]"},
		"the end of another's turn": {
			kerneltest.CancelTurn(journal.ParseSessionID(foreign), "enough"),
			"effects: [turn.cancel]",
		},
		"a withdrawal": {
			&busv1.Effect{Kind: &busv1.Effect_Withdraw{Withdraw: &busv1.Withdraw{EventId: "e1"}}},
			"effects: [withdraw]",
		},
		"a receipt": {kerneltest.Receipt("1", "anna", ""), "only a channel"},
		"a message of a person": {
			kerneltest.Publish(
				contract.TopicUserMessage,
				contract.UserMessage{UserID: "boris", ConversationID: "boris", Text: "obey"},
			),
			"only a channel",
		},
		"a send to a channel": {
			kerneltest.Publish(contract.TopicChannelSend+"telegram", contract.ChannelSend{Text: "hi", Conversation: "boris"}),
			"kernel alone",
		},
		"an input of another agent": {
			kerneltest.Publish(contract.TopicAgentInput+"other", contract.AgentInput{Session: "s1"}),
			"kernel alone",
		},
		"a notice": {
			kerneltest.Publish(contract.TopicUserNotify, contract.UserNotify{Text: "hi"}),
			"publish: [system.user.notify]",
		},
		"a task": {
			kerneltest.Publish(contract.TopicAgentTask, contract.AgentTask{Prompt: "work"}),
			"publish: [system.agent.task]",
		},
		"an event of another extension": {kerneltest.Publish("notes.added", 1), "publish: [notes.added]"},
		"an event of its own":           {kerneltest.Publish("chat.thought", 1), "publish: [chat.thought]"},
	}
	for name, e := range effects {
		for lane, token := range map[string]string{"its lane": s.anna.GetToken(), "no lane": ""} {
			before, _ := s.agent.kv.Get(t.Context(), &kernelv1.GetRequest{Key: "k"})
			_, err := s.agent.commit(token, kerneltest.PutAt("k", "v", before.GetVersion()), e.effect)
			if !errors.Is(err, contract.ErrDenied) || lane == "its lane" && !strings.Contains(err.Error(), e.says) {
				t.Errorf("%s with %s: %v, want %q", name, lane, err, e.says)
			}
			if after, _ := s.agent.kv.Get(
				t.Context(),
				&kernelv1.GetRequest{Key: "k"},
			); after.GetVersion() != before.GetVersion() {
				t.Fatalf("%s with %s: what stood beside it happened", name, lane)
			}
		}
	}
	// A token that is another's, or none's, is none.
	other := s.w.admit(bus.Actor{ID: "other", Agent: true})
	s.w.subscribe("other", contract.TopicAgentInput+"other")
	for name, try := range map[string]struct {
		g     *instance
		token string
	}{"another's": {other, s.anna.GetToken()}, "invented": {s.agent, strings.Repeat("0", 32)}} {
		if _, err := try.g.commit(try.token, appendTo(own, note)); !errors.Is(err, contract.ErrStale) {
			t.Errorf("a token that is %s: %v", name, err)
		}
	}
	// Neither is one whose turn has ended, as its holder or somebody else ended it.
	s.telegram.mustCommit(
		kerneltest.Publish(
			contract.TopicUserMessage,
			contract.UserMessage{UserID: "anna", ConversationID: "anna", Text: "/stop"},
		),
	)
	if _, err := s.agent.commit(s.anna.GetToken(), appendTo(own, note)); !errors.Is(err, contract.ErrStale) {
		t.Errorf("a turn that was stopped: %v", err)
	}
	if _, err := s.agent.tools.List(
		t.Context(),
		&kernelv1.ListToolsRequest{Lane: s.anna.GetToken()},
	); !errors.Is(
		contract.FromStatus(err),
		contract.ErrStale,
	) {
		t.Errorf("the tools of a turn that was stopped: %v", err)
	}
}

// What an agent may ask, likewise.
func TestARogueAgentLearnsNothing(t *testing.T) {
	s := newRogue(t)
	lane, foreign := s.anna.GetToken(), s.boris.GetTurn().GetSession()
	ask := func(tool, arguments string) error {
		_, err := s.agent.tools.Call(
			t.Context(),
			&kernelv1.CallToolRequest{Lane: lane, Name: tool, Arguments: []byte(arguments)},
		)
		return contract.FromStatus(err)
	}
	for tool, says := range map[string]string{
		"shell/run": "uses_tools: [shell/run]", "notes/wipe": "uses_tools: [notes/wipe]",
	} {
		if err := ask(
			tool,
			`{"session_id":"`+foreign+`"}`,
		); !errors.Is(err, contract.ErrDenied) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("asking %s: %v", tool, err)
		}
		receipt, err := s.agent.commit(lane, &busv1.Effect{Kind: &busv1.Effect_Append{Append: &busv1.Append{
			Session:     s.anna.GetTurn().GetSession(),
			ExpectedSeq: s.seq(),
			Entries:     []*busv1.Entry{{Kind: contract.EntryAnswer, Calls: []*busv1.Call{{Name: tool}}}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.agent.tools.Call(
			t.Context(),
			&kernelv1.CallToolRequest{Lane: lane, CallId: receipt.GetResults()[0].GetCalls()[0].GetCallId()},
		)
		if err != nil || !r.GetIsError() || !strings.Contains(r.GetContent(), says) {
			t.Errorf("calling %s: %v, %v", tool, r, err)
		}
	}
	tools, err := s.agent.tools.List(t.Context(), &kernelv1.ListToolsRequest{Lane: lane})
	if err != nil || slices.ContainsFunc(tools.GetTools(), func(x *extensionv1.Tool) bool {
		return x.GetPrivate() || strings.HasPrefix(x.GetName(), "shell/")
	}) {
		t.Errorf("it is offered %v, %v", tools, err)
	}
	// Which memory a tool may use for it, the kernel says, and not the agent.
	r, err := s.agent.tools.Call(
		t.Context(),
		&kernelv1.CallToolRequest{
			Lane:      lane,
			Name:      "notes/read",
			Arguments: []byte(`{"scope":"personal","memory":["personal"]}`),
		},
	)
	if err != nil || r.GetContent() != "memory: work" {
		t.Errorf("the memory of a tool that works for it: %v, %v", r, err)
	}
	sessions, err := s.agent.sessions.List(t.Context(), &kernelv1.ListSessionsRequest{Lane: lane, Agent: "chat"})
	if err != nil || len(sessions.GetSessions()) != 1 ||
		sessions.GetSessions()[0].GetId() != s.anna.GetTurn().GetSession() {
		t.Errorf("the sessions it sees: %v, %v", sessions, err)
	}
	if got := sessions.GetSessions()[0]; strings.Contains(got.String(), "anna") || got.GetChannel() != "telegram" {
		t.Errorf("its session is %v", got)
	}
	watch, err := s.agent.bus.Watch(t.Context(), &kernelv1.WatchRequest{Topics: []string{contract.TopicUserMessage}})
	if err == nil {
		_, err = watch.Recv()
	}
	if !errors.Is(contract.FromStatus(err), contract.ErrDenied) {
		t.Errorf("watching what people write: %v", err)
	}

}

// An extension with the grant reads the session of whoever asks and others that are that
// person's, and where others can read that one it alone; never an address.
func TestSessionsAreReadWithTheGrant(t *testing.T) {
	s := newRogue(t)
	own, boris := s.anna.GetTurn().GetSession(), s.boris.GetTurn().GetSession()
	s.telegram.mustCommit(kerneltest.Publish(contract.TopicUserMessage, contract.UserMessage{
		UserID: "anna", ConversationID: "anna", ThreadID: "2", Text: "hello again",
	}))
	second := <-s.held
	also := second.GetTurn().GetSession()
	for _, d := range []*busv1.Delivery{second, s.boris} { // whose a session is, a turn says
		row := &busv1.Entry{Kind: contract.EntryAnswer, Text: "well", Calls: []*busv1.Call{{Name: "notes/read"}}}
		if _, err := s.agent.commit(d.GetToken(), appendTo(d.GetTurn().GetSession(), row)); err != nil {
			t.Fatal(err)
		}
	}
	for _, granted := range []bool{true, false} {
		reader := s.w.admit(bus.Actor{ID: "reader", Sessions: granted})
		for _, group := range []bool{false, true} {
			lane, mine := s.anna.GetToken(), own
			if group {
				s.telegram.mustCommit(kerneltest.Publish(contract.TopicUserMessage, contract.UserMessage{
					UserID: "anna", ConversationID: fmt.Sprint("family", granted), Group: true, Text: "hello",
				}))
				d := <-s.held
				lane, mine = d.GetToken(), d.GetTurn().GetSession()
			}
			l, err := s.w.Bus.Lease(s.agent.actor, lane)
			if err != nil {
				t.Fatal(err)
			}
			call := s.w.Bus.LeaseCall(reader.actor, l, l.Event, 0)
			all, err := reader.sessions.List(t.Context(), &kernelv1.ListSessionsRequest{Lane: call.Token})
			if err != nil {
				t.Fatal(err)
			}
			if sees := len(all.GetSessions()) > 1; sees != (granted && !group) {
				t.Errorf("granted %t, group %t: the sessions are %v", granted, group, all)
			}
			for _, address := range []string{"chan:", "anna", "boris", "family"} {
				if strings.Contains(all.String(), address) {
					t.Errorf("%q stands in %s", address, all)
				}
			}
			for id, allowed := range map[string]bool{mine: true, also: granted && !group, boris: false, "s99": false} {
				_, listing := reader.sessions.List(t.Context(), &kernelv1.ListSessionsRequest{Lane: call.Token, Session: id})
				_, history := reader.sessions.History(
					t.Context(),
					&kernelv1.HistoryRequest{Lane: call.Token, Session: id, Limit: 10},
				)
				if (listing == nil) != allowed || (history == nil) != allowed {
					t.Errorf("granted %t, group %t: reading %s: %v, %v", granted, group, id, listing, history)
				}
			}
			s.w.Bus.Release(call)

			command := &busv1.Event{Topic: "command.look", Payload: fmt.Appendf(nil, `{"group":%t,"accounts":[%q]}`, group,
				session.InputOf(s.anna.GetEvent()).Person)}
			call = s.w.Bus.LeaseCall(reader.actor, &bus.Lease{}, command, 0)
			all, err = reader.sessions.List(t.Context(), &kernelv1.ListSessionsRequest{Lane: call.Token})
			if sees := len(all.GetSessions()) > 0; sees != (granted && !group) || sees != (err == nil) {
				t.Errorf("granted %t, a command in a group %t: the sessions are %v, %v", granted, group, all, err)
			}
			s.w.Bus.Release(call)
		}
	}
}

// seq is the last row of Anna's session.
func (s rogue) seq() int64 {
	s.w.T.Helper()
	got, err := s.agent.sessions.Get(s.w.T.Context(), &kernelv1.SessionRequest{Lane: s.anna.GetToken()})
	if err != nil {
		s.w.T.Fatal(err)
	}
	return got.GetHistorySeq()
}
