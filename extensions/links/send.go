package links

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// maxText is the most bytes of a message or a summary.
const maxText = 64 << 10

// send is send_agent_message: it goes on with the open exchange of the place
// that asks with that agent, or begins one.
func (l *links) send(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ Target, Message string }
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	message := strings.TrimSpace(args.Message)
	switch {
	case c.Session == "" || c.Agent == "":
		return refuse("only an agent sends messages to agents. Nothing was sent.")
	case message == "":
		return refuse("the message is empty. Nothing was sent.")
	case len(message) > maxText:
		return refuse("the message has %d bytes, at most %d can be sent. Nothing was sent.", len(message), maxText)
	}
	one := l.between(c.Agent, args.Target)
	switch {
	case one == nil:
		return refuse("there is no link between you and %q. You can write to: %s. Nothing was sent.", args.Target, list(l.peersOf(c.Agent)))
	case one.Problem != "":
		return refuse("the link to %q is not in force: %s. Nothing was sent.", args.Target, one.Problem)
	}
	here, from, err := l.here(ctx, c)
	switch {
	case err != nil:
		return sdk.ToolResult{}, err
	case here != nil && here.other(c.Agent) == args.Target:
		return l.reply(ctx, here, c, message)
	}
	v, err := l.k.Get(ctx, openKey(from, c.Agent, args.Target))
	if err != nil {
		return sdk.ToolResult{}, fmt.Errorf("look for an open exchange with %s: %w", args.Target, err)
	}
	if v.Version == 0 {
		return l.begin(ctx, c, here, from, one, args.Target, message)
	}
	var id string
	if err := v.Decode(&id); err != nil {
		return sdk.ToolResult{}, err
	}
	x, err := l.load(ctx, id)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if x == nil || x.Over {
		return sdk.ToolResult{}, fmt.Errorf("the exchange %s has just ended; nothing was sent: %w", id, contract.ErrConflict)
	}
	return l.say(ctx, x, c, message, x.record(c.Agent, c.Agent, message, x.ID))
}

// here is the exchange that a call is made on, if it is made on one, and what is
// begun there has as its origin.
func (l *links) here(ctx context.Context, c sdk.ToolCall) (*exchange, origin, error) {
	if c.Input == "" || c.Thread == "" { // the turn answers something else than what was said on a link
		return nil, origin{Session: c.Session}, nil
	}
	x, err := l.load(ctx, c.Thread)
	if err == nil && (x == nil || x.other(c.Agent) == "") {
		err = fmt.Errorf("the exchange %s is not known any more", c.Thread)
	}
	return x, origin{Session: c.Session, Thread: c.Thread}, err
}

// reply is a message on the exchange that the turn is part of, in whose history it
// stands already.
func (l *links) reply(ctx context.Context, x *exchange, c sdk.ToolCall, message string) (sdk.ToolResult, error) {
	if x.Over {
		return refuse("the exchange %s with %s is over: %s. Nothing was sent, and nothing more can be said on it.", x.ID, x.other(c.Agent), x.ending())
	}
	return l.say(ctx, x, c, message)
}

func (l *links) begin(ctx context.Context, c sdk.ToolCall, here *exchange, from origin, one *link, target, message string) (sdk.ToolResult, error) {
	id := "x" + strings.TrimLeft(c.ID, "abcdefghijklmnopqrstuvwxyz")
	if id == "x" {
		return refuse("the call has no number. Nothing was sent.")
	}
	x := &exchange{
		ID: id, Initiator: c.Agent, Peer: target, From: from, Mode: one.Mode, MaxMessages: one.MaxMessages, IdleSeconds: one.IdleSeconds,
		Opened: l.now(),
	}
	switch {
	case here != nil:
		x.Within = here.Within
	case c.Group:
		x.Within = c.Session
	}
	row, err := l.idleBefore(ctx, c)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if x.Row = row; row >= maxRow {
		return refuse("%d exchanges in a row ended because nothing was said, each begun about the one before. Say so to who asked, and write to nobody until somebody asks again. Nothing was sent.", row)
	}
	effects := sdk.Effects{ // a side that was deleted is made again
		ensure(c.Agent, target, x.Within, c.Session), ensure(target, c.Agent, x.Within, c.Session), sdk.PutAt(openKey(from, c.Agent, target), x.ID, 0),
	}
	effects = append(effects, l.message(x, c.Agent, message)...)
	effects = append(effects, x.record(c.Agent, c.Agent, message, x.ID), x.put())
	l.lookAt(x.idleAt())
	return sent(x, target, effects)
}

