package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// kept is the deliver option of a task that a program gave outside of any conversation: its
// result stays with it, for show.
const kept = "keep"

const (
	// outsideKey begins the keys of the sessions that are the roots of such tasks. The id of
	// the person for whom they are given follows.
	outsideKey = "outside:"
	// maxOutside is how many tasks of one root may be unfinished.
	maxOutside = 50
	// sameTask is how long a call that gives the same task returns the first one.
	sameTask = 10 * time.Minute
)

// given is a task that was created or changed.
type given struct {
	ID    string `json:"task_id"`
	Name  string `json:"name"`
	State string `json:"state"`
}

// create gives an agent a task outside of any conversation, and starts it. The same prompt
// under the same name is the same task, so a call may be repeated.
func (t *tasks) create(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	args := struct {
		Agent, Prompt, Name, Model string
		Timeout                    float64
		Start                      bool
	}{Start: true}
	if err := call.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	if strings.TrimSpace(args.Prompt) == "" {
		return sdk.ToolResult{}, errors.New("the prompt is empty: describe the task; nothing was created")
	}
	c := t.change(ctx, call.ID)
	if err := c.checkAgent(args.Agent); err != nil {
		return sdk.ToolResult{}, fmt.Errorf("%w; nothing was created", err)
	}
	root, err := t.k.Ensure(ctx, args.Agent, outsideKey+call.Principal.Person, "tasks of programs")
	if err != nil {
		return sdk.ToolResult{}, fmt.Errorf("open the session of the tasks: %w", err)
	}
	if args.Name != "" {
		old, err := read[Task](c, taskKey(root, args.Name))
		if err != nil {
			return sdk.ToolResult{}, err
		}
		if old != nil && (old.State != Finished || c.now.Sub(old.CreatedAt) < sameTask) {
			if prompt, err := c.prompt(old.ID); err != nil || prompt == args.Prompt {
				return orJSON(old, err)
			}
		}
	}
	name, err := c.newName(root, args.Name, true)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if err := c.checkOutside(root); err != nil {
		return sdk.ToolResult{}, err
	}
	number := t.nextSeq()
	task := &Task{
		ID: "t" + strconv.FormatInt(number, 36), Root: root, Name: name, Kind: "task", Preview: preview(args.Prompt),
		Agent: args.Agent, Model: args.Model, Requester: main, RequesterID: main, Depth: 1, Timeout: args.Timeout,
		Seq: seqKey(number), State: Queued, Deliver: kept, Principal: call.Principal, CreatedAt: c.now,
	}
	task.Chain = task.ID
	if of := call.Principal; of.Person != "" && !slices.Contains(of.Accounts, contract.Owner) {
		if task.ReplyTo, err = t.k.Reach(ctx, of.Person); err != nil {
			return sdk.ToolResult{}, fmt.Errorf("find where the person of the task is reached: %w", err)
		}
	}
	c.write(taskKey(root, name), task)
	c.write(promptPrefix+task.ID, &args.Prompt)
	c.write(queuedOf(root, main)+task.Seq, &name)
	c.effect(sdk.Raw(&busv1.SessionEnsure{
		Agent: task.Agent, Key: task.sessionKey(), Chain: task.Chain, Title: task.title(),
		Outbound: &busv1.Outbound{Kind: busv1.Outbound_KIND_EXTENSION},
	}))
	if args.Start {
		err = c.startTask(task, 0)
	}
	return orJSON(task, err, c.effects()...)
}

// checkOutside limits the unfinished tasks of a root.
func (c *change) checkOutside(root string) error {
	unfinished := 0
	for _, prefix := range []string{queuedOf(root, main), workingOf(root, main)} {
		page, _, err := c.k.Page(c.ctx, prefix, "", maxOutside)
		if err != nil {
			return fmt.Errorf("count the tasks of programs: %w", err)
		}
		unfinished += len(page)
	}
	if unfinished >= maxOutside {
		return fmt.Errorf("%w: %d tasks have not finished, which is the limit: wait for some, or cancel them",
			contract.ErrFull, unfinished)
	}
	return nil
}

// update changes a task that has not finished.
func (t *tasks) update(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct {
		ID, Prompt, Message string
		Timeout             float64
		Start               bool
	}
	if err := call.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	found, err := t.byID(ctx, call, args.ID)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	c := t.change(ctx, call.ID)
	task, err := c.find(found.Root, found.Name)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	switch {
	case task.ended():
		err = fmt.Errorf("the task %q has ended (%s); nothing was changed", task.Name, task.outcome())
	case args.Prompt != "" && task.State != Queued:
		err = fmt.Errorf("the task %q runs already: send it a message; nothing was changed", task.Name)
	case args.Start && task.State != Queued:
		err = fmt.Errorf("the task %q runs already; nothing was changed", task.Name)
	case args.Start && task.Deliver != kept:
		err = fmt.Errorf("the task %q is in the queue of a conversation, which starts it; nothing was changed", task.Name)
	case args.Prompt == "" && args.Message == "" && args.Timeout == 0 && !args.Start:
		err = errors.New("give what to change: prompt, message, timeout or start")
	}
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if args.Prompt != "" {
		if _, err := readOrNew[string](c, promptPrefix+task.ID); err != nil {
			return sdk.ToolResult{}, err
		}
		c.forgetPrompt(task.ID)
		c.write(promptPrefix+task.ID, &args.Prompt)
		task.Preview = preview(args.Prompt)
	}
	if args.Timeout > 0 {
		task.Timeout = args.Timeout
		c.startTimer(task)
	}
	if args.Message != "" {
		task.HasMail = true
		item := Item{From: main, Message: truncate(args.Message), At: c.now}
		if err := c.deliver(task.Root, task.ID, item, nil); err != nil {
			return sdk.ToolResult{}, err
		}
	}
	c.write(taskKey(task.Root, task.Name), task)
	if args.Start {
		if _, err := read[string](c, queuedOf(task.Root, task.RequesterID)+task.Seq); err != nil {
			return sdk.ToolResult{}, err
		}
		err = c.startTask(task, 0)
	}
	return orJSON(task, err, c.effects()...)
}

func orJSON(t *Task, err error, effects ...sdk.Effect) (sdk.ToolResult, error) {
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(given{t.ID, t.Name, t.State}, effects...)
}
