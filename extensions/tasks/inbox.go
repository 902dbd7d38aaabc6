package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// deliver puts an item into the inbox of an agent, or sends it to a person with
// a deferred receive.
func (c *change) deliver(root, agent string, item Item, result *Result) error {
	if agent == main {
		if given, err := c.sendToDeferred(root, item.message(result)); err != nil || given {
			return err
		}
	}
	seq := seqKey(c.nextSeq())
	c.write(inboxFrom(root, agent, item.From)+seq, &item)
	c.write(orderOf(root, agent)+seq, &item.From)
	c.notifyWaiters(root)
	if agent == main && result != nil {
		c.queueNotice(root, seq, item.From)
	}
	return nil
}

// send puts a message into the inbox of an agent of the same tree.
func (t *tasks) send(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ To, Message string }
	c, me, err := t.beginCall(ctx, call, &args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if strings.TrimSpace(args.Message) == "" {
		return sdk.ToolResult{}, words.Errorf("the message is empty")
	}
	to := main
	if args.To != main {
		task, err := c.find(me.root, args.To)
		if err != nil {
			return sdk.ToolResult{}, err
		}
		if task.ended() {
			return sdk.ToolResult{}, words.Errorf("task %q has finished (%v) and reads no more messages", task.Name,
				task.outcome())
		}
		to, task.HasMail = task.ID, true
		c.write(taskKey(me.root, task.Name), task) // conflicts with its end
	}
	item := Item{From: me.name, Message: truncate(args.Message), At: c.now}
	if err := c.deliver(me.root, to, item, nil); err != nil {
		return sdk.ToolResult{}, err
	}
	out := map[string]string{"status": "sent", "to": args.To, "text": words.Sprintf("Sent to %s.", args.To)}
	return sdk.JSON(out, c.effects()...)
}

type messages struct {
	Messages []Message `json:"messages"`
	More     bool      `json:"more,omitempty"`
	Waiting  bool      `json:"waiting,omitempty"` // the receive of a person was deferred
	Text     string    `json:"text,omitempty"`
}

// query is the arguments of receive and check.
type query struct {
	From    string
	Order   string
	Lifo    bool
	Timeout float64
}

func (w query) newestFirst() bool { return w.Lifo || w.Order == "lifo" }

// maxChecked is how many messages one check collects.
const maxChecked = 20

// check collects the messages that are there.
func (t *tasks) check(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args query
	c, me, err := t.beginCall(ctx, call, &args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	items, more, err := c.readInbox(me, args, maxChecked)
	if err == nil && len(items) == 0 {
		err = c.known(me, args.From)
	}
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return c.answer(call, me, items, more)
}

// known returns an error for a sender that does not exist.
func (c *change) known(me agent, from string) error {
	if from == "" || from == main {
		return nil
	}
	_, err := c.find(me.root, from)
	return err
}

// inboxItem is an item with the keys of its two rows.
type inboxItem struct {
	Message
	key, orderKey string
}

// readInbox reads at most limit items of an inbox, and at most maxAnswer bytes:
// of one sender or of all, oldest or newest first.
func (c *change) readInbox(me agent, args query, limit int) (found []inboxItem, more bool, err error) {
	prefix := orderOf(me.root, me.id)
	if args.From != "" {
		prefix = inboxFrom(me.root, me.id, args.From)
	}
	var page []sdk.Value
	if args.newestFirst() {
		page, err = c.newest(prefix, limit+1)
	} else {
		page, _, err = c.k.Page(c.ctx, prefix, "", limit+1)
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the inbox: %w", err)
	}
	size := 0
	for i, v := range page {
		if i == limit {
			return found, true, nil
		}
		item, key, err := c.itemAt(me, args.From, v)
		if err != nil {
			return nil, false, err
		}
		if item == nil {
			continue // it has just been collected
		}
		m, err := c.load(*item)
		if err != nil {
			return nil, false, err
		}
		if size += m.size(); size > maxAnswer && len(found) > 0 {
			return found, true, nil
		}
		found = append(found, inboxItem{m, key, orderOf(me.root, me.id) + lastOf(key)})
	}
	return found, false, nil
}

// itemAt returns the item of a row and its key. With a sender, the row is the
// item itself; without, it is a row of the order, which holds the sender.
func (c *change) itemAt(me agent, sender string, v sdk.Value) (*Item, string, error) {
	if sender != "" {
		item, err := track[Item](c, v)
		return item, v.Key, err
	}
	if err := v.Decode(&sender); err != nil {
		return nil, "", err
	}
	key := inboxFrom(me.root, me.id, sender) + lastOf(v.Key)
	item, err := read[Item](c, key)
	return item, key, err
}

// newest returns the last rows of a prefix, newest first. Their keys end in
// microseconds, so it searches for a time after which there are at most limit
// rows: backwards in growing steps, then by bisection.
func (c *change) newest(prefix string, limit int) ([]sdk.Value, error) {
	var page []sdk.Value
	low, high := int64(0), c.nextSeq() // more than limit rows follow low; at most limit follow high
	for step := int64(time.Second / time.Microsecond); high-low > 1; step *= 16 {
		at := max(high-step, 0)
		if low > 0 {
			at = low + (high-low)/2
		}
		found, more, err := c.k.Page(c.ctx, prefix, prefix+seqKey(at), limit)
		if err != nil {
			return nil, err
		}
		if more {
			low = at
			continue
		}
		high, page = at, found
		if len(page) == limit {
			break
		}
	}
	slices.Reverse(page)
	return page, nil
}

// maxAnswer bounds the text of several messages in one result, in bytes.
const maxAnswer = contract.MaxToolResult - 4<<10

// answer collects items and returns them as the result of a call.
func (c *change) answer(call sdk.ToolCall, me agent, items []inboxItem, more bool) (sdk.ToolResult, error) {
	if err := c.collect(me, items); err != nil {
		return sdk.ToolResult{}, err
	}
	out := messages{Messages: []Message{}, More: more}
	for _, item := range items {
		out.Messages = append(out.Messages, item.Message)
		if byCommand(call) { // tells the agent of the conversation
			c.effect(recordCollected(me.root, item.Message))
		}
	}
	if len(items) == 0 {
		out.Text = words.Sprintf("Nothing has arrived.")
	}
	return sdk.JSON(out, c.effects()...)
}

// collect removes items from an inbox.
func (c *change) collect(me agent, items []inboxItem) error {
	for _, item := range items {
		c.write(item.key, nil) // conflicts if another call collects it
		c.effect(sdk.Delete(item.orderKey))
	}
	if me.task != nil {
		return nil
	}
	return c.dropNotices(me.root, items)
}

// maxCleared bounds the messages that are deleted with a task; prune deletes the rest.
const maxCleared = 500

// clearInbox empties the inbox of a task that ends, and returns the number of items.
func (c *change) clearInbox(task *Task) (n int, err error) {
	if !task.HasMail {
		return 0, nil
	}
	err = c.scan(c.ctx, orderOf(task.Root, task.ID), func(v sdk.Value) error {
		if n++; n > maxCleared {
			return nil
		}
		var sender string
		if err := v.Decode(&sender); err != nil {
			return err
		}
		c.effect(sdk.Delete(v.Key), sdk.Delete(inboxFrom(task.Root, task.ID, sender)+lastOf(v.Key)))
		return nil
	})
	return n, err
}
