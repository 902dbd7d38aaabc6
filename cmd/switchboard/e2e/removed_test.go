package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
)

// opal is a word that only Boris says.
const opal = "opal"

// What is a person's own goes when the person is removed, wherever the kernel is killed
// meanwhile. What they told the household stays.
func TestRemovedPersonsThingsAreDeleted(t *testing.T) {
	t.Parallel()
	for _, crash := range []string{"", "after 1", "after 2", "after 3", "after 4"} {
		t.Run("crash "+crash, func(t *testing.T) {
			t.Parallel()
			removesWithCrash(t, crash)
		})
	}
}

func removesWithCrash(t *testing.T, crash string) {
	w := newWorld(t, strangers(), withModel)
	w.config("agents: {default: keeper}\nlinks: [{from: keeper, to: helper}]\n")
	for _, id := range []string{"keeper", "helper"} {
		w.dropIn(id, "", fmt.Sprintf(knowing, id))
	}
	w.model.Handle(obedient)
	if crash != "" {
		w.env["SWITCHBOARD_CRASH"], w.env["SWITCHBOARD_CRASH_FROM"] = crash, "system.person.revoked"
	}
	w.start()
	w.telegramReady()
	for _, id := range []string{"links", "keeper", "helper"} {
		w.state(w.control(), id, "active")
	}
	w.pair(anna, 0)
	w.pair(boris, 0)
	for person, word := range map[int64]string{anna: secret, boris: opal} {
		for n, say := range []string{
			orderTo("memory__remember", map[string]any{"text": "The safe code is " + word}),
			orderTo("scheduler__schedule_once", map[string]any{"message": "Hide the " + word, "delay_seconds": 86400}),
			orderTo("tasks__push", map[string]any{"prompt": "Find the " + word, "name": "plan-" + word}),
		} {
			w.telegram.Say(person, say)
			if got := w.told(person, n+3).Text; strings.Contains(got, "error") {
				t.Fatal(got)
			}
		}
		w.telegram.Say(person, orderTo("links__send_agent_message", map[string]any{"target": "helper", "message": "Sell the " + word}))
		w.eventually("an exchange about "+word, func() bool {
			return strings.Contains(w.must("links", "list", "--all", "--json"), "the "+word)
		})
	}
	w.must("memory", "add", "The cellar key is under the "+opal+" vase")
	w.settled()
	stored := func(word string) (keys []string) {
		keys = w.query(`SELECT owner || ' ' || key FROM kv WHERE owner IN ('memory', 'scheduler', 'tasks', 'links')
			AND CAST(value AS TEXT) LIKE ?`, "%"+word+"%")
		slices.Sort(keys)
		return keys
	}
	his, hers := stored(opal), stored(secret)
	if len(his) != len(hers)+1 || len(hers) < 5 {
		t.Fatalf("of Boris there is %q, of Anna %q", his, hers)
	}

	c := w.control()
	people, err := c.People(w.ctx(), &adminv1.PeopleRequest{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(people.People, func(p *adminv1.Person) bool {
		return slices.ContainsFunc(p.Accounts, func(a *adminv1.Account) bool { return a.UserId == fmt.Sprint(boris) })
	})
	if i < 0 {
		t.Fatalf("Boris is not among %v", people.People)
	}
	if _, err = c.RemovePerson(w.ctx(), &adminv1.RemovePersonRequest{Person: people.People[i].Id}); crash == "" && err != nil {
		t.Fatal(err)
	}
	if crash != "" {
		<-w.kernel.ended
		delete(w.env, "SWITCHBOARD_CRASH")
		w.start()
		w.telegramReady()
	}
	w.settled()
	if got := stored(opal); len(got) != 1 || !strings.HasPrefix(got[0], "memory ") {
		t.Errorf("of Boris is left %q", got)
	}
	if got := stored(secret); !slices.Equal(got, hers) {
		t.Errorf("of Anna there is %q, there was %q", got, hers)
	}
	contains(t, "what the household knows", w.must("memory", "list"), "under the "+opal+" vase", secret)
	for _, command := range [][]string{
		{"schedules", "list", "--all"}, {"tasks", "list", "--all"}, {"links", "list", "--all", "--json"}, {"sessions", "list"},
	} {
		if got := w.must(command...); strings.Contains(got, opal) {
			t.Errorf("%s shows\n%s", strings.Join(command, " "), got)
		}
	}
	if dead := w.dead(); len(dead) > 0 {
		t.Errorf("dead letters: %q", dead)
	}
}
