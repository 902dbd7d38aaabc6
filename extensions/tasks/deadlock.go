package tasks

import (
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

var (
	nothingRuns   = words.Sprintf("Nothing is running. /run starts queued tasks.")
	nothingInTime = words.Sprintf("Nothing arrived in time.")
)

// whyNothingCanCome explains why no message can arrive for a receive; empty: one
// may. own is the waiter of the agent, and nil for a person.
//
// An agent is active, and may send or finish, if it is not in receive. A queued
// task that will start is active too, and so is an agent whose own receive
// returns because nothing can arrive. Main is active while it is not in receive,
// even when idle: its user may write to it, and through it to others. A deadlock
// is a cycle of receives that no active agent can end. All receives of the cycle
// return; a receive that only waits for a member of the cycle goes on.
func (c *change) whyNothingCanCome(me agent, from string, own *waiter) (string, error) {
	if from != "" {
		if task, err := read[Task](c, taskKey(me.root, from)); err != nil {
			return "", err
		} else if task != nil && task.State == Finished {
			return words.Sprintf("Nothing more can arrive from %s: it has finished (%v).", from, task.Outcome), nil
		}
	}
	if own == nil || !c.isStuck(own) {
		s := waitGraph{change: c, me: me, waiters: map[string]*waiter{}, waitsFor: map[string]string{}}
		if active, err := s.follow(me.id, from); err != nil || active {
			return "", err
		}
		members := s.cycle()
		if len(members) < len(s.waiters) && len(members) == 0 {
			return "", nil // a cycle among the others returns first
		}
		if outdated, err := s.outdated(from); err != nil || outdated {
			return "", err
		}
		if own != nil {
			c.markStuck(append(members, own))
		}
		if from == "" && len(s.waiters) == 0 {
			return nothingRuns, nil
		}
	}
	if from == "" {
		return words.Sprintf("Nothing can arrive: all running tasks are waiting, too."), nil
	}
	task, err := read[Task](c, taskKey(me.root, from))
	if err == nil && task != nil && task.State == Queued {
		return words.Sprintf("Nothing can arrive from %s: it hasn't started. /run starts queued tasks.", from), nil
	}
	return words.Sprintf("Nothing can arrive from %s: it is waiting for you, directly or through others.", from), err
}

// waitGraph follows who waits for whom, from one receive, to an active agent.
type waitGraph struct {
	*change
	me         agent
	waiters    map[string]*waiter // visited, by agent id
	waitsFor   map[string]string  // by agent id, the agent that it waits for; empty: any
	visitedAll bool               // followAll ran
}

// follow follows the chain of receives from an agent that waits for name.
func (s *waitGraph) follow(id, name string) (active bool, err error) {
	for {
		if name == "" {
			s.waitsFor[id] = ""
			return s.followAll()
		}
		to, active, err := s.resolve(name)
		if err != nil || active {
			return active, err
		}
		s.waitsFor[id] = to
		if _, found := s.waitsFor[to]; found || to == s.me.id {
			return false, nil
		}
		w := s.waiterOf(s.me.root, to)
		if w == nil {
			return true, nil
		}
		s.waiters[to] = w
		id, name = to, w.from
	}
}

// resolve returns the id of the agent that must act before a task can send: the
// task itself, or for a task that is not started, the agent that can start it.
func (s *waitGraph) resolve(name string) (id string, active bool, err error) {
	for name != main {
		task, err := read[Task](s.change, taskKey(s.me.root, name))
		switch {
		case err != nil:
			return "", false, err
		case task == nil || task.State == Finished: // a receive from it returns
			return "", true, nil
		case task.State == Running:
			return task.ID, false, nil
		}
		q, err := readOrNew[queue](s.change, queueKey(s.me.root, task.RequesterID))
		if err != nil || q.Active {
			return "", true, err
		}
		name = task.Requester
	}
	return main, false, nil
}

// followAll follows all agents of the tree.
func (s *waitGraph) followAll() (active bool, err error) {
	if s.visitedAll {
		return false, nil
	}
	s.visitedAll = true
	root := s.me.root
	one := func(id string) (bool, error) {
		if _, found := s.waitsFor[id]; found || id == s.me.id {
			return false, nil
		}
		w := s.waiterOf(root, id)
		if w == nil {
			return true, nil
		}
		s.waiters[id] = w
		return s.follow(id, w.from)
	}
	if active, err = one(main); err != nil || active {
		return active, err
	}
	if err := s.scan(s.ctx, workingPrefix+root+"/", func(v sdk.Value) (err error) {
		if active, err = one(lastOf(v.Key)); active && err == nil {
			return errStopScan
		}
		return err
	}); err != nil || active {
		return active, err
	}
	err = s.scan(s.ctx, queuePrefix+root+"/", func(v sdk.Value) error {
		q, err := track[queue](s.change, v)
		if err != nil || q == nil || !q.Active {
			return err
		}
		if active, err = s.any(queuedOf(root, lastOf(v.Key))); active && err == nil {
			return errStopScan
		}
		return err
	})
	return active, err
}

// inCycle reports whether an agent waits, directly or through others, for the
// one that calls receive.
func (s *waitGraph) inCycle(id string) bool {
	for visited := map[string]bool{}; !visited[id]; {
		visited[id] = true
		if id = s.waitsFor[id]; id == "" || id == s.me.id {
			return true
		}
	}
	return false
}

// cycle returns the other waiters of the cycle.
func (s *waitGraph) cycle() (all []*waiter) {
	for id, w := range s.waiters {
		if s.inCycle(id) {
			all = append(all, w)
		}
	}
	return all
}

// outdated reports whether a receive of the graph no longer waits: its message
// has arrived or was just collected. A receive that began during this search also
// makes it outdated, because the tasks that its agent started before may have
// been missed; adding it woke all others, which search again.
func (s *waitGraph) outdated(from string) (bool, error) {
	if arrived, err := s.hasItem(s.me.root, s.me.id, from); err != nil || arrived {
		return arrived, err
	}
	for _, w := range s.waiters {
		if w.seq > s.seq {
			return true, nil
		}
		if arrived, err := s.hasItem(w.root, w.id, w.from); err != nil || arrived {
			return arrived, err
		}
		if s.waiterOf(w.root, w.id) != w {
			return true, nil
		}
	}
	return false, nil
}

// hasItem reports whether an inbox has an item, from one sender or from any.
func (s *waitGraph) hasItem(root, id, sender string) (bool, error) {
	if sender == "" {
		return s.any(orderOf(root, id))
	}
	return s.any(inboxFrom(root, id, sender))
}
