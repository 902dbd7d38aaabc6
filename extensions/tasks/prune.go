package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// keep is how long a finished task is kept, once its result is collected. An
// uncollected result stays, however old it is.
const keep = 30 * 24 * time.Hour

// prune deletes old tasks, messages to agents that have ended, and all rows of
// deleted conversations.
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
			return fmt.Errorf("prune conversation %s: %w", root, err)
		}
	}
	return nil
}

// rootPrefixes are the prefixes of rows that belong to a conversation, and mailPrefixes
// those of them that hold what has not been collected.
var (
	rootPrefixes = append([]string{taskPrefix, queuePrefix, queuedPrefix, workingPrefix}, mailPrefixes...)
	mailPrefixes = []string{
		inboxPrefix, orderPrefix, unnoticedPrefix, noticedPrefix, noticePrefix, deferredPrefix, fencePrefix, countPrefix,
	}
)

// roots returns the conversations that have rows.
func (t *tasks) roots(ctx context.Context) (roots []string, err error) {
	known := map[string]bool{}
	for _, prefix := range rootPrefixes {
		for after := ""; ; {
			page, _, err := t.k.Page(ctx, prefix, after, 1)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", prefix, err)
			}
			if len(page) == 0 {
				break
			}
			root := rootOf(page[0].Key)
			after = prefix + root + "/\U0010FFFF" // skip the rest of this root
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

// pruneRoot deletes the old tasks of a conversation, and messages to agents that
// have ended.
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
	recent := seqKey(now.Add(-pruneEvery).UnixMicro()) // newer rows may belong to tasks that are not in alive
	for _, prefix := range []string{orderPrefix, inboxPrefix} {
		if err := t.sweepRows(ctx, prefix+root+"/", func(key string) bool {
			return !alive[strings.Split(key, "/")[2]] && lastOf(key) < recent
		}); err != nil {
			return err
		}
	}
	return nil
}

// pruned deletes a finished task, unless its result is uncollected.
func (t *tasks) pruned(ctx context.Context, old *Task) sdk.Effects {
	c := t.change(ctx, "prune:"+old.ID)
	if uncollected, err := c.any(inboxFrom(old.Root, old.RequesterID, old.Name)); err != nil || uncollected {
		return nil
	}
	task, err := read[Task](c, taskKey(old.Root, old.Name))
	if err != nil || task == nil || task.ID != old.ID {
		return nil
	}
	c.forgetTask(task)
	return c.effects()
}

// removeRoot stops the tasks of a deleted conversation, and deletes its rows once
// they have ended.
func (t *tasks) removeRoot(ctx context.Context, root string) error {
	unfinished := false
	if err := t.each(ctx, root, func(task *Task) error {
		if task.State == Finished {
			return nil
		}
		unfinished = true
		t.tryCommit(ctx, "stop a task of a deleted conversation", func() (sdk.Effects, error) {
			c := t.change(ctx, "prune:"+task.ID)
			stored, err := read[Task](c, taskKey(root, task.Name))
			if err != nil || stored == nil || stored.ended() {
				return nil, err
			}
			why := words.Sprintf("the conversation was deleted")
			if stored.State == Queued {
				err = c.markFinished(stored, &Result{Outcome: Cancelled, Error: why})
			} else {
				err = c.stopTask(stored, Cancelled, why)
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
	if err := t.sweepRoot(ctx, root, rootPrefixes); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.nameNumbers, root)
	delete(t.hasDeferred, root)
	delete(t.keys, root)
	return nil
}

// sweepRoot deletes the rows of a conversation with the prefixes.
func (t *tasks) sweepRoot(ctx context.Context, root string, prefixes []string) error {
	for _, prefix := range prefixes {
		if err := t.sweepRows(ctx, prefix+root, func(key string) bool { return rootOf(key) == root }); err != nil {
			return err
		}
	}
	return nil
}

// sweepRows deletes the rows of a prefix for which remove is true.
func (t *tasks) sweepRows(ctx context.Context, prefix string, remove func(key string) bool) error {
	var batch sdk.Effects
	flush := func() error {
		all := batch
		if batch = nil; len(all) == 0 {
			return nil
		}
		return t.k.Commit(ctx, all...)
	}
	if err := t.scan(ctx, prefix, func(v sdk.Value) error {
		if remove(v.Key) {
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
