package scheduler

import (
	"strings"
	"testing"
	"time"
)

func TestAddWithKeyOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		const once, daily = `{"message":"kettle","delay_seconds":60,"key":"a"}`, `{"message":"m","cron":"0 9 * * *","key":"b"}`
		const mine = `{"message":"secret","delay_seconds":60,"key":"c"}`
		first := b.must("add_schedule", once)
		if first["status"] != "scheduled" || first["kind"] != "once" {
			t.Errorf("added %v", first)
		}
		if again := b.must("add_schedule", once); again["id"] != first["id"] {
			t.Errorf("again: %v", again)
		}
		second := b.must("add_schedule", daily)
		if second["id"] == first["id"] || second["kind"] != "recurring" {
			t.Errorf("another key: %v", second)
		}
		b.kill()
		b.start()
		if again := b.must("add_schedule", once); again["id"] != first["id"] {
			t.Errorf("after a crash: %v", again)
		}
		own := b.must("add_schedule", mine, by(anna))
		if _, err := b.call("add_schedule", mine, by(boris)); err == nil || !strings.Contains(err.Error(), "not there") {
			t.Errorf("someone else's key: %v", err)
		}
		b.must("cancel_schedule", `{"id":"`+own["id"].(string)+`"}`, by(anna))
		b.pass(time.Minute)
		b.expect("kettle")
		if again := b.must("add_schedule", once); again["id"] != first["id"] || again["state"] != "done" {
			t.Errorf("when it has fired: %v", again)
		}
		b.expect("kettle")
		b.must("cancel_schedule", `{"id":"`+second["id"].(string)+`"}`)
		b.pass(8 * 24 * time.Hour)
		if n := b.keys(); n != 1 {
			t.Errorf("%d keys are left, want only the counter", n)
		}
	})
}

func TestAddWithoutKey(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		const tea = `{"message":"tea","delay_seconds":60}`
		if a, other := b.must("add_schedule", tea), b.must("add_schedule", tea); a["id"] == other["id"] {
			t.Errorf("both are %v", a["id"])
		}
	})
}
