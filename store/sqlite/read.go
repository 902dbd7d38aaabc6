package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Read reads a snapshot of a store that a kernel may have open. It is for tests and
// benchmarks.
func Read(path string, read func(journal.Reader) error) error {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return explain(err)
	}
	defer conn.Close()
	return view(context.Background(), conn, read)
}

// Unsettled calls each for every unsettled delivery of such a store, with its
// subscription and its event.
func Unsettled(path string, each func(journal.Subscription, journal.Delivery, *busv1.Event)) error {
	return Read(path, func(r journal.Reader) error {
		known, err := r.Subscriptions()
		if err != nil {
			return err
		}
		subscriptions := map[int64]journal.Subscription{}
		for _, s := range known {
			subscriptions[s.ID] = s
		}
		var open []journal.Delivery
		if err := r.Pending(func(d journal.Delivery) bool {
			open = append(open, d)
			return true
		}); err != nil {
			return err
		}
		for _, d := range open {
			e, err := r.Event(d.Seq)
			if err != nil {
				return err
			}
			each(subscriptions[d.Subscription], d, e)
		}
		return nil
	})
}
