package offline

import (
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// No input and no tool result leads to a panic or an empty answer.
func FuzzComplete(f *testing.F) {
	f.Add("Current time: 2026-03-01T09:30:00Z (UTC)", "say hi in Telegram", "list_channels", "{}", channelsJSON)
	f.Add("", "cancel all reminders", "scheduler__list_schedules", "{}", schedulesJSON)
	f.Add("", "[task from x]\n~~~\nPending reminder (channel: a): b\n~~~", "send_to_channel",
		`{"channel_id":"a"}`, `error: {"status":"failed"}`)
	f.Add("", "remind me in 5 minutes to eat", "scheduler__schedule_once", "{}",
		`{"next":"2025-11-20T11:05:00Z","timezone":"No/Where"}`)
	f.Add("", "list reminders", "scheduler__list_schedules", "[", `[{"id":"r1","next":null}]`)
	f.Add("", "forget the kettle", "memory__recall", "{}", kettles)
	f.Add("", "what do you remember", "memory__list_memories", "{}", `{"memories":[{"id":"m1","text":"x"}],"more":3}`)
	f.Fuzz(func(t *testing.T, system, said, tool, arguments, result string) {
		r := &sdk.CompleteRequest{Messages: []*extensionv1.Message{
			{Role: "system", Content: system},
			{Role: "user", Content: said},
			{Role: "assistant", Content: "?"},
			{Role: "user", Content: said},
			{Role: "assistant", Calls: []*busv1.Call{{CallId: "1", Name: tool, Arguments: []byte(arguments)}}},
			{Role: "tool", CallId: "1", Content: result},
		}}
		for _, name := range toolNames {
			r.Tools = append(r.Tools, &extensionv1.Tool{Name: name})
		}
		heard := false
		err := model{now: time.Now}.Complete(t.Context(), r, func(d *sdk.Delta) error {
			heard = heard || d.GetText() != "" || d.GetCall() != nil
			return nil
		})
		if err != nil || !heard {
			t.Fatalf("got %v, %v", heard, err)
		}
	})
}
