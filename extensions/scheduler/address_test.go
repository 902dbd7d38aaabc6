package scheduler

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// What is set up for another person says whom and where it will reach, and reaches them.
func TestAReminderForAnotherPerson(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		set := b.must("schedule_once", `{"message":"take the cake","delay_seconds":300,"person":"Clara"}`, by(anna))
		if text := set["text"].(string); !strings.Contains(text, "will reach Clara on Telegram (private)") {
			t.Errorf("the result is %s", text)
		}
		b.must("schedule_once",
			`{"message":"find a cake","delay_seconds":400,"person":"Clara","topic":"system.agent.task"}`, by(anna))
		own := b.must("schedule_once", `{"message":"call","delay_seconds":500,"person":"Clara"}`,
			func(c *sdk.ToolCall) { c.Principal, c.ReplyTo = boris, "handle-clara" })
		if text := own["text"].(string); strings.Contains(text, "will reach") {
			t.Errorf("for the person who asks, the result is %s", text)
		}
		b.pass(time.Hour)
		events := b.store.published()
		if len(events) != 3 {
			t.Fatalf("%d events were published", len(events))
		}
		var notice contract.UserNotify
		var task contract.AgentTask
		if err := json.Unmarshal(events[0].GetPayload(), &notice); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(events[1].GetPayload(), &task); err != nil {
			t.Fatal(err)
		}
		if notice.Text != "⏰ Передаёт Анна: take the cake" || notice.ReplyTo != "handle-clara" || notice.Asked ||
			notice.ChannelID != "telegram_channel" || len(notice.Actions) != 0 {
			t.Errorf("the notice is %+v", notice)
		}
		if task.ReplyTo != "handle-anna" || task.ChannelID != "" ||
			!strings.HasSuffix(task.Prompt, `with send_to_channel to the person "Clara" on the channel "telegram_channel".`) {
			t.Errorf("the job is %+v", task)
		}
	})
}

func TestAReminderIsGivenToAnotherPerson(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"tea","delay_seconds":300}`, by(anna))
		edited := b.must("update_schedule", `{"id":"r1","person":"Clara"}`, by(anna))
		if edited["destination"] != "Clara on Telegram (private)" || edited["person"] != "Clara" {
			t.Errorf("the result is %v", edited)
		}
		if _, err := b.call("update_schedule", `{"id":"r1","channel_id":"slack_channel"}`, by(anna)); err == nil {
			t.Error("a reminder went to a channel that does not reach its person")
		}
		back := b.must("update_schedule", `{"id":"r1","person":""}`, by(anna))
		if back["person"] != nil || back["destination"] != "this conversation on telegram_channel" {
			t.Errorf("without the person, the result is %v", back)
		}
		// Another one of the household does not speak in the name of the one who set it.
		b.must("schedule_once", `{"message":"tea","delay_seconds":300,"person":"Clara"}`, by(atHome))
		if _, err := b.call("update_schedule", `{"id":"r2","message":"vodka"}`, by(boris)); err == nil ||
			!strings.Contains(err.Error(), "or says for them") {
			t.Errorf("another person's edit: %v", err)
		}
		for arguments, want := range map[string]string{
			`{"message":"m","delay_seconds":9,"person":"Dora"}`:                               "0 people are named",
			`{"message":"m","delay_seconds":9,"person":"Clara","topic":"lights.on"}`:          "goes with a reminder or a task",
			`{"message":"m","delay_seconds":9,"person":"Clara","channel_id":"slack_channel"}`: "0 people are named",
		} {
			if _, err := b.call("schedule_once", arguments, by(anna)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", arguments, err, want)
			}
		}
	})
}
