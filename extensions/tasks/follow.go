package tasks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// follow is a person who waits for a message, in the conversation of a root. Each
// gets one, those who have waited longer first.
type follow struct {
	From    string    `json:"from,omitempty"`
	ReplyTo string    `json:"reply_to"`
	Until   time.Time `json:"until,omitzero"`
}

// receiveLater is receive for a person: a message that is there at once, or the
// word that it follows.
func (t *tasks) receiveLater(ctx context.Context, call sdk.ToolCall, me agent, args which) (sdk.ToolResult, error) {
	c := t.change(ctx, call.ID)
	items, why, err := c.found(me, args, false)
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
	c.write(followsOf(me.root)+place(c.number()), f)
	c.mu.Lock()
	c.followed[me.root] = true
	c.mu.Unlock()
	return sdk.JSON(messages{Messages: []Message{}, Waiting: true, Text: "Waiting. What comes next is sent here."}, c.effects()...)
}

// maxFollows is how many waits of people in one conversation are looked at.
const maxFollows = 100

// follows is the waits of people in a conversation, with their keys.
func (c *change) follows(root string) (keys []string, all []*follow, err error) {
	c.mu.Lock()
	some := c.followed[root]
	c.mu.Unlock()
	if !some {
		return nil, nil, nil
	}
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
	c.effect(tell(all[i], m.prose()), record(root, m))
	return true, nil
}

func tell(f *follow, text string) sdk.Effect {
	return sdk.Publish(contract.TopicUserNotify, contract.UserNotify{Text: text, ReplyTo: f.ReplyTo})
}

// serveFollowers ends the waits of people whose time is over, and of those for
// whom something came in the moment in which they began to wait.
func (t *tasks) serveFollowers(ctx context.Context) {
	t.mu.Lock()
	roots := make([]string, 0, len(t.followed))
	for root := range t.followed {
		roots = append(roots, root)
	}
	t.mu.Unlock()
	for _, root := range roots {
		t.quietly(ctx, "ending a wait", func() (sdk.Effects, error) { return t.serve(ctx, root) })
	}
}

func (t *tasks) serve(ctx context.Context, root string) (sdk.Effects, error) {
	c := t.change(ctx, "follow:"+root)
	keys, all, err := c.follows(root)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	me := agent{root: root, name: main, id: main}
	for i, f := range all {
		items, _, err := c.look(me, which{From: f.From}, 1)
		switch {
		case err != nil:
			return nil, err
		case len(items) > 0:
			if err := c.collect(me, items); err != nil {
				return nil, err
			}
			c.write(keys[i], nil)
			c.effect(tell(f, items[0].prose()), record(root, items[0].Message))
			return c.effects(), nil // the others have theirs at the next look
		case !f.Until.IsZero() && !c.now.Before(f.Until):
			c.write(keys[i], nil)
			c.effect(tell(f, "Nothing has come in time."))
		}
	}
	return c.effects(), nil
}
