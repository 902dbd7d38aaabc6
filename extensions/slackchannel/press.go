package slackchannel

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// interaction is what the channel reads of an interaction.
type interaction struct {
	Type string `json:"type"`
	User struct {
		ID string `json:"id"`
	} `json:"user"`
	Container struct {
		Channel string `json:"channel_id"`
		TS      string `json:"message_ts"`
		Thread  string `json:"thread_ts"`
	} `json:"container"`
	Message struct {
		Text   string                   `json:"text"`
		Parent string                   `json:"parent_user_id"`
		Blocks lenient[json.RawMessage] `json:"blocks"`
	} `json:"message"`
	Actions []struct {
		ID    string `json:"action_id"`
		Value string `json:"value"`
		TS    string `json:"action_ts"`
	} `json:"actions"`
}

// press is a pressed button: a message, and what is left of it without its buttons. It is
// stored with its command until the buttons are gone.
type press struct {
	Channel string            `json:"channel"`
	TS      string            `json:"ts"`
	Thread  string            `json:"thread,omitempty"`
	Text    string            `json:"text,omitempty"`
	Blocks  []json.RawMessage `json:"blocks,omitempty"`
}

// pressOf returns the press of an interaction.
func pressOf(i interaction) *press {
	p := &press{Channel: i.Container.Channel, TS: i.Container.TS, Thread: i.Container.Thread, Text: i.Message.Text}
	for _, raw := range i.Message.Blocks {
		if kind := typeOf(raw); kind != "" && kind != slack.MBTAction {
			p.Blocks = append(p.Blocks, raw)
		}
	}
	return p
}

// typeOf returns the type of a block; empty: it can't be read.
func typeOf(block json.RawMessage) slack.MessageBlockType {
	var b struct {
		Type slack.MessageBlockType `json:"type"`
	}
	_ = json.Unmarshal(block, &b)
	return b.Type
}

// readPress reads the press of a button: its command, by the person who pressed it.
func (r *receiver) readPress(ctx context.Context, one *received) error {
	var p interaction
	if err := json.Unmarshal(one.Payload, &p); err != nil {
		return err
	}
	if p.Type != "block_actions" || len(p.Actions) == 0 || !strings.HasPrefix(p.Actions[0].ID, actionPrefix) ||
		p.User.ID == "" || p.Container.Channel == "" || p.Container.TS == "" {
		return nil // not a button of ours
	}
	where := target{channel: p.Container.Channel, thread: p.Container.Thread}
	repliesTo := ""
	if where.thread != "" && p.Message.Parent == r.me.UserID { // as for messages
		where.thread, repliesTo = "", where.thread
	}
	m := &pendingMessage{
		TS: p.Actions[0].TS,
		Dedupe: strings.Join([]string{r.me.TeamID, where.channel, p.Container.TS, "press", p.User.ID, p.Actions[0].Value},
			"/"),
	}
	m.Message = contract.UserMessage{
		Text: p.Actions[0].Value, UserID: p.User.ID, ConversationID: where.channel, ThreadID: where.thread,
		Group: !strings.HasPrefix(where.channel, "D"), SentAt: secondsOf(p.Actions[0].TS),
	}
	if repliesTo != "" {
		m.Message.MessageID = messageID(p.Actions[0].TS, repliesTo)
	}
	r.address(ctx, m)
	m.Press = pressOf(p)
	one.message = m
	return nil
}

// presses are the presses of a workspace that are stored and not answered yet.
type presses struct {
	*activation
	prefix  string // of the keys in the store
	running *sync.WaitGroup
}

func (b *presses) key(p *press) string { return b.prefix + p.Channel + "/" + p.TS }

// publish returns the effects that publish a message: its press is stored before it.
func (b *presses) publish(m *pendingMessage) sdk.Effects {
	if m.Press == nil {
		return sdk.Effects{m.effect()}
	}
	return sdk.Effects{sdk.Put(b.key(m.Press), m.Press), m.effect()}
}

