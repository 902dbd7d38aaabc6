package sdk

import (
	"cmp"
	"context"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// send sends the message of a channel.send event. The receipt is committed with the
// acknowledgement.
func send(ctx context.Context, channel Channel, d Delivery) (Effects, error) {
	var s contract.ChannelSend
	if err := d.Decode(&s); err != nil {
		return nil, err
	}
	if s.RemovesDraft() {
		draft := Draft{Conversation: s.Conversation, Thread: s.Thread, ID: s.DraftID, Done: true}
		return nil, removeDraft(ctx, channel, draft)
	}
	m := Message{
		ID: d.ID, Text: s.Text, Unmarked: cmp.Or(s.Unmarked, s.Text),
		Conversation: s.Conversation, Thread: s.Thread, Owner: s.Owner,
		ReplyTo: s.ReplyTo, DraftID: s.DraftID, Part: s.Part, Parts: s.Parts,
		Repeat: d.Uncertain, Notice: s.Kind != contract.SendReply, Session: s.Session,
		Attachments: s.Attachments, Actions: s.Actions, CreatedAt: d.CreatedAt,
	}
	r, err := channel.Send(ctx, m)
	if err != nil {
		return nil, err
	}
	receipt := Raw(&busv1.Receipt{ProviderId: r.ProviderID, Conversation: r.Conversation, Thread: r.Thread})
	return append(Effects{receipt}, r.Effects...), nil
}

// removeDraft removes a draft that no message replaces.
func removeDraft(ctx context.Context, channel Channel, d Draft) error {
	switch c := channel.(type) {
	case DraftRemover:
		return c.RemoveDraft(ctx, d)
	case Drafter:
		c.Draft(ctx, d)
	}
	return nil
}
