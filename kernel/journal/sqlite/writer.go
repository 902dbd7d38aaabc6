package sqlite

import (
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Submit implements journal.Store.
func (s *Store) Submit(u journal.Update) {
	s.submit.RLock()
	defer s.submit.RUnlock()
	if s.done {
		if u.Done != nil {
			u.Done(journal.ErrClosed)
		}
		return
	}
	s.queue <- u
}

// Close implements journal.Store.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.submit.Lock()
		s.done = true
		close(s.queue)
		s.submit.Unlock()
	})
	<-s.closed
	err := s.read.Close()
	if e := s.write.Close(); e != nil {
		err = e
	}
	return err
}

func (s *Store) writeLoop() {
	defer close(s.closed)
	group := make([]journal.Update, 0, groupLimit)
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for open := true; open; {
		group = group[:0]
		u, ok := <-s.queue
		if !ok {
			return
		}
		group = append(group, u)
		if u.Lazy {
			group, open = s.awaitCompany(group, timer)
		}
		group, open = s.drain(group, open)
		s.commit(group)
		clear(group)
	}
}

// awaitCompany collects lazy updates until one comes that is not, or the delay
// is over.
func (s *Store) awaitCompany(group []journal.Update, timer *time.Timer) ([]journal.Update, bool) {
	timer.Reset(journal.LazyDelay)
	defer timer.Stop()
	for len(group) < groupLimit {
		select {
		case u, ok := <-s.queue:
			if !ok {
				return group, false
			}
			group = append(group, u)
			if !u.Lazy {
				return group, true
			}
		case <-timer.C:
			return group, true
		}
	}
	return group, true
}

// drain takes what else is waiting now.
func (s *Store) drain(group []journal.Update, open bool) ([]journal.Update, bool) {
	for open && len(group) < groupLimit {
		select {
		case u, ok := <-s.queue:
			if !ok {
				return group, false
			}
			group = append(group, u)
		default:
			return group, true
		}
	}
	return group, open
}

// commit applies a group in one transaction and reports the outcomes.
func (s *Store) commit(group []journal.Update) {
	outcomes, err := s.apply(group)
	if err != nil {
		err = fmt.Errorf("writing to the store failed, nothing of it is kept: %w: %w", contract.ErrFull, explain(err))
	}
	for i, u := range group {
		if u.Done == nil {
			continue
		}
		if outcomes[i] != nil {
			u.Done(outcomes[i])
		} else {
			u.Done(err)
		}
	}
}

func (s *Store) apply(group []journal.Update) (outcomes []error, err error) {
	outcomes = make([]error, len(group))
	t := &tx{conn: s.write, store: s}
	before := s.seq
	if err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return outcomes, err
	}
	defer func() {
		if err != nil {
			s.seq = before
			if !s.write.AutocommitEnabled() {
				_ = t.exec("ROLLBACK")
			}
		}
	}()
	for i, u := range group {
		seq := s.seq
		t.saved, t.nested = false, len(group) > 1
		outcomes[i] = applyOne(u, t)
		if t.failed != nil {
			return outcomes, t.failed
		}
		switch {
		case outcomes[i] == nil && t.saved:
			err = t.exec("RELEASE member")
		case outcomes[i] != nil:
			s.seq = seq
			err = t.undo()
		}
		if err != nil {
			return outcomes, err
		}
		if !t.nested && outcomes[i] != nil {
			return outcomes, nil // the only member is rolled back
		}
	}
	return outcomes, t.exec("COMMIT")
}

// applyOne turns a panic of a member into its own failure: the writer serves
// everyone.
func applyOne(u journal.Update, t *tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("applying an update panicked: %v", p)
		}
	}()
	return u.Apply(t)
}
