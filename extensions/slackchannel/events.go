package slackchannel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"github.com/switchboard-run/switchboard/contract"
)

// Types of envelopes.
const (
	typeEvent       = "events_api"
	typeInteractive = "interactive"
	typeSlash       = "slash_commands"
)

// event is what the channel reads of an event of Slack. Everything else in it may change.
type event struct {
	Type        string         `json:"type"`
	Subtype     string         `json:"subtype"`
	User        string         `json:"user"`
	BotID       string         `json:"bot_id"`
	Text        string         `json:"text"`
	TS          string         `json:"ts"`
	Thread      string         `json:"thread_ts"`
	Parent      string         `json:"parent_user_id"`
	Channel     string         `json:"channel"`
	ChannelType string         `json:"channel_type"`
	Files       lenient[file]  `json:"files"`
	Shared      lenient[share] `json:"attachments"`
	Edited      *struct {
		TS string `json:"ts"`
	} `json:"edited"`
	Message  *event `json:"message"` // of an edit
	Previous *event `json:"previous_message"`
	Reaction string `json:"reaction"`
	ItemUser string `json:"item_user"`
	EventTS  string `json:"event_ts"`
}

// lenient is a list of which only what can be read is kept: a person's text must not be
// lost for a file or a block that this version doesn't know.
type lenient[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *lenient[T]) UnmarshalJSON(raw []byte) error {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil //nolint:nilerr // it is no list
	}
	for _, one := range all {
		var v T
		if json.Unmarshal(one, &v) == nil {
			*l = append(*l, v)
		}
	}
	return nil
}

// share is a message of somebody else that a person passed on.
type share struct {
	IsShare bool   `json:"is_share"`
	Author  string `json:"author_name"`
	Text    string `json:"text"`
}

// Subtypes of messages that people write.
var written = []string{"", "file_share", "thread_broadcast", "me_message", "message_changed"}

// read returns what an envelope says. One that cannot be understood is skipped.
func (r *receiver) read(ctx context.Context, e envelope) received {
	one := received{envelope: e}
	var err error
	switch e.Type {
	case typeEvent:
		var outer struct {
			Event json.RawMessage `json:"event"`
		}
		if err = json.Unmarshal(e.Payload, &outer); err == nil {
			err = r.readEvent(ctx, outer.Event, &one)
		}
	case typeInteractive:
		err = r.readPress(ctx, &one)
	case typeSlash:
		err = r.readSlash(ctx, &one)
	default:
		r.log.Debug("skipping an envelope of an unknown type", "type", e.Type)
	}
	if err != nil {
		r.log.Error("decode an envelope; skipping it", "type", e.Type, "envelope", e.ID, "error", err)
	}
	return one
}

func (r *receiver) readEvent(ctx context.Context, raw json.RawMessage, one *received) error {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	switch head.Type {
	case "message", "app_mention":
		var e event
		if err := json.Unmarshal(raw, &e); err != nil {
			return err
		}
		r.readMessage(ctx, &e, one)
	case "reaction_added":
		return r.readReaction(ctx, raw, one)
	case "tokens_revoked", "app_uninstalled":
		one.then = func(context.Context) { r.tokenRefused(errRevoked) }
	}
	return nil
}

// readMessage reads a message, or an edit of one.
func (r *receiver) readMessage(ctx context.Context, e *event, one *received) {
	m, before := e, (*event)(nil)
	if e.Subtype == "message_changed" {
		if e.Message == nil || e.Previous == nil || e.Message.Edited == nil || e.Message.Text == e.Previous.Text {
			return // a preview of a link, or replies
		}
		m, before = e.Message, e.Previous
		m.Channel, m.ChannelType = e.Channel, e.ChannelType
	}
	if m.User == "" || m.User == r.me.UserID || m.BotID != "" || m.Channel == "" || m.TS == "" ||
		!slices.Contains(written, m.Subtype) {
		return
	}
	text, mentioned := withoutMention(m.Text, r.me.UserID)
	group := m.ChannelType != "im" && !strings.HasPrefix(m.Channel, "D")
	where := target{channel: m.Channel}
	repliesTo, toUs := "", false
	if m.Thread != "" && m.Thread != m.TS {
		if toUs = m.Parent == r.me.UserID; toUs {
			repliesTo = m.Thread
		} else {
			where.thread = m.Thread
		}
	}
	known := where.thread != "" && r.threads.has(ctx, where)
	if group && !mentioned && !toUs && !known {
		return
	}
	if group && where.thread == "" && !toUs {
		where.thread = m.TS // an answer begins a thread
		known = before != nil
	}
	p := &pendingMessage{TS: m.TS, Dedupe: r.me.TeamID + "/" + m.Channel + "/" + m.TS, Files: filesOf(m.Files)}
	p.Message = contract.UserMessage{
		UserID: m.User, ConversationID: where.channel, ThreadID: where.thread, Group: group,
		MessageID: messageID(m.TS, repliesTo), SentAt: secondsOf(m.TS), Attachments: attachmentsOf(m.Files),
	}
	if before != nil {
		p.Dedupe += "/" + m.Edited.TS
		p.Message.Edited, p.Message.SentAt = true, secondsOf(m.Edited.TS)
		p.Files, p.Message.Attachments = nil, nil
	}
	r.say(ctx, p, text, m.Shared)
	if p.Message.Text == "" && len(p.Message.Attachments) == 0 {
		return
	}
	r.address(ctx, p)
	switch {
	case toUs:
		p.Message.Quote = r.quote(ctx, m.Channel, m.Thread)
	case where.thread != "" && where.thread != m.TS && !known:
		p.Message.Quote = r.quote(ctx, m.Channel, where.thread)
	}
	if where.thread != "" && !known {
		one.effects = r.threads.join(ctx, where, sentAt(m.TS))
	}
	one.message = p
}

