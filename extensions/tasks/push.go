package tasks

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

var nameSyntax = regexp.MustCompile(`^[\pL\pN][\pL\pN_.-]{0,63}$`)

const madeUp = "task-"

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
	if err := arguments(call, &args); err != nil {
		return sdk.ToolResult{}, err
	}
	c := t.change(ctx)
	me, err := c.who(call)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if strings.TrimSpace(args.Prompt) == "" {
		return sdk.ToolResult{}, errors.New("the prompt is empty: say what is to be done")
	}
	if args.Deliver == announce && me.task != nil {
		return sdk.ToolResult{}, errors.New("only main can have a result announced: a task ends with its last answer; use receive")
	}
	if err := t.allowed(ctx, me); err != nil {
		return sdk.ToolResult{}, err
	}
	name, err := c.freeName(me, args.Name)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	task := &Task{
		ID: "t" + strconv.FormatInt(t.number(), 36), Root: me.root, Name: name, Kind: "task", Agent: args.Agent, Model: args.Model,
		Requester: me.name, Depth: 1, Timeout: args.Timeout, State: Queued, CreatedAt: c.now,
	}
	if args.Deliver == announce {
		task.Deliver = announce
	}
	if task.Agent == "" {
		task.Agent, task.Blank = call.Agent, true
	}
	if me.task != nil {
		task.Depth = me.task.Depth + 1
		if task.Model == "" && task.Blank {
			task.Model = me.task.Model
		}
	}
	c.write(taskKey(me.root, name), task)
	c.write(textKey(task.ID), &Texts{Prompt: args.Prompt})
	q, err := readOrNew[queue](c, queueKey(me.root, me.name))
	if err != nil {
		return sdk.ToolResult{}, err
	}
	q.Queued = append(q.Queued, name)
	c.write(queueKey(me.root, me.name), q)
	// The session is made now: so an agent that does not exist is refused here.
	c.effect(sdk.Raw(&busv1.SessionEnsure{
		Agent: task.Agent, Key: task.sessionKey(), Outbound: &busv1.Outbound{Kind: busv1.Outbound_KIND_EXTENSION},
	}))
	if err := c.fill(me.root, me.name, q); err != nil {
		return sdk.ToolResult{}, err
	}
	c.poke(me.root)
	out := pushed{Name: name, TaskID: task.ID, State: task.State, Text: fmt.Sprintf("Queued as %s. /run starts it.", name)}
	if task.State == Running {
		out.Text = fmt.Sprintf("Started as %s.", name)
	}
	return sdk.JSON(out, c.effects()...)
}

func (t *Task) sessionKey() string { return sessionKey(t.ID, t.Root, t.Name) }

// allowed holds nested agents within bounds.
func (t *tasks) allowed(ctx context.Context, me agent) error {
	if me.task == nil {
		return nil
	}
	if t.config.Depth > 0 && me.task.Depth >= t.config.Depth {
		return fmt.Errorf("%d agents stand in a row already, each working for the one before it: do this yourself", me.task.Depth)
	}
	if t.config.PerRoot <= 0 {
		return nil
	}
	nested := 0
	if err := t.each(ctx, me.root, func(task *Task) error {
		if task.State != Finished && task.Depth > 1 {
			nested++
		}
		return nil
	}); err != nil {
		return err
	}
	if nested >= t.config.PerRoot {
		return fmt.Errorf("%d tasks of sub-agents are unfinished in this conversation, and that is the limit: wait for some, or do this yourself", nested)
	}
	return nil
}

// freeName is a name for a new task: the one asked for, or one that is made up.
func (c *change) freeName(me agent, asked string) (string, error) {
	if asked != "" {
		if !nameSyntax.MatchString(asked) || asked == main {
			return "", fmt.Errorf("%q cannot be a name: letters, digits, and then also _ . - , at most 64, and not %q", asked, main)
		}
		free, err := c.free(me, asked)
		if err == nil && !free {
			err = fmt.Errorf("the name %q is taken in this conversation: choose another one", asked)
		}
		return asked, err
	}
	for {
		n, err := c.nextName(me.root)
		if err != nil {
			return "", err
		}
		name := madeUp + strconv.Itoa(n)
		if free, err := c.free(me, name); err != nil || free {
			return name, err
		}
	}
}

