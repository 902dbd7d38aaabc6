//go:build crashpoints

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// A spoiled kernel breaks its promises, to show that the tests which count losses would
// notice:
//
//	SWITCHBOARD_SPOIL  "delivery TOPIC": deliveries of the topic are not stored;
//	                   "settled TOPIC": changes of its deliveries are not stored;
//	                   "dedupe TOPIC": the dedupe keys of its events are not stored;
//	                   "call NAME": the outcome of calls of the tool is not stored
func init() {
	spoil := os.Getenv("SWITCHBOARD_SPOIL")
	if spoil == "" {
		return
	}
	what, of, ok := strings.Cut(spoil, " ")
	if !ok || !slices.Contains([]string{"delivery", "settled", "dedupe", "call"}, what) {
		panic(fmt.Sprintf(`SWITCHBOARD_SPOIL is %q, not "delivery TOPIC", "settled TOPIC", "dedupe TOPIC" or "call NAME"`,
			spoil))
	}
	inner := wrapStore
	wrapStore = func(s journal.Store) journal.Store {
		if s = (&spoiledStore{Store: s, what: what, of: of, seqs: map[int64]bool{}}); inner != nil {
			return inner(s)
		}
		return s
	}
}

// spoiledStore drops writes. Only the writing goroutine uses seqs.
type spoiledStore struct {
	journal.Store
	what, of string
	seqs     map[int64]bool // events of the topic
}

// Submit implements journal.Store.
func (s *spoiledStore) Submit(u journal.Update) {
	apply := u.Apply
	u.Apply = func(tx journal.Tx) error { return apply(&spoiledTx{Tx: tx, s: s}) }
	s.Store.Submit(u)
}

type spoiledTx struct {
	journal.Tx
	s *spoiledStore
}

func (t *spoiledTx) AppendEvent(e *busv1.Event) error {
	key := e.GetDedupeKey()
	if t.s.what == "dedupe" && e.GetTopic() == t.s.of {
		e.DedupeKey = ""
	}
	err := t.Tx.AppendEvent(e)
	e.DedupeKey = key
	if e.GetTopic() == t.s.of {
		t.s.seqs[e.GetSeq()] = true
	}
	return err
}

func (t *spoiledTx) AddDelivery(d journal.Delivery) error {
	switch {
	case !t.s.seqs[d.Seq]:
	case t.s.what == "delivery":
		return nil
	case t.s.what == "settled":
		d.State, d.StartedAt = journal.Pending, 0
	}
	return t.Tx.AddDelivery(d)
}

func (t *spoiledTx) UpdateDelivery(d journal.Delivery) error {
	if t.s.what == "settled" && t.s.seqs[d.Seq] {
		return nil
	}
	return t.Tx.UpdateDelivery(d)
}

func (t *spoiledTx) Acknowledge(seq, subscription, startedAt, settledAt int64) error {
	if t.s.what == "settled" && t.s.seqs[seq] {
		return nil
	}
	return t.Tx.Acknowledge(seq, subscription, startedAt, settledAt)
}

func (t *spoiledTx) PutCall(c *journal.Call) error {
	if t.s.what == "call" && c.Name == t.s.of && c.ID != 0 {
		return nil
	}
	return t.Tx.PutCall(c)
}
