package tasks

import (
	"cmp"
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

// maxText is how much of what was said in a task is kept.
const maxText = 256 << 10

// outcomes are what the outcome of a worker's turn is to its task.
var outcomes = map[string]string{
	contract.OutcomeOK: OK, contract.OutcomeError: Failed, contract.OutcomeCancelled: Cancelled, contract.OutcomeTimeout: Timeout,
	contract.OutcomeCapped: Capped, contract.OutcomeDead: Interrupted,
}

// failures are the words for an outcome that was told without any.
var failures = map[string]string{
	Failed: "it failed and did not say why", Timeout: "it took too long and was stopped", Cancelled: "it was cancelled",
	Capped: "too many turns followed from one event", Interrupted: "it failed again and again",
}

// finished ends the task of a worker that has said its last word.
func (t *tasks) finished(ctx context.Context, out contract.AgentOutput) (sdk.Effects, error) {
	id, root, name, ok := ofSession(out.Key)
	if !ok {
		return nil, nil
	}
	c := t.change(ctx)
	task, err := read[Task](c, taskKey(root, name))
	if err != nil || task == nil || task.ID != id || task.State == Finished {
		return nil, err
	}
	task.Session = out.Session
	result := Result{Outcome: cmp.Or(outcomes[out.Outcome], Failed), Partial: out.Partial}
	if task.Stop != "" && result.Outcome == Cancelled {
		result.Outcome = task.Stop
	}
	if result.Success = result.Outcome == OK; result.Success {
		result.Output, result.Partial = out.Text, ""
	} else {
		result.Error = cmp.Or(strings.TrimSpace(out.Text), failures[result.Outcome])
	}
	if err := c.finish(task, result); err != nil {
		return nil, err
	}
	return c.effects(), nil
}

// finish ends a task with its one result.
func (c *change) finish(task *Task, result Result) error {
	was := task.State
	task.State, task.Outcome, task.FinishedAt = Finished, result.Outcome, c.now
	c.write(taskKey(task.Root, task.Name), task)
	c.forgetTime(task.ID)
	result.From, result.TaskID = task.Name, task.ID
	result.Output, result.Error, result.Partial = cut(result.Output), cut(result.Error), cut(result.Partial)
	texts, err := readOrNew[Texts](c, textKey(task.ID))
	if err != nil {
		return err
	}
	texts.Output, texts.Error, texts.Partial = result.Output, result.Error, result.Partial
	c.write(textKey(task.ID), texts)
	if result.Uncollected, err = c.clearInbox(task.Root, task.Name); err != nil {
		return err
	}
	if was == Running {
		if err := c.abandon(task.Root, task.Name); err != nil {
			return err
		}
	}
	q, err := readOrNew[queue](c, queueKey(task.Root, task.Requester))
	if err != nil {
		return err
	}
	is := func(name string) bool { return name == task.Name }
	q.Queued, q.Running, q.Waiting = slices.DeleteFunc(q.Queued, is), slices.DeleteFunc(q.Running, is), slices.DeleteFunc(q.Waiting, is)
	c.write(queueKey(task.Root, task.Requester), q)
	if gone, err := c.gone(task.Root, task.Requester); err != nil || gone {
		return err // nobody is there who could collect it
	}
	if result.Outcome == Capped {
		q.Active = false // what began now would end in the same way
	} else if err := c.fill(task.Root, task.Requester, q); err != nil {
		return err
	}
	c.poke(task.Root)
	if task.Deliver == announce {
		return c.announce(task, result)
	}
	return c.put(task.Root, task.Requester, Item{From: task.Name, Result: &result, At: c.now})
}

// gone says whether an agent of a tree has ended.
func (c *change) gone(root, name string) (bool, error) {
	if name == main {
		return false, nil
	}
	task, err := read[Task](c, taskKey(root, name))
	return task == nil || task.State == Finished, err
}

// announce gives a result to the session of main as an input, which runs it.
func (c *change) announce(task *Task, result Result) error {
	text, err := marshal(result)
	if err != nil {
		return err
	}
	if _, _, err := c.k.Session(c.ctx, task.Root); errors.Is(err, contract.ErrNotFound) {
		return nil // the conversation was deleted
	} else if err != nil {
		return fmt.Errorf("announce the result of %s: %w", task.Name, err)
	}
	c.effect(sdk.Raw(&busv1.Input{
		Session: task.Root, Kind: contract.InputResult, Sender: task.Name, Text: string(text), DedupeKey: "result:" + task.ID,
	}))
	return nil
}

// abandon cancels the unfinished children of an agent that ends, and theirs.
func (c *change) abandon(root, name string) error {
	q, err := read[queue](c, queueKey(root, name))
	if err != nil || q == nil {
		return err
	}
	for _, child := range slices.Concat(q.Queued, q.Running, q.Waiting) {
		task, err := read[Task](c, taskKey(root, child))
		if err != nil {
			return err
		}
		if task == nil || task.State == Finished {
			continue
		}
		if task.State == Running {
			if err := c.abandon(root, child); err != nil {
				return err
			}
			c.stop(task, Cancelled, "what it worked for has ended")
			continue
		}
		task.State, task.Outcome, task.FinishedAt = Finished, Cancelled, c.now
		c.write(taskKey(root, child), task)
		if _, err := c.clearInbox(root, child); err != nil {
			return err
		}
	}
	q.Queued, q.Active = nil, false
	c.write(queueKey(root, name), q)
	return nil
}

// stop ends the work of a running task. The task itself ends with what its
// worker's session then says.
func (c *change) stop(task *Task, outcome, why string) {
	if task.Stop != "" {
		return
	}
	task.Stop = outcome
	c.write(taskKey(task.Root, task.Name), task)
	c.effect(sdk.Raw(&busv1.TurnCancel{
		Agent: task.Agent, Key: task.sessionKey(), Reason: why, Waiting: true,
	}))
}

// cancel ends a task that the caller, or one of its children, has pushed.
func (c *change) cancel(task *Task, why string) error {
	switch {
	case task.State == Finished:
		return fmt.Errorf("%s has finished already: %s", task.Name, task.Outcome)
	case task.Stop != "":
		return nil
	case task.State == Queued:
		return c.finish(task, Result{Outcome: Cancelled, Error: "it was cancelled before it began"})
	}
	if err := c.abandon(task.Root, task.Name); err != nil {
		return err
	}
	c.stop(task, Cancelled, why)
	return nil
}

// find is a task that somebody names.
func (c *change) find(root, name string) (*Task, error) {
	task, err := read[Task](c, taskKey(root, strings.TrimSpace(name)))
	if err == nil && task == nil {
		err = fmt.Errorf("there is no task %q in this conversation: queue shows what there is", name)
	}
	return task, err
}

// owns says whether a task is one of an agent or of its children.
func (c *change) owns(me agent, task *Task) (bool, error) {
	for range 1000 {
		if me.task == nil || task.Requester == me.name {
			return true, nil
		}
		if task.Requester == main {
			return false, nil
		}
		above, err := read[Task](c, taskKey(me.root, task.Requester))
		if err != nil || above == nil {
			return false, err
		}
		task = above
	}
	return false, nil
}

type cancelled struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Text  string `json:"text"`
}

