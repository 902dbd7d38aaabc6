package sdk

import (
	"context"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// send has a channel send what a channel.send event asks for. The receipt is
// committed with the acknowledgement.
func send(ctx context.Context, channel Channel, d Delivery, dedupes bool) (Effects, error) {
	var s contract.ChannelSend
	if err := d.Decode(&s); err != nil {
		return nil, err
	}
	if s.RemovesDraft() {
		return nil, removeDraft(ctx, channel, Draft{Conversation: s.Conversation, Thread: s.Thread, ID: s.DraftID, Done: true})
	}
	m := Message{
		ID: d.ID, Text: s.Text, Unmarked: s.Text, Conversation: s.Conversation, Thread: s.Thread, Owner: s.Owner,
		ReplyTo: s.ReplyTo, DraftID: s.DraftID, Part: s.Part, Parts: s.Parts,
		Repeat: d.Uncertain, Notice: s.Kind != contract.SendReply, Session: s.Session,
	}
	if d.Uncertain && !dedupes {
		m.Text = marked(m.Text)
	}
	r, err := channel.Send(ctx, m)
	if err != nil {
		return nil, err
	}
	receipt := Raw(&busv1.Receipt{ProviderId: r.ProviderID, Conversation: r.Conversation, Thread: r.Thread})
	return append(Effects{receipt}, r.Effects...), nil
}

// removeDraft has a channel take away a draft that nothing takes the place of.
func removeDraft(ctx context.Context, channel Channel, d Draft) error {
	switch c := channel.(type) {
	case DraftRemover:
		return c.RemoveDraft(ctx, d)
	case Drafter:
		c.Draft(ctx, d)
	}
	return nil
}

// marked is a text that says of itself that it may be a repeat. Markdown that
// has to begin a line keeps its line.
func marked(text string) string {
	if strings.ContainsAny(text[:min(len(text), 1)], "`~#>|*-+_0123456789 \t\n") {
		return strings.TrimRight(contract.RepeatMark, " ") + "\n" + text
	}
	return contract.RepeatMark + text
}