// published answers the press of a message, if it is one, with the result of its
// publication. The message of a person who is not admitted has become no event: then the
// buttons stay for the others.
func (b *presses) published(ctx context.Context, m *pendingMessage, result *busv1.EffectResult) {
	switch {
	case m.Press == nil:
	case result.GetEventId() == "":
		b.running.Go(func() {
			b.refuse(ctx, m)
			b.forget(ctx, m.Press)
		})
	default:
		b.running.Go(func() { b.removeButtons(ctx, m.Press) })
	}
}

// refuse tells a person who is not admitted, and them alone, that their press has no effect.
func (b *presses) refuse(ctx context.Context, m *pendingMessage) {
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	text := words.Say(m.Message.Language, "You can't use these buttons, because I don't know you yet.")
	options := []slack.MsgOption{slack.MsgOptionText(text, false)}
	if m.Press.Thread != "" {
		options = append(options, slack.MsgOptionTS(m.Press.Thread))
	}
	if _, err := b.api.PostEphemeralContext(ctx, m.Press.Channel, m.Message.UserID, options...); err != nil {
		b.log.Debug("answer the press of a stranger", "error", b.api.redact(err))
	}
}

// load goes on with the presses that an earlier process had stored.
func (b *presses) load(ctx context.Context) error {
	var found []*press
	err := b.kernel.Scan(ctx, b.prefix, func(v sdk.Value) error {
		p := &press{}
		if err := v.Decode(p); err != nil {
			b.log.Error("decode a press; skipping it", "key", v.Key, "error", err)
			return nil
		}
		found = append(found, p)
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range found {
		b.running.Go(func() { b.removeButtons(ctx, p) })
	}
	return nil
}

// removeButtons removes the buttons of a message, with retries, and forgets the press.
func (b *presses) removeButtons(ctx context.Context, p *press) {
	for n := 1; ; n++ {
		again, err := b.edit(ctx, p)
		if err == nil {
			b.forget(ctx, p)
			return
		}
		b.log.Debug("remove the buttons of a message; it is tried again", "error", b.api.redact(err))
		if !pause.For(ctx, max(again, pause.Backoff(n))) {
			return
		}
	}
}

// edit removes the buttons of a message, if that can still be edited. An error is worth
// another try, after a while.
func (b *presses) edit(ctx context.Context, p *press) (again time.Duration, err error) {
	if err := b.pace.enter(ctx, editing, p.Channel); err != nil {
		return 0, err
	}
	rest := []slack.Block{}
	for _, raw := range p.Blocks {
		rest = append(rest, rawBlock{kind: typeOf(raw), raw: raw})
	}
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	_, _, _, err = b.api.UpdateMessageContext(ctx, p.Channel, p.TS,
		slack.MsgOptionText(p.Text, false), slack.MsgOptionBlocks(rest...))
	if err == nil {
		return 0, nil
	}
	kind, again := classify(err)
	switch kind {
	case refused, malformed: // the message is gone, or the conversation
		b.log.Info("the buttons of a message stay", "error", b.api.redact(err))
		return 0, nil
	case badToken:
		again = b.set.times.tokenRetry
	case limited:
		b.pace.block(editing, p.Channel, again)
	}
	return again, err
}

func (b *presses) forget(ctx context.Context, p *press) {
	if _, err := b.kernel.Commit(ctx, sdk.Delete(b.key(p))); err != nil && ctx.Err() == nil {
		b.log.Warn("forget a press", "error", err)
	}
}

// rawBlock is a block as Slack sent it.
type rawBlock struct {
	kind slack.MessageBlockType
	raw  json.RawMessage
}

// BlockType implements slack.Block.
func (b rawBlock) BlockType() slack.MessageBlockType { return b.kind }

// ID implements slack.Block.
func (b rawBlock) ID() string { return "" }

// MarshalJSON implements json.Marshaler.
func (b rawBlock) MarshalJSON() ([]byte, error) { return b.raw, nil }
