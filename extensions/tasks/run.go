package tasks

import (
	"context"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// queue is the state of an agent's queue. A run without a limit uses no slots.
type queue struct {
	Active  bool    `json:"active,omitempty"`  // queued tasks start in free slots
	Limit   int     `json:"limit,omitempty"`   // number of slots; 0: no limit
	Timeout float64 `json:"timeout,omitempty"` // default of its tasks
	Used    int     `json:"placed,omitempty"`  // slots in use
}

type started struct {
	Started []string `json:"started"`
	Queued  int      `json:"queued"`
	Running int      `json:"running"`
	Text    string   `json:"text"`
}

// run starts the queued tasks of the caller.
func (t *tasks) run(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct {
		Count   int
		Timeout float64
	}
	c, me, err := t.beginCall(ctx, call, &args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	q, err := readOrNew[queue](c, queueKey(me.root, me.id))
	if err != nil {
		return sdk.ToolResult{}, err
	}
	q.Active, q.Limit, q.Timeout = true, args.Count, args.Timeout
	if limit := t.config.Concurrency; me.task != nil && limit > 0 && (q.Limit == 0 || q.Limit > limit) {
		q.Limit = limit
	}
	c.markHasQueue(me)
	c.write(queueKey(me.root, me.id), q)
	working, err := c.applyLimit(me, q)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	names, err := c.startQueued(me.root, me.id, q)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	out := started{Started: append([]string{}, names...), Running: working + len(names)}
	if err := c.scan(ctx, queuedOf(me.root, me.id), func(v sdk.Value) error {
		if !c.removes(v.Key) {
			out.Queued++
		}
		return nil
	}); err != nil {
		return sdk.ToolResult{}, err
	}
	c.notifyWaiters(me.root)
	switch {
	case len(out.Started) > 0:
		out.Text = words.Sprintf("Started: %s.", strings.Join(out.Started, ", "))
	case out.Queued > 0:
		out.Text = words.Sprintf("No free slot. The next task starts when a running one finishes.")
	default:
		out.Text = words.Sprintf("Nothing is queued.")
	}
	if out.Queued > 0 {
		out.Text = words.Sprintf("%v Still queued: %d.", out.Text, out.Queued)
	}
	return sdk.JSON(out, c.effects()...)
}

// applyLimit gives slots of a new run to tasks that are running already, and
// returns the number of running tasks.
func (c *change) applyLimit(me agent, q *queue) (working int, err error) {
	if err := c.scan(c.ctx, workingOf(me.root, me.id), func(v sdk.Value) error {
		name, err := track[string](c, v)
		if err != nil {
			return err
		}
		task, err := read[Task](c, taskKey(me.root, *name))
		if err != nil || task == nil || task.State != Running || task.Waiting {
			return err
		}
		working++
		if q.Limit > 0 && !task.HasSlot {
			task.HasSlot = true
			q.Used++
			c.write(taskKey(me.root, *name), task)
		}
		return nil
	}); err != nil || q.Limit == 0 || q.Used <= q.Limit {
		return working, err
	}
	// More slots are used than there are. A concurrent change that passes a slot
	// to one of the first queued tasks read the old limit, and must conflict.
	return working, c.touch(queuedOf(me.root, me.id), q.Used)
}

// touch rewrites the first rows of a prefix, so that changes that delete them conflict.
func (c *change) touch(prefix string, limit int) error {
	page, _, err := c.k.Page(c.ctx, prefix, "", limit)
	if err != nil {
		return fmt.Errorf("read %s: %w", prefix, err)
	}
	for _, v := range page {
		name, err := track[string](c, v)
		if err != nil {
			return err
		}
		c.write(v.Key, name)
	}
	return nil
}

// maxStarted bounds the tasks that one commit starts. The rest start when one of
// them ends.
const maxStarted = 200

// startQueued starts queued tasks while there are free slots, and returns their
// names. The caller writes the row of the queue if it has changed.
func (c *change) startQueued(root, owner string, q *queue) (names []string, err error) {
	queued := c.queued(root, owner)
	for q.Active && len(names) < maxStarted && (q.Limit == 0 || q.Used+c.slotsWanted(root, owner) < q.Limit) {
		task, err := queued.next()
		if err != nil {
			return nil, err
		}
		if task == nil {
			if q.Active = queued.skipped > 0; q.Active {
				c.refillLater(root, owner)
			}
			break
		}
		if task.HasSlot = q.Limit > 0; task.HasSlot {
			q.Used++
		}
		if err := c.startTask(task, q.Timeout); err != nil {
			return nil, err
		}
		names = append(names, task.Name)
	}
	return names, nil
}

// releaseSlot passes the slot of a task that ends or waits to the next queued
// task. If there is one, the row of the queue is unchanged, so tasks that end at
// the same time do not conflict.
func (c *change) releaseSlot(task *Task, capped bool) error {
	key := queueKey(task.Root, task.RequesterID)
	q, err := read[queue](c, key)
	if err != nil || q == nil {
		return err
	}
	was := *q
	if capped {
		q.Active = false // further tasks would be capped, too
	}
	if task.HasSlot {
		task.HasSlot = false
		q.Used--
	}
	return c.startNext(key, was, q)
}

// startNext starts queued tasks, and writes the row of the queue if it has changed.
// It also writes it when a task starts without a slot, to conflict with a run that
// sets a limit and has not counted that task.
func (c *change) startNext(key string, was queue, q *queue) error {
	names, err := c.startQueued(rootOf(key), lastOf(key), q)
	if err == nil && (*q != was || q.Limit == 0 && len(names) > 0) {
		c.write(key, q)
	}
	return err
}

// startTask starts a queued task.
func (c *change) startTask(task *Task, timeout float64) error {
	prompt, err := c.prompt(task.ID)
	if err != nil {
		return err
	}
	if task.Timeout == 0 {
		task.Timeout = timeout
	}
	task.State, task.StartedAt = Running, c.now
	c.write(taskKey(task.Root, task.Name), task)
	c.write(queuedOf(task.Root, task.RequesterID)+task.Seq, nil)
	c.effect(sdk.Put(workingOf(task.Root, task.RequesterID)+task.ID, task.Name))
	meta := map[string]any{}
	if task.Model != "" {
		meta[contract.MetaModel] = task.Model
	}
	if task.Blank {
		meta[contract.MetaInstructions] = fmt.Sprintf("Your name is %s. You work for another agent. Do the task "+
			"with the tools you have; no one can answer questions. Your final answer is your result.", task.Name)
	}
	raw, err := marshal(meta)
	if err != nil {
		return err
	}
	// If the session was deleted, its final output, which ends the task, is on its way.
	c.effect(sdk.Raw(&busv1.Input{
		Agent: task.Agent, Key: task.sessionKey(), Kind: contract.InputTask, Sender: task.Requester,
		ReplyTo: task.ReplyTo, Person: task.Principal.Person, Meta: raw,
		Text:      prompt + fmt.Sprintf("\n\n(Your name is %s. Your final answer is delivered automatically.)", task.Name),
		DedupeKey: "start:" + task.ID, IfExists: true,
	}))
	c.startTimer(task)
	return nil
}
