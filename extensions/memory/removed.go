package memory

import (
	"context"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// handle forgets what is the own of a person who was removed. What they told the
// household stays.
func (m *memory) handle(ctx context.Context, e sdk.Event) (effects sdk.Effects, err error) {
	if e.Topic != contract.TopicPersonRevoked {
		return nil, sdk.Drop("memory does not handle " + e.Topic)
	}
	var person contract.PersonRevoked
	if err := e.Decode(&person); err != nil || !person.Removed {
		return nil, err
	}
	err = m.store.use(ctx, func(all *rows) error {
		effects = m.store.write(nil, all.filter(func(r row) bool { return person.Deletes(r.Principal) }))
		return nil
	})
	return effects, err
}
