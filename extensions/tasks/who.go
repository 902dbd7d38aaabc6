package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/sdk"
)

// agent is an agent by its place in a tree.
type agent struct {
	root, name string
	id         string // in keys: main, or that of its task
	task       *Task  // of a worker; nil: it is main
}

var errNobody = errors.New("queues and inboxes belong to conversations: this works only in one")

// byCommand reports whether a person gave a command: the id is that of an event.
func byCommand(c sdk.ToolCall) bool { return strings.HasPrefix(c.ID, "e") }

// who is the agent that calls a tool.
func (c *change) who(call sdk.ToolCall) (agent, error) {
	if call.Session == "" {
		return agent{}, errNobody
	}
	if byCommand(call) { // people talk to main alone
		return agent{root: call.Session, name: main, id: main}, nil
	}
	key, err := c.keyOf(c.ctx, call.Session)
	if err != nil {
		return agent{}, err
	}
	id, root, name, ok := ofSession(key)
	if !ok {
		return agent{root: call.Session, name: main, id: main}, nil
	}
	task, err := read[Task](c, taskKey(root, name))
	switch {
	case err != nil:
		return agent{}, err
	case task == nil || task.ID != id || task.State != Running || task.over():
		return agent{}, fmt.Errorf("the task %q has ended", name)
	}
	return agent{root: root, name: name, id: id, task: task}, nil
}

// asked begins what a call of an agent, or of a person for it, changes.
func (t *tasks) asked(ctx context.Context, call sdk.ToolCall, args any) (*change, agent, error) {
	if err := call.Decode(args); err != nil {
		return nil, agent{}, err
	}
	c := t.change(ctx, call.ID)
	me, err := c.who(call)
	return c, me, err
}

// keyOf is the key of a session, which never changes.
func (t *tasks) keyOf(ctx context.Context, session string) (string, error) {
	t.mu.Lock()
	key, known := t.keys[session]
	t.mu.Unlock()
	if known {
		return key, nil
	}
	key, err := t.k.Session(ctx, session)
	if err != nil {
		return "", fmt.Errorf("find out who asks: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.keys) > 10_000 {
		clear(t.keys)
	}
	t.keys[session] = key
	return key, nil
}
