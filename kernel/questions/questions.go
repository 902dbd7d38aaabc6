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
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/ask"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Question is a question with who asked it, and where.
type Question struct {
	ask.Question

	Asker string `json:"asker"`           // the extension, or the agent in whose turn it is asked
	Call  string `json:"call,omitempty"`  // the tool call that waits; empty: an extension asks
	Event int64  `json:"event,omitempty"` // system.user.ask of an extension
	Topic string `json:"topic,omitempty"` // of the answer, for an extension
	Ref   string `json:"ref,omitempty"`

	Channel string  `json:"channel"`          // where it was asked
	Handle  string  `json:"handle,omitempty"` // of the conversation; empty: the channel's default recipient
	Sends   []int64 `json:"sends,omitempty"`  // the events that carry it there
	AskedAt int64   `json:"asked_at"`         // Unix microseconds
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
	lastKey     = "question/last"  // its version is the number of the newest question
)

// Store reads and writes questions. It is safe for concurrent use; in memory it
// has only a channel for those that wait.
type Store struct {
	mu    sync.Mutex
	ended chan struct{} // closed when the next question ends; nil: no one waits
}

// Ask stores a new question and gives it its id.
func (b *Store) Ask(tx *bus.Tx, q *Question) error {
	n, err := tx.KVPut(contract.KernelSource, lastKey, nil)
	if err != nil {
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

// End ends an open question and returns it; nil: it had ended before. Unseen says that
// all its sends were withdrawn before delivery.
func (b *Store) End(tx *bus.Tx, id, outcome, answer, by string) (q *Question, unseen bool, err error) {
	key := openPrefix + sortKey(id)
	if q, err = journal.Load[Question](tx, contract.KernelSource, key); q == nil || err != nil {
		return nil, false, err
	}
	q.Outcome, q.Answer, q.By, q.EndedAt = outcome, answer, by, tx.Now
	if err := errors.Join(tx.KVDelete(contract.KernelSource, key), put(tx, endedPrefix, q)); err != nil {
		return nil, false, err
	}
	unseen = len(q.Sends) > 0
	for _, seq := range q.Sends {
		all, err := tx.WithdrawDeliveries(seq)
		if err != nil {
			return nil, false, err
		}
		unseen = unseen && all
	}
	tx.After(b.wake)
	if q.Topic == "" {
		return q, unseen, nil
	}
	cause := tx.Cause()
	if cause == nil { // otherwise the event with the answer
		if cause, err = tx.Event(q.Event); err != nil {
			return nil, false, err
		}
	}
	return q, unseen, tx.Following(cause, func() error {
		ended := contract.UserAnswer{Question: q.ID, Ref: q.Ref, Outcome: outcome, Answer: answer, By: by}
		_, err := tx.Emit(q.Topic, "", ended)
		return err
	})
}

// Open returns the open questions that can be answered, oldest first, and those that
// have to end, with their outcomes.
func (b *Store) Open(r journal.Reader, now int64) (answerable, over []Question, err error) {
	open, err := journal.All[Question](r, contract.KernelSource, openPrefix)
	if err != nil {
		return nil, nil, err
	}
	for _, q := range open {
		if q.Outcome, err = due(r, &q, now); err != nil {
			return nil, nil, err
		}
		if q.Outcome == "" {
			answerable = append(answerable, q)
		} else {
			over = append(over, q)
		}
	}
	return answerable, over, nil
}

// due returns the outcome of an open question that has to end: withdrawn if the call
// that waited for the answer has ended, expired after the deadline; otherwise empty.
func due(r journal.Reader, q *Question, now int64) (outcome string, err error) {
	if q.Call != "" {
		c, err := r.Call(journal.ParseCallID(q.Call))
		if err != nil {
			return "", err
		}
		if c == nil || c.State.Ended() {
			return contract.AskWithdrawn, nil
		}
	}
	if q.Deadline <= now {
		return contract.AskExpired, nil
	}
	return "", nil
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

// Ended returns a channel that is closed when the next question ends.
func (b *Store) Ended() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended == nil {
		b.ended = make(chan struct{})
	}
	return b.ended
}

func (b *Store) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		close(b.ended)
		b.ended = nil
	}
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
		if err := errors.Join(tx.KVDelete(contract.KernelSource, kv.Key),
			tx.KVDelete(contract.KernelSource, callPrefix+q.Call)); err != nil {
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
