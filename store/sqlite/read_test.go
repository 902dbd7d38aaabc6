package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// TestUnsettledOfAStoreThatIsOpen reads what is under way beside the store's
// owner: what waits in a block, what has a row of its own, and nothing that is done.
func TestUnsettledOfAStoreThatIsOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := journal.Do(t.Context(), s, func(tx journal.Tx) error {
		sub := journal.Subscription{Extension: "x", Pattern: "a.*"}
		if err := tx.PutSubscription(&sub); err != nil {
			return err
		}
		for i, state := range []journal.DeliveryState{journal.Pending, journal.InFlight, journal.Done, journal.Dead,
			journal.Pending} {
			e := &busv1.Event{Topic: fmt.Sprintf("a.%d", i), Source: "y", Payload: []byte("{}")}
			if err := tx.AppendEvent(e); err != nil {
				return err
			}
			if err := tx.AddDelivery(journal.Delivery{Seq: e.GetSeq(), Subscription: sub.ID, State: state}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := sqlite.Unsettled(path, func(s journal.Subscription, d journal.Delivery, e *busv1.Event) {
		got = append(got, fmt.Sprintf("%s %s %s %s", s.Extension, s.Pattern, e.GetTopic(), d.State))
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x a.* a.0 pending", "x a.* a.1 in flight", "x a.* a.4 pending"}, got); diff != "" {
		t.Error(diff)
	}
}
