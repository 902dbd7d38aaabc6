package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
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
		s.stopCopying()
		s.copies.Wait()
		s.logged.release(s.closed)
		<-s.closed
		s.closing = errors.Join(s.read.Close(), s.write.Close())
		s.owner.close()
	})
	return s.closing
}

func (s *Store) writeLoop() {
	defer close(s.closed)
	defer func() {
		if s.log != nil {
			_ = s.log.Close()
		}
	}()
	group := make([]journal.Update, 0, groupLimit)
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for open := true; open; {
		group = group[:0]
		u, ok := s.next(timer)
		if !ok {
			return
		}
		group = append(group, u)
		if u.Lazy {
			group, open = s.collectLazy(group, timer)
		}
		group, open = s.drain(group, open)
		s.commit(group)
		clear(group)
		s.compareStates()
		if len(s.queue) == 0 {
			s.reserveLog()
		}
	}
}

// collectLazy collects lazy updates until one comes that is not, or the delay is over.
func (s *Store) collectLazy(group []journal.Update, timer *time.Timer) ([]journal.Update, bool) {
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

// drain adds the other waiting updates to the group.
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

// errPartialWrite means that a member failed after writing something, in a group
// without savepoints.
var errPartialWrite = errors.New("a member of the group failed after writing something")

// commit applies a group in one transaction and reports the outcomes. Members rarely
// fail after writing, so the group is first applied without savepoints, and again with
// them if one does. If the engine fails, each member is tried alone: a member too large
// for the disk does not fail the others, and no outcome depends on rolled back writes.
// After the group was sent to a commit log, no member is tried alone or undone.
func (s *Store) commit(group []journal.Update) {
	outcomes, err := make([]error, len(group)), s.logged.over()
	if err == nil && (s.lost.Load() != nil || time.Since(s.checked) >= ownerCheckBusy) {
		err = s.checkOwner()
	}
	if err == nil {
		outcomes, err = s.apply(group, false)
	}
	if errors.Is(err, errPartialWrite) {
		outcomes, err = s.apply(group, true)
	}
	if err != nil && len(group) > 1 && s.logged.over() == nil && !errors.As(err, new(logError)) {
		for i := range group {
			s.commit(group[i : i+1])
		}
		return
	}
	for i, u := range group {
		if u.Done == nil {
			continue
		}
		if err != nil {
			u.Done(s.noteDamage(refusal(err)))
		} else {
			u.Done(s.noteDamage(explain(outcomes[i])))
		}
	}
}

// checkOwner returns the error of owner.check, and notes it for Damage.
func (s *Store) checkOwner() error {
	err := s.owner.check()
	s.checked = time.Now()
	if s.lost.Store(nil); err != nil {
		s.lost.Store(&err)
	}
	return err
}

// refusal returns the error of an update that the engine did not accept.
func refusal(err error) error {
	switch err = explain(err); {
	case errors.Is(err, journal.ErrDamaged), errors.Is(err, journal.ErrFenced):
		return err
	case errors.Is(err, journal.ErrLost):
		return fmt.Errorf("%w: %w", contract.ErrFull, err)
	}
	return fmt.Errorf("%w, and nothing of this is stored: %w", contract.ErrFull, err)
}

func (s *Store) apply(group []journal.Update, savepoints bool) (outcomes []error, err error) {
	outcomes = make([]error, len(group))
	t := &tx{conn: s.write, store: s, nested: savepoints}
	before := s.seq
	if err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return outcomes, err
	}
	var c *changes
	if s.logged != nil {
		if c, err = record(s.write); err != nil {
			return outcomes, errors.Join(err, t.exec("ROLLBACK"))
		}
		defer c.end()
	}
	ran := 0
	defer func() {
		if err == nil {
			return
		}
		s.seq = before
		s.blocks.drop()
		if !s.write.AutocommitEnabled() {
			_ = t.exec("ROLLBACK")
		}
		for ; ran > 0; ran-- {
			if outcomes[ran-1] == nil && s.logged.over() == nil {
				undo(group[ran-1])
			}
		}
	}()
	for i, u := range group {
		seq := s.seq
		t.saved, t.wrote = false, false
		t.forget()
		outcomes[i] = applyOne(u, t)
		ran++
		if t.failed == nil && outcomes[i] == nil && t.saved {
			if err = t.flush(); err == nil { // dirty blocks are of this member only
				err = t.exec("RELEASE member")
			}
		}
		if outcomes[i] != nil {
			undo(u)
			s.seq = seq
		}
		if t.failed != nil {
			return outcomes, t.failed
		}
		if t.half {
			return outcomes, errPartialWrite
		}
		if outcomes[i] != nil && t.wrote {
			if !t.nested && len(group) > 1 {
				return outcomes, errPartialWrite
			}
			err = t.undo()
		}
		if err != nil {
			return outcomes, err
		}
		if outcomes[i] != nil && len(group) == 1 {
			if !t.wrote {
				err = t.exec("ROLLBACK")
			}
			if err == nil && s.logged != nil { // what it has read was the owner's
				err = s.logged.confirm(context.Background())
			}
			return outcomes, err
		}
	}
	if err := t.flush(); err != nil {
		return outcomes, err
	}
	if f := s.syncing.Load(); f != nil {
		(*f)()
	}
	if s.logged != nil {
		return outcomes, s.logged.conclude(t, commitlog.Changes, c)
	}
	return outcomes, t.exec("COMMIT")
}

func undo(u journal.Update) {
	if u.Undo != nil {
		u.Undo()
	}
}

// applyOne turns a panic of a member into its own failure.
func applyOne(u journal.Update, t *tx) error {
	return guard(func() error { return u.Apply(t) })
}

func guard(apply func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("apply an update: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return apply()
}

// Part implements journal.Tx. Without savepoints, a part that fails after writing makes
// the group be applied again with them.
func (t *tx) Part(apply func() error) error {
	if t.store == nil {
		return errReadOnly
	}
	seq, wrote := t.store.seq, t.wrote
	if !t.nested {
		t.wrote = false
		err := guard(apply)
		if err != nil {
			t.store.seq = seq
			t.half = t.half || t.wrote
		}
		t.wrote = t.wrote || wrote
		return err
	}
	if err := t.begin(); err != nil { // the savepoint of the member is the outer one
		return err
	}
	if err := errors.Join(t.flush(), t.exec("SAVEPOINT part")); err != nil {
		t.failed = err
		return err
	}
	err := guard(apply)
	if t.failed != nil {
		return t.failed
	}
	if err == nil {
		err = t.flush()
	} else {
		t.store.seq = seq
		t.store.blocks.drop()
		t.forget()
		t.failed = t.exec("ROLLBACK TO part")
	}
	if t.failed == nil {
		t.failed = t.exec("RELEASE part")
	}
	return errors.Join(err, t.failed)
}
