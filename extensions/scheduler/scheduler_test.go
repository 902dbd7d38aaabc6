package scheduler

import (
	"encoding/json"
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

// bubble runs a test in a bubble whose clock starts at midnight UTC of
// 2000-01-01, 01:00 in Berlin.
func bubble(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, setup(t)) })
}

func TestOnceFiresOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		out := b.must("schedule_once", `{"message":"kettle","delay_seconds":300,"channel_id":"telegram_channel"}`)
		for field, want := range map[string]any{
			"id": "r1", "status": "scheduled", "next_local": "Sat 1 Jan 2000 01:05 (Europe/Berlin)", "in": "5 min",
			"timezone": "Europe/Berlin", "destination": "telegram_channel", "next": "2000-01-01T00:05:00Z",
		} {
			if out[field] != want {
				t.Errorf("%s is %v, want %v", field, out[field], want)
			}
		}
		b.pass(5*time.Minute - time.Millisecond)
		b.expect()
		b.pass(time.Millisecond)
		b.expect("kettle")
		e := b.store.published()[0]
		if e.GetTopic() != contract.TopicUserNotify ||
			string(e.GetPayload()) != `{"text":"⏰ kettle","actions":`+buttons("r1.1")+
				`,"channel_id":"telegram_channel","reply_to":"handle-1","asked":true}` {
			t.Errorf("published %s %s", e.GetTopic(), e.GetPayload())
		}
		if e.GetDedupeKey() != "sched:r1:1:2000-01-01T00:05:00.000Z" {
			t.Errorf("dedupe key %s", e.GetDedupeKey())
		}
		b.pass(24 * time.Hour)
		b.expect("kettle")
	})
}

func TestHourAndAHalfIsEchoed(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		out := b.must("schedule_once", `{"message":"m","delay_seconds":5400}`)
		if out["in"] != "1 h 30 min" || !strings.Contains(fmt.Sprint(out["text"]), "1 h 30 min") {
			t.Errorf("got %v", out)
		}
	})
}

func TestRecurringEchoesThreeFires(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		out := b.must("schedule_recurring", `{"message":"m","cron":"30 8 * * *"}`)
		want := []any{"Sat 1 Jan 2000 08:30 (Europe/Berlin)", "Sun 2 Jan 2000 08:30 (Europe/Berlin)",
			"Mon 3 Jan 2000 08:30 (Europe/Berlin)"}
		if fmt.Sprint(out["next_fires"]) != fmt.Sprint(want) ||
			out["destination"] != "this conversation on cli_channel" {
			t.Errorf("got %v", out)
		}
		b.pass(72 * time.Hour)
		b.expect("m", "m", "m")
	})
}

func TestDueWhileDown(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"kettle","delay_seconds":300}`)
		b.must("schedule_recurring", `{"message":"hourly","cron":"@hourly"}`)
		b.must("schedule_recurring", `{"message":"pills","cron":"0 8 * * *","grace":"30m"}`)
		b.kill()
		b.pass(24*time.Hour + 10*time.Minute)
		b.start()
		// Immediately: no time passes.
		b.expect("kettle (late: was due 01:05 on Sat 1 Jan)", "hourly (late: was due 01:00; 23 earlier skipped)")
		out := b.must("list_schedules", `{}`)
		if text := fmt.Sprint(out["text"]); !strings.Contains(text, "skipped 23") ||
			!strings.Contains(text, "skipped 1") {
			t.Errorf("the list does not show the skipped fires: %s", text)
		}
		b.pass(time.Hour)
		if n := len(b.store.published()); n != 3 {
			t.Errorf("%d events after another hour, want 3", n)
		}
	})
}

func TestDamagedRowAffectsNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"good","delay_seconds":60}`)
		b.kill()
		for id, text := range map[string]string{"r0": "{", "r7": `{"id":"r7","kind":"once","state":"active"}`,
			"r8": `{"id":"r9"}`} {
			b.edit(func(s *store) { s.setRow(id, text) })
		}
		b.start()
		b.pass(time.Minute)
		b.expect("good")
		out := b.must("list_schedules", `{}`)
		if n := len(out["unreadable"].([]any)); n != 3 {
			t.Errorf("%d unreadable rows in the list, want 3", n)
		}
		if out := b.must("schedule_once", `{"message":"next","delay_seconds":60}`); out["id"] != "r9" {
			t.Errorf("the next id is %v", out["id"])
		}
		if out := b.must("cancel_schedule", `{"id":"r7"}`); out["status"] != "removed" {
			t.Errorf("cancel: %v", out)
		}
		if out := b.must("list_schedules", `{}`); len(out["unreadable"].([]any)) != 2 {
			t.Errorf("after its removal: %v", out["unreadable"])
		}
	})
}

