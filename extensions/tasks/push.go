package tasks

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
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
	c, me, err := t.beginCall(ctx, call, &args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if strings.TrimSpace(args.Prompt) == "" {
		return sdk.ToolResult{}, words.Errorf("the prompt is empty: describe the task")
	}
	if args.Deliver == announce && me.task != nil {
		return sdk.ToolResult{}, words.Errorf("deliver=announce works only for main: use receive instead")
	}
	if err := c.checkLimits(me); err != nil {
		return sdk.ToolResult{}, err
	}
	name, err := c.newName(me.root, args.Name, call.Repeat)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	number := t.nextSeq()
	task := &Task{
		ID: "t" + strconv.FormatInt(number, 36), Root: me.root, Name: name, Kind: "task",
		Preview: preview(args.Prompt), Agent: args.Agent, Model: args.Model,
		Requester: me.name, RequesterID: me.id, ReplyTo: call.ReplyTo, Depth: 1, Timeout: args.Timeout,
		Seq: seqKey(number), State: Queued, Principal: call.Principal, CreatedAt: c.now,
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
	c.markHasQueue(me)
	c.write(taskKey(me.root, name), task)
	c.write(promptPrefix+task.ID, &args.Prompt)
	c.keepPrompt(task.ID, args.Prompt)
	c.write(queuedOf(me.root, me.id)+task.Seq, &name)
	// Creating the session now refuses an agent that does not exist.
	c.effect(sdk.Raw(&busv1.SessionEnsure{
		Agent: task.Agent, Key: task.sessionKey(), Within: call.Session, Chain: task.Chain, Title: task.title(),
		Outbound: &busv1.Outbound{Kind: busv1.Outbound_KIND_EXTENSION},
	}))
	if err := c.endEmptyRun(me); err != nil {
		return sdk.ToolResult{}, err
	}
	c.notifyWaiters(me.root)
	out := pushed{
		Name: name, TaskID: task.ID, State: task.State, Text: words.Sprintf("Queued as %s. /run starts it.", name),
	}
	return sdk.JSON(out, c.effects()...)
}

// markHasQueue notes that a task has a queue, which is emptied when it ends.
func (c *change) markHasQueue(me agent) {
	if me.task != nil && !me.task.HasQueue {
		me.task.HasQueue = true
		c.write(taskKey(me.root, me.name), me.task)
	}
}

// endEmptyRun ends a run whose queue is empty, so that a task pushed now waits for
// the next run.
func (c *change) endEmptyRun(me agent) error {
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

// checkLimits enforces the limits on nested agents.
func (c *change) checkLimits(me agent) error {
	if me.task == nil {
		return nil
	}
	if c.config.Depth > 0 && me.task.Depth >= c.config.Depth {
		return fmt.Errorf("agents are already nested %d deep, which is the limit: do this yourself", me.task.Depth)
	}
	limit := c.config.PerRoot
	if limit <= 0 {
		return nil
	}
	nested := 0
	for _, prefix := range []string{queuedPrefix, workingPrefix} {
		prefix += me.root + "/"
		// The tasks of main sort first and are not counted.
		page, _, err := c.k.Page(c.ctx, prefix, prefix+main+"/\U0010FFFF", limit)
		if err != nil {
			return fmt.Errorf("count the tasks of sub-agents: %w", err)
		}
		nested += len(page)
	}
	if nested >= limit {
		return fmt.Errorf("sub-agents have %d unfinished tasks in this conversation, which is the limit: "+
			"wait for some, or do this yourself", nested)
	}
	return nil
}
