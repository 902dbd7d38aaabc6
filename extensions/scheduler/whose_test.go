package scheduler

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// The callers of the tests. Anna has two accounts.
var (
	anna        = contract.Principal{Person: "anna", Accounts: []string{"anna2"}, Own: true}
	annaOnSlack = contract.Principal{Person: "anna2", Accounts: []string{"anna"}, Own: true}
	boris       = contract.Principal{Person: "boris", Own: true}
	guest       = contract.Principal{Person: "guest", Confined: true, Own: true}
	atHome      = contract.Principal{Person: "anna", Group: "home"}
	atWork      = contract.Principal{Person: "anna", Accounts: []string{"anna2"}, Group: "work", Confined: true, Own: true}
	job         = contract.Principal{Person: "owner", Accounts: []string{"anna", "anna2"}, Own: true}
)

func by(p contract.Principal) func(*sdk.ToolCall) {
	return func(c *sdk.ToolCall) {
		c.Principal, c.ReplyTo, c.Channel = p, "handle-"+p.Person+p.Group, "telegram_channel"
	}
}

// TestWhoseSchedules has each caller try each tool on each schedule.
func TestWhoseSchedules(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		ids := map[string]string{}
		for name, p := range map[string]contract.Principal{
			"from before": {Person: "anna"}, "at home": atHome, "of Anna": anna, "of Anna on Slack": annaOnSlack,
			"of Boris": boris, "at work": atWork, "of a guest": guest, "of a job": job,
		} {
			ids[name] = fmt.Sprint(b.must("schedule_once", `{"message":"tea","delay_seconds":60}`, by(p))["id"])
		}
		household := []string{"from before", "at home"}
		annas := append([]string{"of Anna", "of Anna on Slack", "at work"}, household...)
		callers := map[string]struct {
			p    contract.Principal
			sees []string
		}{
			"Anna":                {anna, annas},
			"Anna on Slack":       {annaOnSlack, annas},
			"Boris":               {boris, append([]string{"of Boris"}, household...)},
			"a guest":             {guest, []string{"of a guest"}},
			"another guest":       {contract.Principal{Person: "guest2", Confined: true, Own: true}, nil},
			"the household group": {atHome, household},
			"the group at work":   {atWork, []string{"at work"}},
			"another group":       {contract.Principal{Person: "anna", Group: "club", Confined: true, Own: true}, nil},
			"the owner's job":     {job, append([]string{"of a job"}, annas...)},
		}
		try := func(when string) {
			for name, caller := range callers {
				var listed []string
				for _, s := range b.must("list_schedules", `{"all":true}`, by(caller.p))["schedules"].([]any) {
					listed = append(listed, s.(map[string]any)["id"].(string))
				}
				for thing, id := range ids {
					sees := slices.Contains(caller.sees, thing)
					if slices.Contains(listed, id) != sees {
						t.Errorf("%s: %s lists what is %s: %v", when, name, thing, !sees)
					}
					if sees {
						continue
					}
					for _, do := range [][2]string{
						{"cancel_schedule", `{"id":"%s"}`}, {"update_schedule", `{"id":"%s","action":"pause"}`},
						{"update_schedule", `{"id":"%s","message":"x"}`}, {"update_schedule", `{"id":"%s","action":"undo"}`},
						{"finish_reminder", `{"id":"%s"}`}, {"snooze_reminder", `{"id":"%s","when":"10m"}`},
					} {
						_, hidden := b.call(do[0], fmt.Sprintf(do[1], id), by(caller.p))
						_, missing := b.call(do[0], fmt.Sprintf(do[1], "r99"), by(caller.p))
						if hidden == nil || missing == nil || strings.ReplaceAll(hidden.Error(), `"`+id+`"`, `"r99"`) != missing.Error() {
							t.Errorf("%s: %s calls %s on what is %s: %v; of a missing one: %v", when, name, do[0], thing, hidden, missing)
						}
					}
				}
			}
		}
		try("before it is due")
		b.pass(2 * time.Minute)
		if n := len(b.store.published()); n != len(ids) {
			t.Errorf("%d of %d reminders came", n, len(ids))
		}
		try("when it came")
		for name, p := range map[string]contract.Principal{"of Anna on Slack": anna, "at home": boris, "of a guest": guest} {
			b.must("snooze_reminder", `{"id":"`+ids[name]+`","when":"10m"}`, by(p))
		}
	})
}

func TestRemovedPersonsSchedulesAreDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"a secret","delay_seconds":60}`, by(anna))
		b.pass(2 * time.Minute)
		b.must("schedule_recurring", `{"message":"another secret","every_seconds":60}`, by(anna))
		b.must("schedule_once", `{"message":"at home","delay_seconds":60}`, by(atHome))
		b.must("schedule_once", `{"message":"Boris'","delay_seconds":60}`, by(boris))
		revoke := func(payload string) {
			t.Helper()
			effects, err := b.sched.handle(t.Context(), sdk.Event{Topic: contract.TopicPersonRevoked, Source: "kernel",
				Payload: json.RawMessage(payload)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.store.Commit(t.Context(), effects...); err != nil {
				t.Fatal(err)
			}
		}
		states := func() string {
			var all []string
			for _, s := range b.must("list_schedules", `{"all":true}`)["schedules"].([]any) {
				all = append(all, fmt.Sprint(s.(map[string]any)["id"], " ", s.(map[string]any)["state"]))
			}
			slices.Sort(all)
			return strings.Join(all, ", ")
		}
		for range 2 { // an event may come again
			revoke(`{"person":"anna","removed":true}`)
			if got := states(); got != "r3 cancelled, r4 active" {
				t.Errorf("after the removal: %s", got)
			}
		}
		revoke(`{"person":"boris"}`)
		if got := states(); got != "r3 cancelled, r4 cancelled" {
			t.Errorf("after a revocation: %s", got)
		}
		var told []string
		for _, e := range b.store.published() {
			if e.GetTopic() == topicEnded {
				told = append(told, string(e.GetPayload()))
			}
		}
		if want := []string{`{"kind":"reminder","names":["r2","r3 “at home”"]}`, `{"kind":"reminder","names":["r4"]}`}; !slices.Equal(told, want) {
			t.Errorf("the owner is told %q, want %q", told, want)
		}
	})
}

// TestZoneOfThePerson: a person's times are in their own zone.
func TestZoneOfThePerson(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		tokyo, err := time.LoadLocation("Asia/Tokyo")
		if err != nil {
			t.Fatal(err)
		}
		there := func(c *sdk.ToolCall) { by(boris)(c); c.Location = tokyo }
		if out := b.must("schedule_once", `{"message":"tea","at":"10:00"}`, there); out["next"] != "2000-01-01T01:00:00Z" {
			t.Errorf("10:00 in Tokyo is %v", out["next"])
		}
		if out := b.must("schedule_recurring", `{"message":"tea","cron":"0 12 * * *"}`, there); out["next"] != "2000-01-01T03:00:00Z" {
			t.Errorf("noon in Tokyo is %v", out["next"])
		}
		out := b.must("list_schedules", `{}`, there, func(c *sdk.ToolCall) { c.Command = "schedules" })
		raw, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		text := b.sched.listText(string(raw), "")
		if !strings.Contains(text, "(times in Asia/Tokyo)") || !strings.Contains(text, "Sat 1 Jan 2000 10:00, in") {
			t.Errorf("the list is %s", text)
		}
		b.must("schedule_once", `{"message":"our tea","delay_seconds":60}`, by(atHome)) // in Berlin
		b.pass(2 * time.Minute)
		if out := b.must("snooze_reminder", `{"id":"r3","when":"10:00"}`, there); out["next"] != "2000-01-01T01:00:00Z" ||
			!strings.Contains(fmt.Sprint(out["text"]), "10:00") {
			t.Errorf("put off until 10:00 in Tokyo: %v", out)
		}
	})
}

// A job that a person set for the household may use what is their own, so another person
// can't change what it does.
func TestAJobOfAnotherPersonDoesNotChange(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		earlier := by(contract.Principal{Person: "anna"})
		b.must("schedule_recurring", `{"message":"tell me the news","every_seconds":3600,"topic":"system.agent.task"}`, earlier)
		b.must("schedule_once", `{"message":"tea","delay_seconds":3600}`, earlier)
		b.must("schedule_once", `{"message":"look","delay_seconds":3600,"topic":"system.agent.task"}`, by(atHome))
		for _, edit := range []string{
			`{"id":"r1","message":"tell Boris what Anna remembers"}`, `{"id":"r1","channel_id":"telegram_channel"}`,
			`{"id":"r2","topic":"system.agent.task"}`, `{"id":"r2","topic":"system.agent.background","message":"x"}`,
			`{"id":"r1","payload":{"agent_id":"x"}}`,
		} {
			for name, p := range map[string]contract.Principal{"Boris": boris, "the group": atHome} {
				if _, err := b.call("update_schedule", edit, by(p)); err == nil || !strings.Contains(err.Error(), "only the person who set it") {
					t.Errorf("%s changes %s: %v", name, edit, err)
				}
			}
		}
		b.must("update_schedule", `{"id":"r1","every_seconds":7200}`, by(boris))
		b.must("update_schedule", `{"id":"r1","action":"pause"}`, by(boris))
		b.must("update_schedule", `{"id":"r2","message":"green tea"}`, by(boris))
		b.must("update_schedule", `{"id":"r3","message":"look again"}`, by(boris))
		b.must("update_schedule", `{"id":"r1","message":"tell me all news"}`, by(annaOnSlack))
		b.must("cancel_schedule", `{"id":"r1"}`, by(boris))
	})
}

// It is not known whose an unreadable schedule is: only the owner sees and removes it.
func TestUnreadableSchedulesAreTheOwners(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.edit(func(s *store) { s.setRow("r7", "broken") })
		owner := contract.Principal{Person: "o1", Accounts: []string{"o1", contract.Owner}, Own: true}
		for name, p := range map[string]contract.Principal{"Boris": boris, "a guest": guest, "the household group": atHome} {
			if out := b.must("list_schedules", `{}`, by(p)); out["unreadable"] != nil {
				t.Errorf("%s is shown %v", name, out["unreadable"])
			}
			if _, err := b.call("cancel_schedule", `{"id":"r7"}`, by(p)); err == nil || !strings.Contains(err.Error(), `there is no schedule "r7"`) {
				t.Errorf("%s cancels it: %v", name, err)
			}
		}
		if out := b.must("list_schedules", `{}`, by(owner)); out["unreadable"] == nil {
			t.Errorf("the owner is shown %v", out)
		}
		b.must("cancel_schedule", `{"id":"r7"}`, by(owner))
	})
}
