package links

import (
	"context"
	"errors"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// revoked deletes the exchanges that are the own of a person who was removed. The kernel
// has ended the turns on them; those of others that led to them, or follow, don't exist.
func (l *links) revoked(ctx context.Context, e sdk.Event) error {
	var person contract.PersonRevoked
	if err := e.Decode(&person); err != nil || !person.Removed {
		return err
	}
	var theirs []string
	if err := l.k.Scan(ctx, exchangePrefix, func(v sdk.Value) error {
		x, err := decode(v)
		if err == nil && person.Deletes(x.Principal) {
			theirs = append(theirs, x.ID)
		}
		return nil // an unreadable one belongs to no one
	}); err != nil {
		return fmt.Errorf("list the exchanges: %w", err)
	}
	for _, id := range theirs {
		err := l.delete(ctx, id)
		for tries := 0; errors.Is(err, contract.ErrConflict) && tries < maxRetries; tries++ {
			err = l.delete(ctx, id)
		}
		if err != nil {
			return fmt.Errorf("delete exchange %s: %w", id, err)
		}
	}
	return nil
}

// delete ends an exchange without a result, and deletes it.
func (l *links) delete(ctx context.Context, id string) error {
	if err := l.endOne(ctx, id, func(context.Context, *exchange) (ending, error) {
		return ending{outcome: contract.OutcomeCancelled, discard: true}, nil
	}); err != nil {
		return err
	}
	effects := sdk.Effects{sdk.Delete(exchangeKey(id))}
	if err := l.k.Scan(ctx, messagePrefix+id+"/", func(v sdk.Value) error {
		effects = append(effects, sdk.Delete(v.Key))
		return nil
	}); err != nil {
		return err
	}
	_, err := l.k.Commit(ctx, effects...)
	return err
}
