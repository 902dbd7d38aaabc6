package slackchannel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/slack-go/slack"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// serverRetry is the pause after a problem of Slack.
const serverRetry = 2 * time.Second

var noOwner = words.Sprintf("no one is approved on Slack yet, so there is no default recipient: write to the app, " +
	"then approve the code in its answer with `switchboard pairing approve`")

// Send implements sdk.Channel.
func (c *channel) Send(ctx context.Context, m sdk.Message) (sdk.Receipt, error) {
	a, err := c.usable()
	if err != nil {
		return sdk.Receipt{}, err
	}
	to, err := a.recipient(ctx, m)
	if err != nil {
		return sdk.Receipt{}, err
	}
	shown, err := a.drafts.Finish(ctx, m.DraftID)
	if err != nil {
		return sdk.Receipt{}, err
	}
	files, m := m.SplitFiles()
	var r sdk.Receipt
	switch {
	case len(files) > 0:
		r, err = a.sendFiles(ctx, to, m, files, shown)
	default:
		r, err = a.sendText(ctx, to, m, shown)
	}
	if err != nil {
		return sdk.Receipt{}, err
	}
	r.Conversation, r.Thread = to.channel, m.Thread
	r.Effects = append(r.Effects, a.drafts.Delivered(m.DraftID)...)
	return r, nil
}

// usable returns the activation if it can send messages.
func (c *channel) usable() (*activation, error) {
	a := c.active.Load()
	switch {
	case a == nil:
		return nil, sdk.Retry(time.Second, errors.New("the channel is starting"))
	case a.api == nil:
		return nil, sdk.Retry(a.set.times.tokenRetry, errors.New(noTokens))
	}
	return a, nil
}

// recipient returns the target of a message; without a conversation, the owner's direct
// messages.
func (a *activation) recipient(ctx context.Context, m sdk.Message) (target, error) {
	if m.Conversation != "" {
		to, err := parseTarget(m.Conversation, m.Thread, m.ReplyTo)
		if err != nil {
			return to, sdk.Drop(err.Error())
		}
		return to, nil
	}
	if m.Owner == "" {
		return target{}, sdk.Drop(noOwner)
	}
	call, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	found, _, _, err := a.api.OpenConversationContext(call, &slack.OpenConversationParameters{Users: []string{m.Owner}})
	if err != nil {
		kind, after := classify(err)
		if kind == unknown { // it may be repeated
			kind = serverError
		}
		return target{}, a.outcome(kind, after, err)
	}
	return target{channel: found.ID}, nil
}

// sendText sends a text, as an edit of its draft if there is one.
func (a *activation) sendText(ctx context.Context, to target, m sdk.Message, shown draftRecord) (sdk.Receipt, error) {
	if shown.TS != "" && shown.Channel == to.channel {
		r, err := a.replace(ctx, m, shown)
		if !errors.Is(err, errDraftGone) {
			return r, err
		}
	}
	text := m.Text
	if m.Repeat {
		ts, certain := a.find(ctx, to, m)
		if ts != "" {
			return sdk.Receipt{ProviderID: providerID(to.channel, ts)}, nil
		}
		if certain {
			text = m.Unmarked
		}
	}
	if err := a.pace.enter(ctx, posting, to.channel); err != nil {
		return sdk.Receipt{}, err
	}
	said := render(text, m.Actions)
	for {
		ts, err := a.post(ctx, to, m.ID, said)
		if err == nil {
			return sdk.Receipt{ProviderID: providerID(to.channel, ts)}, nil
		}
		kind, after := classify(err)
		switch {
		case kind == malformed && !said.plain:
			a.log.Warn("Slack refused the formatting; sending plain text", "error", a.api.redact(err))
			said = plainly(text, m.Actions)
			continue
		case kind == limited:
			a.pace.block(posting, to.channel, after)
		}
		return sdk.Receipt{}, a.outcome(kind, after, err)
	}
}

// errDraftGone says that the message of a draft cannot be edited.
var errDraftGone = errors.New("the message of the draft is gone")

// replace edits the message of a draft to the final text. A repeated edit changes
// nothing, so the text needs no mark of a repetition, and an unknown outcome is retried.
func (a *activation) replace(ctx context.Context, m sdk.Message, shown draftRecord) (sdk.Receipt, error) {
	if err := a.pace.enter(ctx, editing, shown.Channel); err != nil {
		return sdk.Receipt{}, err
	}
	text := cmp.Or(m.Unmarked, m.Text)
	said := render(text, m.Actions)
	for {
		err := a.edit(ctx, shown, said)
		if err == nil {
			return sdk.Receipt{ProviderID: providerID(shown.Channel, shown.TS)}, nil
		}
		kind, after := classify(err)
		switch {
		case kind == malformed && !said.plain:
			a.log.Warn("Slack refused the formatting; sending plain text", "error", a.api.redact(err))
			said = plainly(text, m.Actions)
			continue
		case kind == malformed, codeOf(err) == "message_not_found", codeOf(err) == "cant_update_message",
			codeOf(err) == "edit_window_closed":
			a.log.Info("cannot edit a draft; sending its final text as a new message", "error", a.api.redact(err))
			return sdk.Receipt{}, errDraftGone
		case kind == unknown:
			return sdk.Receipt{}, sdk.Retry(serverRetry, fmt.Errorf("no answer from Slack: %s", a.api.redact(err)))
		case kind == limited:
			a.pace.block(editing, shown.Channel, after)
		}
		return sdk.Receipt{}, a.outcome(kind, after, err)
	}
}

