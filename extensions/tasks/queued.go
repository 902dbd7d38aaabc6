package tasks

import (
	"context"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// queueCursor iterates over the tasks of a queue, in the order in which they start.
type queueCursor struct {
	*change
	prefix, after string
	page          []sdk.Value
	ended         bool
	skipped       int // claimed by other changes
}

func (c *change) queued(root, owner string) *queueCursor {
	return &queueCursor{change: c, prefix: queuedOf(root, owner)}
}

// next returns the next task; nil: no more.
func (l *queueCursor) next() (*Task, error) {
	for {
		if len(l.page) == 0 {
			if l.ended {
				return nil, nil
			}
			page, more, err := l.k.Page(l.ctx, l.prefix, l.after, 16)
			if err != nil {
				return nil, fmt.Errorf("read the queue: %w", err)
			}
			if l.page, l.ended = page, !more; len(page) == 0 {
				return nil, nil
			}
		}
		v := l.page[0]
		l.page, l.after = l.page[1:], v.Key
		name, err := track[string](l.change, v)
		if err != nil {
			return nil, err
		}
		if name == nil { // removed by this change
			continue
		}
		if !l.claim(v.Key) {
			l.skipped++
			continue
		}
		task, err := read[Task](l.change, taskKey(rootOf(v.Key), *name))
		if err != nil || task != nil && task.State == Queued {
			return task, err
		}
	}
}

// claim marks a queued task that a change is about to start, so that concurrent
// changes skip it. It expires, in case the change is not committed.
type claim struct {
	by    string
	until time.Time
}

const claimTTL = time.Second

func (c *change) claim(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, taken := c.claims[key]; taken && other.by != c.by && time.Now().Before(other.until) {
		return false
	}
	c.claims[key] = claim{c.by, time.Now().Add(claimTTL)}
	return true
}

// dropClaims removes the claims of a change that is retried, and expired ones.
func (t *tasks) dropClaims(by string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, old := range t.claims {
		if old.by == by || !time.Now().Before(old.until) {
			delete(t.claims, key)
		}
	}
}

// refillLater starts tasks that another change claimed but did not start.
func (t *tasks) refillLater(root, owner string) {
	time.AfterFunc(claimTTL+time.Millisecond, func() {
		if t.ctx.Err() == nil {
			t.tryCommit(t.ctx, "start queued tasks", func() (sdk.Effects, error) { return t.refill(t.ctx, root, owner) })
		}
	})
}

// refill starts queued tasks in free slots.
func (t *tasks) refill(ctx context.Context, root, owner string) (sdk.Effects, error) {
	c := t.change(ctx, "refill:"+root+"/"+owner)
	q, err := read[queue](c, queueKey(root, owner))
	if err != nil || q == nil || !q.Active {
		return nil, err
	}
	if err := c.startNext(queueKey(root, owner), *q, q); err != nil {
		return nil, err
	}
	return c.effects(), nil
}
