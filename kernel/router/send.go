package router

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/markdown"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// send publishes a text as one channel.send for each part, in the lane of its
// conversation. In quiet hours it is held.
func (r *MessageRouter) send(tx *bus.Tx, to *place, m contract.ChannelSend, options ...bus.Option) error {
	_, err := r.parts(tx, to, m, options...)
	return err
}

func (r *MessageRouter) parts(tx *bus.Tx, to *place, m contract.ChannelSend, options ...bus.Option,
) (seqs []int64, err error) {
	to.leaveGroup(m.Private)
	m.Conversation, m.Thread, m.Anywhere = to.address, to.thread, m.Anywhere || to.anywhere
	owner, err := r.people.OwnerOn(tx, to.channel)
	if err != nil {
		return nil, err
	}
	key := to.lane(owner)
	m.Language = cmp.Or(m.Language, to.language, owner.Language)
	if m.Conversation == "" {
		m.Owner = owner.UserID
	}
	if held, err := r.hold(tx, to, m, options); held || err != nil {
		return nil, err
	}
	m = to.channel.Fit(to.language, m)
	texts := markdown.Parts(m.Text, to.channel.MaxLength)
	for i, text := range texts {
		part := m
		part.Text = text
		if len(texts) > 1 {
			part.Part, part.Parts = i+1, len(texts)
		}
		if i > 0 {
			part.DraftID = ""
		}
		if i < len(texts)-1 {
			part.Attachments, part.Actions = nil, nil
		}
		e, err := tx.Emit(contract.TopicChannelSend+to.channel.ID, key, part, options...)
		if err == nil {
			err = tx.KeepBlobs(journal.Keeper{Kind: journal.KeptByEvent, ID: e.GetSeq()},
				contract.BlobsOf(part.Attachments))
		}
		if err != nil {
			return nil, err
		}
		seqs = append(seqs, e.GetSeq())
	}
	return seqs, nil
}

// marked returns a channel.send whose text begins with the mark of a repetition. It
// fits the limit of the channel.
func (r *MessageRouter) marked(channel string, e *busv1.Event) *busv1.Event {
	limit := 0 // there is none
	if c := r.directory.Current().Channel(channel); c != nil {
		limit = c.MaxLength
	}
	var m contract.ChannelSend
	if json.Unmarshal(e.GetPayload(), &m) != nil || m.Text == "" {
		return e
	}
	m.Text, m.Unmarked = markdown.Marked(m.Text, limit, m.Language), m.Text
	payload, err := json.Marshal(m)
	if err != nil {
		return e
	}
	e = proto.CloneOf(e)
	e.Payload = payload
	return e
}

// lane is the ordering key of sends to a place. The default recipient is one lane,
// also if its first message, which makes its address known, comes between two sends.
func (p *place) lane(owner people.Account) string {
	if p.address == "" || p.address == owner.Conversation && p.thread == owner.Thread {
		return defaultPlace
	}
	if p.thread != "" {
		return p.address + ":" + p.thread
	}
	return p.address
}

// SendTo sends a text to a channel by name, as send_to_channel and the command
// line do: to the conversation that it names, else to that of replyTo if it is on the
// channel, else to its default recipient. It returns the events that carry it; none: it
// is held until the recipient's quiet hours end. Those of the asker, an account, and what
// no session sends are not held.
func (r *MessageRouter) SendTo(tx *bus.Tx, channel, replyTo, asker string, m contract.ChannelSend) ([]int64, error) {
	c := r.directory.Current().Channel(channel)
	if c == nil {
		return nil, fmt.Errorf("%w: there is no channel %q", contract.ErrNotFound, channel)
	}
	to := &place{channel: c, address: m.Conversation, thread: m.Thread, language: m.Language}
	if m.Conversation == "" {
		var err error
		if to, err = r.destination(tx, c.ID, replyTo); err != nil {
			return nil, err
		}
	}
	m.Kind, m.Asked, to.asker = contract.SendDirect, m.Session == "", asker
	return r.parts(tx, to, m)
}

// resend sends a dead text that named no recipient, because its channel had none then,
// to the present one.
func (r *MessageRouter) resend(tx *bus.Tx, e *busv1.Event) (send func() error, err error) {
	channel := r.directory.Current().Channel(strings.TrimPrefix(e.GetTopic(), contract.TopicChannelSend))
	var m contract.ChannelSend
	if channel == nil || json.Unmarshal(e.GetPayload(), &m) != nil || m.Conversation != "" || m.Owner != "" {
		return nil, nil //nolint:nilerr // other texts are resubmitted unchanged
	}
	owner, err := r.people.OwnerOn(tx, channel)
	if err != nil || owner.UserID == "" {
		return nil, err
	}
	to, err := r.recipient(tx, channel)
	return func() error { return r.send(tx, to, m) }, err
}

