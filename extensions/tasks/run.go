package tasks

import (
	"context"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// queue is what all tasks of an agent share. A run without a limit has no places.
type queue struct {
	Active  bool    `json:"active,omitempty"`  // what is queued begins when there is a place
	Limit   int     `json:"limit,omitempty"`   // places; 0: any number
	Timeout float64 `json:"timeout,omitempty"` // of tasks that have none of their own
	Placed  int     `json:"placed,omitempty"`  // places that are taken
}

type started struct {
	Started []string `json:"started"`
	Queued  int      `json:"queued"`
	Running int      `json:"running"`
	Text    string   `json:"text"`
}

// run starts what the caller has queued.
func (t *tasks) run(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct {
		Count   int
		Timeout float64
	}
	c, me, err := t.asked(ctx, call, &args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	q, err := readOrNew[queue](c, queueKey(me.root, me.id))
	if err != nil {
		return sdk.ToolResult{}, err
	}
	q.Active, q.Limit, q.Timeout = true, args.Count, args.Timeout
	if most := t.config.Concurrency; me.task != nil && most > 0 && (q.Limit == 0 || q.Limit > most) {
		q.Limit = most
	}
	c.gives(me)
	c.write(queueKey(me.root, me.id), q)
	working, err := c.bound(me, q)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	begun, err := c.fill(me.root, me.id, q)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	out := started{Started: append([]string{}, begun...), Running: working + len(begun)}
	if err := c.scan(ctx, queuedOf(me.root, me.id), func(v sdk.Value) error {
		if !c.removes(v.Key) {
			out.Queued++
		}
		return nil
	}); err != nil {
		return sdk.ToolResult{}, err
	}
	c.poke(me.root)
	switch {
	case len(out.Started) > 0:
		out.Text = "Started: " + strings.Join(out.Started, ", ") + "."
	case out.Queued > 0:
		out.Text = "Nothing begins before one of those running has finished."
	default:
		out.Text = "Nothing is queued."
	}
	if out.Queued > 0 {
		out.Text += fmt.Sprintf(" Queued behind: %d.", out.Queued)
	}
	return sdk.JSON(out, c.effects()...)
}

// bound has the places of a new run count for those who are at work already, and
// says how many these are.
func (c *change) bound(me agent, q *queue) (working int, err error) {
	if err := c.scan(c.ctx, workingOf(me.root, me.id), func(v sdk.Value) error {
		name, err := seen[string](c, v)
		if err != nil {
			return err
		}
		task, err := read[Task](c, taskKey(me.root, *name))
		if err != nil || task == nil || task.State != Running || task.Waiting {
			return err
		}
		working++
		if q.Limit > 0 && !task.Placed {
			task.Placed = true
			q.Placed++
			c.write(taskKey(me.root, *name), task)
		}
		return nil
	}); err != nil || q.Limit == 0 || q.Placed <= q.Limit {
		return working, err
	}
	// There are fewer places than are taken. Whoever is just handing one over, to
	// a task in front, has read the old number: it has to read again.
	return working, c.touch(queuedOf(me.root, me.id), q.Placed)
}

// touch writes rows again, so that a change conflicts which removes them.
func (c *change) touch(prefix string, most int) error {
	page, _, err := c.k.Page(c.ctx, prefix, "", most)
	if err != nil {
		return fmt.Errorf("read %s: %w", prefix, err)
	}
	for _, v := range page {
		name, err := seen[string](c, v)
		if err != nil {
			return err
		}
		c.write(v.Key, name)
	}
	return nil
}

// maxBegun is how many tasks one commit begins. What is left begins when one of
// them ends.
const maxBegun = 200

// fill begins what is queued, as long as there is a place, and returns the names.
// Whoever calls it writes the row of the queue if that has changed.
func (c *change) fill(root, owner string, q *queue) (begun []string, err error) {
	line := c.line(root, owner)
	for q.Active && len(begun) < maxBegun && (q.Limit == 0 || q.Placed+c.returning(root, owner) < q.Limit) {
		task, err := line.next()
		if err != nil {
			return nil, err
		}
		if task == nil {
			if q.Active = line.skipped > 0; q.Active {
				c.lookAfter(root, owner)
			}
			break
		}
		if task.Placed = q.Limit > 0; task.Placed {
			q.Placed++
		}
		if err := c.begin(task, q.Timeout); err != nil {
			return nil, err
		}
		begun = append(begun, task.Name)
	}
	return begun, nil
}

// vacate has the next task take the place of one that ends or waits. If there is
// one, the row of the queue stays as it is: so tasks that end at the same time do
// not get in each other's way.
func (c *change) vacate(task *Task, capped bool) error {
	key := queueKey(task.Root, task.RequesterID)
	q, err := read[queue](c, key)
	if err != nil || q == nil {
		return err
	}
	was := *q
	if capped {
		q.Active = false // what began now would end in the same way
	}
	if task.Placed {
		task.Placed = false
		q.Placed--
	}
	return c.goOn(key, was, q)
}

// goOn begins what is queued, and writes the row of the queue if it is not what it
// was. It does so as well when something begins without a place: a run that sets
// a limit just now has not counted that.
func (c *change) goOn(key string, was queue, q *queue) error {
	begun, err := c.fill(rootOf(key), lastOf(key), q)
	if err == nil && (*q != was || q.Limit == 0 && len(begun) > 0) {
		c.write(key, q)
	}
	return err
}

// begin starts a queued task.
func (c *change) begin(task *Task, timeout float64) error {
	prompt, err := c.prompt(task.ID)
	if err != nil {
		return err
	}
	if task.Timeout == 0 {
		task.Timeout = timeout
	}
	task.State, task.StartedAt = Running, c.now
	c.write(taskKey(task.Root, task.Name), task)
	c.write(queuedOf(task.Root, task.RequesterID)+task.Line, nil)
	c.effect(sdk.Put(workingOf(task.Root, task.RequesterID)+task.ID, task.Name))
	meta := map[string]any{}
	if task.Model != "" {
		meta[contract.MetaModel] = task.Model
	}
	if task.Blank {
		meta[contract.MetaInstructions] = fmt.Sprintf("Your name is %s. You work for another agent. "+
			"Do the task that you are given with the tools that you have; nobody can answer questions. Your final answer is what it gets.", task.Name)
	}
	raw, err := marshal(meta)
	if err != nil {
		return err
	}
	// If its session was deleted, that ends the task: the word is on its way.
	c.effect(sdk.Raw(&busv1.Input{
		Agent: task.Agent, Key: task.sessionKey(), Kind: contract.InputTask, Sender: task.Requester, ReplyTo: task.ReplyTo, Meta: raw,
		Text:      prompt + fmt.Sprintf("\n\n(Your name is %s. Your final answer is delivered by itself.)", task.Name),
		DedupeKey: "start:" + task.ID, IfExists: true,
	}))
	c.watchTime(task)
	return nil
}
