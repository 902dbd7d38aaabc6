package bus

import (
	"context"
	"slices"
	"strconv"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// patternUnroutable is the subscription whose dead letters are the events that
// could not be routed. It matches no topic.
const patternUnroutable = "unroutable"

func isUnroutable(s journal.Subscription) bool {
	return s.Extension == contract.KernelSource && s.Pattern == patternUnroutable
}

// recover loads the subscriptions and what is pending, as far as memory keeps it.
// It is the normal start: an empty store is only the easiest case.
func (b *Bus) recover(ctx context.Context) error {
	err := journal.Do(ctx, b.store, func(tx journal.Tx) error {
		known, err := tx.Subscriptions()
		if err != nil || slices.ContainsFunc(known, isUnroutable) {
			return err
		}
		return tx.PutSubscription(&journal.Subscription{Extension: contract.KernelSource, Pattern: patternUnroutable})
	})
	if err != nil {
		return err
	}
	return b.store.View(ctx, func(r journal.Reader) error {
		known, err := r.Subscriptions()
		if err != nil {
			return err
		}
		subs := map[int64]*subscription{}
		for _, k := range known {
			subs[k.ID] = b.newSubscription(k)
		}
		b.table.Store(newTable(subs))
		if b.restored, err = restored(r); err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		return r.Pending(func(d journal.Delivery) bool {
			if sub := subs[d.Subscription]; sub != nil {
				b.add(added{sub: sub, delivery: fromStore(d)})
			}
			return true
		})
	})
}

// restored is the newest event of the backup that the store comes from.
func restored(r journal.Reader) (int64, error) {
	kv, err := r.KVGet(contract.KernelSource, journal.KeyRestored)
	if err != nil || kv.Version == 0 {
		return 0, err
	}
	return strconv.ParseInt(string(kv.Value), 10, 64)
}
