package scheduler_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/extensions/scheduler"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func options() sdktest.Options {
	return sdktest.Options{Manifest: "../../manifests/scheduler.yaml", Timezone: "Europe/Berlin",
		Channels: []*kernelv1.Channel{
			{Id: "telegram_channel", Name: "Telegram", Readiness: &extensionv1.Readiness{State: sdk.Ready}},
		},
	}
}

func TestConformance(t *testing.T) {
	sdktest.Conformance(t, scheduler.New, options())
}

// TestSchedulesIsACommand checks the answers of /schedules.
func TestSchedulesIsACommand(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, scheduler.New(), options())
	if got := k.Command("schedules", ""); !strings.Contains(got, "Nothing is scheduled") {
		t.Errorf("the answer is %q", got)
	}
	tokyo := func(r *extensionv1.CallRequest) { r.ReplyTo, r.Timezone = "handle", "Asia/Tokyo" }
	year := time.Now().Year() + 2
	k.MustCall("schedule_once", map[string]any{"message": "kettle", "at": fmt.Sprintf("%d-07-01T09:00", year)}, tokyo)
	k.MustCall("schedule_recurring", map[string]any{"message": "pills", "cron": "30 8 * * *"},
		func(r *extensionv1.CallRequest) {
			r.ReplyTo, r.Timezone = "elsewhere", "Europe/Berlin"
		})
	here := func(r *extensionv1.CallRequest) { r.ReplyTo = "handle" }
	got := k.Command("schedules", "", here)
	for _, part := range []string{
		"(times in Europe/Berlin):\n\n- r2: “pills”, ", "08:30, in ", "\n- r1: “kettle”, ",
		fmt.Sprintf(" 1 Jul %d 02:00 (", year),
		fmt.Sprintf(" 1 Jul %d 09:00, Asia/Tokyo), in ", year), "to this conversation",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("the answer is %q, without %q", got, part)
		}
	}
	k.MustCall("cancel_schedule", map[string]any{"id": "r1"})
	if got := k.Command("schedules", "all"); !strings.Contains(got, "“kettle”, ") ||
		!strings.Contains(got, ", cancelled") {
		t.Errorf("all of them are %q", got)
	}
	if got := k.Command("schedules", "--all --limit 1"); !strings.Contains(got, "1 more") {
		t.Errorf("one of them is %q", got)
	}
	if got := k.Command("schedules", "soon"); !strings.Contains(got, "Limit must be a whole number, not 'soon'") ||
		!strings.Contains(got, "Usage") {
		t.Errorf("a wrong value is answered with %q", got)
	}
}

// TestOverTheWire uses the protocol: a stored reminder that becomes due while the
// extension is down is published at once by the next process.
func TestOverTheWire(t *testing.T) {
	t.Parallel()
	o := options()
	o.Channels[0].Readiness = &extensionv1.Readiness{State: sdk.Offline} // what it is to send can be withdrawn
	k := sdktest.Start(t, scheduler.New(), o)
	var made struct {
		ID, Status, Timezone, Destination string
	}
	content := k.MustCall("schedule_once", map[string]any{"message": "kettle", "delay_seconds": 3600,
		"channel_id": "telegram_channel"},
		func(r *extensionv1.CallRequest) { r.ReplyTo, r.Timezone = "handle", "Asia/Tokyo" })
	if err := json.Unmarshal([]byte(content), &made); err != nil {
		t.Fatal(err)
	}
	if made.ID != "r1" || made.Timezone != "Asia/Tokyo" || made.Destination != "telegram_channel" {
		t.Errorf("got %+v", made)
	}
	if r := k.Call("schedule_once", map[string]any{"message": "m", "delay_seconds": 60,
		"channel_id": "pager"}); !r.GetIsError() || !strings.Contains(r.GetContent(), "telegram_channel (Telegram)") {
		t.Errorf("unknown channel: %s", r.GetContent())
	}
	k.Lose()

	var row map[string]any
	key := k.Keys("schedule/")[0]
	if k.Stored(key, &row) == 0 {
		t.Fatal("nothing is stored")
	}
	past := time.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339)
	row["next"], row["at"] = past, past
	k.Put(key, row)
	k.Restart(scheduler.New())
	var notice contract.UserNotify
	if err := json.Unmarshal(k.Await(contract.TopicUserNotify).GetPayload(), &notice); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(notice.Text, "⏰ kettle (late: was due ") || notice.ChannelID != "telegram_channel" ||
		notice.ReplyTo != "handle" {
		t.Errorf("got %+v", notice)
	}
	if content := k.MustCall("cancel_schedule", map[string]any{"id": "r1"}); !strings.Contains(content, "withdrawn") {
		t.Errorf("cancel: %s", content)
	}
}
