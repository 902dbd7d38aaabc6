package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// Result is the one result of a task.
type Result struct {
	From        string `json:"from"`
	TaskID      string `json:"task_id"`
	Success     bool   `json:"success"`
	Output      string `json:"output,omitempty"`
	Error       string `json:"error,omitempty"`
	Partial     string `json:"partial_output,omitempty"`
	Outcome     string `json:"outcome"`
	Uncollected int    `json:"uncollected_messages,omitempty"` // left in its inbox
}

// outcomes maps the outcome of a worker's turn to that of its task.
var outcomes = map[string]string{
	contract.OutcomeOK: OK, contract.OutcomeError: Failed, contract.OutcomeCancelled: Cancelled,
	contract.OutcomeTimeout: Timeout, contract.OutcomeCapped: Capped, contract.OutcomeDead: Interrupted,
}

// failures are the error texts for outcomes that came without one.
var failures = map[string]string{
	Failed:    words.Sprintf("the task failed without a reason"),
	Timeout:   words.Sprintf("the task took too long and was stopped"),
	Cancelled: words.Sprintf("the task was cancelled"), Capped: words.Sprintf("too many turns followed from one event"),
	Interrupted: words.Sprintf("the task failed repeatedly"),
}

// workerFinished finishes the task of a worker that gave its final output.
func (t *tasks) workerFinished(ctx context.Context, out contract.AgentOutput) (sdk.Effects, error) {
	id, root, name, ok := parseSessionKey(out.Key)
	if !ok || out.Extension != ID {
		return nil, nil
	}
	c := t.change(ctx, id)
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

// finish ends a task with its one result, and delivers the result.
func (c *change) finish(task *Task, result Result) error {
	if err := c.markFinished(task, &result); err != nil {
		return err
	}
	if task.Deliver == byCall || task.Deliver == kept {
		c.notifyWaiters(task.Root)
		return nil
	}
	if ended, err := c.requesterEnded(task); err != nil || ended {
		return err // no agent is left to collect it
	}
	if err := c.releaseSlot(task, result.Outcome == Capped); err != nil {
		return err
	}
	c.notifyWaiters(task.Root)
	if task.Dropped {
		return nil
	}
	if task.Deliver == announce {
		return c.announceResult(task, result)
	}
	return c.deliver(task.Root, task.RequesterID, Item{From: task.Name, Task: task.ID, At: c.now}, &result)
}

// markFinished stores that a task has finished, and cancels its children.
func (c *change) markFinished(task *Task, result *Result) (err error) {
	if task.State == Queued {
		c.effect(sdk.Delete(queuedOf(task.Root, task.RequesterID) + task.Seq))
	} else {
		c.effect(sdk.Delete(workingOf(task.Root, task.RequesterID) + task.ID))
		if err := c.cancelChildren(task); err != nil {
			return err
		}
		c.forgetPrompt(task.ID)
	}
	task.State, task.Outcome, task.FinishedAt = Finished, result.Outcome, c.now
	c.write(taskKey(task.Root, task.Name), task)
	c.stopTimer(task.ID)
	if result.Uncollected, err = c.clearInbox(task); err != nil {
		return err
	}
	result.From, result.TaskID = task.Name, task.ID
	result.Output, result.Error, result.Partial = truncate(result.Output), truncate(result.Error), truncate(result.Partial)
	c.effect(sdk.Put(resultPrefix+task.ID, result))
	if task.Forget {
		c.forgetTask(task)
	}
	return nil
}

// requesterEnded reports whether the agent that gave a task has ended or is
// being stopped, so collects nothing. Otherwise the change conflicts with its end.
func (c *change) requesterEnded(task *Task) (bool, error) {
	if task.RequesterID == main {
		return false, nil
	}
	key := taskKey(task.Root, task.Requester)
	parent, err := read[Task](c, key)
	if err != nil || parent == nil || parent.ID != task.RequesterID || parent.ended() {
		return true, err
	}
	parent.HasMail = true
	c.write(key, parent)
	return false, nil
}

// announceResult sends a result to the session of main as an input, which starts a turn.
func (c *change) announceResult(task *Task, result Result) error {
	text, err := marshal(result)
	if err != nil {
		return err
	}
	c.effect(sdk.Raw(&busv1.Input{
		Session: task.Root, Kind: contract.InputResult, Sender: task.Name, Text: string(text),
		ReplyTo: task.ReplyTo, Person: task.Principal.Person, DedupeKey: "result:" + task.ID, IfExists: true,
	}))
	return nil
}

// cancelChildren cancels the unfinished descendants of a task that ends.
func (c *change) cancelChildren(task *Task) error {
	if !task.HasQueue {
		return nil
	}
	why := words.Sprintf("the task that it was part of has ended")
	for _, prefix := range []string{queuedOf(task.Root, task.ID), workingOf(task.Root, task.ID)} {
		if err := c.scan(c.ctx, prefix, func(v sdk.Value) error {
			var name string
			if err := v.Decode(&name); err != nil {
				return err
			}
			child, err := read[Task](c, taskKey(task.Root, name))
			if err != nil || child == nil || child.State == Finished {
				return err
			}
			if child.State == Queued {
				return c.markFinished(child, &Result{Outcome: Cancelled, Error: why})
			}
			return c.stopTask(child, Cancelled, why)
		}); err != nil {
			return err
		}
	}
	if _, err := read[queue](c, queueKey(task.Root, task.ID)); err != nil {
		return err
	}
	c.write(queueKey(task.Root, task.ID), nil)
	return nil
}

// maxText is the stored length of a text, in bytes.
const maxText = 256 << 10

func truncate(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "\n[truncated]"
}

func marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return b, nil
}
