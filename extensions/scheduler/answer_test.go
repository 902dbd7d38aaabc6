package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// buttons are those of a fire.
func buttons(fire string) string {
	return fmt.Sprintf(`[{"label":"Done","command":"/done %[1]s"},{"label":"+10 min","command":"/snooze %[1]s 10m"},`+
		`{"label":"Tomorrow morning","command":"/snooze %[1]s tomorrow"}]`, fire)
}

func russian(c *sdk.ToolCall) { c.Language = "ru" }

// says checks the answer to a command.
func (b *bench) says(name, arguments, want string, options ...func(*sdk.ToolCall)) {
	b.t.Helper()
	out, err := b.call(name, arguments, options...)
	if got := fmt.Sprint(out["text"]); err != nil || got != want {
		b.t.Errorf("%s %s: %q, %v, want %q", name, arguments, got, err, want)
	}
}

func (b *bench) refuses(name, arguments, want string, options ...func(*sdk.ToolCall)) {
	b.t.Helper()
	if out, err := b.call(name, arguments, options...); err == nil || !strings.Contains(err.Error(), want) {
		b.t.Errorf("%s %s: %v, %v, want %q", name, arguments, out, err, want)
	}
}

// A fire of a one-shot is answered once. Snoozed, the same reminder comes again.
func TestOneShotIsSnoozedAndDone(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) { // it is 1:00 in Berlin
		b.must("schedule_once", `{"message":"kettle","delay_seconds":300}`)
		b.refuses("finish_reminder", `{"id":"r1"}`, "has not come yet")
		b.pass(5 * time.Minute)
		b.expect("kettle")
		b.says("snooze_reminder", `{"id":"r1.1","when":"10m"}`, "OK, I'll remind you again today at 01:15.")
		b.says("snooze_reminder", `{"id":"r1.1","when":"10m"}`, "This reminder was moved already, to Sat 1 Jan 2000 01:15.")
		b.says("finish_reminder", `{"id":"r1.1"}`, "Это напоминание уже перенесено: сб 01.01.2000 01:15.", russian)
		b.pass(10 * time.Minute)
		b.expect("kettle", "kettle")
		if got := string(b.store.published()[1].GetPayload()); !strings.Contains(got, buttons("r1.2")) {
			t.Errorf("the second one is %s", got)
		}
		b.says("finish_reminder", `{"id":"r1.1"}`, "This reminder was moved already, to Sat 1 Jan 2000 01:15.")
		b.says("finish_reminder", `{"id":"R1.2"}`, "Done.")
		b.says("snooze_reminder", `{"id":"r1.2","when":"tomorrow"}`, "This is done already.")
		b.refuses("snooze_reminder", `{"id":"r1.3","when":"tomorrow"}`, "has not come yet")
		b.refuses("snooze_reminder", `{"id":"r9.1","when":"tomorrow"}`, "there is no such reminder now")
		b.pass(48 * time.Hour)
		b.expect("kettle", "kettle")
	})
}

// A snooze of a recurring reminder is one more reminder; the series stays as it is.
func TestSeriesIsSnoozedBesideItself(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_recurring", `{"message":"pills","cron":"0 2 * * *"}`)
		b.pass(time.Hour)
		series := fmt.Sprint(b.must("list_schedules", `{}`)["schedules"])
		b.says("snooze_reminder", `{"id":"r1.1 tomorrow"}`, "OK, I'll remind you again tomorrow at 09:00.")
		b.says("snooze_reminder", `{"id":"r1.1","when":"10m"}`, "This reminder was moved already, to Sun 2 Jan 2000 09:00.")
		after := fmt.Sprint(b.must("list_schedules", `{}`)["schedules"])
		if !strings.HasPrefix(after, strings.TrimSuffix(series, "]")) || strings.Count(after, "pills") != 2 {
			t.Errorf("the series was\n%s\nand is\n%s", series, after)
		}
		b.pass(24 * time.Hour)
		b.says("finish_reminder", `{"id":"r1.2"}`, "Done.")
		b.expect("pills", "pills")
		b.pass(7 * time.Hour)
		b.expect("pills", "pills", "pills")
		b.pass(24 * time.Hour)
		b.expect("pills", "pills", "pills", "pills")
		for fire := 3; fire < 30; fire++ {
			b.says("finish_reminder", fmt.Sprintf(`{"id":"r1.%d"}`, fire), "Done.")
			b.pass(24 * time.Hour)
		}
		b.edit(func(s *store) {
			if size := len(s.kv[rowKey("r1")].Value); size > 4000 {
				t.Errorf("the row has %d bytes", size)
			}
		})
	})
}

