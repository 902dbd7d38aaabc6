package tasks

import (
	"context"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// agent is an agent of a tree.
type agent struct {
	root, name string
	id         string // in keys: main, or the id of its task
	task       *Task  // nil: main
}

var errNoConversation = words.Errorf("queues and inboxes belong to a conversation: call this tool in one")

// byCommand reports whether a call is a person's command: its id is that of an event.
func byCommand(c sdk.ToolCall) bool { return strings.HasPrefix(c.ID, "e") }

// caller returns the agent that calls a tool.
func (c *change) caller(call sdk.ToolCall) (agent, error) {
	if call.Session == "" {
		return agent{}, errNoConversation
	}
	if byCommand(call) { // people act for main
		return agent{root: call.Session, name: main, id: main}, nil
	}
	key, err := c.sessionKey(c.ctx, call.Session)
	if err != nil {
		return agent{}, err
	}
	id, root, name, ok := parseSessionKey(key)
	if !ok {
		return agent{root: call.Session, name: main, id: main}, nil
	}
	task, err := read[Task](c, taskKey(root, name))
	switch {
	case err != nil:
		return agent{}, err
	case task == nil || task.ID != id || task.State != Running || task.ended():
		return agent{}, words.Errorf("task %q has ended", name)
	}
	return agent{root: root, name: name, id: id, task: task}, nil
}

// beginCall decodes the arguments of a call and begins its change.
func (t *tasks) beginCall(ctx context.Context, call sdk.ToolCall, args any) (*change, agent, error) {
	if err := call.Decode(args); err != nil {
		return nil, agent{}, err
	}
	c := t.change(ctx, call.ID)
	me, err := c.caller(call)
	return c, me, err
}

// sessionKey returns the key of a session, which never changes.
func (t *tasks) sessionKey(ctx context.Context, session string) (string, error) {
	t.mu.Lock()
	key, known := t.keys[session]
	t.mu.Unlock()
	if known {
		return key, nil
	}
	key, err := t.k.Session(ctx, session)
	if err != nil {
		return "", fmt.Errorf("read session %s: %w", session, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.keys) > 10_000 {
		clear(t.keys)
	}
	t.keys[session] = key
	return key, nil
}
