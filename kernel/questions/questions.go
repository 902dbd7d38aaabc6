// Package questions stores the questions that extensions, agents in the middle of
// a turn, and the kernel before it runs a tool ask people.
//
// A question is durable. It is asked once and ends once: answered, expired or
// withdrawn. The commit that ends it publishes an event on the topic that the
// asking extension named, or wakes the waiting call. A question survives restarts;
// its call waits again.
//
// Everything here runs inside a commit of the bus. The router decides where a
// question is shown and who may answer it.
package questions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Question is a question and its outcome.
type Question struct {
	ID      string   `json:"id"`   // q7
	Kind    string   `json:"kind"` // contract.AskApprove, ...
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"`
	Asker   string   `json:"asker"`           // the extension, or the agent in whose turn it is asked
	Call    string   `json:"call,omitempty"`  // the tool call that waits; empty: an extension asks
	Event   int64    `json:"event,omitempty"` // system.user.ask of an extension
	Topic   string   `json:"topic,omitempty"` // of the answer, for an extension
	Ref     string   `json:"ref,omitempty"`

	Channel  string  `json:"channel"`          // where it was asked
	Handle   string  `json:"handle,omitempty"` // of the conversation; empty: the channel's default recipient
	Sends    []int64 `json:"sends,omitempty"`  // the events that carry it there
	AskedAt  int64   `json:"asked_at"`         // Unix microseconds
	Deadline int64   `json:"deadline"`         // Unix microseconds

	Outcome string `json:"outcome,omitempty"` // empty: open
	Answer  string `json:"answer,omitempty"`
	By      string `json:"by,omitempty"`
	EndedAt int64  `json:"ended_at,omitempty"`
}

const (
	// keepEnded is how long ended questions are kept.
	keepEnded = 7 * 24 * time.Hour
	// pruneBatch is how many ended questions one new question may delete.
	pruneBatch = 100
	// MaxOpen is how many questions of one asker can be open.
	MaxOpen = 50

	openPrefix  = "question/open/"
	endedPrefix = "question/ended/"
	callPrefix  = "question/call/" // the question of a call
	lastKey     = "question/last"
)

// Store reads and writes questions. It is safe for concurrent use; in memory it
// has only the waiters.
type Store struct {
	mu      sync.Mutex
	waiting map[string][]chan struct{} // by question
}

// Ask stores a new question and gives it its id.
func (b *Store) Ask(tx *bus.Tx, q *Question) error {
	last, err := journal.Load[int64](tx, contract.KernelSource, lastKey)
	if err != nil {
		return err
	}
	n := int64(1)
	if last != nil {
		n += *last
	}
	if err := journal.Save(tx, contract.KernelSource, lastKey, n); err != nil {
		return err
	}
	q.ID, q.AskedAt = fmt.Sprintf("q%d", n), tx.Now
	if q.Call != "" {
		if _, err := tx.KVPut(contract.KernelSource, callPrefix+q.Call, []byte(q.ID)); err != nil {
			return err
		}
	}
	if err := prune(tx); err != nil {
		return err
	}
	return b.Move(tx, q)
}

// Move stores where an open question was asked.
func (b *Store) Move(tx *bus.Tx, q *Question) error { return put(tx, openPrefix, q) }

// End ends an open question; ended is false if it had ended before. Unseen says
// that all its sends were withdrawn before delivery.
func (b *Store) End(tx *bus.Tx, q *Question, outcome, answer, by string) (ended, unseen bool, err error) {
	stored, err := tx.KVGet(contract.KernelSource, openPrefix+sortKey(q.ID))
	if err != nil || stored.Version == 0 {
		return false, false, err
	}
	q.Outcome, q.Answer, q.By, q.EndedAt = outcome, answer, by, tx.Now
	if err := tx.KVDelete(contract.KernelSource, openPrefix+sortKey(q.ID)); err != nil {
		return false, false, err
	}
	if err := put(tx, endedPrefix, q); err != nil {
		return false, false, err
	}
	if unseen, err = withdrawSends(tx, q.Sends); err != nil {
		return false, false, err
	}
	tx.After(func() { b.wake(q.ID) })
	if q.Topic == "" {
		return true, unseen, nil
	}
	publish := func() error {
		ended := contract.UserAnswer{Question: q.ID, Ref: q.Ref, Outcome: outcome, Answer: answer, By: by}
		_, err := tx.Emit(q.Topic, "", ended)
		return err
	}
	if tx.Cause() != nil { // the event with the answer
		return true, unseen, publish()
	}
	asked, err := tx.Event(q.Event)
	if err != nil {
		return false, false, err
	}
	return true, unseen, tx.Following(asked, publish)
}

