package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// A receive is woken by changes. It also polls, at first often, because a change
// that was committed just as it began may not have woken it.
const (
	pollMin = 10 * time.Millisecond
	pollMax = 5 * time.Second
)

// workerTimeout is the default timeout of receive in a task: an idle main might
// still write to it, or never.
const workerTimeout = time.Hour

// timeout is how long a receive waits; 0: without limit.
func (w query) timeout(me agent) time.Duration {
	if w.Timeout == 0 && me.task != nil {
		return workerTimeout
	}
	return seconds(w.Timeout)
}

// receive waits for a message. Each change makes it read the store again; nothing
// else decides its result.
func (t *tasks) receive(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args query
	if err := call.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	me, err := t.change(ctx, call.ID).caller(call)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if args.From == me.name {
		return sdk.ToolResult{}, words.Errorf("an agent cannot wait for itself")
	}
	if byCommand(call) {
		return t.deferReceive(ctx, call, me, args)
	}
	w := t.addWaiter(me, args.From, false)
	defer t.removeWaiter(w)
	var timeout <-chan time.Time
	if wait := args.timeout(me); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		timeout = timer.C
	}
	for expired, poll := false, pollMin; ; poll = min(2*poll, pollMax) {
		result, wait, err := t.tryReceive(ctx, call, args, w, expired)
		switch {
		case errors.Is(err, contract.ErrConflict): // a concurrent change won
			poll = time.Millisecond
		case err != nil || !wait:
			return result, err
		}
		next := time.NewTimer(poll)
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-timeout:
			expired, timeout = true, nil
		case <-w.changed:
		case <-next.C:
		}
		if next.Stop(); err != nil && ctx.Err() != nil {
			return sdk.ToolResult{}, err
		}
	}
}

// tryReceive tries once to receive; wait: there is no result yet.
func (t *tasks) tryReceive(
	ctx context.Context, call sdk.ToolCall, args query, w *waiter, expired bool,
) (result sdk.ToolResult, wait bool, err error) {
	c := t.change(ctx, call.ID)
	me, err := c.caller(call)
	if err != nil {
		return result, false, err
	}
	items, why, err := c.nextItem(me, args, w, expired)
	if err != nil {
		return result, false, err
	}
	if len(items) == 0 && why == "" {
		return result, true, c.releaseWhileWaiting(me)
	}
	if running, err := c.reacquireSlot(me, w); err != nil || !running {
		return result, true, err
	}
	if len(items) > 0 {
		result, err = c.answer(call, me, items, false)
	} else if err = c.commit(); err == nil { // a conflict of the result itself would restart the wait
		result, err = sdk.JSON(messages{Messages: []Message{}, Text: why})
	}
	return result, false, err
}

// nextItem returns the item for a receive, or why there will be none; neither: the
// receive waits. w is nil for a person.
func (c *change) nextItem(me agent, args query, w *waiter, expired bool) (items []inboxItem, why string, err error) {
	if items, _, err = c.readInbox(me, args, 1); err != nil || len(items) > 0 {
		return items, "", err
	}
	if expired {
		return nil, nothingInTime, nil
	}
	if err := c.known(me, args.From); err != nil {
		if me.task != nil && me.task.Waiting { // deleted during the wait
			return nil, words.Sprintf("Nothing can arrive: %v", err), nil
		}
		return nil, "", err
	}
	if why, err = c.whyNothingCanCome(me, args.From, w); err != nil || why == "" {
		return nil, "", err
	}
	// The last message may have arrived meanwhile.
	if items, _, err = c.readInbox(me, args, 1); err != nil || len(items) > 0 {
		why = ""
	}
	return items, why, err
}

// releaseWhileWaiting releases the slot of a worker while it waits, so that
// another task can start. It commits at once.
func (c *change) releaseWhileWaiting(me agent) error {
	if me.task == nil || !me.task.HasSlot {
		return nil
	}
	me.task.Waiting = true
	c.write(taskKey(me.root, me.name), me.task)
	if err := c.releaseSlot(me.task, false); err != nil {
		return err
	}
	c.notifyWaiters(me.root)
	return c.commit()
}

// reacquireSlot takes a slot for a worker that released its own; false: none is free.
func (c *change) reacquireSlot(me agent, w *waiter) (bool, error) {
	if me.task == nil || !me.task.Waiting {
		return true, nil
	}
	key := queueKey(me.root, me.task.RequesterID)
	q, err := read[queue](c, key)
	if err != nil {
		return false, err
	}
	if q != nil && q.Limit > 0 {
		full := q.Used >= q.Limit
		if c.setWantsSlot(w, full); full {
			return false, nil
		}
		q.Used++
		me.task.HasSlot = true
	}
	if q != nil { // even without a limit: conflicts with a run that sets one
		c.write(key, q)
	}
	me.task.Waiting = false
	c.write(taskKey(me.root, me.name), me.task)
	return true, nil
}
