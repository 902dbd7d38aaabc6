package models_test

import (
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/metering"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/people"
)

// meets stores accounts of telegram by their names, and returns their ids.
func (w *world) meets(names ...string) map[string]string {
	w.T.Helper()
	ids := map[string]string{}
	store := &people.Store{}
	for _, name := range names {
		if err := w.Bus.Do(func(tx *bus.Tx) error {
			a, err := store.Meet(tx, people.Account{Channel: "telegram", UserID: name, Name: name, ApprovedAt: 1}, false)
			if err == nil {
				ids[name] = a.ID
			}
			return err
		}); err != nil {
			w.T.Fatal(err)
		}
	}
	return ids
}

// asksFor has a turn of an account spend tokens; the error is the refusal.
func (w *world) asksFor(account string, tokens int64) error {
	w.T.Helper()
	u := contract.ModelUsage{Agent: "chat", Person: account, Model: "openai/mini", InputTokens: tokens}
	c, err := w.ledger.Begin(u)
	if err == nil {
		c.Spent(nil, u)
	}
	return err
}

func (w *world) budget(person string, tokens int64) {
	w.Know(func(s *directory.Snapshot) {
		s.Limits = []metering.Limit{{
			Person: person, Amount: tokens, Setting: "people.anna.daily_tokens", Name: "today's limit for anna",
			Then: "no model answers them until midnight", Refusal: "You have used your tokens.",
		}}
	})
}

func TestBudgetOfAPerson(t *testing.T) {
	run(t, func(w *world) {
		ids := w.meets("Anna", "Boris", "Slacker")
		w.budget("anna", 100)
		if err := w.asksFor(ids["Anna"], 100); err != nil {
			w.T.Fatal(err)
		}
		refused := func(account string) {
			w.T.Helper()
			if err := w.asksFor(account, 1); err == nil || err.Error() != "You have used your tokens." {
				w.T.Errorf("the refusal is %v", err)
			}
		}
		others := func() {
			w.T.Helper()
			for _, account := range []string{ids["Boris"], people.Owner, ""} {
				if err := w.asksFor(account, 1000); err != nil {
					w.T.Errorf("%q is refused: %v", account, err)
				}
			}
		}
		refused(ids["Anna"])
		others()
		w.Wait(time.Second)
		w.restart()
		refused(ids["Anna"])
		others()
		if reached, err := w.ledger.Reached(); err != nil || len(reached) != 1 ||
			!strings.HasPrefix(reached[0], "today's limit for anna is reached") {
			w.T.Errorf("reached: %q, %v", reached, err)
		}
		if err := w.asksFor(ids["Slacker"], 1); err != nil {
			w.T.Errorf("before it is linked: %v", err)
		}
		if err := w.Bus.Do(func(tx *bus.Tx) error { // as /link does
			anna, err := people.Of(tx, ids["Anna"])
			if err != nil {
				return err
			}
			other, err := people.Of(tx, ids["Slacker"])
			if err != nil {
				return err
			}
			return people.Join(tx, other, anna)
		}); err != nil {
			w.T.Fatal(err)
		}
		refused(ids["Slacker"])
		w.Wait(24 * time.Hour)
		if err := w.asksFor(ids["Slacker"], 99); err != nil {
			w.T.Errorf("on the next day: %v", err)
		}
		if err := w.asksFor(ids["Anna"], 1); err != nil {
			w.T.Errorf("below the limit: %v", err)
		}
		refused(ids["Anna"])
	})
}

func TestTheOwnerIsToldOfABudgetOnce(t *testing.T) {
	run(t, func(w *world) {
		ids := w.meets("Anna")
		w.budget("Anna", 100)
		for range 3 {
			if err := w.asksFor(ids["Anna"], 30); err != nil {
				w.T.Fatal(err)
			}
			w.Wait(journal.LazyDelay)
		}
		if err := w.asksFor(ids["Anna"], 5); err != nil {
			w.T.Fatal(err)
		}
		w.Wait(time.Second)
		told := w.Events(contract.TopicUserNotify)
		if len(told) != 1 || !strings.HasPrefix(kerneltest.Decode[contract.UserNotify](w.T, told[0]).Text, "90 % of today's limit for anna") {
			w.T.Errorf("told %v", told)
		}
	})
}

// A name that several people or none have is no one's.
func TestBudgetOfAnUnclearName(t *testing.T) {
	run(t, func(w *world) {
		ids := w.meets("Anna", "anna")
		for _, name := range []string{"Anna", "Clara"} {
			w.budget(name, 1)
			if err := w.asksFor(ids["Anna"], 10); err != nil {
				w.T.Errorf("%s: %v", name, err)
			}
			if err := w.asksFor(ids["Anna"], 10); err != nil {
				w.T.Errorf("%s: %v", name, err)
			}
		}
	})
}
