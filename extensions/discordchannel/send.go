package discordchannel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/markdown"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/discordchannel/markup"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// maxText is the length of a message. Discord counts characters; the kernel splits by
// UTF-16 units, which are never fewer.
const maxText = 2000

// serverRetry is the pause after a problem of Discord.
const serverRetry = 2 * time.Second

var noOwner = words.Sprintf("no one is approved on Discord yet, so there is no default recipient: write to the bot, " +
	"then approve the code in its answer with `switchboard pairing approve`")

// Send implements sdk.Channel.
func (c *channel) Send(ctx context.Context, m sdk.Message) (sdk.Receipt, error) {
	a, err := c.usable()
	if err != nil {
		return sdk.Receipt{}, err
	}
	to, conversation, err := a.recipient(ctx, m)
	if err != nil {
		return sdk.Receipt{}, err
	}
	m.Conversation = conversation
	shown, err := a.drafts.Finish(ctx, m.DraftID)
	if err != nil {
		return sdk.Receipt{}, err
	}
	a.typing.Hide(to)
	files, m := m.SplitFiles()
	if shown.Channel != string(to) {
		shown = draftRecord{}
	}
	if len(files) > 0 {
		return a.sendFiles(ctx, to, m, files, shown.Message)
	}
	return a.sendText(ctx, to, m, shown.Message)
}

// recipient returns the channel of a message and its conversation; without one, the
// owner's private chat.
func (a *activation) recipient(ctx context.Context, m sdk.Message) (target, string, error) {
	if m.Conversation != "" {
		to, err := parseTarget(m.Conversation, m.Thread)
		if err != nil {
			return "", "", sdk.Drop(err.Error())
		}
		return to, m.Conversation, nil
	}
	if m.Owner == "" {
		return "", "", sdk.Drop(noOwner)
	}
	if known, ok := a.privateChats.Load(m.Owner); ok {
		id, _ := known.(string)
		return target(id), id, nil
	}
	var chat guildChannel
	err := a.api.do(ctx, request{
		method: http.MethodPost, path: "/users/@me/channels", body: map[string]string{"recipient_id": m.Owner},
	}, &chat)
	if err != nil {
		kind, after := classify(err)
		if kind == unknown { // asked twice, it is the same chat
			kind = unreachable
		}
		return "", "", a.outcome(kind, after, err)
	}
	a.privateChats.Store(m.Owner, chat.ID)
	return target(chat.ID), chat.ID, nil
}

// sendText sends a message without files, or changes that of a draft to it.
func (a *activation) sendText(ctx context.Context, to target, m sdk.Message, draft string) (sdk.Receipt, error) {
	if draft != "" {
		r, err := a.change(ctx, to, draft, m)
		if !errors.Is(err, errGone) {
			return r, err
		}
	}
	return a.send(ctx, to, m, nonceOf(m, 0), nil)
}

// nonceOf returns what Discord recognizes a repetition of a request by. The first text of
// a turn has that of its draft, whose message it finds if its id was lost in a crash.
func nonceOf(m sdk.Message, step int) string {
	if m.DraftID != "" && m.Part <= 1 && step == 0 {
		return nonce("draft", m.DraftID)
	}
	return nonce(m.ID, strconv.Itoa(step))
}

// nonce returns a text of 25 characters, the most that Discord allows.
func nonce(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])[:25]
}

// send sends a message, with the files of a form if there are any.
func (a *activation) send(ctx context.Context, to target, m sdk.Message, nonce string, files *httpcall.Form,
) (sdk.Receipt, error) {
	if m.Text != m.Unmarked { // a repetition after the time for which Discord knows the nonce
		found, err := a.find(ctx, to, nonce)
		if err != nil {
			kind, after := classify(err)
			if kind == unknown {
				kind = unreachable // nothing was sent
			}
			return sdk.Receipt{}, a.outcome(kind, after, err)
		}
		if found != "" {
			r, err := a.change(ctx, to, found, m)
			if !errors.Is(err, errGone) {
				return r, err
			}
		}
	}
	text := render(m.Text)
	body := newMessage{Content: &text, Nonce: nonce, EnforceNonce: true, Components: buttons(m.Actions),
		Reference: a.reference(to, m), Mentions: mentions{Parse: []string{}, RepliedUser: true}}
	for {
		sent := &message{}
		r := request{method: http.MethodPost, path: messagesOf(to), body: body}
		if files != nil {
			payload, err := payloadOf(body)
			if err != nil {
				return sdk.Receipt{}, sdk.Drop(err.Error())
			}
			files.Fields = map[string]string{"payload_json": payload}
			r.form = files
		}
		err := a.api.do(ctx, r, sent)
		if err == nil && sent.ChannelID != "" && sent.ChannelID != string(to) {
			// The draft was in another channel.
			body.Nonce = nonceOf(sdk.Message{ID: m.ID}, 0)
			continue
		}
		if err == nil {
			if (m.Repeat || m.DraftID != "") && strings.TrimSpace(sent.Content) != strings.TrimSpace(*body.Content) {
				// It is the one of an earlier attempt, or of the draft.
				if r, err := a.change(ctx, to, sent.ID, m); !errors.Is(err, errGone) {
					return r, err
				}
			}
			return a.receipt(to, sent.ID, m), nil
		}
		kind, after := classify(err)
		switch {
		case hasCode(err, codeInvalidBody) && body.Reference != nil, hasCode(err, codeNoHistory):
			body.Reference = nil // the message that it answers can't be answered
			continue
		case hasCode(err, codeInvalidBody) && *body.Content != m.Text && m.Text != "":
			a.log.Warn("Discord refused the formatting; sending the text as it is", "error", a.api.redact(err))
			body.Content = &m.Text
			continue
		}
		if files != nil && isAboutFiles(err) {
			return sdk.Receipt{}, err
		}
		return sdk.Receipt{}, a.outcome(kind, after, err)
	}
}