func TestRowDamagedWhileRunning(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"bad","delay_seconds":60}`)
		b.must("schedule_once", `{"message":"good","delay_seconds":61}`)
		b.pass(time.Second)
		b.edit(func(s *store) { s.setRow("r1", "x") })
		b.pass(2 * time.Minute)
		b.expect("good")
	})
}

func TestDestinations(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		for arguments, want := range map[string]string{
			`{"message":"m","delay_seconds":60,"channel_id":"telegramm"}`: "cli_channel (Terminal), " +
				"telegram_channel (Telegram)",
			`{"message":"m","delay_seconds":60,"channel_id":"bare_channel"}`: "channel bare_channel is " +
				"not set up (no token)",
			`{"message":"m","delay_seconds":60,"payload":{"channel_id":"nowhere"}}`:     `no channel "nowhere"`,
			`{"message":"m","delay_seconds":60,"payload":{"reply_to":"x","user_id":1}}`: `"user_id"`,
			`{"message":"m","delay_seconds":60,"topic":"agent.input.orchestrator"}`:     "cannot be scheduled",
		} {
			if _, err := b.call("schedule_once", arguments); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", arguments, err, want)
			}
		}
		b.expect()
		// A second person and a group each get their own reminder.
		b.must("schedule_once", `{"message":"anna","delay_seconds":60}`, from("handle-anna", "telegram_channel"))
		b.must("schedule_once", `{"message":"group","delay_seconds":61}`, from("handle-group", "telegram_channel"))
		out := b.must("list_schedules", `{}`, from("handle-anna", "telegram_channel"))
		if text := fmt.Sprint(out["text"]); !strings.Contains(text, "this conversation on telegram_channel") ||
			!strings.Contains(text, "the conversation that asked for it") {
			t.Errorf("list: %s", text)
		}
		if raw, _ := json.Marshal(out); strings.Contains(string(raw), "handle-") {
			t.Errorf("a handle is shown: %s", raw)
		}
		b.pass(time.Hour)
		for i, want := range []string{`{"text":"⏰ anna","actions":` + buttons("r1.1") + `,"reply_to":"handle-anna","asked":true}`,
			`{"text":"⏰ group","actions":` + buttons("r2.1") + `,"reply_to":"handle-group","asked":true}`} {
			if got := string(b.store.published()[i].GetPayload()); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		b.edit(func(s *store) { s.channels = s.channels[2:] })
		if _, err := b.call("schedule_once", `{"message":"m","delay_seconds":60}`, from("", "")); err == nil ||
			!strings.Contains(err.Error(), "no channel") {
			t.Errorf("without channels: %v", err)
		}
	})
}

func TestCancel(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"never","delay_seconds":60}`)
		if out := b.must("cancel_schedule", `{"id":"R1"}`); out["status"] != "cancelled" {
			t.Errorf("before it fires: %v", out)
		}
		b.must("schedule_once", `{"message":"waiting","delay_seconds":60}`)
		b.must("schedule_once", `{"message":"delivered","delay_seconds":60}`)
		b.must("schedule_recurring", `{"message":"often","every_seconds":3600}`)
		b.pass(time.Hour)
		events := map[string]string{}
		for i, text := range b.store.texts() {
			events[text] = b.store.published()[i].GetId()
		}
		if len(events) != 3 || events["never"] != "" {
			t.Fatalf("fired: %v", events)
		}
		b.edit(func(s *store) { s.taken[events["delivered"]] = true })

		out := b.must("cancel_schedule", `{"id":"r2"}`)
		if out["status"] != "cancelled" || out["last_fire"] != "withdrawn" || !b.withdrawn(events["waiting"]) {
			t.Errorf("fired, not delivered: %v", out)
		}
		out = b.must("cancel_schedule", `{"id":"r3"}`)
		if out["status"] != "too_late" || !strings.Contains(fmt.Sprint(out["text"]), "too late") {
			t.Errorf("delivered: %v", out)
		}
		out = b.must("cancel_schedule", `{"id":"r4"}`)
		if out["status"] != "cancelled" || out["last_fire"] != "withdrawn" {
			t.Errorf("recurring: %v", out)
		}
		if out := b.must("cancel_schedule", `{"id":"r4"}`); out["status"] != "cancelled" {
			t.Errorf("again: %v", out)
		}
		if _, err := b.call("cancel_schedule", `{"id":"r77"}`); err == nil ||
			!strings.Contains(err.Error(), `no schedule "r77"`) {
			t.Errorf("unknown: %v", err)
		}
		b.pass(24 * time.Hour)
		if len(b.store.published()) != 3 {
			t.Errorf("something fired after its cancellation: %v", b.store.texts())
		}
	})
}

