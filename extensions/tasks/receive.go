package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// waiter is a call of receive that waits.
type waiter struct {
	from    string // empty: whoever it is
	returns bool   // it has what it waited for, and wants its place
	changed chan struct{}
}

// lookAgain is how long a wait looks for nothing by itself. What comes wakes it.
const lookAgain = 2 * time.Second

// receive waits for a message. It looks again whenever something has changed,
// and what is stored is all that counts.
func (t *tasks) receive(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args which
	if err := arguments(call, &args); err != nil {
		return sdk.ToolResult{}, err
	}
	var over <-chan time.Time
	expired, w := false, (*waiter)(nil)
	var me agent
	defer func() { t.leave(me, w) }()
	for {
		c := t.change(ctx)
		var err error
		if me, err = c.who(call); err != nil {
			return sdk.ToolResult{}, err
		}
		if w == nil && !byCommand(call) {
			w = t.enter(me, args.From)
			if wait := args.patience(me); wait > 0 {
				timer := time.NewTimer(wait)
				defer timer.Stop()
				over = timer.C
			}
		}
		result, wait, err := c.once(call, me, args, w, expired)
		if err != nil && !errors.Is(err, contract.ErrConflict) || err == nil && !wait {
			return result, err
		}
		look := lookAgain
		if err != nil {
			look = time.Millisecond
		}
		select {
		case <-ctx.Done():
			return sdk.ToolResult{}, context.Cause(ctx)
		case <-over:
			expired, over = true, nil
		case <-w.changed:
		case <-time.After(look):
		}
	}
}

// workerWaits is how long a worker waits that gives no timeout: an idle main may
// write to it, and may never do so.
const workerWaits = time.Hour

// patience is how long a call of receive waits; 0: as long as it takes.
func (w which) patience(me agent) time.Duration {
	if w.Timeout == 0 && me.task != nil {
		return workerWaits
	}
	return time.Duration(w.Timeout * float64(time.Second))
}

// once looks whether there is an answer; wait: not yet.
func (c *change) once(call sdk.ToolCall, me agent, args which, w *waiter, expired bool) (result sdk.ToolResult, wait bool, err error) {
	if args.From != "" {
		if args.From == me.name {
			return result, false, errors.New("you would wait for yourself")
		}
		if err := c.known(me, args.From); err != nil {
			return result, false, err
		}
	}
	items, _, err := c.look(me.root, me.name, args.From, args.newestFirst(), 1)
	if err != nil {
		return result, false, err
	}
	why := ""
	switch {
	case len(items) > 0:
	case expired:
		why = "Nothing has come in time."
	default:
		if why, err = c.hopeless(me, args.From); err == nil && why != "" { // that may be so because the last thing has come meanwhile
			items, _, err = c.look(me.root, me.name, args.From, args.newestFirst(), 1)
		}
		if err != nil {
			return result, false, err
		}
	}
	if len(items) > 0 || why != "" {
		if back, err := c.takePlace(me, w); err != nil || !back {
			return result, true, err
		}
	}
	switch {
	case len(items) > 0:
		result, err = c.give(call, me, items, false)
		return result, false, err
	case why != "":
		result, err = sdk.JSON(messages{Messages: []Message{}, Text: why}, c.effects()...)
		return result, false, err
	}
	if byCommand(call) {
		result, err = c.follow(call, me, args)
		return result, false, err
	}
	return result, true, c.givePlace(me)
}

