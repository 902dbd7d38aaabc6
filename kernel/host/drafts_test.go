package host_test

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// shows runs a channel that takes drafts.
func (g *instance) shows() chan *extensionv1.DraftUpdate {
	g.w.T.Helper()
	drafts := make(chan *extensionv1.DraftUpdate, 10)
	g.runs(&process{draft: func(d extensionv1.Drafts_DraftServer) error {
		for {
			u, err := d.Recv()
			if err != nil {
				return d.SendAndClose(&extensionv1.DraftResponse{})
			}
			drafts <- u
		}
	}}, &extensionv1.Description{Drafts: true})
	return drafts
}

type draftStream = grpc.ClientStreamingClient[kernelv1.DraftRequest, kernelv1.DraftResponse]

func (s chat) drafts() draftStream {
	s.w.T.Helper()
	stream, err := s.agent.channels.Draft(s.w.T.Context())
	if err != nil {
		s.w.T.Fatal(err)
	}
	return stream
}

func (s chat) show(stream draftStream, lane, text string) {
	s.w.T.Helper()
	if err := stream.Send(draft(lane, text)); err != nil {
		s.w.T.Fatal(err)
	}
}

func TestDraftsAreShownWhereTheTurnIs(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	drafts := s.telegram.shows()
	d := s.says("anna", "hello")
	stream := s.drafts()
	for _, text := range []string{"", "Once", "Once upon"} {
		s.show(stream, d.GetToken(), text)
		u := <-drafts
		if u.GetText() != text || u.GetConversation() != "anna" || u.GetDraftId() != d.GetEvent().GetId() {
			t.Errorf("the draft is %v", u)
		}
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		t.Error(err)
	}
	stream = s.drafts()
	s.show(stream, "0123", "whose?")
	if _, err := stream.CloseAndRecv(); !errors.Is(contract.FromStatus(err), contract.ErrStale) {
		t.Errorf("a draft without a lane: %v", err)
	}
}

// Drafts may be lost, but never hold up a turn, and go on with the channel's
// next process.
func TestDraftsOutliveTheChannelsProcess(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	drafts := s.telegram.shows()
	d := s.says("anna", "hello")
	stream := s.drafts()
	s.show(stream, d.GetToken(), "Once")
	<-drafts
	s.telegram.dies()
	for range 3 {
		s.show(stream, d.GetToken(), "lost")
	}
	drafts = w.admit(bus.Actor{ID: "telegram", Channel: true}).shows()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		s.show(stream, d.GetToken(), "Once upon")
		select {
		case u := <-drafts:
			if u.GetText() == "lost" { // it was read from the stream when the next process was there
				continue
			}
			if u.GetText() != "Once upon" || u.GetDraftId() != d.GetEvent().GetId() {
				t.Errorf("the draft is %v", u)
			}
		case <-tick.C:
			continue
		}
		break
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		t.Error(err)
	}
}

// A draft is that of the turn which runs when it comes, and names the message
// that this turn is about.
func TestDraftsFollowTheTurn(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	drafts := s.telegram.shows()
	says := func(id, text string) {
		s.telegram.mustCommit(kerneltest.Publish(contract.TopicUserMessage, contract.UserMessage{
			UserID: "anna", ConversationID: "anna", Text: text, MessageID: id,
		}))
	}
	says("m1", "one")
	d := <-s.held
	lane, session, first := d.GetToken(), d.GetTurn().GetSession(), d.GetEvent().GetId()
	stream := s.drafts()
	expect := func(text, id, replyTo string) {
		t.Helper()
		s.show(stream, lane, text)
		if u := <-drafts; u.GetText() != text || u.GetDraftId() != id || u.GetReplyTo() != replyTo {
			t.Errorf("the draft of %q is %v, want %s in reply to %s", text, u, id, replyTo)
		}
	}
	expect("before its first step", first, "m1")
	row := &busv1.Entry{Kind: contract.EntryInput, InputKind: contract.InputUser, Text: "one", Input: first}
	if _, err := s.agent.commit(lane, kerneltest.AppendAt(0, 0, row)); err == nil {
		t.Error("rows of another session were taken")
	}
	if _, err := s.agent.commit(
		lane,
		&busv1.Effect{Kind: &busv1.Effect_Append{Append: &busv1.Append{Session: session, Entries: []*busv1.Entry{row}}}},
	); err != nil {
		t.Fatal(err)
	}
	expect("the first answer", first, "m1")
	says("m2", "two")
	pending, err := s.agent.sessions.Pending(t.Context(), &kernelv1.PendingRequest{Lane: lane})
	if err != nil || len(pending.GetInputs()) != 1 {
		t.Fatalf("pending are %v, %v", pending.GetInputs(), err)
	}
	second := pending.GetInputs()[0].GetId()
	if _, err := s.agent.commit(
		lane,
		&busv1.Effect{Kind: &busv1.Effect_Steer{Steer: &busv1.Steer{Session: session, Inputs: []string{second}}}},
	); err != nil {
		t.Fatal(err)
	}
	s.show(stream, lane, "the first answer, which comes late")
	expect("the second answer", second, "m2")
	if _, err := stream.CloseAndRecv(); err != nil {
		t.Error(err)
	}
}