// say is a further message of an agent.
func (l *links) say(ctx context.Context, x *exchange, c sdk.ToolCall, message string, also ...sdk.Effect) (sdk.ToolResult, error) {
	if x.Messages >= x.MaxMessages {
		effects, err := l.end(ctx, x, ending{outcome: cappedEnd, text: message, input: c.Input})
		if err != nil {
			return sdk.ToolResult{}, err
		}
		r, err := refuse("the exchange %s is over: its %d messages are used up. The message was not delivered.", x.ID, x.MaxMessages)
		r.Effects = effects
		return r, err
	}
	effects := append(l.message(x, c.Agent, message), also...)
	return sent(x, x.other(c.Agent), append(effects, x.put()))
}

// maxRow bounds the exchanges that end because nothing is said and are begun
// again. Such an end follows from the clock, so that the kernel does not count
// the turns behind it with those before.
const maxRow = 5

// idleBefore is how many exchanges in a row ended so before what a turn begins now.
func (l *links) idleBefore(ctx context.Context, c sdk.ToolCall) (int, error) {
	id, heard := strings.CutSuffix(c.Input, resultSuffix)
	if !heard {
		return 0, nil
	}
	before, err := l.load(ctx, id)
	if err != nil || before == nil || before.Outcome != idleEnd {
		return 0, err
	}
	return before.Row + 1, nil
}

func sent(x *exchange, target string, effects sdk.Effects) (sdk.ToolResult, error) {
	return sdk.JSON(map[string]any{
		"exchange": x.ID, "status": "sent", "to": target, "messages_left": x.MaxMessages - x.Messages,
		"text": fmt.Sprintf("sent to %s; the result comes to this conversation later, by itself", target),
	}, effects...)
}

// conclude is conclude_link.
func (l *links) conclude(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ Summary string }
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	summary := strings.TrimSpace(args.Summary)
	switch {
	case summary == "":
		return refuse("the summary is empty: it is all that the one who asked will read. Nothing was concluded.")
	case len(summary) > maxText:
		return refuse("the summary has %d bytes, at most %d can be sent. Nothing was concluded.", len(summary), maxText)
	}
	x, _, err := l.here(ctx, c)
	switch {
	case err != nil:
		return sdk.ToolResult{}, err
	case x == nil:
		return refuse("this is no conversation with another agent: there is nothing to conclude here.")
	case x.Over && strings.HasSuffix(c.Input, resultSuffix) && c.Input != x.Last:
		return refuse("the exchange %s is over already: %s. What you were just told was passed on to who asked for it.", x.ID, x.ending())
	case x.Over:
		return refuse("the exchange %s is over already: %s. Nothing was sent; a conclusion is not answered.", x.ID, x.ending())
	}
	x.Last = c.Input
	x.spokeIn(c.Agent, c.Session)
	effects, err := l.end(ctx, x, ending{outcome: concluded, by: c.Agent, text: summary, input: c.Input})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(map[string]any{
		"exchange": x.ID, "status": concluded, "text": "concluded: the summary has gone to who asked for it",
	}, effects...)
}

func refuse(format string, args ...any) (sdk.ToolResult, error) {
	return sdk.ToolResult{Content: fmt.Sprintf(format, args...), IsError: true}, nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

// peersOf is the agents that one can write to.
func (l *links) peersOf(agent string) (peers []string) {
	for _, one := range l.links {
		if peer := one.peer(agent); peer != "" && one.Problem == "" {
			peers = append(peers, peer)
		}
	}
	slices.Sort(peers)
	return peers
}

// lookAt has the exchanges be looked at not later than at a time.
func (l *links) lookAt(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.next.IsZero() && !at.Before(l.next) {
		return
	}
	l.next = at
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