// Once the event is pruned, nothing can be withdrawn, and cancel must not report
// a withdrawal.
func TestCancelAfterTheEventIsPruned(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"m","delay_seconds":60}`)
		b.pass(time.Hour)
		b.edit(func(s *store) { s.events = nil })
		if out := b.must("cancel_schedule", `{"id":"r1"}`); out["status"] != "too_late" {
			t.Errorf("got %v", out)
		}
	})
}

// The schedule fires between the call and the commit of its result, which is
// therefore refused. The call runs again and withdraws the fire.
func TestCancelRacesWithTheFire(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"m","delay_seconds":60}`)
		b.pass(59 * time.Second)
		c := sdk.ToolCall{ID: "c", Name: "cancel_schedule", Arguments: json.RawMessage(`{"id":"r1"}`)}
		result, err := b.tools["cancel_schedule"].Call(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		b.pass(2 * time.Second)
		b.expect("m")
		if _, err := b.store.Commit(t.Context(), result.Effects...); !errors.Is(err, contract.ErrConflict) {
			t.Fatalf("committed over the fire: %v", err)
		}
		if out := b.must("cancel_schedule", `{"id":"r1"}`,
			func(call *sdk.ToolCall) { call.ID = "c" }); out["last_fire"] != "withdrawn" {
			t.Errorf("got %v", out)
		}
	})
}

// The withdrawal is committed, but the answer is lost. A repeated call gives the
// same answer.
func TestRepeatedCancelReturnsTheSame(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"m","delay_seconds":60}`)
		b.pass(time.Hour)
		same := func(c *sdk.ToolCall) { c.ID = "same" }
		b.edit(func(s *store) { s.dieAt = s.steps + 3 }) // get, before the commit, after it
		if _, err := b.call("cancel_schedule", `{"id":"r1"}`, same); err == nil {
			t.Fatal("it survived")
		}
		<-b.sched.stopped
		b.edit(func(s *store) { s.dieAt = 0 })
		b.edit(func(s *store) { s.taken["e1"] = true }) // a withdrawn event is settled
		b.start()
		if out := b.must("cancel_schedule", `{"id":"r1"}`, same); out["last_fire"] != "withdrawn" {
			t.Errorf("got %v", out)
		}
	})
}

func TestUpdate(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"later","delay_seconds":7200}`)
		b.must("schedule_recurring", `{"message":"often","every_seconds":600}`)
		b.pass(time.Second)
		b.must("update_schedule", `{"id":"r1","delay_seconds":60,"message":"sooner"}`)
		if out := b.must("update_schedule", `{"id":"r2","action":"pause"}`); out["state"] != "paused" ||
			out["next"] != nil {
			t.Errorf("pause: %v", out)
		}
		b.pass(3 * time.Hour)
		b.expect("sooner")
		if out := b.must("update_schedule", `{"id":"r2","action":"resume"}`); out["state"] != "active" ||
			out["in"] != "9 min 59 s" {
			t.Errorf("resume: %v", out)
		}
		b.pass(10 * time.Minute)
		b.expect("sooner", "often")
		for arguments, want := range map[string]string{
			`{"id":"r2"}`:                        "nothing to change",
			`{"id":"r2","action":"stop"}`:        "pause, resume, edit or undo",
			`{"id":"r2","channel_id":"nowhere"}`: `no channel "nowhere"`,
			`{"id":"r2","cron":"0 0 30 2 *"}`:    "never fires",
			`{"id":"r1","message":"again"}`:      "r1 is done",
			`{"id":"r9","message":"again"}`:      `no schedule "r9": use one of r2`,
		} {
			if _, err := b.call("update_schedule", arguments); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", arguments, err, want)
			}
		}
	})
}

