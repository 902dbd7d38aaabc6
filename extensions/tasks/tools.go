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
	fromField    = `"from": {"type": "string", "description": "Only of this agent: the name of a task, or main."}`
	orderField   = `"order": {"enum": ["fifo", "lifo"], "description": "The oldest first (fifo, the default) or the newest."}`
	lifoField    = `"lifo": {"type": "boolean", "description": "The same as order lifo."}`
	timeoutField = `"timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds; %s"}`
	nameField    = `"name": {"type": "string", "description": "%s"}`
	allField     = `"all": {"type": "boolean", "description": "Those of other conversations, too; for people only."}`
	idField      = `"id": {"type": "string", "description": "Of a task, or its name."}`
)

func schema(required string, fields ...string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type": "object", "additionalProperties": false, "required": [%s], "properties": {%s}}`,
		required, strings.Join(fields, ", ")))
}

func timeout(what string) string { return fmt.Sprintf(timeoutField, what) }

// tools are offered to agents, to people as commands, and, the private ones, to
// the command line. All of them may be repeated: what a call changes is
// committed with its result.
func (t *tasks) tools() []sdk.Tool {
	all := []sdk.Tool{
		{
			Name: "push", Command: "push", Call: t.push,
			Description: "Put a task for a sub-agent into your queue; run starts it. It sees only the prompt, not this conversation: write out all that it needs. Its result comes into your inbox.",
			Schema: schema(`"prompt"`, `"prompt": {"type": "string", "description": "What is to be done, written out."}`,
				fmt.Sprintf(nameField, "Unique in this conversation; made up if not given."),
				`"model": {"type": "string", "description": "Another model than your own."}`,
				`"agent": {"type": "string", "description": "An agent of list_agents that is to do it, with its own tools; a copy of you without your instructions if not given."}`,
				timeout("the task is stopped when it has run for so long."),
				`"deliver": {"enum": ["inbox", "announce"], "description": "inbox (default): receive or check collects the result. announce: it is told to you as soon as it is there."}`),
		},
		{
			Name: "run", Command: "run", Call: t.run,
			Description: "Start what is in your queue, count at a time, until it is empty. Returns at once.",
			Schema: schema(``, `"count": {"type": "integer", "minimum": 1, "description": "How many at a time; all if not given."}`,
				timeout("tasks without a timeout of their own are stopped after it.")),
		},
		{
			Name: "queue", Command: "queue", Call: t.queue, ReadOnly: true,
			Description: "Show your tasks: queued, running, finished. Do not poll it: receive waits.",
			Schema:      schema(``, allField),
		},
		{
			Name: "queue_remove", Command: "queue_remove", Call: t.queueRemove,
			Description: "Take a task out of your queue that has not begun.",
			Schema:      schema(`"name"`, fmt.Sprintf(nameField, "Of the task.")),
		},
		{
			Name: "task_cancel", Command: "task_cancel", Call: t.taskCancel,
			Description: "Stop a task at once, and those that it has started. What it had said so far comes as its result.",
			Schema:      schema(`"name"`, fmt.Sprintf(nameField, "Of the task.")),
		},
		{
			Name: "send", Command: "send", Call: t.send,
			Description: "Put a message into the inbox of another agent of this conversation: main, or a task by its name, also one that is still queued.",
			Schema: schema(`"to", "message"`, `"to": {"type": "string", "description": "main, or the name of a task."}`,
				`"message": {"type": "string", "description": "The text."}`),
		},
		{
			Name: "receive", Command: "receive", Call: t.receive, Interrupt: true,
			Description: "Take one message or result out of your inbox; wait for it if there is none. Returns at once when none can come.",
			Schema:      schema(``, fromField, orderField, lifoField, timeout("if not given, an hour in a task, and otherwise as long as it takes.")),
		},
		{
			Name: "check", Command: "check", Call: t.check,
			Description: "Take the messages and results out of your inbox that are there. It does not wait.",
			Schema:      schema(``, fromField, orderField, lifoField),
		},
		{
			Name: "inbox", Command: "inbox", Call: t.inbox, ReadOnly: true,
			Description: "Show of whom messages and results lie in your inbox; nothing is taken out.",
			Schema:      schema(``, allField),
		},
		{Name: "list", Description: "All tasks, for the command line.", Private: true, ReadOnly: true, Schema: schema(``, allField), Call: t.list},
		{Name: "show", Description: "All of a task, for the command line.", Private: true, ReadOnly: true, Schema: schema(`"id"`, idField), Call: t.show},
		{Name: "cancel", Description: "Cancel a task, for the command line.", Private: true, Schema: schema(`"id"`, idField), Call: t.cancelByID},
	}
	for i := range all {
		tool := &all[i]
		if !tool.ReadOnly {
			tool.Idempotent = true
		}
		if tool.Name == "receive" || tool.Name == "check" {
			tool.Say = sayMessages
		}
		tool.Call = patient(tool.Call)
	}
	return all
}

// patient has a call that lost against another one wait a little, so that many
// at once do not lose again and again.
func patient(call func(context.Context, sdk.ToolCall) (sdk.ToolResult, error)) func(context.Context, sdk.ToolCall) (sdk.ToolResult, error) {
	return func(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
		if c.Repeat {
			select {
			case <-time.After(rand.N(30 * time.Millisecond)): //nolint:gosec // it only keeps callers apart
			case <-ctx.Done():
				return sdk.ToolResult{}, context.Cause(ctx)
			}
		}
		return call(ctx, c)
	}
}
