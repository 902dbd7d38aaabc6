package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// Who waits is woken when something has changed. What was committed in the very
// moment in which the wait began is seen when it looks again by itself, soon at
// first.
const (
	lookSoon  = 10 * time.Millisecond
	lookAgain = 5 * time.Second
)

// workerWaits is how long a worker waits that gives no timeout: an idle main may
// write to it, and may never do so.
const workerWaits = time.Hour

// patience is how long a call of receive waits; 0: as long as it takes.
func (w which) patience(me agent) time.Duration {
	if w.Timeout == 0 && me.task != nil {
		return workerWaits
	}
	return seconds(w.Timeout)
}

// receive waits for a message. It looks whenever something has changed, and what
// is stored is all that counts.
func (t *tasks) receive(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args which
	if err := call.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	me, err := t.change(ctx, call.ID).who(call)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if args.From == me.name {
		return sdk.ToolResult{}, errors.New("you would wait for yourself")
	}
	if byCommand(call) {
		return t.receiveLater(ctx, call, me, args)
	}
	w := t.enter(me, args.From)
	defer t.leave(w)
	var over <-chan time.Time
	if wait := args.patience(me); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		over = timer.C
	}
	for expired, look := false, lookSoon; ; look = min(2*look, lookAgain) {
		result, wait, err := t.tryReceive(ctx, call, args, w, expired)
		switch {
		case errors.Is(err, contract.ErrConflict): // somebody else was faster: look at what is left
			look = time.Millisecond
		case err != nil || !wait:
			return result, err
		}
		again := time.NewTimer(look)
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-over:
			expired, over = true, nil
		case <-w.changed:
		case <-again.C:
		}
		if again.Stop(); err != nil && ctx.Err() != nil {
			return sdk.ToolResult{}, err
		}
	}
}

// tryReceive looks once whether there is an answer; wait: not yet.
func (t *tasks) tryReceive(ctx context.Context, call sdk.ToolCall, args which, w *waiter, expired bool) (result sdk.ToolResult, wait bool, err error) {
	c := t.change(ctx, call.ID)
	me, err := c.who(call)
	if err != nil {
		return result, false, err
	}
	items, why, err := c.found(me, args, w, expired)
	if err != nil {
		return result, false, err
	}
	if len(items) == 0 && why == "" {
		return result, true, c.givePlace(me)
	}
	if back, err := c.takePlace(me, w); err != nil || !back {
		return result, true, err
	}
	if len(items) > 0 {
		result, err = c.give(call, me, items, false)
	} else if err = c.commit(); err == nil { // with the result, a conflict would have the call wait anew
		result, err = sdk.JSON(messages{Messages: []Message{}, Text: why})
	}
	return result, false, err
}

// found is the item that receive is to give, or why there is none; neither: it
// has to wait. A person has no wait of their own.
func (c *change) found(me agent, args which, w *waiter, expired bool) (items []lying, why string, err error) {
	if items, _, err = c.look(me, args, 1); err != nil || len(items) > 0 {
		return items, "", err
	}
	if expired {
		return nil, "Nothing has come in time.", nil
	}
	if err := c.known(me, args.From); err != nil {
		if me.task != nil && me.task.Waiting { // it has gone meanwhile
			return nil, "Nothing can come: " + err.Error(), nil
		}
		return nil, "", err
	}
	if why, err = c.hopeless(me, args.From, w); err != nil || why == "" {
		return nil, "", err
	}
	// That may be so because the last thing has come meanwhile.
	if items, _, err = c.look(me, args, 1); err != nil || len(items) > 0 {
		why = ""
	}
	return items, why, err
}

// givePlace gives the place of a worker back as long as it waits: others can
// begin. It is committed at once.
func (c *change) givePlace(me agent) error {
	if me.task == nil || !me.task.Placed {
		return nil
	}
	me.task.Waiting = true
	c.write(taskKey(me.root, me.name), me.task)
	if err := c.vacate(me.task, false); err != nil {
		return err
	}
	c.poke(me.root)
	return c.commit()
}

// takePlace takes a place again that was given back, if there is one.
func (c *change) takePlace(me agent, w *waiter) (bool, error) {
	if me.task == nil || !me.task.Waiting {
		return true, nil
	}
	key := queueKey(me.root, me.task.RequesterID)
	q, err := read[queue](c, key)
	if err != nil {
		return false, err
	}
	if q != nil && q.Limit > 0 {
		full := q.Placed >= q.Limit
		if c.returns(w, full); full {
			return false, nil
		}
		q.Placed++
		me.task.Placed = true
	}
	if q != nil { // without a limit, too: a run that sets one just now has not counted this one
		c.write(key, q)
	}
	me.task.Waiting = false
	c.write(taskKey(me.root, me.name), me.task)
	return true, nil
}
