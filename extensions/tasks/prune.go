package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// keep is how long a task is shown after its end, once its result is collected.
// What is not collected stays, however old it is.
const keep = 30 * 24 * time.Hour

// prune removes what nobody needs any more: old tasks, what was left of agents
// that have ended, and all of conversations that were deleted.
func (t *tasks) prune(ctx context.Context, now time.Time) error {
	roots, err := t.roots(ctx)
	if err != nil {
		return err
	}
	for _, root := range roots {
		_, err := t.k.Session(ctx, root)
		switch {
		case errors.Is(err, contract.ErrNotFound):
			err = t.removeRoot(ctx, root)
		case err == nil:
			err = t.pruneRoot(ctx, root, now)
		}
		if err != nil {
			return fmt.Errorf("conversation %s: %w", root, err)
		}
	}
	return nil
}

// ofRoots is the prefixes of rows that belong to a conversation.
var ofRoots = []string{
	taskPrefix, queuePrefix, queuedPrefix, workingPrefix, inboxPrefix, orderPrefix, unnamedPrefix, namedPrefix, noticePrefix, followPrefix, fencePrefix, countPrefix,
}

// roots is the conversations of which something is stored.
func (t *tasks) roots(ctx context.Context) (roots []string, err error) {
	known := map[string]bool{}
	for _, prefix := range ofRoots {
		for after := ""; ; {
			page, _, err := t.k.Page(ctx, prefix, after, 1)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", prefix, err)
			}
			if len(page) == 0 {
				break
			}
			root := rootOf(page[0].Key)
			after = prefix + root + "/\U0010FFFF" // the next one
			if len(page[0].Key) == len(prefix)+len(root) {
				after = page[0].Key
			}
			if !known[root] {
				known[root] = true
				roots = append(roots, root)
			}
		}
	}
	return roots, nil
}

// pruneRoot removes old tasks of a conversation, and messages to agents that have
// ended.
func (t *tasks) pruneRoot(ctx context.Context, root string, now time.Time) error {
	alive := map[string]bool{main: true}
	var old []*Task
	if err := t.each(ctx, root, func(task *Task) error {
		if task.State != Finished {
			alive[task.ID] = true
		} else if now.Sub(task.FinishedAt) > keep {
			old = append(old, task)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, task := range old {
		if err := t.k.Commit(ctx, t.pruned(ctx, task)...); err != nil && !errors.Is(err, contract.ErrConflict) {
			return fmt.Errorf("remove the task %q: %w", task.Name, err)
		}
	}
	recent := place(now.Add(-pruneEvery).UnixMicro()) // whose receiver may have been made since
	for _, prefix := range []string{orderPrefix, inboxPrefix} {
		if err := t.sweepRows(ctx, prefix+root+"/", func(key string) bool {
			return !alive[strings.Split(key, "/")[2]] && lastOf(key) < recent
		}); err != nil {
			return err
		}
	}
	return nil
}

// pruned removes a task that has finished, unless somebody has still to collect
// its result.
func (t *tasks) pruned(ctx context.Context, old *Task) sdk.Effects {
	c := t.change(ctx, "prune:"+old.ID)
	if lies, err := c.any(from(old.Root, old.RequesterID, old.Name)); err != nil || lies {
		return nil
	}
	task, err := read[Task](c, taskKey(old.Root, old.Name))
	if err != nil || task == nil || task.ID != old.ID {
		return nil
	}
	c.forgetTask(task)
	return c.effects()
}

// removeRoot stops what works for a conversation that was deleted, and removes
// what is stored of it once that has ended.
func (t *tasks) removeRoot(ctx context.Context, root string) error {
	unfinished := false
	if err := t.each(ctx, root, func(task *Task) error {
		if task.State == Finished {
			return nil
		}
		unfinished = true
		t.quietly(ctx, "stopping a task whose conversation was deleted", func() (sdk.Effects, error) {
			c := t.change(ctx, "prune:"+task.ID)
			stored, err := read[Task](c, taskKey(root, task.Name))
			if err != nil || stored == nil || stored.over() {
				return nil, err
			}
			const why = "its conversation was deleted"
			if stored.State == Queued {
				err = c.end(stored, &Result{Outcome: Cancelled, Error: why})
			} else {
				err = c.stop(stored, Cancelled, why)
			}
			return c.effects(), err
		})
		return nil
	}); err != nil || unfinished {
		return err
	}
	if err := t.each(ctx, root, func(task *Task) error {
		return t.k.Commit(ctx, sdk.Delete(promptPrefix+task.ID), sdk.Delete(resultPrefix+task.ID))
	}); err != nil {
		return err
	}
	for _, prefix := range ofRoots {
		if err := t.sweepRows(ctx, prefix+root, func(key string) bool { return rootOf(key) == root }); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.names, root)
	delete(t.followed, root)
	delete(t.keys, root)
	return nil
}

// sweepRows removes the rows of a prefix that are to go.
func (t *tasks) sweepRows(ctx context.Context, prefix string, goes func(key string) bool) error {
	var batch sdk.Effects
	flush := func() error {
		all := batch
		if batch = nil; len(all) == 0 {
			return nil
		}
		return t.k.Commit(ctx, all...)
	}
	if err := t.scan(ctx, prefix, func(v sdk.Value) error {
		if goes(v.Key) {
			batch = append(batch, sdk.Delete(v.Key))
		}
		if len(batch) < 200 {
			return nil
		}
		return flush()
	}); err != nil {
		return err
	}
	return flush()
}
