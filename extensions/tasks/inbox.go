package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// put lays an item into an inbox, or sends it to a person who waits for it.
func (c *change) put(root, name string, item Item) error {
	if name == main {
		given, err := c.given(root, item)
		if err != nil || given {
			return err
		}
	}
	seq := fmt.Sprintf("%016x", c.number())
	c.write(inboxPrefix(root, name, item.From)+seq, &item)
	c.write(orderPrefix(root, name)+seq, &item.From)
	c.poke(root)
	if name == main && item.Result != nil {
		return c.note(root, mark{Name: item.From, Seq: seq})
	}
	return nil
}

// lying is an item with its place.
type lying struct {
	Item
	seq string
}

// look reads items of an inbox, at most so many and not too much text: of one
// sender or of all, the oldest or the newest first.
func (c *change) look(root, name, from string, lifo bool, most int) (found []lying, more bool, err error) {
	type place struct{ from, seq string }
	var places []place
	keep := func(p place) error {
		if places = append(places, p); !lifo && len(places) > most {
			return errEnough
		}
		if lifo && len(places) > most+1 {
			places = places[1:]
		}
		return nil
	}
	if from != "" {
		prefix := inboxPrefix(root, name, from)
		err = c.k.Scan(c.ctx, prefix, func(v sdk.Value) error { return keep(place{from, strings.TrimPrefix(v.Key, prefix)}) })
	} else {
		prefix := orderPrefix(root, name)
		err = c.k.Scan(c.ctx, prefix, func(v sdk.Value) error {
			var sender string
			if err := json.Unmarshal(v.Value, &sender); err != nil {
				return err
			}
			return keep(place{sender, strings.TrimPrefix(v.Key, prefix)})
		})
	}
	if err != nil && !errors.Is(err, errEnough) {
		return nil, false, fmt.Errorf("read the inbox: %w", err)
	}
	if lifo {
		slices.Reverse(places)
	}
	if more = len(places) > most; more {
		places = places[:most]
	}
	size := 0
	for _, p := range places {
		item, err := read[Item](c, inboxPrefix(root, name, p.from)+p.seq)
		if err != nil {
			return nil, false, err
		}
		if item == nil {
			continue // it has just been collected
		}
		if size += item.size(); size > maxAnswer && len(found) > 0 {
			return found, true, nil
		}
		found = append(found, lying{*item, p.seq})
	}
	return found, more, nil
}

// maxAnswer is how much text several messages may have together.
const maxAnswer = contract.MaxToolResult - 4<<10

func (i Item) size() int {
	if r := i.Result; r != nil {
		return len(r.Output) + len(r.Error) + len(r.Partial) + 200
	}
	return len(i.Message) + 200
}

// collect takes items out of an inbox.
func (c *change) collect(me agent, items []lying) error {
	for _, item := range items {
		order := orderPrefix(me.root, me.name) + item.seq
		if _, err := read[string](c, order); err != nil {
			return err
		}
		c.write(inboxPrefix(me.root, me.name, item.From)+item.seq, nil)
		c.write(order, nil)
	}
	if me.task != nil {
		return nil
	}
	return c.unnote(me.root, items)
}

