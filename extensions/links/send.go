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

// maxText bounds a message or a summary, in bytes.
const maxText = 64 << 10

// send implements send_agent_message: it continues the open exchange of this place
// with the agent, or begins one.
func (l *links) send(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ Target, Message string }
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	message := strings.TrimSpace(args.Message)
	switch {
	case c.Session == "" || c.Agent == "":
		return refuse("only agents can use this tool. Nothing was sent.")
	case message == "":
		return refuse("the message is empty. Nothing was sent.")
	case len(message) > maxText:
		return refuse("the message has %d bytes; the limit is %d. Nothing was sent.", len(message), maxText)
	}
	one := l.linkBetween(c.Agent, args.Target)
	switch {
	case one == nil:
		return refuse("there is no link between you and %q. You can write to: %s. Nothing was sent.",
			args.Target, joinNames(l.peersOf(c.Agent)))
	case one.Problem != "":
		return refuse("the link to %q is not active: %s. Nothing was sent.", args.Target, one.Problem)
	}
	here, from, err := l.current(ctx, c)
	switch {
	case err != nil:
		return sdk.ToolResult{}, err
	case here != nil && here.other(c.Agent) == args.Target:
		return l.reply(ctx, here, c, message)
	}
	v, err := l.k.Get(ctx, openKey(from, c.Agent, args.Target))
	if err != nil {
		return sdk.ToolResult{}, fmt.Errorf("read the open exchange with %s: %w", args.Target, err)
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
		return sdk.ToolResult{}, fmt.Errorf("exchange %s has just ended; nothing was sent: %w", id, contract.ErrConflict)
	}
	return l.continueExchange(ctx, x, c, message, x.record(c.Agent, c.Agent, message, x.ID))
}

// current returns the exchange that a call is made on, if any, and the origin of
// exchanges that the call begins.
func (l *links) current(ctx context.Context, c sdk.ToolCall) (*exchange, origin, error) {
	if c.Input == "" || c.Thread == "" { // the turn is not on a link
		return nil, origin{Session: c.Session}, nil
	}
	x, err := l.load(ctx, c.Thread)
	if err == nil && (x == nil || x.other(c.Agent) == "") {
		err = fmt.Errorf("exchange %s no longer exists", c.Thread)
	}
	return x, origin{Session: c.Session, Thread: c.Thread}, err
}

// reply sends a message on the exchange of the turn, whose history has it already.
func (l *links) reply(ctx context.Context, x *exchange, c sdk.ToolCall, message string) (sdk.ToolResult, error) {
	if x.Over {
		return refuse("the exchange %s with %s is over: %s. Nothing was sent: no more messages are possible on it.",
			x.ID, x.other(c.Agent), x.outcomeText())
	}
	return l.continueExchange(ctx, x, c, message)
}

// begin begins an exchange; here is the exchange of the turn, if any.
func (l *links) begin(
	ctx context.Context, c sdk.ToolCall, here *exchange, from origin, one *link, target, message string,
) (sdk.ToolResult, error) {
	id := "x" + strings.TrimLeft(c.ID, "abcdefghijklmnopqrstuvwxyz")
	if id == "x" {
		return refuse("the call id has no number. Nothing was sent.")
	}
	x := &exchange{
		ID: id, Initiator: c.Agent, Peer: target, From: from, Principal: c.Principal, Opened: l.now(),
		Mode: one.Mode, MaxMessages: one.MaxMessages, IdleSeconds: one.IdleSeconds,
	}
	switch {
	case here != nil:
		x.Within = here.Within
	case c.Principal.Own || c.Principal.Confined || c.Principal.Group != "":
		x.Within = c.Session
	}
	streak, err := l.idleStreak(ctx, c)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if x.IdleStreak = streak; streak >= maxIdleStreak {
		return refuse("%d exchanges in a row got no answer, each begun after the one before. Report this, and send "+
			"no more messages until you are asked again. Nothing was sent.", streak)
	}
	effects := sdk.Effects{ // creates deleted sessions again
		ensure(c.Agent, target, x.Within, c.Session), ensure(target, c.Agent, x.Within, c.Session),
		sdk.PutAt(openKey(from, c.Agent, target), x.ID, 0),
	}
	effects = append(effects, l.sendMessage(x, c.Agent, message)...)
	effects = append(effects, x.record(c.Agent, c.Agent, message, x.ID), x.put())
	l.sweepAt(x.idleAt())
	return sentResult(x, target, effects)
}

