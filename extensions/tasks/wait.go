package tasks

import "slices"

// waiter is a call that waits in receive or delegate_task.
type waiter struct {
	root, id, name string // of the agent
	owner          string // id of its requester
	from           string // the sender that it waits for; empty: any
	seq            int64  // when it began, from nextSeq
	delegates      bool   // waits in delegate_task, which only the end of the task ends
	wantsSlot      bool   // it has its message and needs a slot to continue
	stuck          bool   // part of a deadlock: it returns without a message
	changed        chan struct{}
}

// addWaiter adds a waiter.
func (t *tasks) addWaiter(me agent, from string, delegates bool) *waiter {
	w := &waiter{
		root: me.root, id: me.id, name: me.name, from: from, seq: t.nextSeq(), delegates: delegates,
		changed: make(chan struct{}, 1),
	}
	if me.task != nil {
		w.owner = me.task.RequesterID
	}
	t.mu.Lock()
	t.waiters[me.root] = append(t.waiters[me.root], w)
	t.mu.Unlock()
	t.wake(me.root) // it may complete a deadlock
	return w
}

func (t *tasks) removeWaiter(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.waiters[w.root]
	for i := range all {
		if all[i] == w {
			all = append(all[:i:i], all[i+1:]...)
			break
		}
	}
	if t.waiters[w.root] = all; len(all) == 0 {
		delete(t.waiters, w.root)
	}
}

// wake makes all waiters of a tree read the store again.
func (t *tasks) wake(root string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waiters[root] {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

func (t *tasks) hasWaiters(root string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiters[root]) > 0
}

// waiterOf returns the waiter of an agent that needs a message to continue, or nil.
func (t *tasks) waiterOf(root, id string) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waiters[root] {
		if w.id == id && !w.wantsSlot && !w.stuck {
			return w
		}
	}
	return nil
}

// inReceive reports whether a call of an agent waits.
func (t *tasks) inReceive(root, id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.waiters[root], func(w *waiter) bool { return w.id == id })
}

// markStuck makes waiters return without a message, unless one has arrived.
func (t *tasks) markStuck(all []*waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range all {
		if w.delegates {
			continue
		}
		w.stuck = true
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

func (t *tasks) isStuck(w *waiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return w.stuck
}

// slotsWanted returns how many of an agent's workers wait to reacquire a slot:
// they precede queued tasks.
func (t *tasks) slotsWanted(root, owner string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waiters[root] {
		if w.wantsSlot && w.owner == owner {
			n++
		}
	}
	return n
}

func (t *tasks) setWantsSlot(w *waiter, returns bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.wantsSlot = returns
}
