package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

const (
	fromField    = `"from": {"type": "string", "description": "Only from this task, or main."}`
	orderField   = `"order": {"enum": ["fifo", "lifo"], "description": "Oldest (fifo, default) or newest first."}`
	lifoField    = `"lifo": {"type": "boolean", "description": "Same as order lifo."}`
	timeoutField = `"timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds; %s"}`
	nameField    = `"name": {"type": "string", "description": "%s"}`
	allField     = `"all": {"type": "boolean", "description": "Include other conversations; for people only."}`
	idField      = `"id": {"type": "string", "description": "Task id, or its name."}`
)

func schema(required string, fields ...string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(
		`{"type": "object", "additionalProperties": false, "required": [%s], "properties": {%s}}`,
		required, strings.Join(fields, ", ")))
}

func timeout(description string) string { return fmt.Sprintf(timeoutField, description) }

// tools returns the tools for agents, which people call as commands, and the
// private ones of the command line. All can be repeated: the changes of a call
// are committed with its result.
func (t *tasks) tools() []sdk.Tool {
	all := []sdk.Tool{
		{
			Name: "push", Command: "push", Call: t.push,
			Description: "Queue a task for a sub-agent; run starts it. The sub-agent sees only the prompt, not this " +
				"conversation: include everything it needs. The result arrives in your inbox.",
			Schema: schema(`"prompt"`, `"prompt": {"type": "string", "description": "The complete task."}`,
				fmt.Sprintf(nameField, "Unique in this conversation; generated if not given."),
				`"model": {"type": "string", "description": "Default: your own model."}`,
				`"agent": {"type": "string", "description": "An agent from list_agents, with its own tools. Default: `+
					`a copy of you without your instructions."}`,
				timeout("after which the task is stopped."),
				`"deliver": {"enum": ["inbox", "announce"], "description": "inbox (default): receive or check returns `+
					`the result. announce: the result is sent to you when the task finishes."}`),
		},
		{
			Name: "delegate_task", Call: t.delegate, Waits: true,
			Description: "Give another agent a task and wait for its result. It sees only the prompt.",
			Schema: schema(`"agent", "prompt"`, `"agent": {"type": "string"}`,
				`"prompt": {"type": "string", "minLength": 1}`),
		},
		{
			Name: "run", Command: "run", Call: t.run,
			Description: "Start your queued tasks, count at a time, until the queue is empty. Returns at once.",
			Schema: schema(``,
				`"count": {"type": "integer", "minimum": 1, "description": "How many run at a time. Default: all."}`,
				timeout("for tasks without their own timeout.")),
		},
		{
			Name: "queue", Command: "queue", Call: t.queue, ReadOnly: true,
			Description: "List your queued, running and finished tasks. Do not poll: use receive to wait.",
			Schema:      schema(``, allField),
		},
		{
			Name: "queue_remove", Command: "queue_remove", Call: t.queueRemove,
			Description: "Remove a task that has not started from your queue.",
			Schema:      schema(`"name"`, fmt.Sprintf(nameField, "Task name.")),
		},
		{
			Name: "task_cancel", Command: "task_cancel", Call: t.taskCancel,
			Description: "Stop a task and its own tasks at once. Its result contains its output so far.",
			Schema:      schema(`"name"`, fmt.Sprintf(nameField, "Task name.")),
		},
		{
			Name: "send", Command: "send", Call: t.send,
			Description: "Send a message to the inbox of main or of a task in this conversation, even a queued one.",
			Schema: schema(`"to", "message"`, `"to": {"type": "string", "description": "main, or a task name."}`,
				`"message": {"type": "string"}`),
		},
		{
			Name: "receive", Command: "receive", Call: t.receive, Interrupt: true,
			Description: "Take one message or result from your inbox, or wait for one. Returns at once if none can arrive.",
			Schema: schema(``, fromField, orderField, lifoField,
				timeout("default: 3600 in a task, otherwise unlimited.")),
		},
		{
			Name: "check", Command: "check", Call: t.check,
			Description: "Take the messages and results in your inbox without waiting.",
			Schema:      schema(``, fromField, orderField, lifoField),
		},
		{
			Name: "inbox", Command: "inbox", Call: t.inbox, ReadOnly: true,
			Description: "List the messages and results in your inbox without taking them.",
			Schema:      schema(``, allField),
		},
		{
			Name: "list", Description: "List all tasks, for the command line.", Private: true, ReadOnly: true,
			Schema: schema(``, allField), Call: t.list,
		},
		{
			Name: "show", Description: "Show a task, for the command line.", Private: true, ReadOnly: true,
			Schema: schema(`"id"`, idField), Call: t.show,
		},
		{
			Name: "cancel", Description: "Cancel a task, for the command line.", Private: true,
			Schema: schema(`"id"`, idField), Call: t.cancelByID,
		},
		{
			Name: "create", Private: true, Call: t.create,
			Description: "Give an agent a task. It sees only the prompt. tasks/show returns its state and result.",
			Schema: schema(`"agent", "prompt"`, `"agent": {"type": "string", "description": "From list_agents."}`,
				`"prompt": {"type": "string", "minLength": 1, "description": "The complete task."}`,
				fmt.Sprintf(nameField, "Generated if not given."), `"model": {"type": "string"}`,
				timeout("after which the task is stopped."),
				`"start": {"type": "boolean", "description": "false: update starts it later. Default: true."}`),
		},
		{
			Name: "update", Private: true, Call: t.update,
			Description: "Change a task that has not finished, or send it a message.",
			Schema: schema(`"id"`, idField, `"prompt": {"type": "string", "description": "Only before it starts."}`,
				`"message": {"type": "string", "description": "Put into its inbox."}`,
				timeout("counted from its start."), `"start": {"type": "boolean", "description": "Start it."}`),
		},
	}
	for i := range all {
		tool := &all[i]
		if !tool.ReadOnly {
			tool.Idempotent = true
		}
		switch tool.Name {
		case "receive", "check":
			tool.Say = formatMessages
		case "queue":
			tool.Say = formatList[listed]
		case "inbox":
			tool.Say = formatList[inboxList]
		default:
			tool.Say = formatText
		}
		tool.Call = withBackoff(tool.Call)
	}
	return all
}

type callFunc = func(context.Context, sdk.ToolCall) (sdk.ToolResult, error)

// withBackoff delays a repeated call by a random time, so that concurrent calls
// do not conflict again and again.
func withBackoff(call callFunc) callFunc {
	return func(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
		if c.Repeat {
			select {
			case <-time.After(rand.N(30 * time.Millisecond)): //nolint:gosec // not a secret
			case <-ctx.Done():
				return sdk.ToolResult{}, context.Cause(ctx)
			}
		}
		return call(ctx, c)
	}
}