// mine is a task that the caller may stop or remove.
func (c *change) mine(call sdk.ToolCall) (*Task, error) {
	var args struct{ Name string }
	if err := arguments(call, &args); err != nil {
		return nil, err
	}
	me, err := c.who(call)
	if err != nil {
		return nil, err
	}
	task, err := c.find(me.root, args.Name)
	if err != nil {
		return nil, err
	}
	if own, err := c.owns(me, task); err != nil || !own {
		return nil, cmp.Or(err, fmt.Errorf("%s is no task of yours", task.Name))
	}
	return task, nil
}

// taskCancel stops a task at once.
func (t *tasks) taskCancel(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	c := t.change(ctx)
	task, err := c.mine(call)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if err := c.cancel(task, "it was cancelled"); err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(cancelled{task.Name, "cancelled", "Cancelled " + task.Name + "; its result says what it had so far."}, c.effects()...)
}

// queueRemove takes a task out of a queue as if it had never been there.
func (t *tasks) queueRemove(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	c := t.change(ctx)
	task, err := c.mine(call)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if task.State != Queued {
		return sdk.ToolResult{}, fmt.Errorf("%s is %s and not in the queue any more: task_cancel stops one that runs", task.Name, task.State)
	}
	q, err := readOrNew[queue](c, queueKey(task.Root, task.Requester))
	if err != nil {
		return sdk.ToolResult{}, err
	}
	q.Queued = slices.DeleteFunc(q.Queued, func(name string) bool { return name == task.Name })
	q.Active = q.Active && len(q.Queued) > 0
	c.write(queueKey(task.Root, task.Requester), q)
	if _, err := read[Texts](c, textKey(task.ID)); err != nil {
		return sdk.ToolResult{}, err
	}
	c.write(textKey(task.ID), nil)
	c.write(taskKey(task.Root, task.Name), nil)
	if _, err := c.clearInbox(task.Root, task.Name); err != nil {
		return sdk.ToolResult{}, err
	}
	c.poke(task.Root)
	return sdk.JSON(cancelled{task.Name, "removed", "Removed " + task.Name + " from the queue; it never ran."}, c.effects()...)
}

