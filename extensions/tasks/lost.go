package tasks

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// lostAfter is how long a worker must have had nothing to do until its task ends
// without its last word. That may still be on its way: its delivery is tried again
// every minute at the latest.
const lostAfter = 10 * time.Minute

// lookForLost sees to tasks of which the extension has missed something while it
// was away. It ends those whose worker has nothing to do any more, and of whose end
// nothing is heard: its last word has died on the way here, in days, or its session
// is gone without one. And those have a place again that had given it back for a
// wait, which has failed: they went on.
func (t *tasks) lookForLost(ctx context.Context) {
	silent, now := map[string]time.Time{}, time.Now()
	err := t.scan(ctx, workingPrefix, func(v sdk.Value) error {
		id, root := lastOf(v.Key), rootOf(v.Key)
		var name string
		if err := v.Decode(&name); err != nil {
			return err
		}
		task, err := read[Task](t.change(ctx, ""), taskKey(root, name))
		if err != nil || task == nil || task.ID != id || task.State != Running {
			return err
		}
		busy, err := t.k.Busy(ctx, task.Agent, task.sessionKey())
		switch {
		case err != nil:
			return err
		case busy && task.Waiting && !t.waitsAtAll(root, id):
			t.quietly(ctx, "giving a worker its place again", func() (sdk.Effects, error) { return t.goesOn(ctx, root, name, id) })
		}
		if busy {
			return nil
		}
		since, before := t.silent[id]
		if !before {
			since = now
		}
		silent[id] = since
		if now.Sub(since) >= lostAfter {
			t.log.Warn("the last word of a worker was lost", "task", name, "root", root)
			t.quietly(ctx, "ending a task whose worker was lost", func() (sdk.Effects, error) { return t.lost(ctx, root, name, id) })
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		t.log.Warn("looking for workers that were lost failed; trying again later", "error", err)
	}
	t.silent = silent
}

// goesOn has a worker take a place that does not wait any more. It is at work, so
// there may be one more than should be; then the next to end hands no place on.
func (t *tasks) goesOn(ctx context.Context, root, name, id string) (sdk.Effects, error) {
	c := t.change(ctx, "goes on:"+id)
	task, err := read[Task](c, taskKey(root, name))
	if err != nil || task == nil || task.ID != id || task.State != Running || !task.Waiting {
		return nil, err
	}
	q, err := read[queue](c, queueKey(root, task.RequesterID))
	if err != nil {
		return nil, err
	}
	task.Waiting, task.Placed = false, q != nil && q.Limit > 0
	if task.Placed {
		q.Placed++
	}
	if q != nil { // without a limit, too: a run that sets one just now has not counted this one
		c.write(queueKey(root, task.RequesterID), q)
	}
	c.write(taskKey(root, name), task)
	return c.effects(), nil
}

// lost ends a task without the last word of its worker.
func (t *tasks) lost(ctx context.Context, root, name, id string) (sdk.Effects, error) {
	c := t.change(ctx, "lost:"+id)
	task, err := read[Task](c, taskKey(root, name))
	if err != nil || task == nil || task.ID != id || task.State != Running {
		return nil, err
	}
	result := Result{
		Outcome: cmp.Or(task.Stop, Interrupted),
		Error:   fmt.Sprintf("its last word was lost; what it has done is in its session (`switchboard tasks show %s`)", id),
	}
	if err := c.finish(task, result); err != nil {
		return nil, err
	}
	return c.effects(), nil
}