// options are the parameters of a message.
func options(to target, said rendered) []slack.MsgOption {
	all := []slack.MsgOption{
		slack.MsgOptionText(said.text, false), slack.MsgOptionBlocks(said.blocks...), slack.MsgOptionDisableLinkUnfurl(),
		slack.MsgOptionDisableMediaUnfurl(),
	}
	if to.thread != "" {
		all = append(all, slack.MsgOptionTS(to.thread))
	}
	return all
}

// metadataType names the metadata of a message, which has its id.
const metadataType = "switchboard_message"

// post sends a message with its id, and returns its ts.
func (a *activation) post(ctx context.Context, to target, id string, said rendered) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	_, ts, err := a.api.PostMessageContext(ctx, to.channel, append(options(to, said),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: metadataType, EventPayload: map[string]any{"id": id}}))...)
	return ts, err
}

const (
	// clockSkew is how far this machine's clock may be ahead of Slack's.
	clockSkew = 10 * time.Minute
	// pagesOfHistory bounds the search for a message, pageOfHistory is what Slack
	// recommends.
	pagesOfHistory = 10
	pageOfHistory  = 200
)

// find looks for a message whose outcome is unknown among those of its conversation;
// empty: it is not there. It is certain if everything since its creation was read, twice:
// Slack may take a moment to show what it accepted.
func (a *activation) find(ctx context.Context, to target, m sdk.Message) (ts string, certain bool) {
	if m.CreatedAt.IsZero() {
		return "", false
	}
	for i := range 2 {
		if i > 0 && !pause.For(ctx, a.set.times.settle) {
			return "", false
		}
		ts, all, err := a.search(ctx, to, m)
		if err != nil {
			a.log.Warn("look for a message that may have been sent", "error", a.api.redact(err))
		}
		if ts != "" || !all {
			return ts, false
		}
	}
	return "", true
}

// search reads the messages since the creation of one; all: it has read them all.
func (a *activation) search(ctx context.Context, to target, m sdk.Message) (ts string, all bool, err error) {
	oldest := strconv.FormatInt(m.CreatedAt.Add(-clockSkew).Unix(), 10) + ".000000"
	cursor := ""
	for range pagesOfHistory {
		page, next, err := a.readPage(ctx, to, oldest, cursor)
		if err != nil {
			return "", false, err
		}
		for _, one := range page {
			if one.Metadata.EventType == metadataType && one.Metadata.EventPayload["id"] == m.ID {
				return one.Timestamp, true, nil
			}
		}
		if next == "" {
			return "", true, nil
		}
		cursor = next
	}
	return "", false, nil
}

func (a *activation) readPage(ctx context.Context, to target, oldest, cursor string) ([]slack.Message, string, error) {
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	if to.thread != "" {
		found, _, next, err := a.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
			ChannelID: to.channel, Timestamp: to.thread, Oldest: oldest, Cursor: cursor, Limit: pageOfHistory,
			IncludeAllMetadata: true,
		})
		return found, next, err
	}
	found, err := a.api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
		ChannelID: to.channel, Oldest: oldest, Cursor: cursor, Limit: pageOfHistory, IncludeAllMetadata: true,
	})
	if err != nil {
		return nil, "", err
	}
	return found.Messages, found.ResponseMetaData.NextCursor, nil
}

// outcome returns the error of a failed send for the kernel.
func (a *activation) outcome(kind failureKind, after time.Duration, err error) error {
	text := a.api.redact(err)
	switch kind {
	case limited:
		return sdk.Retry(after, words.Errorf("this conversation is limited by Slack: waiting %v", words.Span(after)))
	case serverError:
		return sdk.Retry(serverRetry, words.Errorf("problem at Slack: %s", text))
	case unreachable:
		return sdk.Retry(serverRetry, words.Errorf("no connection to Slack: %s", text))
	case badToken:
		a.tokenRefused(err)
		return sdk.Retry(a.set.times.tokenRetry, words.Errorf("bot token refused: %v", badBotToken))
	case unknown:
		return sdk.Unknown(words.Errorf("unknown whether Slack accepted the message: %s", text))
	default:
		return sdk.Drop(refusal(err, text))
	}
}

// refusal explains why a message cannot be delivered, and suggests what to do.
func refusal(err error, text string) string {
	switch codeOf(err) {
	case "not_in_channel":
		return words.Sprintf("Slack refused the message: the app is not in the channel (invite it there: /invite)")
	case "channel_not_found":
		return words.Sprintf("Slack refused the message: channel not found (it was deleted, or the app is not in it)")
	case "is_archived":
		return words.Sprintf("Slack refused the message: the channel is archived")
	}
	return words.Sprintf("Slack refused the message: %s", text)
}