func messagesOf(to target) string { return "/channels/" + string(to) + "/messages" }

// reference returns what a message answers. It is shown in servers only, in the first
// part.
func (a *activation) reference(to target, m sdk.Message) *reference {
	if m.Part > 1 || m.ReplyTo == "" || !a.places.server(string(to)) {
		return nil
	}
	id := m.ReplyTo[strings.LastIndexByte(m.ReplyTo, '/')+1:]
	if !isID(id) {
		return nil
	}
	no := false
	return &reference{MessageID: id, FailIfNotExists: &no}
}

// find returns the message of an earlier attempt; empty: there is none among the newest.
func (a *activation) find(ctx context.Context, to target, nonce string) (string, error) {
	page, err := a.api.history(ctx, string(to), "")
	if err != nil {
		return "", err
	}
	for _, raw := range page {
		var m message
		var has string
		if json.Unmarshal(raw, &m) == nil && json.Unmarshal(m.Nonce, &has) == nil && has == nonce {
			return m.ID, nil
		}
	}
	return "", nil
}

// providerID returns the id of a message in receipts.
func providerID(to target, id string) string { return string(to) + "/" + id }

// receipt returns the receipt of a delivered message.
func (a *activation) receipt(to target, id string, m sdk.Message) sdk.Receipt {
	return sdk.Receipt{
		ProviderID: providerID(to, id), Conversation: m.Conversation, Thread: m.Thread,
		Effects: a.drafts.Delivered(m.DraftID),
	}
}

// outcome returns the error of a failed send for the kernel.
func (a *activation) outcome(kind failureKind, after time.Duration, err error) error {
	text := a.api.redact(err)
	switch kind {
	case limited:
		return sdk.Retry(after, words.Errorf("this channel is limited by Discord: waiting %v", words.Span(after)))
	case serverError:
		return sdk.Retry(serverRetry, words.Errorf("problem at Discord: %s", text))
	case unreachable:
		return sdk.Retry(serverRetry, words.Errorf("no connection to Discord: %s", text))
	case badTokenKind:
		return sdk.Retry(a.set.tokenRetry, words.Errorf("bot token refused: %v", badToken))
	case unknown:
		return sdk.Unknown(words.Errorf("unknown whether Discord accepted the message: %s", text))
	default:
		return sdk.Drop(refusalText(err, text))
	}
}

// refusalText explains why a message cannot be delivered, and suggests what to do.
func refusalText(err error, text string) string {
	switch {
	case hasCode(err, codeUnknownChannel):
		return words.Sprintf("Discord refused the message: the channel does not exist any more")
	case hasCode(err, codeCannotDM):
		return words.Sprintf("Discord refused the message: the person takes no messages from the bot " +
			"(they must share a server with it and allow its messages)")
	case hasCode(err, codeMissingAccess, codeNoPermission):
		return words.Sprintf("Discord refused the message: the bot may not write there " +
			"(give it View Channel, Send Messages and Send Messages in Threads)")
	}
	return words.Sprintf("Discord refused the message: %s", text)
}

// render formats a text; one that cannot be formatted, or becomes too long, stays as it is.
func render(source string) (text string) {
	defer func() {
		if recover() != nil {
			text = source
		}
	}()
	text = markup.Render(source)
	if text == "" || markdown.Len(text) > maxText {
		return source
	}
	return text
}

// typingEvery is how often it is shown again: Discord shows it for 10 seconds.
const typingEvery = 9 * time.Second

// sendTyping shows in a channel that the bot is typing.
func (a *activation) sendTyping(ctx context.Context, to target) error {
	err := a.api.do(ctx, request{method: http.MethodPost, path: "/channels/" + string(to) + "/typing", spare: true}, nil)
	if kind, _ := classify(err); err != nil && kind == refused {
		return fmt.Errorf("show that the bot is typing: %w", err)
	}
	return nil
}