// continueExchange sends a further message on an open exchange.
func (l *links) continueExchange(
	ctx context.Context, x *exchange, c sdk.ToolCall, message string, also ...sdk.Effect,
) (sdk.ToolResult, error) {
	if x.Messages >= x.MaxMessages {
		effects, err := l.end(ctx, x, ending{outcome: capped, text: message, input: c.Input})
		if err != nil {
			return sdk.ToolResult{}, err
		}
		r, err := refuse("the exchange %s is over: its %d messages are used up. The message was not delivered.", x.ID,
			x.MaxMessages)
		r.Effects = effects
		return r, err
	}
	effects := append(l.sendMessage(x, c.Agent, message), also...)
	return sentResult(x, x.other(c.Agent), append(effects, x.put()))
}

// maxIdleStreak bounds the exchanges that end idle and are begun again. An idle end
// is caused by a timer, so the kernel does not count the turns after it together
// with those before.
const maxIdleStreak = 5

// idleStreak counts the exchanges that ended idle in a row before this turn.
func (l *links) idleStreak(ctx context.Context, c sdk.ToolCall) (int, error) {
	id, isResult := strings.CutSuffix(c.Input, resultSuffix)
	if !isResult {
		return 0, nil
	}
	before, err := l.load(ctx, id)
	if err != nil || before == nil || before.Outcome != idle {
		return 0, err
	}
	return before.IdleStreak + 1, nil
}

func sentResult(x *exchange, target string, effects sdk.Effects) (sdk.ToolResult, error) {
	return sdk.JSON(map[string]any{
		"exchange": x.ID, "status": "sent", "to": target, "messages_left": x.MaxMessages - x.Messages,
		"text": fmt.Sprintf("sent to %s; the result will arrive in this conversation", target),
	}, effects...)
}

// conclude implements conclude_link.
func (l *links) conclude(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ Summary string }
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	summary := strings.TrimSpace(args.Summary)
	switch {
	case summary == "":
		return refuse("the summary is empty, but it is the whole result. Nothing was concluded.")
	case len(summary) > maxText:
		return refuse("the summary has %d bytes; the limit is %d. Nothing was concluded.", len(summary), maxText)
	}
	x, _, err := l.current(ctx, c)
	switch {
	case err != nil:
		return sdk.ToolResult{}, err
	case x == nil:
		return refuse("this is not a conversation with another agent: there is nothing to conclude here.")
	case x.Over && strings.HasSuffix(c.Input, resultSuffix) && c.Input != x.ConcludingInput:
		return refuse("the exchange %s is over: %s. The result that you just got was passed on already.",
			x.ID, x.outcomeText())
	case x.Over:
		return refuse("the exchange %s is over: %s. Nothing was sent: a conclusion needs no answer.",
			x.ID, x.outcomeText())
	}
	x.ConcludingInput = c.Input
	x.setSession(c.Agent, c.Session)
	effects, err := l.end(ctx, x, ending{outcome: concluded, by: c.Agent, text: summary, input: c.Input})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(map[string]any{
		"exchange": x.ID, "status": concluded, "text": "concluded; the summary was sent to the conversation that asked",
	}, effects...)
}

func refuse(format string, args ...any) (sdk.ToolResult, error) {
	return sdk.ToolResult{Content: fmt.Sprintf(format, args...), IsError: true}, nil
}

func joinNames(names []string) string {
	if len(names) == 0 {
		return "no agent"
	}
	return strings.Join(names, ", ")
}

// peersOf returns the agents that an agent can write to.
func (l *links) peersOf(agent string) (peers []string) {
	for _, one := range l.links {
		if peer := one.peer(agent); peer != "" && one.Problem == "" {
			peers = append(peers, peer)
		}
	}
	slices.Sort(peers)
	return peers
}

// sweepAt schedules a sweep no later than at.
func (l *links) sweepAt(at time.Time) {
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
