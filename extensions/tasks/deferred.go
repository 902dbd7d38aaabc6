package tasks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// deferred is a /receive that found nothing: its message is sent to the person
// later. Each gets one message, the oldest /receive first. No matching message
// stays in the inbox meanwhile: deferring writes the fence of the root, and
// a delivery to the inbox of main conflicts with a newer fence.
type deferred struct {
	From     string    `json:"from,omitempty"`
	ReplyTo  string    `json:"reply_to"`
	Language string    `json:"language,omitempty"` // of the person
	Until    time.Time `json:"until,omitzero"`
}

// deferReceive is receive for a person: it returns a message if there is one,
// and otherwise says that the message will be sent.
func (t *tasks) deferReceive(ctx context.Context, call sdk.ToolCall, me agent, args query) (sdk.ToolResult, error) {
	c := t.change(ctx, call.ID)
	items, why, err := c.nextItem(me, args, nil, false)
	switch {
	case err != nil:
		return sdk.ToolResult{}, err
	case len(items) > 0:
		return c.answer(call, me, items, false)
	case why != "":
		return sdk.JSON(messages{Messages: []Message{}, Text: why})
	}
	f := &deferred{From: args.From, ReplyTo: call.ReplyTo, Language: call.Language}
	if args.Timeout > 0 {
		f.Until = c.now.Add(seconds(args.Timeout))
	}
	number := c.nextSeq()
	if _, err := read[int64](c, fencePrefix+me.root); err != nil {
		return sdk.ToolResult{}, err
	}
	c.write(fencePrefix+me.root, &number)
	c.write(deferredOf(me.root)+seqKey(number), f)
	c.noteDeferred(me.root, true)
	// A message that arrived since the inbox was read is found by another read
	// after this commit; later deliveries see the fence.
	c.effect(sdk.Publish(TopicChanged, changed{Root: me.root, Deferred: true}))
	out := messages{
		Messages: []Message{}, Waiting: true, Text: words.Sprintf("Waiting. The next message will be sent here."),
	}
	return sdk.JSON(out, c.effects()...)
}

// maxDeferred bounds the deferred receives that are read of one conversation.
const maxDeferred = 100

// noteDeferred notes whether a conversation may have deferred receives.
func (t *tasks) noteDeferred(root string, some bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.hasDeferred, root); some {
		t.hasDeferred[root] = true
	}
}

// deferredReceives returns the deferred receives of a conversation with their
// keys. The change conflicts with a new one.
func (c *change) deferredReceives(root string) (keys []string, all []*deferred, err error) {
	key := fencePrefix + root
	c.mu.Lock()
	some := c.hasDeferred[root]
	c.mu.Unlock()
	if !some {
		c.effect(sdk.DeleteAt(key, 0))
		return nil, nil, nil
	}
	fence, err := read[int64](c, key)
	if err != nil {
		return nil, nil, err
	}
	if fence == nil {
		c.effect(sdk.DeleteAt(key, 0))
		return nil, nil, nil
	}
	c.write(key, fence)
	page, _, err := c.k.Page(c.ctx, deferredOf(root), "", maxDeferred)
	if err != nil {
		return nil, nil, fmt.Errorf("read the deferred receives of %s: %w", root, err)
	}
	for _, v := range page {
		f, err := track[deferred](c, v)
		if err != nil {
			return nil, nil, err
		}
		if f != nil {
			keys, all = append(keys, v.Key), append(all, f)
		}
	}
	if len(all) == 0 {
		c.write(key, nil)
	}
	return keys, all, nil
}

// sendToDeferred sends a message to the first deferred receive that matches, if any.
func (c *change) sendToDeferred(root string, m Message) (bool, error) {
	keys, all, err := c.deferredReceives(root)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(all, func(f *deferred) bool { return f.From == "" || f.From == m.From })
	if i < 0 {
		return false, nil
	}
	c.write(keys[i], nil)
	if len(all) == 1 {
		c.write(fencePrefix+root, nil)
	}
	c.effect(notifyPerson(all[i], m.markdown(all[i].Language)), recordCollected(root, m))
	return true, nil
}

func notifyPerson(f *deferred, text string) sdk.Effect {
	return sdk.Publish(contract.TopicUserNotify, contract.UserNotify{Text: text, ReplyTo: f.ReplyTo})
}

// serveAllDeferred ends the deferred receives whose timeout has passed.
func (t *tasks) serveAllDeferred(ctx context.Context) {
	t.mu.Lock()
	roots := slices.Collect(maps.Keys(t.hasDeferred))
	t.mu.Unlock()
	for _, root := range roots {
		t.tryCommit(ctx, "serve deferred receives", func() (sdk.Effects, error) {
			return t.serveDeferred(ctx, root, "follow:"+root)
		})
	}
}

// serveDeferred sends messages of the inbox to deferred receives, and ends those
// whose timeout has passed. It returns no effects if there is nothing to do.
func (t *tasks) serveDeferred(ctx context.Context, root, by string) (sdk.Effects, error) {
	c := t.change(ctx, by)
	keys, all, err := c.deferredReceives(root)
	if err != nil {
		return nil, err
	}
	me := agent{root: root, name: main, id: main}
	left := len(all)
	for i, f := range all {
		items, _, err := c.readInbox(me, query{From: f.From}, 1)
		switch {
		case err != nil:
			return nil, err
		case len(items) > 0:
			if err := c.collect(me, items); err != nil {
				return nil, err
			}
			c.effect(notifyPerson(f, items[0].markdown(f.Language)), recordCollected(root, items[0].Message))
		case !f.Until.IsZero() && !c.now.Before(f.Until):
			c.effect(notifyPerson(f, words.Translate(f.Language, nothingInTime)))
		default:
			continue
		}
		c.write(keys[i], nil)
		left--
	}
	switch {
	case left == len(all) && left > 0:
		return nil, nil
	case left == 0:
		c.noteDeferred(root, false)
		if len(all) > 0 {
			c.write(fencePrefix+root, nil)
		}
	}
	return c.effects(), nil
}
