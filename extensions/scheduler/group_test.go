package scheduler

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// in makes a call in a group, which is the household's unless it is confined.
func in(group string, confined bool) func(*sdk.ToolCall) {
	return func(c *sdk.ToolCall) {
		c.ReplyTo, c.Channel = "handle-"+group, "telegram_channel"
		c.Principal = contract.Principal{Person: "p1", Conversation: c.ReplyTo, Group: group, Confined: confined}
	}
}

func TestAGroupHasItsOwnSchedules(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		club, home := in("club", true), in("home", false)
		b.must("schedule_once", `{"message":"private","delay_seconds":3600}`, from("handle-anna", "telegram_channel"))
		b.must("schedule_once", `{"message":"work","delay_seconds":60,"topic":"system.agent.task"}`, club)
		b.must("schedule_once", `{"message":"quietly","delay_seconds":61,"topic":"system.agent.background"}`, club)
		for name, tt := range map[string]struct {
			in   func(*sdk.ToolCall)
			want string
		}{
			"in private":               {from("handle-anna", "telegram_channel"), "r2 r3 r1"},
			"in the household's group": {home, "r2 r3 r1"},
			"in the group":             {club, "r2 r3"},
			"in another one":           {in("team", true), ""},
			"in an unknown one":        {in("", true), ""},
		} {
			var ids []string
			for _, s := range b.must("list_schedules", `{"all":true}`, tt.in)["schedules"].([]any) {
				ids = append(ids, s.(map[string]any)["id"].(string))
			}
			if got := strings.Join(ids, " "); got != tt.want {
				t.Errorf("%s there are %q, want %q", name, got, tt.want)
			}
		}
		for _, try := range [][2]string{
			{"cancel_schedule", `{"id":"%s"}`}, {"update_schedule", `{"id":"%s","action":"pause"}`},
			{"update_schedule", `{"id":"%s","message":"x"}`},
		} {
			_, hidden := b.call(try[0], fmt.Sprintf(try[1], "r1"), club)
			_, unknown := b.call(try[0], fmt.Sprintf(try[1], "r9"), club)
			if hidden == nil || unknown == nil || strings.ReplaceAll(hidden.Error(), "r1", "r9") != unknown.Error() ||
				!strings.Contains(hidden.Error(), "use one of r2, r3") {
				t.Errorf("%s: %v, and of one that does not exist: %v", try[0], hidden, unknown)
			}
		}
		out := fmt.Sprint(b.must("list_schedules", `{}`, from("handle-anna", "telegram_channel"))["text"])
		if !strings.Contains(out, "to the group that asked for it") {
			t.Errorf("in private: %s", out)
		}
		b.edit(func(s *store) { s.setRow("r7", "broken") })
		if out := b.must("list_schedules", `{}`, club); out["unreadable"] != nil {
			t.Errorf("the group is shown %v", out["unreadable"])
		}

		// The job may use no more than the group may.
		b.pass(2 * time.Minute)
		for i, e := range b.store.published() {
			var task contract.AgentTask
			if err := json.Unmarshal(e.GetPayload(), &task); err != nil {
				t.Fatal(err)
			}
			if want := (contract.Principal{Person: "p1", Conversation: "handle-club", Group: "club", Confined: true}); !reflect.DeepEqual(task.Principal, want) {
				t.Errorf("job %d is for %+v", i, task.Principal)
			}
		}
		if n := len(b.store.published()); n != 2 {
			t.Errorf("%d jobs", n)
		}
	})
}
