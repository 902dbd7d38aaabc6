package tasks

import (
	"fmt"

	"github.com/switchboard-run/switchboard/sdk"
)

// hopeless says why nothing can come to an agent that asks, if that is so; own is
// its wait, and nil for a person, who does not wait with the agent.
//
// Somebody goes on, and may send or finish, who does not wait. So does a queued
// task that will begin, and one whose wait ends by itself, because what it is for
// cannot come. Main counts as going on as long as it does not wait itself, also if
// it has nothing to do: its user may write to it, and to others through it. People
// count for nothing else. If nobody is left who goes on, those who wait for one
// another, directly or through others, are told so, all of them; whoever only waits
// for one of those is not, because that one goes on now.
func (c *change) hopeless(me agent, from string, own *waiter) (string, error) {
	if from != "" {
		if task, err := read[Task](c, taskKey(me.root, from)); err != nil {
			return "", err
		} else if task != nil && task.State == Finished {
			return fmt.Sprintf("Nothing more can come from %s: it has finished (%s).", from, task.Outcome), nil
		}
	}
	if own == nil || !c.isVain(own) {
		s := search{change: c, me: me, waits: map[string]*waiter{}, next: map[string]string{}}
		if goesOn, err := s.from(me.id, from); err != nil || goesOn {
			return "", err
		}
		members := s.members()
		if len(members) < len(s.waits) && len(members) == 0 {
			return "", nil // some of the others are told, and go on
		}
		if mistaken, err := s.mistaken(from); err != nil || mistaken {
			return "", err
		}
		if own != nil {
			c.inVain(append(members, own))
		}
		if from == "" && len(s.waits) == 0 {
			return "Nothing can come: nothing is running that would send or finish. What is queued begins with run.", nil
		}
	}
	if from == "" {
		return "Nothing can come: all who could send or finish wait, too.", nil
	}
	task, err := read[Task](c, taskKey(me.root, from))
	if err == nil && task != nil && task.State == Queued {
		return fmt.Sprintf("Nothing can come from %s: it is queued, and nobody has started it. Call run first.", from), nil
	}
	return fmt.Sprintf("Nothing can come from %s: it waits, directly or through others, for you.", from), err
}

// search looks for somebody who goes on, from one that asks along who waits for
// whom.
type search struct {
	*change
	me    agent
	waits map[string]*waiter // of those who were found, by id
	next  map[string]string  // id of the one for whom each waits; empty: whoever it is
	all   bool               // everybody was found
}

// from follows for whom an agent waits; goesOn: it came to somebody who does.
func (s *search) from(id, name string) (goesOn bool, err error) {
	for {
		if name == "" {
			s.next[id] = ""
			return s.everybody()
		}
		to, goesOn, err := s.resolve(name)
		if err != nil || goesOn {
			return goesOn, err
		}
		s.next[id] = to
		if _, found := s.next[to]; found || to == s.me.id {
			return false, nil
		}
		w := s.waiting(s.me.root, to)
		if w == nil {
			return true, nil
		}
		s.waits[to] = w
		id, name = to, w.from
	}
}

// resolve is the id of the one who goes on before a name can speak: itself, or for
// one that nobody has started who could do that.
func (s *search) resolve(name string) (id string, goesOn bool, err error) {
	for name != main {
		task, err := read[Task](s.change, taskKey(s.me.root, name))
		switch {
		case err != nil:
			return "", false, err
		case task == nil || task.State == Finished: // whoever waits for that is told
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

// everybody follows all of the tree.
func (s *search) everybody() (goesOn bool, err error) {
	if s.all {
		return false, nil
	}
	s.all = true
	root := s.me.root
	one := func(id string) (bool, error) {
		if _, found := s.next[id]; found || id == s.me.id {
			return false, nil
		}
		w := s.waiting(root, id)
		if w == nil {
			return true, nil
		}
		s.waits[id] = w
		return s.from(id, w.from)
	}
	if goesOn, err = one(main); err != nil || goesOn {
		return goesOn, err
	}
	if err := s.scan(s.ctx, workingPrefix+root+"/", func(v sdk.Value) (err error) {
		if goesOn, err = one(lastOf(v.Key)); goesOn && err == nil {
			return errEnough
		}
		return err
	}); err != nil || goesOn {
		return goesOn, err
	}
	err = s.scan(s.ctx, queuePrefix+root+"/", func(v sdk.Value) error {
		q, err := seen[queue](s.change, v)
		if err != nil || q == nil || !q.Active {
			return err
		}
		if goesOn, err = s.any(queuedOf(root, lastOf(v.Key))); goesOn && err == nil {
			return errEnough
		}
		return err
	})
	return goesOn, err
}

// circle says whether one who waits does so, directly or through others, for the
// one that asks.
func (s *search) circle(id string) bool {
	for asked := map[string]bool{}; !asked[id]; {
		asked[id] = true
		if id = s.next[id]; id == "" || id == s.me.id {
			return true
		}
	}
	return false
}

// members is those who wait for the one that asks, and it for them.
func (s *search) members() (all []*waiter) {
	for id, w := range s.waits {
		if s.circle(id) {
			all = append(all, w)
		}
	}
	return all
}

// mistaken says whether the one that asks, or one of those who were found to wait,
// does not: what it waits for lies there, or has just been collected. Of one that began to wait when
// this search was under way it is not known for whom it does: what it had started
// before may not have been seen. It has woken all others, so they look again.
func (s *search) mistaken(mine string) (bool, error) {
	if lies, err := s.lies(s.me.root, s.me.id, mine); err != nil || lies {
		return lies, err
	}
	for _, w := range s.waits {
		if w.at > s.began {
			return true, nil
		}
		if lies, err := s.lies(w.root, w.id, w.from); err != nil || lies {
			return lies, err
		}
		if s.waiting(w.root, w.id) != w {
			return true, nil
		}
	}
	return false, nil
}

// lies says whether an agent has something in its inbox, of one sender or at all.
func (s *search) lies(root, id, sender string) (bool, error) {
	if sender == "" {
		return s.any(orderOf(root, id))
	}
	return s.any(from(root, id, sender))
}
