package tasks

import (
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// startTimer stops a running task at its deadline.
func (t *tasks) startTimer(task *Task) {
	if task.State != Running || task.Timeout <= 0 || task.Stop != "" {
		return
	}
	root, name, id := task.Root, task.Name, task.ID
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.timers[id]; old != nil {
		old.Stop()
	}
	t.timers[id] = time.AfterFunc(max(time.Until(task.deadline()), 0), func() { t.expire(root, name, id) })
}

func (t *tasks) stopTimer(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.timers[id]; old != nil {
		old.Stop()
		delete(t.timers, id)
	}
}

// expire stops a task whose deadline has passed. It retries until it succeeds.
func (t *tasks) expire(root, name, id string) {
	for wait := 10 * time.Millisecond; t.ctx.Err() == nil; wait = min(2*wait, 5*time.Second) {
		settled := false
		done := t.tryCommit(t.ctx, "stop a task at its timeout", func() (effects sdk.Effects, err error) {
			effects, settled, err = t.stopOverdue(root, name, id)
			return effects, err
		})
		if done && settled {
			t.stopTimer(id)
			return
		}
		select {
		case <-time.After(wait):
		case <-t.ctx.Done():
		}
	}
}

// stopOverdue stops a task at its deadline; settled: the timer is no longer
// needed. The start may not be committed yet, or was committed later than planned.
func (t *tasks) stopOverdue(root, name, id string) (_ sdk.Effects, settled bool, err error) {
	c := t.change(t.ctx, "time:"+id)
	task, err := read[Task](c, taskKey(root, name))
	switch {
	case err != nil:
		return nil, false, err
	case task == nil || task.ID != id || task.ended():
		return nil, true, nil
	case task.State == Queued || c.now.Before(task.deadline()):
		return nil, false, nil
	}
	why := words.Sprintf("the task took longer than %v", words.Span(seconds(task.Timeout)))
	if err := c.stopTask(task, Timeout, why); err != nil {
		return nil, false, err
	}
	return c.effects(), true, nil
}
