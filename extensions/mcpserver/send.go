package mcpserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/mcpserver/clients"
)

const (
	sendPrefix = "send/" // + hash of what is sent: clients.Sent
	joinWithin = 10 * time.Minute

	sendTool = "core/send_to_channel"

	sendSchema = `"required":["client","id","text"],"properties":{"client":{"type":"string"},` +
		`"for":{"type":"string"},"id":{"type":"string","minLength":1,"maxLength":100},` +
		`"channel_id":{"type":"string"},"person":{"type":"string"},"text":{"type":"string"},` +
		`"join":{"type":"boolean"},"after":{"type":"integer"}}}`
)

// keyOf is the key of a text that is sent: the same for the same words.
func keyOf(args clients.Send) (string, error) {
	said, err := json.Marshal([]string{args.Client, args.For, args.Channel, args.Person, args.Text})
	sum := sha256.Sum256(said)
	return sendPrefix + hex.EncodeToString(sum[:16]), err
}

// send has the kernel send a text, once for each id.
func (s *server) send(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args clients.Send
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	if _, err := s.client(args.Client); err != nil {
		return sdk.ToolResult{}, err
	}
	key, err := keyOf(args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	stored, err := s.k.Get(ctx, key)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if stored.Version != 0 {
		var known clients.Sent
		if err := stored.Decode(&known); err != nil {
			return sdk.ToolResult{}, err
		}
		if known.ID == args.ID || args.Join && s.now().Sub(known.Created) < joinWithin {
			return sdk.JSON(known)
		}
	}
	if contract.Blank(args.Text) || args.Channel == "" && args.Person == "" {
		return sdk.ToolResult{}, fmt.Errorf("%w: give a text, and a channel_id or a person", contract.ErrInvalid)
	}
	to, text, err := s.address(ctx, args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	var effects sdk.Effects
	if err := s.k.Scan(ctx, sendPrefix, func(v sdk.Value) error {
		var old clients.Sent
		if err := v.Decode(&old); v.Key != key && (err != nil || s.now().Sub(old.Created) > joinWithin) {
			effects = append(effects, sdk.DeleteAt(v.Key, v.Version))
		}
		return nil
	}); err != nil {
		return sdk.ToolResult{}, err
	}
	sent := clients.Sent{ID: args.ID, After: args.After, Created: s.now().UTC()}
	call := map[string]string{"channel_id": to.ChannelID, "text": text}
	effect := sdk.Call(sent.ID, sendTool, call, sdk.TextsTo(to.ReplyTo))
	if coretool.Matches(s.approve, sendTool) { // given before; the kernel would ask again, where the text goes
		sent.Done = fmt.Sprintf(`{"status":"queued","channel_id":%q}`, to.ChannelID)
		notice := contract.UserNotify{Text: text, ChannelID: to.ChannelID, ReplyTo: to.ReplyTo}
		effect = sdk.Publish(contract.TopicUserNotify, notice, sdk.Dedupe("send/"+sent.ID))
	}
	return sdk.JSON(sent, append(effects, sdk.PutAt(key, sent, stored.Version), effect)...)
}

// sent forgets a text whose result its client has.
func (s *server) sent(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args clients.Send
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	key, err := keyOf(args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	stored, err := s.k.Get(ctx, key)
	var known clients.Sent
	if err == nil && stored.Version != 0 {
		err = stored.Decode(&known)
	}
	if err != nil || known.ID == "" || known.ID != args.ID {
		return sdk.ToolResult{Content: "{}"}, err
	}
	return sdk.ToolResult{Content: "{}", Effects: sdk.Effects{sdk.DeleteAt(key, stored.Version)}}, nil
}

// address returns where a text goes, and the text with the names of its client and, for
// another person, of the one for whom the client acts.
func (s *server) address(ctx context.Context, args clients.Send) (to contract.Recipient, text string, err error) {
	text = clients.Signed(args.Client, args.Text)
	to = contract.Recipient{ChannelID: args.Channel}
	if name := cmp.Or(args.Person, args.For); name != "" {
		if to, err = s.recipient(ctx, name, args.Channel); err != nil {
			return to, "", err
		}
	}
	if args.Person == "" || to.ReplyTo == "" {
		return to, text, nil
	}
	from := contract.Recipient{Name: words.Say(to.Language, "the owner"), Accounts: []string{contract.Owner}}
	if args.For != "" {
		if from, err = s.recipient(ctx, args.For, ""); err != nil {
			return to, "", err
		}
	}
	if slices.ContainsFunc(to.Accounts, func(a string) bool { return slices.Contains(from.Accounts, a) }) {
		return to, text, nil
	}
	return to, words.Say(to.Language, "From %s: %s", from.Name, text), nil
}

// recipient finds where a person is reached in private; without a name it is no one.
func (s *server) recipient(ctx context.Context, name, channel string) (to contract.Recipient, err error) {
	if name == "" {
		return to, nil
	}
	found, err := s.k.Ask(ctx, contract.ToolFindPerson, map[string]string{"person": name, "channel_id": channel})
	if err == nil && found.IsError {
		err = errors.New(found.Content)
	}
	if err == nil {
		err = json.Unmarshal([]byte(found.Content), &to)
	}
	return to, err
}
