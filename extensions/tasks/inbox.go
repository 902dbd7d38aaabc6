package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// put lays an item into the inbox of an agent, or sends it to a person who waits
// for it.
func (c *change) put(root, agent string, item Item, result *Result) error {
	if agent == main {
		if given, err := c.given(root, item.opened(result)); err != nil || given {
			return err
		}
	}
	seq := place(c.number())
	c.write(from(root, agent, item.From)+seq, &item)
	c.write(orderOf(root, agent)+seq, &item.From)
	c.poke(root)
	if agent == main && result != nil {
		c.note(root, seq, item.From)
	}
	return nil
}

// send lays a message into the inbox of an agent of the same tree.
func (t *tasks) send(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ To, Message string }
	c, me, err := t.asked(ctx, call, &args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if strings.TrimSpace(args.Message) == "" {
		return sdk.ToolResult{}, errors.New("the message is empty")
	}
	to := main
	if args.To != main {
		task, err := c.find(me.root, args.To)
		if err != nil {
			return sdk.ToolResult{}, err
		}
		if task.over() {
			return sdk.ToolResult{}, fmt.Errorf("the task %q has finished (%s) and reads nothing any more", task.Name, task.outcome())
		}
		to, task.Mail = task.ID, true
		c.write(taskKey(me.root, task.Name), task) // it must not finish meanwhile
	}
	if err := c.put(me.root, to, Item{From: me.name, Message: cut(args.Message), At: c.now}, nil); err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(map[string]string{"status": "sent", "to": args.To, "text": "Sent to " + args.To + "."}, c.effects()...)
}

type messages struct {
	Messages []Message `json:"messages"`
	More     bool      `json:"more,omitempty"`
	Waiting  bool      `json:"waiting,omitempty"` // a person's; it follows
	Text     string    `json:"text,omitempty"`
}

// which is what receive and check are asked for.
type which struct {
	From    string
	Order   string
	Lifo    bool
	Timeout float64
}

func (w which) newestFirst() bool { return w.Lifo || w.Order == "lifo" }

// maxChecked is how many messages one check collects.
const maxChecked = 20

// check collects what is there.
func (t *tasks) check(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args which
	c, me, err := t.asked(ctx, call, &args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	items, more, err := c.look(me, args, maxChecked)
	if err == nil && len(items) == 0 {
		err = c.known(me, args.From)
	}
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return c.give(call, me, items, more)
}

// known refuses a sender that does not exist.
func (c *change) known(me agent, from string) error {
	if from == "" || from == main {
		return nil
	}
	_, err := c.find(me.root, from)
	return err
}

// lying is an item with its place.
type lying struct {
	Message
	item, order string // keys
}

// look reads items of an inbox, at most so many and not too much text: of one
// sender or of all, the oldest or the newest first.
func (c *change) look(me agent, args which, most int) (found []lying, more bool, err error) {
	prefix := orderOf(me.root, me.id)
	if args.From != "" {
		prefix = from(me.root, me.id, args.From)
	}
	var page []sdk.Value
	if args.newestFirst() {
		page, err = c.newest(prefix, most+1)
	} else {
		page, _, err = c.k.Page(c.ctx, prefix, "", most+1)
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the inbox: %w", err)
	}
	size := 0
	for i, v := range page {
		if i == most {
			return found, true, nil
		}
		item, key, err := c.itemAt(me, args.From, v)
		if err != nil {
			return nil, false, err
		}
		if item == nil {
			continue // it has just been collected
		}
		m, err := c.open(*item)
		if err != nil {
			return nil, false, err
		}
		if size += m.size(); size > maxAnswer && len(found) > 0 {
			return found, true, nil
		}
		found = append(found, lying{m, key, orderOf(me.root, me.id) + lastOf(key)})
	}
	return found, false, nil
}

// itemAt is the item of a row: of one sender, that is the item itself, and of all
// its sender.
func (c *change) itemAt(me agent, sender string, v sdk.Value) (*Item, string, error) {
	if sender != "" {
		item, err := seen[Item](c, v)
		return item, v.Key, err
	}
	if err := v.Decode(&sender); err != nil {
		return nil, "", err
	}
	key := from(me.root, me.id, sender) + lastOf(v.Key)
	item, err := read[Item](c, key)
	return item, key, err
}

// newest is the last rows of a prefix, the last one first. Their keys end with
// numbers that tell the time: a point is looked for behind which there are as
// many as are wanted.
func (c *change) newest(prefix string, most int) ([]sdk.Value, error) {
	var page []sdk.Value
	enough, few := int64(0), c.number() // behind the one lie too many, behind the other too few
	for step := int64(time.Second / time.Microsecond); few-enough > 1; step *= 16 {
		at := max(few-step, 0)
		if enough > 0 {
			at = enough + (few-enough)/2
		}
		found, more, err := c.k.Page(c.ctx, prefix, prefix+place(at), most)
		if err != nil {
			return nil, err
		}
		if more {
			enough = at
			continue
		}
		few, page = at, found
		if len(page) == most {
			break
		}
	}
	slices.Reverse(page)
	return page, nil
}

// maxAnswer is how much text several messages may have together.
const maxAnswer = contract.MaxToolResult - 4<<10

// give is the answer with items that are collected by it.
func (c *change) give(call sdk.ToolCall, me agent, items []lying, more bool) (sdk.ToolResult, error) {
	if err := c.collect(me, items); err != nil {
		return sdk.ToolResult{}, err
	}
	out := messages{Messages: []Message{}, More: more}
	for _, item := range items {
		out.Messages = append(out.Messages, item.Message)
		if byCommand(call) { // so that the agent of the conversation knows of it
			c.effect(record(me.root, item.Message))
		}
	}
	if len(items) == 0 {
		out.Text = "Nothing has come."
	}
	return sdk.JSON(out, c.effects()...)
}

// collect takes items out of an inbox.
func (c *change) collect(me agent, items []lying) error {
	for _, item := range items {
		c.write(item.item, nil) // the one who removes it first has it
		c.effect(sdk.Delete(item.order))
	}
	if me.task != nil {
		return nil
	}
	return c.unnote(me.root, items)
}

// maxCleared is how many messages are removed with a task; what is more is
// removed later.
const maxCleared = 500

// clearInbox empties the inbox of an agent that ends, and says how much lay in it.
func (c *change) clearInbox(task *Task) (n int, err error) {
	if !task.Mail {
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
		c.effect(sdk.Delete(v.Key), sdk.Delete(from(task.Root, task.ID, sender)+lastOf(v.Key)))
		return nil
	})
	return n, err
}
