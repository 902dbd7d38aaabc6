package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// TestNoStatementIsPlannedAgain runs every statement with one value and then
// with another: SQLite must not plan it again for that. It asks its authorizer
// when it plans, and at no other time.
func TestNoStatementIsPlannedAgain(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var planned atomic.Int64
	watch := sqlite.AuthorizeFunc(func(sqlite.Action) sqlite.AuthResult {
		planned.Add(1)
		return sqlite.AuthResultOK
	})
	must(t, s.write.SetAuthorizer(watch))

	reads := map[string]func(r journal.Reader, n int64) error{
		"Event":         func(r journal.Reader, n int64) error { _, err := r.Event(n); return err },
		"EventByDedupe": func(r journal.Reader, n int64) error { _, _, err := r.EventByDedupe(word(n), word(n)); return err },
		"LastSeq":       func(r journal.Reader, _ int64) error { _, err := r.LastSeq(); return err },
		"Subscriptions": func(r journal.Reader, _ int64) error { _, err := r.Subscriptions(); return err },
		"Delivery":      func(r journal.Reader, n int64) error { _, err := r.Delivery(n, n); return err },
		"Pending": func(r journal.Reader, _ int64) error {
			return r.Pending(func(journal.Delivery) bool { return true })
		},
		"PendingLane": func(r journal.Reader, n int64) error { _, err := r.PendingLane(n, word(n), n, int(n)); return err },
		"KVGet":       func(r journal.Reader, n int64) error { _, err := r.KVGet(word(n), word(n)); return err },
		"KVScan": func(r journal.Reader, n int64) error {
			_,
				err := r.KVScan(word(n), word(n), "", int(n))
			return err
		},
		"KVScan, after": func(r journal.Reader, n int64) error {
			_,
				err := r.KVScan(word(n), "k", word(n), int(n))
			return err
		},
		"Session":      func(r journal.Reader, n int64) error { _, err := r.Session(n); return err },
		"SessionByKey": func(r journal.Reader, n int64) error { _, err := r.SessionByKey(word(n), word(n)); return err },
		"Sessions": func(r journal.Reader, n int64) error {
			_, err := r.Sessions(journal.SessionFilter{Limit: int(n)})
			return err
		},
		"History":       func(r journal.Reader, n int64) error { _, _, err := r.History(n, n, 1<<20); return err },
		"HistoryBefore": func(r journal.Reader, n int64) error { _, err := r.HistoryBefore(n, n, int(n)); return err },
		"Turn":          func(r journal.Reader, n int64) error { _, err := r.Turn(n); return err },
		"TurnsOf":       func(r journal.Reader, n int64) error { _, err := r.TurnsOf(word(n), int(n)); return err },
		"Call":          func(r journal.Reader, n int64) error { _, err := r.Call(n); return err },
		"OpenCalls":     func(r journal.Reader, n int64) error { _, err := r.OpenCalls(n); return err },
		"Conversation":  func(r journal.Reader, n int64) error { _, err := r.Conversation(n); return err },
		"by its handle": func(r journal.Reader, n int64) error { _, err := r.ConversationByHandle(word(n)); return err },
		"by its address": func(r journal.Reader, n int64) error {
			_, err := r.ConversationByAddress(word(n), word(n), "")
			return err
		},
		"CommitReceipt": func(r journal.Reader, n int64) error { _, _, err := r.CommitReceipt(word(n), word(n)); return err },
		"Sessions of an agent": func(r journal.Reader, n int64) error {
			_, err := r.Sessions(journal.SessionFilter{Agent: word(n), Limit: int(n)})
			return err
		},
		"Deliveries": func(r journal.Reader, n int64) error {
			_, err := r.Deliveries(journal.DeliveryFilter{Seq: n, Limit: int(n)})
			return err
		},
		"Deliveries, all filters": func(r journal.Reader, n int64) error {
			_, err := r.Deliveries(journal.DeliveryFilter{
				Seq: n, After: n, Before: n, Subscription: n, ProviderID: word(n), States: []journal.DeliveryState{journal.Dead},
				Limit: int(n),
			})
			return err
		},
		"Events": func(r journal.Reader, n int64) error {
			_, err := r.Events(journal.EventFilter{After: n, Before: n + 9, Topic: word(n), Correlation: word(n), Limit: int(n)})
			return err
		},
		"Events of topics": func(r journal.Reader, n int64) error {
			_, err := r.Events(journal.EventFilter{Topic: word(n) + "*", Ascending: true, Limit: int(n)})
			return err
		},
	}
	for name, read := range reads {
		for n := range int64(3) { // the first time plans
			planned.Store(0)
			must(t, journal.Do(context.Background(), s, func(tx journal.Tx) error { return read(tx, n+1) }))
			if n > 0 && planned.Load() > 0 {
				t.Errorf("%s is planned again for other values", name)
				break
			}
		}
	}
	for n := range int64(5) { // Prune finds something the second time
		must(t, journal.Do(context.Background(), s, func(tx journal.Tx) error {
			return writeAll(tx, n+1, func(what string, err error) error {
				if n > 2 && planned.Load() > 0 {
					t.Errorf("%s is planned again for other values", what)
				}
				planned.Store(0)
				return err
			})
		}))
	}
}

func word(n int64) string { return fmt.Sprint("k", n) }

// writeAll writes a row of each kind, and some of them again, and reports each
// to done.
func writeAll(tx journal.Tx, n int64, done func(what string, err error) error) error {
	e := &busv1.Event{Topic: word(n), Key: word(n), Source: word(n), DedupeKey: word(n), CreatedAtUs: n}
	s := &journal.Session{Agent: word(n), Key: word(n)}
	turn := &journal.Turn{Chain: word(n)}
	call := &journal.Call{Name: word(n)}
	delivery := func() journal.Delivery {
		return journal.Delivery{Seq: e.GetSeq(), Subscription: 1, Key: word(n), State: journal.Done}
	}
	if err := done("BEGIN", nil); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"AppendEvent", func() error { return tx.AppendEvent(e) }},
		{"AddDelivery", func() error { return tx.AddDelivery(delivery()) }},
		{"UpdateDelivery", func() error { return tx.UpdateDelivery(delivery()) }},
		{"Acknowledge", func() error { return tx.Acknowledge(n, n, n, n) }},
		{"KVPut", func() error { _, err := tx.KVPut(word(n), word(n), []byte(word(n))); return err }},
		{"KVDelete", func() error { return tx.KVDelete(word(n), word(n)) }},
		{"PutSession", func() error { return tx.PutSession(s) }},
		{"PutSession, changed", func() error { return tx.PutSession(s) }},
		{"AppendHistory", func() error { return tx.AppendHistory(s.ID, []*busv1.Entry{{Seq: n, Text: word(n)}}) }},
		{"PutTurn", func() error { return tx.PutTurn(turn) }},
		{"PutTurn, changed", func() error { return tx.PutTurn(turn) }},
		{"PutCall", func() error { return tx.PutCall(call) }},
		{"PutCall, changed", func() error { return tx.PutCall(call) }},
		{"PutCommitReceipt", func() error { return tx.PutCommitReceipt(word(n), word(n), nil) }},
		{"DeleteSession", func() error { return tx.DeleteSession(s.ID) }},
		{"Prune", func() error { _, err := tx.Prune(n, n, int(n)+9); return err }},
	} {
		if err := done(step.what, step.do()); err != nil {
			return err
		}
	}
	return nil
}