// delivered follows a receipt: a text from elsewhere is recorded in the session of
// its conversation, so that the agent there understands an answer to it.
func (r *MessageRouter) delivered(tx *bus.Tx, e *busv1.Event, receipt *busv1.Receipt) (string, error) {
	var m contract.ChannelSend
	if err := json.Unmarshal(e.GetPayload(), &m); err != nil {
		return "", fmt.Errorf("%w: payload of %s: %w", contract.ErrInvalid, e.GetId(), err)
	}
	channel := e.GetTopic()[len(contract.TopicChannelSend):]
	address := cmp.Or(receipt.GetConversation(), m.Conversation)
	if address == "" || m.Kind == contract.SendReply {
		return "", nil
	}
	conversation, err := r.conversation(tx, channel, address, cmp.Or(receipt.GetThread(), m.Thread), false)
	if err != nil {
		return "", err
	}
	agent, refusal := pickAgent(r.directory.Current(), channel, conversation.Agent)
	if refusal != "" {
		return conversation.Handle, nil
	}
	s, err := r.chat(tx, agent, conversation)
	if err != nil || journal.SessionID(s.ID) == m.Session {
		return conversation.Handle, err
	}
	part := ""
	if m.Parts > 1 {
		part = fmt.Sprintf(" (part %d of %d)", m.Part, m.Parts)
	}
	text := "You sent this to the user here, from outside this conversation" + part + ":\n\n" + m.Text
	return conversation.Handle, r.sessions.Record(tx, s, contract.WithReferences(text, m.Attachments), m.Attachments)
}

// died informs the user or agent that waits for a dead event.
func (r *MessageRouter) died(tx *bus.Tx, d *journal.Delivery, e *busv1.Event, extension string) error {
	dir := r.directory.Current()
	if e.GetTopic() == contract.TopicAgentInput+extension {
		return r.sessions.Died(tx, e,
			words.Say(session.InputOf(e).Language, "I couldn't answer that: %s. Please try again.",
				words.Translate(session.InputOf(e).Language, d.Reason)))
	}
	if told, err := r.commandDied(tx, d, e, extension); told || err != nil {
		return err
	}
	if e.GetTopic() != contract.TopicChannelSend+extension {
		if e.GetHop() < contract.MaxHops-1 {
			return nil
		}
		if said, _, err := r.sessions.Capped(tx, e.GetCorrelationId(), ""); said || err != nil {
			return err
		}
		return r.tellOwner(tx, "", words.Sprintf("An event loop was stopped while %s was handling %s.%v",
			extension, e.GetTopic(), seeDead(dir)))
	}
	channel := dir.Channel(extension)
	var m contract.ChannelSend
	if channel == nil || json.Unmarshal(e.GetPayload(), &m) != nil || m.RemovesDraft() {
		return nil //nolint:nilerr // only a dead letter; a draft that stays looks like one
	}
	anothers, err := r.anothers(tx, channel, m.Conversation, m.Thread)
	if err != nil {
		return err
	}
	if m.Kind == contract.SendNotice && !anothers {
		moved, err := r.move(tx, channel, m, true)
		if moved || err != nil {
			return err
		}
	}
	if err := r.end(tx, m.Question, contract.AskWithdrawn); err != nil { // nothing without a question
		return err
	}
	c, err := tx.Call(journal.ParseCallID(m.Call))
	if err != nil || c != nil && (c.State == journal.CallOpen || c.State == journal.CallRunning) {
		return err // the tool that sent it waits for this; its result informs the agent
	}
	if err := r.noteUndelivered(tx, m, d); err != nil {
		return err
	}
	if anothers {
		return r.tellUnreachable(tx, channel, m, d.Reason)
	}
	other := dir.FirstChannel(func(c *directory.Channel) bool { return c.ID != channel.ID && c.Configured() })
	if m.Kind == contract.SendNotice && other == nil || len(m.Detours) > 0 {
		return nil // no other channel is left to send it to
	}
	return r.tellOwner(tx, channel.ID, words.Sprintf("A message to %v couldn't be delivered (%v).%v",
		channel.Name, d.Reason, seeDead(dir)))
}

func seeDead(dir *directory.Snapshot) string { return directory.Hint(" See %s.", dir.Program.Dead) }

// anothers reports whether a text was for the private conversation of a person other
// than the channel's owner. That they cannot be reached says nothing of the channel.
func (r *MessageRouter) anothers(tx journal.Reader, c *directory.Channel, address, thread string) (bool, error) {
	at, err := tx.ConversationByAddress(c.ID, address, thread)
	if err != nil || c.Local || at == nil || at.Group {
		return false, err
	}
	owner, err := r.people.OwnerOn(tx, c)
	home := address == owner.Conversation && thread == owner.Thread
	return owner.UserID == "" || !home && address != owner.UserID, err
}

