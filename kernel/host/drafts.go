package host

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// Draft shows texts as drafts of the turn that runs when they come, where its answer
// will go.
func (s channelsService) Draft(stream grpc.ClientStreamingServer[kernelv1.DraftRequest, kernelv1.DraftResponse]) error {
	o := &outlet{host: s.h, ctx: stream.Context()}
	defer o.close()
	now, said := &draftPlace{}, ""
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&kernelv1.DraftResponse{})
		}
		if err != nil {
			return err
		}
		next, err := view(stream.Context(), s.h, r.GetLane(), draftPlaceOf)
		if err != nil {
			return err
		}
		if next.draft != now.draft && said != "" && strings.HasPrefix(r.GetText(), said) {
			continue // late: it belongs to the turn that ran before
		}
		now, said = next, r.GetText()
		if now.channel != "" {
			o.show(now, said)
		}
	}
}

// draftPlace is where the drafts of a turn are shown; no channel: nowhere.
type draftPlace struct {
	channel, address, thread string
	draft                    string // the first input of the turn
	replyTo                  string
}

// draftPlaceOf is the place of the turn that runs now under a lease: a newer message
// may have interrupted the first one.
func draftPlaceOf(j journal.Reader, l *bus.Lease, p *draftPlace) error {
	s, err := j.Session(l.Session)
	if err != nil || s == nil || s.Conversation == 0 {
		return err
	}
	inputs, target := []int64{l.Event.GetSeq()}, session.InputOf(l.Event).ReplyTo
	if n := len(s.Stack); n > 0 {
		turn, err := j.Turn(s.Stack[n-1])
		if err != nil {
			return err
		}
		inputs, target = turn.Inputs, turn.ReplyTo
	}
	if target == "" && s.OutboundKind == directory.OutboundConversation {
		target = s.OutboundTarget
	}
	c, err := j.ConversationByHandle(target)
	if err != nil || c == nil {
		return err
	}
	*p = draftPlace{channel: c.Channel, address: c.Address, thread: c.Thread, draft: journal.EventID(inputs[0])}
	p.replyTo, _, err = router.NewestMessage(j, inputs)
	return err
}

// outlet is a stream of drafts to a channel. The channel's process may come and go;
// drafts in between are lost.
type outlet struct {
	host    *Host
	ctx     context.Context
	channel string
	stream  grpc.ClientStreamingClient[extensionv1.DraftUpdate, extensionv1.DraftResponse] // nil: none
}

func (o *outlet) show(p *draftPlace, text string) {
	if o.channel != p.channel {
		o.close()
		o.channel = p.channel
	}
	if o.stream == nil {
		g := o.host.instance(o.channel)
		if g == nil || !g.description.GetDrafts() {
			return
		}
		stream, err := extensionv1.NewDraftsClient(g.conn).Draft(o.ctx)
		if err != nil {
			return
		}
		o.stream = stream
	}
	if o.stream.Send(&extensionv1.DraftUpdate{
		Conversation: p.address, Thread: p.thread, DraftId: p.draft, ReplyTo: p.replyTo, Text: text,
	}) != nil {
		o.close()
	}
}

func (o *outlet) close() {
	if o.stream != nil {
		_, _ = o.stream.CloseAndRecv()
		o.stream = nil
	}
}
