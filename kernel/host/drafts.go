package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/router"
)

// redial is how long a stream of drafts goes without a channel before it is
// looked for again.
const redial = time.Second

// Draft shows texts where the answer of the turn will go that runs when they
// come, as drafts of that turn.
func (s channelsService) Draft(stream grpc.ClientStreamingServer[kernelv1.DraftRequest, kernelv1.DraftResponse]) error {
	o := &outlet{host: s.h, ctx: stream.Context()}
	defer o.close()
	var now draftPlace
	said := ""
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&kernelv1.DraftResponse{})
		}
		if err != nil {
			return err
		}
		l, err := s.h.lease(stream.Context(), r.GetLane())
		if err != nil {
			return err
		}
		next, err := s.h.draftPlace(stream.Context(), l)
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

// draftPlace is that of the turn which runs under a lease now: a newer message
// may have interrupted the one that it began with.
func (h *Host) draftPlace(ctx context.Context, l *bus.Lease) (p draftPlace, err error) {
	if l.Session == 0 {
		return p, nil
	}
	var in contract.AgentInput
	if err := json.Unmarshal(l.Event.GetPayload(), &in); err != nil {
		return p, fmt.Errorf("%w: the input %s: %w", contract.ErrInvalid, l.Event.GetId(), err)
	}
	return p, h.Bus.View(ctx, func(j journal.Reader) error {
		s, err := j.Session(l.Session)
		if err != nil || s == nil || s.Conversation == 0 {
			return err
		}
		inputs, target := []int64{l.Event.GetSeq()}, in.ReplyTo
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
		p = draftPlace{channel: c.Channel, address: c.Address, thread: c.Thread, draft: journal.EventID(inputs[0])}
		p.replyTo, err = router.NewestMessage(j, inputs)
		return err
	})
}

// outlet is a stream of drafts to a channel. The channel's process may come and
// go; what it misses is lost.
type outlet struct {
	host *Host
	ctx  context.Context

	channel string
	stream  grpc.ClientStreamingClient[extensionv1.DraftUpdate, extensionv1.DraftResponse] // nil: none
	cancel  context.CancelFunc
	tried   time.Time
}

func (o *outlet) show(p draftPlace, text string) {
	if o.channel != p.channel {
		o.close()
		o.channel, o.tried = p.channel, time.Time{}
	}
	if o.stream == nil && !o.open() {
		return
	}
	if o.stream.Send(&extensionv1.DraftUpdate{
		Conversation: p.address, Thread: p.thread, DraftId: p.draft, ReplyTo: p.replyTo, Text: text,
	}) != nil {
		o.cancel()
		o.stream = nil
	}
}

func (o *outlet) open() bool {
	if time.Since(o.tried) < redial {
		return false
	}
	o.tried = time.Now()
	g := o.host.instance(o.channel)
	if g == nil || !g.description.GetDrafts() {
		return false
	}
	ctx, cancel := context.WithCancel(o.ctx)
	stream, err := extensionv1.NewDraftsClient(g.conn).Draft(ctx)
	if err != nil {
		cancel()
		return false
	}
	o.stream, o.cancel = stream, cancel
	return true
}

func (o *outlet) close() {
	if o.stream == nil {
		return
	}
	_, _ = o.stream.CloseAndRecv()
	o.cancel()
	o.stream = nil
}
