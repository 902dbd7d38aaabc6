package dev

import (
	"slices"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Commit is what one commit changed, or would have changed.
type Commit struct {
	By        []string       // extensions that own what was written
	Published []*busv1.Event // with their seq
	Put       []string       // keys of values that were stored
	Deleted   []string       // keys
	Refused   error          // why nothing of it is stored; nil: it is
}

// Observe returns a store that tells of each commit that published an event or wrote a
// value, and of each one that was refused. tell is called by one goroutine and must not
// block.
func Observe(s journal.Store, tell func(Commit)) journal.Store { return &observed{s, tell} }

type observed struct {
	journal.Store
	tell func(Commit)
}

// Submit implements journal.Store.
func (s *observed) Submit(u journal.Update) {
	apply, done := u.Apply, u.Done
	var parts []Commit
	u.Apply = func(tx journal.Tx) error {
		t := &recorder{Tx: tx}
		t.parts = append(t.parts, Commit{}) // of the update outside of parts
		err := apply(t)
		parts = t.parts // of the last run
		return err
	}
	u.Done = func(err error) {
		for _, c := range parts {
			if err != nil && c.Refused == nil {
				c.Refused = err
			}
			if c.Refused != nil || len(c.Published)+len(c.Put)+len(c.Deleted) > 0 {
				s.tell(c)
			}
		}
		if done != nil {
			done(err)
		}
	}
	s.Store.Submit(u)
}

// recorder notes what an update writes. The last part is the running one.
type recorder struct {
	journal.Tx
	parts []Commit
}

func (t *recorder) by(owner string) *Commit {
	c := &t.parts[len(t.parts)-1]
	if !slices.Contains(c.By, owner) {
		c.By = append(c.By, owner)
	}
	return c
}

// Part implements journal.Tx.
func (t *recorder) Part(apply func() error) error {
	t.parts = append(t.parts, Commit{})
	at := len(t.parts) - 1
	err := t.Tx.Part(apply)
	t.parts[at].Refused = err
	t.parts = append(t.parts, Commit{})
	return err
}

// AppendEvent implements journal.Tx.
func (t *recorder) AppendEvent(e *busv1.Event) error {
	err := t.Tx.AppendEvent(e)
	c := t.by(e.GetSource())
	c.Published = append(c.Published, e)
	return err
}

// KVPut implements journal.Tx.
func (t *recorder) KVPut(owner, key string, value []byte) (int64, error) {
	c := t.by(owner)
	c.Put = append(c.Put, key)
	return t.Tx.KVPut(owner, key, value)
}

// KVDelete implements journal.Tx.
func (t *recorder) KVDelete(owner, key string) error {
	c := t.by(owner)
	c.Deleted = append(c.Deleted, key)
	return t.Tx.KVDelete(owner, key)
}
