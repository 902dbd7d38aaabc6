package tasks

import (
	"bytes"
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

// byCall is the deliver option of a task whose result is that of the call which
// gave it. Such a task has the id of the call, needs no queue and no slot, and ends
// with the call.
const byCall = "call"

// delegation is the result of delegate_task.
type delegation struct {
	Agent   string `json:"agent"`
	Success bool   `json:"success"`
	Output  string `json:"output,omitempty"`
	Error   string `json:"error,omitempty"`
	Partial string `json:"partial_output,omitempty"`
	Outcome string `json:"outcome"`
}

// delegate gives another agent a task, and waits for its result. A repeated call
// waits for the same task.
func (t *tasks) delegate(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ Agent, Prompt string }
	_, me, err := t.beginCall(ctx, call, &args)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	name := args.Agent + "-" + call.ID
	w := t.addWaiter(me, name, true)
	defer t.removeWaiter(w)
	for poll := pollMin; ; poll = min(2*poll, pollMax) {
		c := t.change(ctx, call.ID)
		task, err := read[Task](c, taskKey(me.root, name))
		switch {
		case err == nil && task == nil:
			err = c.startDelegated(me, call, name, args.Agent, args.Prompt)
		case err == nil && task.ID != call.ID:
			err = fmt.Errorf("a task is named %q already", name)
		case err == nil && task.State == Finished:
			return c.delegated(task)
		}
		if err != nil && !errors.Is(err, contract.ErrConflict) {
			return sdk.ToolResult{}, err
		}
		next := time.NewTimer(poll)
		select {
		case <-ctx.Done(): // the call has ended, and the task with it
			next.Stop()
			return sdk.ToolResult{}, context.Cause(ctx)
		case <-w.changed:
		case <-next.C:
		}
		next.Stop()
	}
}

// startDelegated starts the task of a call. It commits at once.
func (c *change) startDelegated(me agent, call sdk.ToolCall, name, agent, prompt string) error {
	if strings.TrimSpace(prompt) == "" {
		return errors.New("the prompt is empty: describe the task; no agent was asked")
	}
	if err := c.checkLimits(me); err != nil {
		return err
	}
	if err := c.checkAgent(agent); err != nil {
		return fmt.Errorf("%w; no agent was asked", err)
	}
	task := &Task{
		ID: call.ID, Root: me.root, Name: name, Kind: "task", Preview: preview(prompt), Agent: agent,
		Requester: me.name, RequesterID: me.id, ReplyTo: call.ReplyTo, Depth: 1, Deliver: byCall,
		State: Running, Principal: call.Principal, CreatedAt: c.now, StartedAt: c.now,
	}
	if me.task != nil {
		task.Depth, task.Chain = me.task.Depth+1, me.task.Chain
	}
	c.write(taskKey(me.root, name), task)
	c.effect(
		sdk.Put(promptPrefix+task.ID, prompt),
		sdk.Put(workingOf(me.root, me.id)+task.ID, name),
		// Without a chain, its turns are counted with those of the conversation.
		sdk.Raw(&busv1.SessionEnsure{
			Agent: agent, Key: task.sessionKey(), Within: call.Session, Chain: task.Chain, Title: task.title(),
			Outbound: &busv1.Outbound{Kind: busv1.Outbound_KIND_EXTENSION},
		}),
		sdk.Raw(&busv1.Input{
			Agent: agent, Key: task.sessionKey(), Kind: contract.InputTask, Sender: call.Agent, Text: prompt,
			ReplyTo: call.ReplyTo, Person: call.Principal.Person, DedupeKey: "start:" + task.ID,
		}))
	if err := c.commit(); err != nil {
		return fmt.Errorf("give %s the task: %w", agent, err)
	}
	return nil
}

// checkAgent refuses an agent that cannot be given a task. One that is being
// restarted can.
func (c *change) checkAgent(id string) error {
	agents, err := c.k.Agents(c.ctx)
	if err != nil {
		return fmt.Errorf("list the agents: %w", err)
	}
	i := slices.IndexFunc(agents, func(a listedAgent) bool { return a.ID == id })
	if i >= 0 && agents[i].Available {
		return nil
	}
	var ids []string
	for _, a := range agents {
		if a.Available {
			ids = append(ids, a.ID)
		}
	}
	others := strings.Join(ids, ", ")
	if i >= 0 {
		return fmt.Errorf("the agent %q is not running; these are: %s", id, others)
	}
	return fmt.Errorf("there is no agent %q, or it is not enabled; there are: %s", id, others)
}

// delegated returns the result of a finished task to the call that gave it.
func (c *change) delegated(task *Task) (sdk.ToolResult, error) {
	stored, err := readOrNew[Result](c, resultPrefix+task.ID)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	d := delegation{
		Agent: task.Agent, Success: stored.Success, Output: stored.Output, Error: stored.Error,
		Partial: stored.Partial, Outcome: task.Outcome,
	}
	return sdk.ToolResult{Content: d.fit(), IsError: !d.Success}, nil
}

const cutMark = "\n[cut: it was longer]"

// fit returns a delegation as JSON that reaches a model whole: longer texts are cut.
func (d delegation) fit() string {
	for {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		_ = e.Encode(d) // strings and a bool
		if text.Len() <= contract.MaxToolResult {
			return strings.TrimSpace(text.String())
		}
		for _, s := range []*string{&d.Output, &d.Error, &d.Partial} {
			if *s != "" {
				keep := len(*s)*contract.MaxToolResult/text.Len() - 4*len(cutMark)
				*s = strings.ToValidUTF8((*s)[:max(0, keep)], "") + cutMark
			}
		}
	}
}