// watchTime stops a task when its time is over.
func (t *tasks) watchTime(task *Task) {
	if task.State != Running || task.Timeout <= 0 || task.Stop != "" {
		return
	}
	left := time.Until(task.deadline())
	root, name, id := task.Root, task.Name, task.ID
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.timers[id]; old != nil {
		old.Stop()
	}
	t.timers[id] = time.AfterFunc(max(left, 0), func() { t.expire(root, name, id) })
}

func (t *Task) deadline() time.Time {
	return t.StartedAt.Add(time.Duration(t.Timeout * float64(time.Second)))
}

func (t *tasks) forgetTime(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.timers[id]; old != nil {
		old.Stop()
		delete(t.timers, id)
	}
}

// expire stops a task whose time is over. It is tried until it succeeds.
func (t *tasks) expire(root, name, id string) {
	for wait := 10 * time.Millisecond; t.ctx.Err() == nil; wait = min(2*wait, 5*time.Second) {
		var again bool
		done := t.quietly(t.ctx, "stopping a task after its time", func() (sdk.Effects, error) {
			c := t.change(t.ctx)
			task, err := read[Task](c, taskKey(root, name))
			if err != nil || task == nil || task.ID != id || task.State == Finished || task.Stop != "" {
				return nil, err
			}
			if task.State == Queued || c.now.Before(task.deadline()) { // its start is not committed, or was committed later
				again = true
				return nil, nil
			}
			if err := c.abandon(root, name); err != nil {
				return nil, err
			}
			c.stop(task, Timeout, fmt.Sprintf("it took longer than %s", time.Duration(task.Timeout*float64(time.Second))))
			return c.effects(), nil
		})
		if done && !again {
			t.forgetTime(id)
			return
		}
		select {
		case <-time.After(wait):
		case <-t.ctx.Done():
		}
	}
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "\n[cut: it was longer]"
}

func marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write %T: %w", v, err)
	}
	return b, nil
}

// arguments reads the arguments of a call.
func arguments(c sdk.ToolCall, into any) error {
	if len(c.Arguments) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.Arguments, into); err != nil {
		return errors.New("the arguments of " + c.Name + " cannot be read: " + err.Error())
	}
	return nil
}
