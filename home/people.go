package home

import (
	"context"
	"errors"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
)

// earlierAccounts is the prefix of the keys of accounts before they had persons.
const earlierAccounts = "person/"

// adoptPeople stores the accounts of a home of an earlier version as this one does, in
// one commit. The owners of its channels become one person.
func adoptPeople(ctx context.Context, store journal.Store) error {
	earlier := false
	if err := store.View(ctx, func(r journal.Reader) error {
		found, err := r.KVScan(contract.KernelSource, earlierAccounts, "", 1)
		earlier = len(found) > 0
		return err
	}); err != nil || !earlier {
		return err
	}
	return journal.Do(ctx, store, func(tx journal.Tx) error {
		type account struct {
			people.Account
			Owner bool `json:"owner"`
		}
		all, err := journal.All[account](tx, contract.KernelSource, earlierAccounts)
		if err != nil {
			return err
		}
		var known people.Store
		for _, old := range all {
			_, err := known.Meet(tx, old.Account, old.Owner)
			err = errors.Join(err, tx.KVDelete(contract.KernelSource, earlierAccounts+old.Channel+"/"+old.UserID))
			if err != nil {
				return fmt.Errorf("store the account %s of %s: %w", old.UserID, old.Channel, err)
			}
		}
		return nil
	})
}
