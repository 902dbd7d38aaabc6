package scheduler

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// An undone cancellation or change restores the schedule exactly, and it fires as
// before.
func TestUndo(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"tea","delay_seconds":300}`)
		b.must("schedule_recurring", `{"message":"pills","every_seconds":7200}`)
		shown := func() string {
			all, err := json.Marshal(b.must("list_schedules", `{}`)["schedules"])
			if err != nil {
				t.Fatal(err)
			}
			return string(all)
		}
		before := shown()
		for _, change := range []string{
			`{"id":"r1","delay_seconds":60,"message":"sooner"}`, `{"id":"r2","every_seconds":60}`,
			`{"id":"r2","action":"pause"}`,
		} {
			b.must("update_schedule", change)
			id := `r1`
			if strings.Contains(change, "r2") {
				id = "r2"
			}
			if out := b.must("update_schedule", `{"id":"`+id+`","action":"undo"}`); out["status"] != "restored" {
				t.Errorf("undo %s: %v", change, out)
			}
			if got := shown(); got != before {
				t.Errorf("undo %s:\n got %s\nwant %s", change, got, before)
			}
		}
		for _, id := range []string{"r1", "r2"} {
			b.must("cancel_schedule", `{"id":"`+id+`"}`)
			b.must("update_schedule", `{"id":"`+id+`","action":"undo"}`)
		}
		if got := shown(); got != before {
			t.Errorf("undo of a cancellation:\n got %s\nwant %s", got, before)
		}
		b.pass(2 * time.Hour)
		b.expect("tea", "pills")

		b.must("schedule_once", `{"message":"new","delay_seconds":300}`)
		for arguments, want := range map[string]string{
			`{"id":"r3","action":"undo"}`:                    "nothing to undo",
			`{"id":"r1","action":"undo"}`:                    "cannot be undone",
			`{"id":"r3","action":"undo","delay_seconds":60}`: "no fields",
		} {
			if _, err := b.call("update_schedule", arguments); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", arguments, err, want)
			}
		}
		b.must("cancel_schedule", `{"id":"r3"}`)
		b.pass(time.Hour)
		if _, err := b.call("update_schedule", `{"id":"r3","action":"undo"}`); err == nil ||
			!strings.Contains(err.Error(), "in the past") {
			t.Errorf("a time that has passed: %v", err)
		}
	})
}