// withdrawSends withdraws the sends that are not delivered yet, and reports whether
// these are all.
func withdrawSends(tx *bus.Tx, sends []int64) (all bool, err error) {
	all = len(sends) > 0
	for _, seq := range sends {
		ds, err := tx.Deliveries(journal.DeliveryFilter{Seq: seq})
		if err != nil {
			return false, err
		}
		for _, d := range ds {
			if !tx.Free(d) {
				all = all && d.State == journal.Dead
				continue
			}
			if err := tx.Settle(d, journal.Done, "withdrawn: the question has ended"); err != nil {
				return false, err
			}
		}
	}
	return all, nil
}

// Open returns the questions that can be answered, oldest first.
func (b *Store) Open(r journal.Reader, now int64) ([]Question, error) {
	return all(r, func(q *Question) (bool, error) {
		outcome, err := Over(r, q, now)
		return outcome == "", err
	})
}

// Due returns the open questions to end, see Over.
func (b *Store) Due(r journal.Reader, now int64) ([]Question, error) {
	return all(r, func(q *Question) (bool, error) {
		outcome, err := Over(r, q, now)
		return outcome != "", err
	})
}

// Count counts the open questions of an asker.
func (b *Store) Count(r journal.Reader, asker string) (int, error) {
	of, err := all(r, func(q *Question) (bool, error) { return q.Asker == asker, nil })
	return len(of), err
}

// Over returns the outcome of an open question that has to end: withdrawn if the call
// that waited for the answer has ended, expired after the deadline; otherwise empty.
func Over(r journal.Reader, q *Question, now int64) (outcome string, err error) {
	if q.Call != "" {
		c, err := r.Call(journal.ParseCallID(q.Call))
		if err != nil {
			return "", err
		}
		if c == nil || c.State == journal.CallFinished || c.State == journal.CallClosed {
			return contract.AskWithdrawn, nil
		}
	}
	if q.Deadline <= now {
		return contract.AskExpired, nil
	}
	return "", nil
}

// all returns the open questions that a function selects.
func all(r journal.Reader, is func(*Question) (bool, error)) (selected []Question, err error) {
	open, err := journal.All[Question](r, contract.KernelSource, openPrefix)
	for i := range open {
		ok, err := is(&open[i])
		if err != nil {
			return nil, err
		}
		if ok {
			selected = append(selected, open[i])
		}
	}
	return selected, err
}

// Get returns a question by its id; nil: unknown, or pruned.
func (b *Store) Get(r journal.Reader, id string) (*Question, error) {
	for _, prefix := range []string{openPrefix, endedPrefix} {
		if q, err := journal.Load[Question](r, contract.KernelSource, prefix+sortKey(id)); q != nil || err != nil {
			return q, err
		}
	}
	return nil, nil
}

// OfCall returns the question of a call; nil: none.
func (b *Store) OfCall(r journal.Reader, call string) (*Question, error) {
	stored, err := r.KVGet(contract.KernelSource, callPrefix+call)
	if err != nil || stored.Version == 0 {
		return nil, err
	}
	return b.Get(r, string(stored.Value))
}

// OfEvent returns the open question that an event asked; nil: none.
func (b *Store) OfEvent(r journal.Reader, seq int64) (*Question, error) {
	of, err := all(r, func(q *Question) (bool, error) { return q.Event == seq, nil })
	if err != nil || len(of) == 0 {
		return nil, err
	}
	return &of[0], nil
}

// Await returns a channel that is closed when the question ends; a question that
// has ended already never closes it. The caller must call stop.
func (b *Store) Await(id string) (ended <-chan struct{}, stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[string][]chan struct{}{}
	}
	c := make(chan struct{})
	b.waiting[id] = append(b.waiting[id], c)
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		left := slices.DeleteFunc(b.waiting[id], func(w chan struct{}) bool { return w == c })
		if b.waiting[id] = left; len(left) == 0 {
			delete(b.waiting, id)
		}
	}
}

func (b *Store) wake(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.waiting[id] {
		close(c)
	}
	delete(b.waiting, id)
}

// prune deletes questions that ended more than keepEnded ago.
func prune(tx *bus.Tx) error {
	n := 0
	for kv, err := range journal.Values(tx, contract.KernelSource, endedPrefix, "", pruneBatch) {
		if n++; err != nil || n > pruneBatch {
			return err
		}
		var q Question
		if err := kv.Decode(&q); err != nil {
			return err
		}
		if q.EndedAt > tx.Now-keepEnded.Microseconds() {
			continue
		}
		if err := tx.KVDelete(contract.KernelSource, kv.Key); err != nil {
			return err
		}
		if q.Call == "" {
			continue
		}
		if err := tx.KVDelete(contract.KernelSource, callPrefix+q.Call); err != nil {
			return err
		}
	}
	return nil
}

func put(tx *bus.Tx, prefix string, q *Question) error {
	return journal.Save(tx, contract.KernelSource, prefix+sortKey(q.ID), q)
}

// sortKey formats an id so that keys sort by age.
func sortKey(id string) string {
	n, _ := strconv.ParseInt(strings.TrimPrefix(id, "q"), 10, 64) // 0: no question
	return fmt.Sprintf("%012d", n)
}
