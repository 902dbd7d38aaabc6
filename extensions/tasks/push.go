package tasks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

type pushed struct {
	Name   string `json:"name"`
	TaskID string `json:"task_id"`
	State  string `json:"state"`
	Text   string `json:"text"`
}

// push queues a task of the caller.
func (t *tasks) push(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct {
		Prompt, Name, Model, Agent, Deliver string
		Timeout                             float64
	}
	c, me, err := t.asked(ctx, call, &args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if strings.TrimSpace(args.Prompt) == "" {
		return sdk.ToolResult{}, errors.New("the prompt is empty: say what is to be done")
	}
	if args.Deliver == announce && me.task != nil {
		return sdk.ToolResult{}, errors.New("only main can have a result announced: a task ends with its last answer; use receive")
	}
	if err := c.allowed(me); err != nil {
		return sdk.ToolResult{}, err
	}
	name, err := c.newName(me.root, args.Name, call.Repeat)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	number := t.number()
	task := &Task{
		ID: "t" + strconv.FormatInt(number, 36), Root: me.root, Name: name, Kind: "task", Begins: beginning(args.Prompt), Agent: args.Agent, Model: args.Model,
		Requester: me.name, RequesterID: me.id, ReplyTo: call.ReplyTo, Depth: 1, Timeout: args.Timeout, Line: place(number),
		State: Queued, CreatedAt: c.now,
	}
	task.Chain = task.ID
	if args.Deliver == announce {
		task.Deliver = announce
	}
	if task.Agent == "" {
		task.Agent, task.Blank = call.Agent, true
	}
	if me.task != nil {
		task.Depth, task.Chain = me.task.Depth+1, me.task.Chain
		if task.Model == "" && task.Blank {
			task.Model = me.task.Model
		}
	}
	c.gives(me)
	c.write(taskKey(me.root, name), task)
	c.write(promptPrefix+task.ID, &args.Prompt)
	c.keepPrompt(task.ID, args.Prompt)
	c.write(queuedOf(me.root, me.id)+task.Line, &name)
	// The session is made now: so an agent that does not exist is refused here.
	c.effect(sdk.Raw(&busv1.SessionEnsure{
		Agent: task.Agent, Key: task.sessionKey(), Within: call.Session, Chain: task.Chain,
		Outbound: &busv1.Outbound{Kind: busv1.Outbound_KIND_EXTENSION},
	}))
	if err := c.outrun(me); err != nil {
		return sdk.ToolResult{}, err
	}
	c.poke(me.root)
	out := pushed{Name: name, TaskID: task.ID, State: task.State, Text: fmt.Sprintf("Queued as %s. /run starts it.", name)}
	return sdk.JSON(out, c.effects()...)
}

// gives notes that an agent has a queue, which has to be emptied when it ends.
func (c *change) gives(me agent) {
	if me.task != nil && !me.task.Gives {
		me.task.Gives = true
		c.write(taskKey(me.root, me.name), me.task)
	}
}

// outrun ends a run that has come to the end of its queue: what is pushed from
// now on waits for the next one.
func (c *change) outrun(me agent) error {
	key := queueKey(me.root, me.id)
	q, err := read[queue](c, key)
	if err != nil || q == nil || !q.Active {
		return err
	}
	others, err := c.any(queuedOf(me.root, me.id))
	if err == nil && !others {
		q.Active = false
		c.write(key, q)
	}
	return err
}

// allowed holds nested agents within bounds.
func (c *change) allowed(me agent) error {
	if me.task == nil {
		return nil
	}
	if c.config.Depth > 0 && me.task.Depth >= c.config.Depth {
		return fmt.Errorf("%d agents stand in a row already, each working for the one before it: do this yourself", me.task.Depth)
	}
	most := c.config.PerRoot
	if most <= 0 {
		return nil
	}
	nested := 0
	for _, prefix := range []string{queuedPrefix, workingPrefix} {
		prefix += me.root + "/"
		// What main has pushed stands in front and is not counted.
		page, _, err := c.k.Page(c.ctx, prefix, prefix+main+"/\U0010FFFF", most)
		if err != nil {
			return fmt.Errorf("count the tasks of sub-agents: %w", err)
		}
		nested += len(page)
	}
	if nested >= most {
		return fmt.Errorf("%d tasks of sub-agents are unfinished in this conversation, and that is the limit: wait for some, or do this yourself", nested)
	}
	return nil
}