// The effects of a call are committed long after the call, and after the due time.
func TestEarlierThanTheCommit(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		c := sdk.ToolCall{ID: "c", Name: "schedule_once",
			Arguments: json.RawMessage(`{"message":"m","delay_seconds":2}`), ReplyTo: "h"}
		result, err := b.tools["schedule_once"].Call(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		b.pass(20 * time.Second)
		b.expect()
		if _, err := b.store.Commit(t.Context(), result.Effects...); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Minute)
		b.expect("m (late: was due 01:00)")
	})
}

// A result that is never committed leaves no state.
func TestResultThatIsNeverCommitted(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		c := sdk.ToolCall{ID: "c", Name: "schedule_once",
			Arguments: json.RawMessage(`{"message":"m","delay_seconds":2}`), ReplyTo: "h"}
		if _, err := b.tools["schedule_once"].Call(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Hour)
		b.expect()
		if b.sched.clock.Len() != 0 || len(b.sched.expected) != 0 {
			t.Errorf("%d entries, %d expectations are left", b.sched.clock.Len(), len(b.sched.expected))
		}
	})
}

func TestKernelRefusesTheEvent(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"m","delay_seconds":60,"topic":"lights.on"}`)
		b.must("schedule_once", `{"message":"other","delay_seconds":90}`)
		b.edit(func(s *store) {
			s.refuse = fmt.Errorf("publish lights.on: add it to permissions.publish: %w", contract.ErrDenied)
		})
		b.pass(70 * time.Second)
		b.edit(func(s *store) { s.refuse = nil })
		b.pass(time.Hour)
		b.expect("other")
		out := b.must("list_schedules", `{}`)
		if text := fmt.Sprint(out["text"]); !strings.Contains(text, "paused") ||
			!strings.Contains(text, "permissions.publish") {
			t.Errorf("list: %s", text)
		}
	})
}

func TestKernelIsBusyForAWhile(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"m","delay_seconds":60}`)
		b.edit(func(s *store) { s.refuse = contract.ErrFull })
		b.pass(10 * time.Minute)
		b.edit(func(s *store) { s.refuse = nil })
		b.pass(time.Minute)
		b.expect("m (late: was due 01:01)")
	})
}