// free says whether nobody has a name: one of a task that has finished is free
// once its result was collected.
func (c *change) free(me agent, name string) (bool, error) {
	old, err := read[Task](c, taskKey(me.root, name))
	if err != nil || old == nil || old.State != Finished {
		return old == nil, err
	}
	lies, err := c.anything(inboxPrefix(me.root, old.Requester, name))
	return !lies, err
}

// anything says whether a row has the prefix.
func (t *tasks) any(ctx context.Context, prefix string) (found bool, err error) {
	err = t.k.Scan(ctx, prefix, func(sdk.Value) error {
		found = true
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return found, err
}

func (c *change) anything(prefix string) (bool, error) { return c.any(c.ctx, prefix) }

// nextName is the next number of a name that is made up.
func (c *change) nextName(root string) (int, error) {
	c.mu.Lock()
	_, known := c.names[root]
	c.mu.Unlock()
	if !known {
		newest := 0
		if err := c.each(c.ctx, root, func(task *Task) error {
			if n, err := strconv.Atoi(strings.TrimPrefix(task.Name, madeUp)); err == nil && strings.HasPrefix(task.Name, madeUp) {
				newest = max(newest, n)
			}
			return nil
		}); err != nil {
			return 0, err
		}
		c.mu.Lock()
		c.names[root] = max(c.names[root], newest)
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names[root]++
	return c.names[root], nil
}

// begin starts a queued task.
func (c *change) begin(task *Task, q *queue) error {
	texts, err := readOrNew[Texts](c, textKey(task.ID))
	if err != nil {
		return err
	}
	if task.Timeout == 0 {
		task.Timeout = q.Timeout
	}
	task.State, task.StartedAt = Running, c.now
	q.Running = append(q.Running, task.Name)
	c.write(taskKey(task.Root, task.Name), task)
	text := texts.Prompt + fmt.Sprintf("\n\n(Your name is %s. Your final answer is delivered by itself.)", task.Name)
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
	c.effect(sdk.Raw(&busv1.Input{
		Agent: task.Agent, Key: task.sessionKey(), Kind: contract.InputTask, Sender: task.Requester, Text: text, Meta: raw, DedupeKey: "start:" + task.ID,
	}))
	c.watchTime(task)
	return nil
}

// fill starts what is queued, as long as there is a place.
func (c *change) fill(root, owner string, q *queue) error {
	places := len(q.Running) + c.returning(root, q)
	for q.Active && len(q.Queued) > 0 && (q.Limit == 0 || places < q.Limit) {
		name := q.Queued[0]
		q.Queued = q.Queued[1:]
		task, err := read[Task](c, taskKey(root, name))
		if err != nil {
			return err
		}
		if task == nil || task.State != Queued {
			continue
		}
		if err := c.begin(task, q); err != nil {
			return err
		}
		places++
	}
	if len(q.Queued) == 0 {
		q.Active = false
	}
	c.write(queueKey(root, owner), q)
	return nil
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
	if err := arguments(call, &args); err != nil {
		return sdk.ToolResult{}, err
	}
	c := t.change(ctx)
	me, err := c.who(call)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	q, err := readOrNew[queue](c, queueKey(me.root, me.name))
	if err != nil {
		return sdk.ToolResult{}, err
	}
	q.Limit, q.Timeout, q.Active = args.Count, args.Timeout, len(q.Queued) > 0
	if most := t.config.Concurrency; me.task != nil && most > 0 && (q.Limit == 0 || q.Limit > most) {
		q.Limit = most
	}
	before := len(q.Running)
	if err := c.fill(me.root, me.name, q); err != nil {
		return sdk.ToolResult{}, err
	}
	c.poke(me.root)
	out := started{Started: q.Running[before:], Queued: len(q.Queued), Running: len(q.Running)}
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
