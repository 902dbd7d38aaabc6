package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// Result is what a task yields, once.
type Result struct {
	From        string `json:"from"`
	TaskID      string `json:"task_id"`
	Success     bool   `json:"success"`
	Output      string `json:"output,omitempty"`
	Error       string `json:"error,omitempty"`
	Partial     string `json:"partial_output,omitempty"`
	Outcome     string `json:"outcome"`
	Uncollected int    `json:"uncollected_messages,omitempty"` // that lay in its inbox when it ended
}

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

// finish ends a task with its one result, and gives that to who wants it.
func (c *change) finish(task *Task, result Result) error {
	if err := c.end(task, &result); err != nil {
		return err
	}
	if gone, err := c.gone(task); err != nil || gone {
		return err // nobody is there who could collect it
	}
	if err := c.vacate(task, result.Outcome == Capped); err != nil {
		return err
	}
	c.poke(task.Root)
	if task.Deliver == announce {
		return c.announce(task, result)
	}
	return c.put(task.Root, task.RequesterID, Item{From: task.Name, Task: task.ID, At: c.now}, &result)
}

// end writes down that a task has finished, and ends what has worked for it.
func (c *change) end(task *Task, result *Result) (err error) {
	if task.State == Queued {
		c.effect(sdk.Delete(queuedOf(task.Root, task.RequesterID) + task.Line))
	} else {
		c.effect(sdk.Delete(workingOf(task.Root, task.RequesterID) + task.ID))
		if err := c.abandon(task); err != nil {
			return err
		}
		c.forgetPrompt(task.ID)
	}
	task.State, task.Outcome, task.FinishedAt = Finished, result.Outcome, c.now
	c.write(taskKey(task.Root, task.Name), task)
	c.forgetTime(task.ID)
	if result.Uncollected, err = c.clearInbox(task); err != nil {
		return err
	}
	result.From, result.TaskID = task.Name, task.ID
	result.Output, result.Error, result.Partial = cut(result.Output), cut(result.Error), cut(result.Partial)
	c.effect(sdk.Put(resultPrefix+task.ID, result))
	return nil
}

// gone says whether the agent that gave a task has ended, or is being stopped: it
// collects nothing any more. If it has not, it cannot end before this change is
// committed.
func (c *change) gone(task *Task) (bool, error) {
	if task.RequesterID == main {
		return false, nil
	}
	key := taskKey(task.Root, task.Requester)
	above, err := read[Task](c, key)
	if err != nil || above == nil || above.ID != task.RequesterID || above.over() {
		return true, err
	}
	above.Mail = true
	c.write(key, above)
	return false, nil
}

// announce gives a result to the session of main as an input, which runs it.
func (c *change) announce(task *Task, result Result) error {
	text, err := marshal(result)
	if err != nil {
		return err
	}
	c.effect(sdk.Raw(&busv1.Input{
		Session: task.Root, Kind: contract.InputResult, Sender: task.Name, Text: string(text), ReplyTo: task.ReplyTo,
		DedupeKey: "result:" + task.ID, IfExists: true,
	}))
	return nil
}

// abandon cancels the unfinished children of a task that ends, and theirs.
func (c *change) abandon(task *Task) error {
	if !task.Gives {
		return nil
	}
	const why = "what it worked for has ended"
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
				return c.end(child, &Result{Outcome: Cancelled, Error: why})
			}
			return c.stop(child, Cancelled, why)
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

// maxText is how much of what was said in a task is kept.
const maxText = 256 << 10

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