func TestWallClockIsSet(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"m","at":"2000-01-01T12:00"}`)
		b.pass(time.Second)
		b.shift.Store(int64(10*time.Hour + 30*time.Minute))
		b.pass(30 * time.Second)
		b.expect()
		b.shift.Store(int64(11 * time.Hour))
		b.pass(30 * time.Second)
		b.expect("m (late: was due 12:00)")
	})
}

// A machine starts with a clock that is years ahead. The clock is corrected later,
// while the scheduler runs or while it is down.
func TestClockWasAhead(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) {
				b.shift.Store(int64(10 * 365 * 24 * time.Hour))
				b.must("schedule_recurring", `{"message":"m","every_seconds":3600}`)
				b.pass(time.Second)
				b.shift.Store(0)
				if restart {
					b.kill()
					b.start()
				}
				b.pass(time.Hour + time.Minute)
				b.expect("m")
			})
		})
	}
}

func TestDeclared(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		declare := func(source, payload string) error {
			effects, err := b.sched.handle(t.Context(), sdk.Event{Topic: contract.TopicSchedulesDeclared,
				Source: source, Payload: json.RawMessage(payload)})
			if err == nil {
				_, err = b.store.Commit(t.Context(), effects...)
			}
			return err
		}
		both := `{"extension":"heartbeat","schedules":[
			{"name":"tick","cron":"*/10 * * * *","topic":"heartbeat.tick","payload":{"text":"tick"}},
			{"name":"bad","cron":"0 0 30 2 *","topic":"heartbeat.bad"},
			{"name":"daily","cron":"0 3 * * *","topic":"heartbeat.daily","payload":{"text":"daily"},"timezone":"UTC"}]}`
		if err := declare("kernel", both); err != nil {
			t.Fatal(err)
		}
		var writes, after int64
		b.edit(func(s *store) { writes = s.version })
		err := declare("kernel", both)
		b.edit(func(s *store) { after = s.version })
		if err != nil || after != writes {
			t.Errorf("declared again: %v, %d writes", err, after-writes)
		}
		b.pass(20 * time.Minute)
		b.expect("tick", "tick")
		if _, err := b.call("cancel_schedule", `{"id":"heartbeat.tick"}`); err == nil ||
			!strings.Contains(err.Error(), "can only be paused and resumed") {
			t.Errorf("cancel: %v", err)
		}
		b.must("update_schedule", `{"id":"heartbeat.tick","action":"pause"}`)
		if err := declare("kernel", both); err != nil {
			t.Fatal(err)
		}
		b.pass(3 * time.Hour)
		b.expect("tick", "tick", "daily")
		if err := declare("kernel", `{"extension":"heartbeat","schedules":[]}`); err != nil {
			t.Fatal(err)
		}
		b.pass(48 * time.Hour)
		b.expect("tick", "tick", "daily")
		if out := b.must("list_schedules", `{"all":true}`); len(out["schedules"].([]any)) != 0 {
			t.Errorf("after their removal: %v", out)
		}
		if err := declare("telegram_channel", both); err == nil {
			t.Error("an extension declared schedules of another extension")
		}
		// What the owner writes is not held to the limit for tool calls.
		often := `{"extension":"heartbeat","schedules":[
			{"name":"often","every_seconds":2,"topic":"heartbeat.often","payload":{"text":"often"}}]}`
		if err := declare("kernel", often); err != nil {
			t.Fatal(err)
		}
		b.pass(5 * time.Second)
		b.expect("tick", "tick", "daily", "often", "often")
	})
}

func TestFinishedSchedulesAreDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"m","delay_seconds":60}`)
		b.pass(keepFinished)
		if out := b.must("list_schedules", `{"all":true}`); len(out["schedules"].([]any)) != 1 {
			t.Errorf("gone too early: %v", out)
		}
		b.pass(time.Hour)
		if n := b.keys(); n != 1 { // the counter
			t.Errorf("%d keys are left", n)
		}
		b.kill()
		b.start()
		if out := b.must("schedule_once", `{"message":"m","delay_seconds":60}`); out["id"] != "r2" {
			t.Errorf("an id was given out again: %v", out["id"])
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.kill()
		now := b.now()
		for i := range 1000 {
			message, delay := fmt.Sprint("m", i), 60.0
			s, _, err := schedule.New(schedule.Once, schedule.Request{Message: &message, DelaySeconds: &delay},
				schedule.Env{Now: now, Timezone: "UTC"})
			if err != nil {
				t.Fatal(err)
			}
			s.ID = fmt.Sprint("r", i+1)
			data, _ := s.Encode()
			b.edit(func(st *store) { st.setRow(s.ID, string(data)) })
		}
		b.start()
		b.pass(time.Minute)
		if n := len(b.store.published()); n != 1000 {
			t.Errorf("%d fired", n)
		}
		out := b.must("list_schedules", `{"all":true,"limit":10}`)
		if out["more"] != 990.0 || len(out["schedules"].([]any)) != 10 {
			t.Errorf("more: %v", out["more"])
		}
	})
}
