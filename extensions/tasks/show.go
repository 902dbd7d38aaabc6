package tasks

import (
	"context"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// overview is a task as the command line shows it.
type overview struct {
	*Task
	Prompt  string `json:"prompt,omitempty"`
	Output  string `json:"output,omitempty"`
	Error   string `json:"error,omitempty"`
	Partial string `json:"partial_output,omitempty"`
	Key     string `json:"session_key"`
}

// list lists all tasks for the command line.
func (t *tasks) list(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ All bool }
	if err := call.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	all, err := t.sorted(ctx, "")
	if err != nil {
		return sdk.ToolResult{}, err
	}
	out := struct {
		Tasks []overview `json:"tasks"`
		More  int        `json:"more,omitempty"`
	}{Tasks: []overview{}}
	for _, task := range all {
		switch {
		case !call.Principal.Sees(task.Principal):
		case task.State == Finished && !args.All && time.Since(task.FinishedAt) > 24*time.Hour:
			out.More++
		case len(out.Tasks) == 1000:
			out.More++
		default:
			out.Tasks = append(out.Tasks, overview{Task: task, Key: task.sessionKey()})
		}
	}
	return sdk.JSON(out)
}

// byID returns the task with an id, or with a name if it is the only one.
func (t *tasks) byID(ctx context.Context, call sdk.ToolCall, id string) (found *Task, err error) {
	named := 0
	err = t.each(ctx, "", func(task *Task) error {
		if !call.Principal.Sees(task.Principal) {
			return nil
		}
		if task.ID == id {
			found, named = task, 1
			return errStopScan
		}
		if task.Name == id {
			found = task
			named++
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, fmt.Errorf("there is no task %q: `switchboard tasks list --all` lists all tasks", id)
	case named > 1:
		return nil, fmt.Errorf("%d tasks are named %q: use an id (`switchboard tasks list --all` shows them)", named, id)
	}
	return found, nil
}

// show returns everything about one task.
func (t *tasks) show(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ ID string }
	if err := call.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	task, err := t.byID(ctx, call, args.ID)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	c := t.change(ctx, call.ID)
	prompt, err := readOrNew[string](c, promptPrefix+task.ID)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	result, err := readOrNew[Result](c, resultPrefix+task.ID)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(overview{
		Task: task, Prompt: *prompt, Output: result.Output, Error: result.Error, Partial: result.Partial,
		Key: task.sessionKey(),
	})
}

// cancelByID cancels a task for the command line.
func (t *tasks) cancelByID(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ ID string }
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
	return c.cancelled(task)
}