// Without an id, the newest reminder of the conversation is meant.
func TestNewestReminderOfTheConversation(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.refuses("finish_reminder", `{}`, "no reminder has come here")
		b.must("schedule_once", `{"message":"first","delay_seconds":60}`)
		b.must("schedule_once", `{"message":"second","delay_seconds":120}`)
		b.must("schedule_once", `{"message":"elsewhere","delay_seconds":180}`, from("handle-2", "cli_channel"))
		b.must("schedule_once", `{"message":"look","delay_seconds":240,"topic":"system.agent.task"}`)
		b.pass(5 * time.Minute)
		b.refuses("snooze_reminder", `{"id":"soonish"}`, "isn't a time")
		b.refuses("snooze_reminder", `{"id":"r1x 10m"}`, "isn't a time")
		b.says("snooze_reminder", `{"id":"tomorrow morning"}`, "OK, I'll remind you again tomorrow at 09:00.")
		b.says("finish_reminder", `{}`, "Done.")
		b.refuses("finish_reminder", `{}`, "no reminder has come here")
		for id, want := range map[string]string{"r1": "done already", "r2": "moved already", "r3": "Done."} {
			if out := b.must("finish_reminder", `{"id":"`+id+`"}`); !strings.Contains(fmt.Sprint(out["text"]), want) {
				t.Errorf("%s: %v, want %q", id, out, want)
			}
		}
		b.refuses("finish_reminder", `{"id":"r4"}`, "r4 is no reminder")
	})
}

// Others see no reminder that is not theirs, and so can't answer it.
func TestOnlyThoseWhoSeeAReminderAnswerIt(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"mine","delay_seconds":60}`)
		b.pass(time.Minute)
		stranger := func(c *sdk.ToolCall) { c.Principal = contract.Principal{Person: "p2", Group: "g", Confined: true} }
		b.refuses("finish_reminder", `{"id":"r1.1"}`, "there is no such reminder", stranger)
		b.says("finish_reminder", `{"id":"r1.1"}`, "Done.")
	})
}

// A scheduler that dies at any step of a snooze has applied it once or not at all.
func TestSnoozeSurvivesEveryDeath(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		`schedule_once {"message":"m","delay_seconds":60}`, `schedule_recurring {"message":"m","every_seconds":3600}`,
	} {
		for at := 1; ; at++ {
			died := false
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				tool, arguments, _ := strings.Cut(kind, " ")
				b.must(tool, arguments)
				b.pass(time.Hour)
				b.edit(func(s *store) { s.dieAt = s.steps + at })
				_, err := b.call("snooze_reminder", `{"id":"r1.1","when":"10m"}`)
				died = errors.Is(err, errDead)
				b.edit(func(s *store) { s.dieAt = 0 })
				b.kill()
				b.start()
				b.must("snooze_reminder", `{"id":"r1.1","when":"10m"}`)
				b.must("snooze_reminder", `{"id":"r1.1","when":"10m"}`)
				b.pass(11 * time.Minute)
				b.expect("m", "m")
			})
			if !died {
				break
			}
		}
	}
}

// A one-shot that has fired is moved for a day, and its old buttons say so.
func TestFiredOneShotIsMoved(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"tea","delay_seconds":60}`)
		b.pass(time.Hour)
		b.refuses("update_schedule", `{"id":"r1","message":"coffee"}`, "cannot be edited")
		b.must("update_schedule", `{"id":"r1","at":"18:00"}`)
		b.says("snooze_reminder", `{"id":"r1.1","when":"10m"}`, "This reminder was moved already, to Sat 1 Jan 2000 18:00.")
		b.must("update_schedule", `{"id":"r1","action":"undo"}`)
		b.must("update_schedule", `{"id":"r1","delay_seconds":600}`)
		b.pass(10 * time.Minute)
		b.expect("tea", "tea")
		b.pass(24*time.Hour - time.Second)
		b.must("update_schedule", `{"id":"r1","delay_seconds":600}`)
		b.pass(time.Hour)
		b.expect("tea", "tea", "tea")
		b.pass(24 * time.Hour)
		b.refuses("update_schedule", `{"id":"r1","delay_seconds":600}`, "cannot be edited")
	})
}

func TestButtonsAreInTheLanguageOfTheReminder(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"чай","delay_seconds":60}`, russian)
		b.pass(time.Minute)
		got := string(b.store.published()[0].GetPayload())
		for _, want := range []string{"Готово", "+10 мин", "Завтра утром"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q", got, want)
			}
		}
		if len("/"+schedule.CommandSnooze+" r999999999.999999 tomorrow") > contract.MaxActionCommand {
			t.Error("the commands are too long")
		}
	})
}
