package tasks

import (
	"cmp"
	"context"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// lostAfter is how long a worker must be idle before its task ends without its
// final output. The output may still be in delivery, which is retried at least
// every minute.
const lostAfter = 10 * time.Minute

// findLost repairs tasks whose events the extension missed while it was down. It
// finishes tasks whose worker is idle and whose final output never arrived: its
// delivery died, or the session was deleted. It gives a slot back to tasks that
// released theirs for a receive that has failed since.
func (t *tasks) findLost(ctx context.Context) {
	idle, now := map[string]time.Time{}, time.Now()
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
		case busy && task.Waiting && !t.inReceive(root, id):
			t.tryCommit(ctx, "restore the slot of a task", func() (sdk.Effects, error) {
				return t.restoreSlot(ctx, root, name, id)
			})
		}
		if busy {
			return nil
		}
		since, known := t.idleSince[id]
		if !known {
			since = now
		}
		idle[id] = since
		if now.Sub(since) >= lostAfter {
			t.log.Warn("final output of a task was lost", "task", name, "root", root)
			t.tryCommit(ctx, "finish a task whose output was lost", func() (sdk.Effects, error) {
				return t.finishLost(ctx, root, name, id)
			})
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		t.log.Warn("cannot look for lost tasks; will retry", "error", err)
	}
	t.idleSince = idle
}

// restoreSlot takes a slot for a worker that no longer waits. It runs already, so
// more slots may be used than there are; then the next task to end frees none.
func (t *tasks) restoreSlot(ctx context.Context, root, name, id string) (sdk.Effects, error) {
	c := t.change(ctx, "goes on:"+id)
	task, err := read[Task](c, taskKey(root, name))
	if err != nil || task == nil || task.ID != id || task.State != Running || !task.Waiting {
		return nil, err
	}
	q, err := read[queue](c, queueKey(root, task.RequesterID))
	if err != nil {
		return nil, err
	}
	task.Waiting, task.HasSlot = false, q != nil && q.Limit > 0
	if task.HasSlot {
		q.Used++
	}
	if q != nil { // even without a limit: conflicts with a run that sets one
		c.write(queueKey(root, task.RequesterID), q)
	}
	c.write(taskKey(root, name), task)
	return c.effects(), nil
}

// finishLost finishes a task without the final output of its worker.
func (t *tasks) finishLost(ctx context.Context, root, name, id string) (sdk.Effects, error) {
	c := t.change(ctx, "lost:"+id)
	task, err := read[Task](c, taskKey(root, name))
	if err != nil || task == nil || task.ID != id || task.State != Running {
		return nil, err
	}
	result := Result{
		Outcome: cmp.Or(task.Stop, Interrupted),
		Error:   words.Sprintf("the output was lost: `switchboard tasks show %s` shows what the task did", id),
	}
	if err := c.finish(task, result); err != nil {
		return nil, err
	}
	return c.effects(), nil
}