// enter makes a wait known.
func (t *tasks) enter(me agent, from string) *waiter {
	w := &waiter{from: from, changed: make(chan struct{}, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waits[me.root] == nil {
		t.waits[me.root] = map[string]*waiter{}
	}
	t.waits[me.root][me.name] = w
	// Whoever waits for this one may do so in vain now.
	t.wakeLocked(me.root, w)
	return w
}

func (t *tasks) leave(me agent, w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w != nil && t.waits[me.root][me.name] == w {
		delete(t.waits[me.root], me.name)
		if len(t.waits[me.root]) == 0 {
			delete(t.waits, me.root)
		}
	}
}

// wake has all who wait in a tree look again.
func (t *tasks) wake(root string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakeLocked(root, nil)
}

func (t *tasks) wakeLocked(root string, but *waiter) {
	for _, w := range t.waits[root] {
		if w == but {
			continue
		}
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// givePlace gives the place of a worker back as long as it waits: others can
// begin. It is committed at once.
func (c *change) givePlace(me agent) error {
	if me.task == nil {
		return nil
	}
	q, err := readOrNew[queue](c, queueKey(me.root, me.task.Requester))
	if err != nil || slices.Contains(q.Waiting, me.name) {
		return err
	}
	q.Running = slices.DeleteFunc(q.Running, func(name string) bool { return name == me.name })
	q.Waiting = append(q.Waiting, me.name)
	if err := c.fill(me.root, me.task.Requester, q); err != nil {
		return err
	}
	c.poke(me.root)
	return c.k.Commit(c.ctx, c.effects()...)
}

// takePlace takes a place again that was given back, if there is one.
func (c *change) takePlace(me agent, w *waiter) (bool, error) {
	if me.task == nil {
		return true, nil
	}
	q, err := readOrNew[queue](c, queueKey(me.root, me.task.Requester))
	if err != nil || !slices.Contains(q.Waiting, me.name) {
		return err == nil, err
	}
	c.mu.Lock()
	w.returns = q.Limit > 0 && len(q.Running) >= q.Limit
	full := w.returns
	c.mu.Unlock()
	if full {
		return false, nil
	}
	q.Waiting = slices.DeleteFunc(q.Waiting, func(name string) bool { return name == me.name })
	q.Running = append(q.Running, me.name)
	c.write(queueKey(me.root, me.task.Requester), q)
	return true, nil
}

// returning is how many workers of a queue want a place that they have given
// back: they go before what is queued.
func (t *tasks) returning(root string, q *queue) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range q.Waiting {
		if w := t.waits[root][name]; w != nil && w.returns {
			n++
		}
	}
	return n
}

// hopeless says why nothing can come, if that is so.
func (c *change) hopeless(me agent, from string) (string, error) {
	all := map[string]*Task{}
	// The tasks are read first: of one that has finished by then, the result lies
	// where those who wait for it are seen to have it.
	if err := c.each(c.ctx, me.root, func(task *Task) error {
		all[task.Name] = task
		return nil
	}); err != nil {
		return "", err
	}
	waits, err := c.waiting(me, from)
	if err != nil {
		return "", err
	}
	if from == "" { // often enough one of its own is at work
		q, err := readOrNew[queue](c, queueKey(me.root, me.name))
		if err != nil {
			return "", err
		}
		for _, name := range q.Running {
			if _, waiting := waits[name]; !waiting {
				return "", nil
			}
		}
	}
	active := map[string]bool{}
	for _, task := range all {
		if _, known := active[task.Requester]; task.State == Queued && !known {
			q, err := readOrNew[queue](c, queueKey(me.root, task.Requester))
			if err != nil {
				return "", err
			}
			active[task.Requester] = q.Active
		}
	}
	live := alive(all, active, waits)
	if from == "" {
		for name := range live {
			if name != me.name {
				return "", nil
			}
		}
		return "Nothing can come: nothing is running that would send or finish. What is queued begins with run.", nil
	}
	task := all[from]
	switch {
	case live[from]:
		return "", nil
	case task != nil && task.State == Finished:
		return fmt.Sprintf("Nothing more can come from %s: it has finished (%s).", from, task.Outcome), nil
	case task != nil && task.State == Queued:
		return fmt.Sprintf("Nothing can come from %s: it is queued, and nobody has started it. Call run first.", from), nil
	}
	return fmt.Sprintf("Nothing can come from %s: it waits, directly or through others, for you.", from), nil
}

// waiting is who waits for whom, for one that waits itself. One that has what it
// waits for does not, even if it has not taken it yet.
func (c *change) waiting(me agent, from string) (map[string]string, error) {
	wait := map[string]*waiter{}
	c.mu.Lock()
	for name, w := range c.waits[me.root] {
		if !w.returns && name != me.name {
			wait[name] = w
		}
	}
	c.mu.Unlock()
	for name, w := range wait {
		prefix := orderPrefix(me.root, name)
		if w.from != "" {
			prefix = inboxPrefix(me.root, name, w.from)
		}
		switch lies, err := c.anything(prefix); {
		case err != nil:
			return nil, fmt.Errorf("read the inbox of %s: %w", name, err)
		case lies:
			delete(wait, name)
		}
	}
	waits := map[string]string{me.name: from}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, w := range wait {
		if c.waits[me.root][name] == w { // it has not taken anything meanwhile
			waits[name] = w.from
		}
	}
	return waits, nil
}

// alive is the agents of a tree that may still say something: those who work,
// and those who wait for one of them. waits holds who waits for whom.
func alive(all map[string]*Task, active map[string]bool, waits map[string]string) map[string]bool {
	live := map[string]bool{}
	if _, waiting := waits[main]; !waiting {
		live[main] = true
	}
	for grown := true; grown; {
		grown = false
		add := func(name string) {
			if !live[name] {
				live[name], grown = true, true
			}
		}
		for name, task := range all {
			from, waiting := waits[name]
			switch {
			case task.State == Finished || live[name]:
			case task.State == Queued && (active[task.Requester] || live[task.Requester]),
				task.State == Running && !waiting,
				waiting && from != "" && live[from],
				waiting && from == "" && len(live) > 0:
				add(name)
			}
		}
		if from, waiting := waits[main]; waiting && (from != "" && live[from] || from == "" && len(live) > 0) {
			add(main)
		}
	}
	return live
}

// follow has the next message sent to the person who waits for it.
func (c *change) follow(call sdk.ToolCall, me agent, args which) (sdk.ToolResult, error) {
	if _, err := read[follow](c, followPrefix+me.root); err != nil {
		return sdk.ToolResult{}, err
	}
	f := &follow{From: args.From, ReplyTo: call.ReplyTo}
	if args.Timeout > 0 {
		f.Until = c.now.Add(time.Duration(args.Timeout * float64(time.Second)))
	}
	c.write(followPrefix+me.root, f)
	c.mu.Lock()
	c.follows[me.root] = time.Now()
	c.mu.Unlock()
	return sdk.JSON(messages{Messages: []Message{}, Waiting: true, Text: "Waiting. What comes next is sent here."}, c.effects()...)
}

// given sends an item to the person who waits for it, if there is one.
func (c *change) given(root string, item Item) (bool, error) {
	f, err := read[follow](c, followPrefix+root)
	if err != nil || f == nil || f.From != "" && f.From != item.From {
		return false, err
	}
	c.write(followPrefix+root, nil)
	c.effect(sdk.Publish(contract.TopicUserNotify, contract.UserNotify{Text: item.prose(), ReplyTo: f.ReplyTo}), record(root, item))
	return true, nil
}

// giveUp ends the wait of a person whose time is over.
func (t *tasks) giveUp(ctx context.Context, root string) (sdk.Effects, error) {
	c := t.change(ctx)
	f, err := read[follow](c, followPrefix+root)
	if err != nil {
		return nil, err
	}
	if f == nil {
		t.forget(t.follows, root)
		return nil, nil
	}
	if f.Until.IsZero() || c.now.Before(f.Until) {
		return nil, nil
	}
	c.write(followPrefix+root, nil)
	c.effect(sdk.Publish(contract.TopicUserNotify, contract.UserNotify{Text: "Nothing has come in time.", ReplyTo: f.ReplyTo}))
	return c.effects(), nil
}
