package chat

import (
	"context"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
)

// Say implements Conversations.
func (c *Chat) Say(ctx context.Context, v door.Visitor, m Message) (Line, error) {
	if err := check(m); err != nil {
		return Line{}, err
	}
	to, err := c.conversation(ctx, v.User, m.Conversation)
	if err != nil {
		return Line{}, err
	}
	to.writing.Lock()
	defer to.writing.Unlock()
	if l, said, err := to.find(ctx, true, m.ID); err != nil || said {
		return to.withEvent(l), err
	}
	l := Line{ID: m.ID, Mine: true, Text: m.Text, ReplyTo: m.ReplyTo}
	said := contract.UserMessage{
		Text: m.Text, UserID: v.User, UserName: v.Name, Language: v.Language, ConversationID: v.User,
		ThreadID: m.Conversation, Aside: m.Conversation != "" || v.Token != "", AgentID: m.Agent, MessageID: m.ID,
		SentAt: c.now().Unix(), ForwardedFrom: m.ForwardedFrom,
	}
	var settled sdk.Effects // uploads, and the record
	for _, a := range m.Attachments {
		known, err := to.file(ctx, a.Blob)
		if err != nil {
			return Line{}, err
		}
		l.Attachments = append(l.Attachments, known)
		settled = append(settled, sdk.Delete(uploadPrefix(v.User)+known.Blob))
	}
	said.Attachments = l.Attachments
	if said.Quote, err = to.quote(ctx, v, m.ReplyTo); err != nil {
		return Line{}, err
	}
	accept := sdk.Publish(contract.TopicUserMessage, said, sdk.Dedupe(idKey(v.User, m.Conversation, true, m.ID))).
		Keep(contract.BlobsOf(l.Attachments)...)
	first := sdk.Effects{accept}
	if m.Record != "" {
		// What is noted and starts no turn is, for the kernel, a reaction on nothing.
		record := said
		record.Text, record.Reaction, record.Attachments, record.Quote = m.Record, true, nil, nil
		record.MessageID, record.ForwardedFrom = "", ""
		first = sdk.Effects{sdk.Publish(contract.TopicUserMessage, record), accept}
	}
	return to.add(ctx, l, append(first, settled...)...)
}

func check(m Message) error {
	switch {
	case m.ID == "" || !plain(m.ID):
		return failf(contract.ErrInvalid, "the id of a message has 1 to %d bytes of plain text", maxName)
	case strings.TrimSpace(m.Text) == "" && len(m.Attachments) == 0:
		return failf(contract.ErrInvalid, "the message is empty")
	case len(m.Text) > maxText:
		return failf(contract.ErrTooLarge, "the message has more than %d kB: send it as a file", maxText>>10)
	case len(m.Attachments) > MaxFiles:
		return failf(contract.ErrInvalid, "a message can have %d files", MaxFiles)
	}
	return nil
}

// withEvent adds the event that is not stored with the line yet. writing is held.
func (c *conversation) withEvent(l Line) Line {
	for _, known := range c.events {
		if known.Seq == l.Seq {
			l.Event = known.Event
		}
	}
	return l
}

// quote returns what a message answers; nil: nothing that there is.
func (c *conversation) quote(ctx context.Context, v door.Visitor, id string) (*contract.Quote, error) {
	if id == "" {
		return nil, nil
	}
	for _, mine := range []bool{false, true} {
		l, ok, err := c.find(ctx, mine, id)
		if err != nil {
			return nil, err
		}
		if ok {
			q := &contract.Quote{MessageID: id, Text: contract.Truncate(l.Text, contract.MaxQuote, "")}
			if mine {
				q.Sender = v.Name
			}
			return q, nil
		}
	}
	return nil, nil
}
