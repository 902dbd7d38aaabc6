package tasks

import (
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/sdk"
)

// waiter is a call of receive that waits.
type waiter struct {
	root, id, name string // of who waits
	owner          string // id of who gave it its task
	from           string // whom it waits for; empty: whoever it is
	at             int64  // since when: a number that rises
	returns        bool   // it has what it waited for, and wants its place
	changed        chan struct{}
}

// enter makes a wait known.
func (t *tasks) enter(me agent, from string) *waiter {
	w := &waiter{root: me.root, id: me.id, name: me.name, from: from, at: t.number(), changed: make(chan struct{}, 1)}
	if me.task != nil {
		w.owner = me.task.RequesterID
	}
	t.mu.Lock()
	t.waits[me.root] = append(t.waits[me.root], w)
	t.mu.Unlock()
	t.wake(me.root) // whoever waits for this one may do so in vain now
	return w
}

func (t *tasks) leave(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.waits[w.root]
	for i := range all {
		if all[i] == w {
			all = append(all[:i:i], all[i+1:]...)
			break
		}
	}
	if t.waits[w.root] = all; len(all) == 0 {
		delete(t.waits, w.root)
	}
}

// wake has all who wait in a tree look again.
func (t *tasks) wake(root string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waits[root] {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

func (t *tasks) anyWaits(root string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waits[root]) > 0
}

// waiting is the wait of an agent that has nothing else to do; nil: there is none.
func (t *tasks) waiting(root, id string) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waits[root] {
		if w.id == id && !w.returns {
			return w
		}
	}
	return nil
}

// returning is how many of an agent's workers want a place that they have given
// back: they go before what is queued.
func (t *tasks) returning(root, owner string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waits[root] {
		if w.returns && w.owner == owner {
			n++
		}
	}
	return n
}

func (t *tasks) returns(w *waiter, returns bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.returns = returns
}

// hopeless says why nothing can come to an agent that waits, if that is so.
func (c *change) hopeless(me agent, from string) (string, error) {
	h := hope{change: c, me: me}
	if from == "" {
		if some, err := h.somebody(); err != nil || some {
			return "", err
		}
		return "Nothing can come: nothing is running that would send or finish. What is queued begins with run.", nil
	}
	if speaks, err := h.speaks(from); err != nil || speaks {
		return "", err
	}
	task, err := read[Task](c, taskKey(me.root, from))
	switch {
	case err != nil:
		return "", err
	case task != nil && task.State == Finished:
		return fmt.Sprintf("Nothing more can come from %s: it has finished (%s).", from, task.Outcome), nil
	case task != nil && task.State == Queued:
		return fmt.Sprintf("Nothing can come from %s: it is queued, and nobody has started it. Call run first.", from), nil
	}
	return fmt.Sprintf("Nothing can come from %s: it waits, directly or through others, for you.", from), nil
}

// hope is the search for somebody who can still say something to one that waits.
type hope struct {
	*change
	me      agent
	waiters []*waiter // who were found to wait, and on whom the verdict rests
}

// speaks says whether an agent can still say something, itself or because one
// for whom it waits can.
func (h *hope) speaks(name string) (bool, error) {
	if name != main {
		task, err := read[Task](h.change, taskKey(h.me.root, name))
		if err != nil {
			return false, err
		}
		if task == nil || task.State == Finished {
			return h.mistaken()
		}
	}
	speaks, anybody, err := h.follow(name)
	switch {
	case err != nil || speaks:
		return speaks, err
	case anybody:
		return h.somebody()
	}
	return h.mistaken()
}

// follow follows who waits for whom from an agent on. One speaks if it reaches
// somebody who works or begins; or a wait that ends by itself, because what it
// is for cannot come, or those who wait for one another are told. It does not
// if it reaches the one who asks, and that depends on others if somebody waits
// for anybody.
func (h *hope) follow(name string) (speaks, anybody bool, err error) {
	for asked := map[string]bool{}; name != h.me.name && !asked[name]; {
		asked[name] = true
		id := main
		if name != main {
			task, err := read[Task](h.change, taskKey(h.me.root, name))
			if err != nil || task == nil || task.State == Finished {
				return true, false, err
			}
			if task.State == Queued {
				q, err := readOrNew[queue](h.change, queueKey(h.me.root, task.RequesterID))
				if err != nil || q.Active {
					return true, false, err
				}
				name = task.Requester // who could start it
				continue
			}
			id = task.ID
		}
		w := h.waiting(h.me.root, id)
		if w == nil {
			return true, false, nil
		}
		h.waiters = append(h.waiters, w)
		if w.from == "" {
			return false, true, nil
		}
		name = w.from
	}
	return name != h.me.name, false, nil
}

// somebody says whether there is anybody in the tree who does not wait, or not
// much longer.
func (h *hope) somebody() (bool, error) {
	root := h.me.root
	works := func(id string) bool {
		if id == h.me.id {
			return false
		}
		w := h.waiting(root, id)
		if w != nil {
			h.waiters = append(h.waiters, w)
		}
		return w == nil
	}
	if works(main) {
		return true, nil
	}
	found := false
	if err := h.scan(h.ctx, workingPrefix+root+"/", func(v sdk.Value) error {
		if found = works(lastOf(v.Key)); found {
			return errEnough
		}
		return nil
	}); err != nil || found {
		return found, err
	}
	if err := h.scan(h.ctx, queuePrefix+root+"/", func(v sdk.Value) error {
		q, err := seen[queue](h.change, v)
		if err != nil || !q.Active {
			return err
		}
		if found, err = h.any(queuedOf(root, lastOf(v.Key))); found {
			return errEnough
		}
		return err
	}); err != nil || found {
		return found, err
	}
	for _, w := range slices.Clone(h.waiters) {
		if w.from == "" {
			continue
		}
		if speaks, _, err := h.follow(w.name); err != nil || speaks {
			return speaks, err
		}
	}
	return h.mistaken()
}

// mistaken says whether one of those who were found to wait does not: what it
// waits for lies there, or has just been collected. Of those who wait for one
// another only the one that came last is told so; the others go on with it.
func (h *hope) mistaken() (bool, error) {
	own := h.waiting(h.me.root, h.me.id)
	for _, w := range h.waiters {
		if own != nil && w.at > own.at {
			return true, nil
		}
		prefix := orderOf(w.root, w.id)
		if w.from != "" {
			prefix = from(w.root, w.id, w.from)
		}
		lies, err := h.any(prefix)
		if err != nil || lies {
			return lies, err
		}
		if h.waiting(w.root, w.id) != w {
			return true, nil
		}
	}
	return false, nil
}
