package tasks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// follow is a person who waits for a message, in the conversation of a root. Each
// gets one, those who have waited longer first. None lies in the inbox meanwhile
// that is for them: who begins to wait writes the fence of the root, and who lays
// something into the inbox of main does so only if nobody has written that since.
type follow struct {
	From    string    `json:"from,omitempty"`
	ReplyTo string    `json:"reply_to"`
	Until   time.Time `json:"until,omitzero"`
}

// receiveLater is receive for a person: a message that is there at once, or the
// word that it follows.
func (t *tasks) receiveLater(ctx context.Context, call sdk.ToolCall, me agent, args which) (sdk.ToolResult, error) {
	c := t.change(ctx, call.ID)
	items, why, err := c.found(me, args, nil, false)
	switch {
	case err != nil:
		return sdk.ToolResult{}, err
	case len(items) > 0:
		return c.give(call, me, items, false)
	case why != "":
		return sdk.JSON(messages{Messages: []Message{}, Text: why})
	}
	f := &follow{From: args.From, ReplyTo: call.ReplyTo}
	if args.Timeout > 0 {
		f.Until = c.now.Add(seconds(args.Timeout))
	}
	number := c.number()
	if _, err := read[int64](c, fencePrefix+me.root); err != nil {
		return sdk.ToolResult{}, err
	}
	c.write(fencePrefix+me.root, &number)
	c.write(followsOf(me.root)+place(number), f)
	c.follow(me.root, true)
	// What came since it was looked for is found by another look, once this is
	// committed; what comes from then on has seen the fence.
	c.effect(sdk.Publish(TopicChanged, changed{Root: me.root, Follow: true}))
	return sdk.JSON(messages{Messages: []Message{}, Waiting: true, Text: "Waiting. What comes next is sent here."}, c.effects()...)
}

// maxFollows is how many waits of people in one conversation are looked at.
const maxFollows = 100

// follow notes whether people wait in a conversation, or may do so.
func (t *tasks) follow(root string, some bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.followed, root); some {
		t.followed[root] = true
	}
}

// follows is the waits of people in a conversation, with their keys. Nobody begins
// to wait before this change is committed.
func (c *change) follows(root string) (keys []string, all []*follow, err error) {
	key := fencePrefix + root
	c.mu.Lock()
	some := c.followed[root]
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
	page, _, err := c.k.Page(c.ctx, followsOf(root), "", maxFollows)
	if err != nil {
		return nil, nil, fmt.Errorf("read who waits in %s: %w", root, err)
	}
	for _, v := range page {
		f, err := seen[follow](c, v)
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

// given sends a message to the person who waits for it, if there is one.
func (c *change) given(root string, m Message) (bool, error) {
	keys, all, err := c.follows(root)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(all, func(f *follow) bool { return f.From == "" || f.From == m.From })
	if i < 0 {
		return false, nil
	}
	c.write(keys[i], nil)
	if len(all) == 1 {
		c.write(fencePrefix+root, nil)
	}
	c.effect(tell(all[i], m.prose()), record(root, m))
	return true, nil
}

func tell(f *follow, text string) sdk.Effect {
	return sdk.Publish(contract.TopicUserNotify, contract.UserNotify{Text: text, ReplyTo: f.ReplyTo})
}

// serveFollowers ends the waits of people whose time is over.
func (t *tasks) serveFollowers(ctx context.Context) {
	t.mu.Lock()
	roots := slices.Collect(maps.Keys(t.followed))
	t.mu.Unlock()
	for _, root := range roots {
		t.quietly(ctx, "ending a wait", func() (sdk.Effects, error) { return t.serve(ctx, root, "follow:"+root) })
	}
}

// serve gives the people who wait what lies there for them since the moment in
// which they began to, and ends the waits whose time is over. It changes nothing
// if there is no reason to.
func (t *tasks) serve(ctx context.Context, root, by string) (sdk.Effects, error) {
	c := t.change(ctx, by)
	keys, all, err := c.follows(root)
	if err != nil {
		return nil, err
	}
	me := agent{root: root, name: main, id: main}
	left := len(all)
	for i, f := range all {
		items, _, err := c.look(me, which{From: f.From}, 1)
		switch {
		case err != nil:
			return nil, err
		case len(items) > 0:
			if err := c.collect(me, items); err != nil {
				return nil, err
			}
			c.effect(tell(f, items[0].prose()), record(root, items[0].Message))
		case !f.Until.IsZero() && !c.now.Before(f.Until):
			c.effect(tell(f, "Nothing has come in time."))
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
		c.follow(root, false)
		if len(all) > 0 {
			c.write(fencePrefix+root, nil)
		}
	}
	return c.effects(), nil
}