// say sets the text of a message. What a person passed on without a word is a text of
// its author.
func (r *receiver) say(ctx context.Context, p *pendingMessage, text string, shared []share) {
	said := r.names.readable(ctx, text)
	for _, s := range shared {
		if !s.IsShare || s.Text == "" {
			continue
		}
		author, passed := cmp.Or(s.Author, "unknown"), r.names.readable(ctx, s.Text)
		if said == "" {
			said, p.Message.ForwardedFrom = passed, author
			continue
		}
		said += "\n\n" + author + ":\n> " + strings.ReplaceAll(passed, "\n", "\n> ")
	}
	p.Message.Text = truncateInput(said)
}

// address sets the names of a message.
func (r *receiver) address(ctx context.Context, p *pendingMessage) {
	who := r.names.person(ctx, p.Message.UserID)
	p.Message.UserName, p.Message.Language = who.name, who.language
	if p.Message.Group {
		p.Message.GroupName = r.names.conversation(ctx, p.Message.ConversationID)
	}
}

// quote returns the message that another one refers to; nil: it is not known.
func (r *receiver) quote(ctx context.Context, channel, ts string) *contract.Quote {
	m, ok := r.names.message(ctx, channel, ts)
	q := &contract.Quote{MessageID: ts}
	if m.user == r.me.UserID || !ok {
		q.MessageID = providerID(channel, ts)
	}
	q.Sender, q.Text = m.name, contract.Truncate(m.text, contract.MaxQuote, "")
	return q
}

// readReaction reads an emoji on a message of the assistant.
func (r *receiver) readReaction(ctx context.Context, raw json.RawMessage, one *received) error {
	var e struct {
		event
		Item struct {
			Type    string `json:"type"`
			Channel string `json:"channel"`
			TS      string `json:"ts"`
		} `json:"item"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	if e.Item.Type != "message" || e.ItemUser != r.me.UserID || e.User == "" || e.User == r.me.UserID {
		return nil
	}
	thread := ""
	if m, ok := r.names.message(ctx, e.Item.Channel, e.Item.TS); ok && m.thread != "" {
		if first, ok := r.names.message(ctx, e.Item.Channel, m.thread); !ok || first.user != r.me.UserID {
			thread = m.thread
		}
	}
	p := &pendingMessage{
		TS: e.EventTS, Dedupe: fmt.Sprintf("%s/%s/%s/reaction/%s/%s/%s", r.me.TeamID, e.Item.Channel, e.Item.TS, e.User,
			e.Reaction, e.EventTS),
	}
	p.Message = contract.UserMessage{
		Text: emoji(e.Reaction), Reaction: true, UserID: e.User, ConversationID: e.Item.Channel, ThreadID: thread,
		Group: !strings.HasPrefix(e.Item.Channel, "D"), MessageID: e.EventTS, SentAt: secondsOf(e.EventTS),
		Quote: r.quote(ctx, e.Item.Channel, e.Item.TS),
	}
	r.address(ctx, p)
	one.message = p
	return nil
}

// errRevoked is what Slack answers from now on.
var errRevoked = slack.SlackErrorResponse{Err: "token_revoked"}

// readSlash reads a slash command: /switchboard stop is /stop.
func (r *receiver) readSlash(ctx context.Context, one *received) error {
	var c struct {
		Command string `json:"command"`
		Text    string `json:"text"`
		User    string `json:"user_id"`
		Channel string `json:"channel_id"`
		Trigger string `json:"trigger_id"`
	}
	if err := json.Unmarshal(one.Payload, &c); err != nil {
		return err
	}
	if c.User == "" || c.Channel == "" || c.Trigger == "" {
		return errors.New("a slash command without an address")
	}
	text, _ := withoutMention(c.Text, r.me.UserID)
	text = r.names.readable(ctx, text)
	switch {
	case c.Command != ownCommand:
		text = strings.TrimSpace(c.Command + " " + text)
	case text == "":
		text = "/help"
	case !strings.HasPrefix(text, "/"):
		text = "/" + text
	}
	p := &pendingMessage{Dedupe: r.me.TeamID + "/slash/" + c.Trigger}
	p.Message = contract.UserMessage{
		Text: truncateInput(text), UserID: c.User, ConversationID: c.Channel, Group: !strings.HasPrefix(c.Channel, "D"),
	}
	r.address(ctx, p)
	one.message = p
	return nil
}

// ownCommand is the slash command of the app's manifest: the assistant's commands are its
// words.
const ownCommand = "/switchboard"

// secondsOf returns the Unix time of a message.
func secondsOf(ts string) int64 {
	seconds, _, _ := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
