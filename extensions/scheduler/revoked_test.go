package scheduler

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

func TestRevokedPersonsSchedulesEnd(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		his := from("his chat", "telegram")
		b.must("schedule_once", `{"message":"pills","delay_seconds":60}`, his)
		b.must("schedule_recurring", `{"message":"water","every_seconds":60}`, his)
		b.must("schedule_once", `{"message":"for the group","delay_seconds":60}`, from("the group", "telegram"),
			func(c *sdk.ToolCall) { c.Principal = contract.Principal{Person: "p1", Group: "g1"} })
		b.must("schedule_once", `{"message":"tea","delay_seconds":60}`, from("her chat", "telegram"))
		b.must("schedule_once", `{"message":"nobody's","delay_seconds":60}`)
		for range 2 { // an event may come again
			effects, err := b.sched.handle(t.Context(), sdk.Event{Topic: contract.TopicPersonRevoked, Source: "kernel",
				Payload: json.RawMessage(`{"person":"p1","conversations":["his chat"],"sessions":["s1"]}`)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.store.Commit(t.Context(), effects...); err != nil {
				t.Fatal(err)
			}
		}
		b.pass(2 * time.Minute)
		var told []contract.PersonEnded
		var fired []string
		for _, e := range b.store.published() {
			if e.GetTopic() == topicEnded {
				var ended contract.PersonEnded
				if err := json.Unmarshal(e.GetPayload(), &ended); err != nil {
					t.Fatal(err)
				}
				told = append(told, ended)
				continue
			}
			var n contract.UserNotify
			if err := json.Unmarshal(e.GetPayload(), &n); err != nil {
				t.Fatal(err)
			}
			fired = append(fired, n.Text)
		}
		slices.Sort(fired)
		if !slices.Equal(fired, []string{"⏰ nobody's", "⏰ tea"}) {
			t.Errorf("fired: %q", fired)
		}
		if len(told) != 1 || told[0].Kind != "reminder" || len(told[0].Names) != 3 {
			t.Errorf("ended: %+v", told)
		}
		rows, err := b.sched.all(t.Context(), sdk.ToolCall{}, func(sc schedule.Schedule) bool { return sc.State == schedule.Cancelled })
		if err != nil || len(rows) != 3 {
			t.Errorf("%d schedules are cancelled, %v", len(rows), err)
		}
	})
}
