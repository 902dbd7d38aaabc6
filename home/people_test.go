package home

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// A home of an earlier version becomes a household: its accounts are kept, and its owners
// are one person.
func TestAnEarlierHome(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "switchboard.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := journal.Do(ctx, store, func(tx journal.Tx) error {
		type row map[string]any
		save := func(key string, v row) error { return journal.Save(tx, contract.KernelSource, key, v) }
		anna := row{"channel": "telegram", "user_id": "anna", "owner": true, "conversation": "anna", "approved_at": 1}
		carl := row{"channel": "slack", "user_id": "carl", "owner": true, "conversation": "carl", "approved_at": 1}
		return errors.Join(
			save("person/telegram/anna", anna), save("owner/telegram", anna),
			save("person/slack/carl", carl), save("owner/slack", carl),
			save("person/telegram/boris", row{"channel": "telegram", "user_id": "boris", "approved_at": 2}))
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := adoptPeople(ctx, store); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.View(ctx, func(r journal.Reader) error {
		var known people.Store
		principal := func(channel, user string) contract.Principal {
			a, p, err := known.Find(r, channel, user)
			if err != nil || a == nil || a.ApprovedAt == 0 {
				t.Fatalf("the account %s of %s is %+v, %v", user, channel, a, err)
			}
			return p.Principal(a.ID)
		}
		anna, boris, carl := principal("telegram", "anna"), principal("telegram", "boris"), principal("slack", "carl")
		if !anna.Sees(carl) || anna.Sees(boris) || !boris.Sees(contract.Principal{Person: anna.Person}) {
			t.Errorf("they are %+v, %+v and %+v", anna, boris, carl)
		}
		left, err := r.KVScan(contract.KernelSource, earlierAccounts, "", 0)
		if len(left) > 0 {
			t.Errorf("%d rows of the earlier version are left", len(left))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
