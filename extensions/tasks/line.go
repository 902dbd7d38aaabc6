package tasks

import (
	"context"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// line is the tasks of a queue in the order in which they begin.
type line struct {
	*change
	prefix, after string
	page          []sdk.Value
	ended         bool
	skipped       int // another change is about to begin them
}

func (c *change) line(root, owner string) *line {
	return &line{change: c, prefix: queuedOf(root, owner)}
}

// next is the next task; nil: there is no more.
func (l *line) next() (*Task, error) {
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
		name, err := seen[string](l.change, v)
		if err != nil {
			return nil, err
		}
		if name == nil { // this change has taken it out
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

// claim is a queued row that a change is about to remove: others that look at the
// same time take the next one. If nothing comes of the change, it lapses.
type claim struct {
	by    string
	until time.Time
}

const claimLasts = time.Second

func (c *change) claim(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, taken := c.claims[key]; taken && other.by != c.by && time.Now().Before(other.until) {
		return false
	}
	c.claims[key] = claim{c.by, time.Now().Add(claimLasts)}
	return true
}

// unclaim forgets what is claimed by who tries again, and what has lapsed.
func (t *tasks) unclaim(by string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, old := range t.claims {
		if old.by == by || !time.Now().Before(old.until) {
			delete(t.claims, key)
		}
	}
}

// lookAfter begins, a little later, what another change had claimed and has not
// begun.
func (t *tasks) lookAfter(root, owner string) {
	time.AfterFunc(claimLasts+time.Millisecond, func() {
		if t.ctx.Err() == nil {
			t.quietly(t.ctx, "beginning what is queued", func() (sdk.Effects, error) { return t.refill(t.ctx, root, owner) })
		}
	})
}

// refill begins what is queued and has a place.
func (t *tasks) refill(ctx context.Context, root, owner string) (sdk.Effects, error) {
	c := t.change(ctx, "refill:"+root+"/"+owner)
	q, err := read[queue](c, queueKey(root, owner))
	if err != nil || q == nil || !q.Active {
		return nil, err
	}
	if err := c.goOn(queueKey(root, owner), *q, q); err != nil {
		return nil, err
	}
	return c.effects(), nil
}