// noteUndelivered notes in the history of the session that sent a text that it was not
// delivered: its agent believes that it has said it.
func (r *MessageRouter) noteUndelivered(tx *bus.Tx, m contract.ChannelSend, d *journal.Delivery) error {
	s, err := tx.Session(journal.ParseSessionID(m.Session))
	if err != nil || s == nil {
		return err
	}
	what := "This text of yours was not delivered, and the user has not seen it"
	if d.Uncertain {
		what = "It is unknown whether this text of yours was delivered"
	}
	return r.sessions.Record(tx, s, fmt.Sprintf("%s (%s):\n\n%s", what, d.Reason, cut(m.Text, longestLost)), nil)
}

// longestLost is how much of a text that was not delivered is noted, in characters.
const longestLost = 200

func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// tellOften is how often the owner is told that a person cannot be reached.
const tellOften = 24 * time.Hour

// tellUnreachable tells the owner, once a day, that a person gets no messages.
func (r *MessageRouter) tellUnreachable(
	tx *bus.Tx, channel *directory.Channel, m contract.ChannelSend, reason string,
) error {
	key := "unreachable/" + channel.ID + "/" + m.Conversation
	told, err := load[int64](tx, key)
	if err != nil || told != nil && tx.Now-*told < tellOften.Microseconds() {
		return err
	}
	if err := save(tx, key, tx.Now); err != nil {
		return err
	}
	person, err := r.people.Account(tx, channel.ID, m.Conversation)
	if err != nil {
		return err
	}
	name := words.Sprintf("another person") // not their id: a model reads the notice
	if person != nil {
		name = cmp.Or(person.Name, name)
	}
	return r.tellOwner(tx, "", words.Sprintf("A message to %v on %v couldn't be delivered (%v).%v",
		name, channel.Name, reason, seeDead(r.directory.Current())))
}

// move publishes a notice to another channel, with a note of the first one. With
// allowNotReady, the default channel is taken also if it is not ready.
func (r *MessageRouter) move(tx *bus.Tx, from *directory.Channel, m contract.ChannelSend, allowNotReady bool,
) (moved bool, err error) {
	dir := r.directory.Current()
	other := func(c *directory.Channel) bool { return c.ID != from.ID && !slices.Contains(m.Detours, c.ID) }
	target := dir.FirstChannel(func(c *directory.Channel) bool {
		return c.ID == dir.DefaultChannel && other(c) && (c.Ready() || allowNotReady && c.Configured())
	}, func(c *directory.Channel) bool { return other(c) && c.Ready() })
	to, err := r.recipient(tx, target)
	if to == nil || err != nil {
		return false, err
	}
	if len(m.Detours) == 0 && !m.Anywhere && m.Part <= 1 {
		m.Text = words.Say(to.language, "[for %s] %s", from.ID, m.Text)
	}
	m.Detours = append(m.Detours, from.ID)
	m.Part, m.Parts, m.DraftID, m.Owner, m.ReplyTo, m.Language = 0, 0, "", "", "", to.language
	return true, r.showElsewhere(tx, to, m)
}

// Detour moves notices that were held for a channel for longer than the configured
// time to a channel that is ready. Replies stay.
func (r *MessageRouter) Detour(b *bus.Bus, now time.Time) error {
	dir := r.directory.Current()
	for i := range dir.Channels {
		c := &dir.Channels[i]
		if c.Ready() {
			continue
		}
		for _, d := range b.Waiting(c.ID) {
			if err := b.Do(func(tx *bus.Tx) error { return r.detour(tx, c, d, now.Add(-dir.Hold)) }); err != nil {
				return fmt.Errorf("move %s away from %s: %w", journal.EventID(d.Seq), c.ID, err)
			}
		}
	}
	return nil
}

func (r *MessageRouter) detour(tx *bus.Tx, c *directory.Channel, d journal.Delivery, heldSince time.Time) error {
	e, err := tx.Event(d.Seq)
	if err != nil || e == nil || !tx.Free(d) {
		return err
	}
	var m contract.ChannelSend
	notice := json.Unmarshal(e.GetPayload(), &m) == nil && m.Kind == contract.SendNotice
	anothers, err := r.anothers(tx, c, m.Conversation, m.Thread)
	if err != nil || !notice || anothers || !m.Anywhere && e.GetCreatedAtUs() > heldSince.UnixMicro() {
		return err
	}
	return tx.Following(e, func() error {
		moved, err := r.move(tx, c, m, false)
		if err != nil || !moved {
			return err
		}
		return tx.Settle(d, journal.Done, "moved to another channel: this one was not ready")
	})
}
