package tasks

import "slices"

// waiter is a call of receive that waits.
type waiter struct {
	root, id, name string // of who waits
	owner          string // id of who gave it its task
	from           string // whom it waits for; empty: whoever it is
	at             int64  // since when: a number that rises
	returns        bool   // it has what it waited for, and wants its place
	vain           bool   // it waits for those who wait for it, and is told so
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

// waiting is the wait of an agent that goes on only if something comes; nil: there
// is none.
func (t *tasks) waiting(root, id string) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waits[root] {
		if w.id == id && !w.returns && !w.vain {
			return w
		}
	}
	return nil
}

// waitsAtAll says whether an agent is in a call of receive, whatever it does there.
func (t *tasks) waitsAtAll(root, id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.waits[root], func(w *waiter) bool { return w.id == id })
}

// inVain has those who wait told that nothing can come, unless something has.
func (t *tasks) inVain(all []*waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range all {
		w.vain = true
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

func (t *tasks) isVain(w *waiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return w.vain
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
