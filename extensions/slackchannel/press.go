package slackchannel

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/slack-go/slack"

	"github.com/switchboard-run/switchboard/contract"
)

// press is what the channel reads of an interaction.
type press struct {
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

// readPress reads the press of a button: its command, by the person who pressed it. The
// buttons are removed when it is stored.
func (r *receiver) readPress(ctx context.Context, one *received) error {
	var p press
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
	one.message = m
	one.then = func(ctx context.Context) { r.removeButtons(ctx, p) }
	return nil
}

// removeButtons removes the buttons of a message. If that fails they stay, and a press is
// an ordinary command.
func (r *receiver) removeButtons(ctx context.Context, p press) {
	rest := []slack.Block{}
	for _, raw := range p.Message.Blocks {
		var kind struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(raw, &kind) == nil && kind.Type != string(slack.MBTAction) {
			rest = append(rest, rawBlock{kind: slack.MessageBlockType(kind.Type), raw: raw})
		}
	}
	if err := r.pace.enter(ctx, editing, p.Container.Channel); err != nil {
		r.log.Debug("the buttons of a message stay", "error", err)
		return
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, _, _, err := r.api.UpdateMessageContext(call, p.Container.Channel, p.Container.TS,
		slack.MsgOptionText(p.Message.Text, false), slack.MsgOptionBlocks(rest...))
	if err != nil {
		if kind, after := classify(err); kind == limited {
			r.pace.block(editing, p.Container.Channel, after)
		}
		r.log.Debug("the buttons of a message stay", "error", r.api.redact(err))
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