// clearInbox empties the inbox of an agent that ends, and says how much lay in it.
func (c *change) clearInbox(root, name string) (n int, err error) {
	const most = 500 // more would be a commit without bounds
	err = c.k.Scan(c.ctx, orderPrefix(root, name), func(v sdk.Value) error {
		if n++; n > most {
			return nil
		}
		var from string
		if err := json.Unmarshal(v.Value, &from); err != nil {
			return err
		}
		c.effect(sdk.Delete(v.Key), sdk.Delete(inboxPrefix(root, name, from)+strings.TrimPrefix(v.Key, orderPrefix(root, name))))
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("read the inbox of %s: %w", name, err)
	}
	return n, nil
}

// Message is an item as its collector reads it.
type Message struct {
	From string `json:"from"`
	*Result
	Message  string `json:"message,omitempty"`
	Received string `json:"received"`
}

func message(i Item) Message {
	m := Message{From: i.From, Message: i.Message, Received: i.At.Format(time.RFC3339)}
	if i.Result != nil {
		r := *i.Result
		m.Result = &r
	}
	return m
}

type messages struct {
	Messages []Message `json:"messages"`
	More     bool      `json:"more,omitempty"`
	Waiting  bool      `json:"waiting,omitempty"` // a person's; it follows
	Text     string    `json:"text,omitempty"`
}

// give is the answer with items that are collected by it.
func (c *change) give(call sdk.ToolCall, me agent, items []lying, more bool) (sdk.ToolResult, error) {
	if err := c.collect(me, items); err != nil {
		return sdk.ToolResult{}, err
	}
	out := messages{Messages: []Message{}, More: more}
	for _, item := range items {
		out.Messages = append(out.Messages, message(item.Item))
	}
	if len(items) == 0 {
		out.Text = "Nothing has come."
	}
	c.recordFor(call, me, items)
	return sdk.JSON(out, c.effects()...)
}

// recordFor has the session of a person's conversation know what the person has
// collected there.
func (c *change) recordFor(call sdk.ToolCall, me agent, items []lying) {
	if !byCommand(call) {
		return
	}
	for _, item := range items {
		c.effect(record(me.root, item.Item))
	}
}

func record(root string, item Item) sdk.Effect {
	return sdk.Raw(&busv1.Input{
		Session: root, Kind: contract.InputRecord, Sender: item.From, Text: "The user has collected this from the inbox:\n" + item.prose(),
	})
}

// prose is an item for people.
func (i Item) prose() string {
	if i.Result == nil {
		return fmt.Sprintf("**%s** writes: %s", i.From, i.Message)
	}
	if i.Result.Success {
		return fmt.Sprintf("**%s** has finished:\n\n%s", i.From, i.Result.Output)
	}
	text := fmt.Sprintf("**%s** has failed (%s): %s", i.From, i.Result.Outcome, i.Result.Error)
	if i.Result.Partial != "" {
		text += "\n\nIt had so far:\n\n" + i.Result.Partial
	}
	return text
}

// send lays a message into the inbox of an agent of the same tree.
func (t *tasks) send(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ To, Message string }
	if err := arguments(call, &args); err != nil {
		return sdk.ToolResult{}, err
	}
	c := t.change(ctx)
	me, err := c.who(call)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if strings.TrimSpace(args.Message) == "" {
		return sdk.ToolResult{}, errors.New("the message is empty")
	}
	if args.To != main {
		task, err := c.find(me.root, args.To)
		if err != nil {
			return sdk.ToolResult{}, err
		}
		if task.State == Finished || task.Stop != "" {
			return sdk.ToolResult{}, fmt.Errorf("%s has finished (%s) and reads nothing any more", task.Name, task.Outcome)
		}
		c.write(taskKey(me.root, task.Name), task) // it must not finish meanwhile
	}
	if err := c.put(me.root, args.To, Item{From: me.name, Message: cut(args.Message), At: c.now}); err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(map[string]string{"status": "sent", "to": args.To, "text": "Sent to " + args.To + "."}, c.effects()...)
}

type which struct {
	From    string
	Order   string
	Lifo    bool
	Timeout float64
}

func (w which) newestFirst() bool { return w.Lifo || w.Order == "lifo" }

// check collects what is there.
func (t *tasks) check(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args which
	if err := arguments(call, &args); err != nil {
		return sdk.ToolResult{}, err
	}
	c := t.change(ctx)
	me, err := c.who(call)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if err := c.known(me, args.From); err != nil {
		return sdk.ToolResult{}, err
	}
	items, more, err := c.look(me.root, me.name, args.From, args.newestFirst(), maxChecked)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return c.give(call, me, items, more)
}

// maxChecked is how many messages one check collects.
const maxChecked = 20

// known refuses a sender that does not exist.
func (c *change) known(me agent, from string) error {
	if from == "" || from == main {
		return nil
	}
	if lies, err := c.anything(inboxPrefix(me.root, me.name, from)); err != nil || lies {
		return err
	}
	_, err := c.find(me.root, from)
	return err
}
