package tasks

import (
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// watchTime stops a task when its time is over.
func (t *tasks) watchTime(task *Task) {
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
		over := false
		done := t.quietly(t.ctx, "stopping a task after its time", func() (effects sdk.Effects, err error) {
			effects, over, err = t.overtime(root, name, id)
			return effects, err
		})
		if done && over {
			t.forgetTime(id)
			return
		}
		select {
		case <-time.After(wait):
		case <-t.ctx.Done():
		}
	}
}

// overtime stops a task that has taken too long; over: there is nothing more to
// watch. Its start may not be committed yet, or was committed later than planned.
func (t *tasks) overtime(root, name, id string) (_ sdk.Effects, over bool, err error) {
	c := t.change(t.ctx, "time:"+id)
	task, err := read[Task](c, taskKey(root, name))
	switch {
	case err != nil:
		return nil, false, err
	case task == nil || task.ID != id || task.over():
		return nil, true, nil
	case task.State == Queued || c.now.Before(task.deadline()):
		return nil, false, nil
	}
	if err := c.stop(task, Timeout, fmt.Sprintf("it took longer than %s", seconds(task.Timeout))); err != nil {
		return nil, false, err
	}
	return c.effects(), true, nil
}
