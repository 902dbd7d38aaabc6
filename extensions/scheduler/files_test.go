package scheduler

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// A reminder about a photo keeps it, also after a change, and its notice carries it.
func TestAReminderHasAFile(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"frame it","delay_seconds":300,"attachments":["[image 3f2a9c: cat.jpg]"]}`)
		b.must("update_schedule", `{"id":"r1","delay_seconds":600}`)
		b.pass(time.Hour)
		b.expect("frame it")
		hash := strings.Repeat("3f2a9c", 11)[:64]
		var notice contract.UserNotify
		if err := json.Unmarshal(b.store.published()[0].GetPayload(), &notice); err != nil {
			t.Fatal(err)
		}
		want := contract.Attachment{Kind: contract.KindImage, Name: "cat.jpg", Blob: hash, Size: 5}
		if len(notice.Attachments) != 1 || notice.Attachments[0] != want {
			t.Errorf("the notice has %+v", notice.Attachments)
		}
		for _, what := range []string{"event " + hash, rowKey("r1") + " " + hash} {
			if !slices.Contains(b.store.kept, what) {
				t.Errorf("%s is missing in %q", what, b.store.kept)
			}
		}
		if slices.Contains(b.store.kept, rowKey("r1")) {
			t.Errorf("the row did not keep it at all times: %q", b.store.kept)
		}
		for arguments, want := range map[string]string{
			`{"message":"m","delay_seconds":300,"attachments":["cat.jpg"]}`:                            "is no file",
			`{"message":"m","delay_seconds":300,"attachments":["ffffff"]}`:                             "not found",
			`{"message":"m","delay_seconds":300,"attachments":["3f2a9c"],"topic":"system.agent.task"}`: "leave out the topic",
		} {
			if _, err := b.call("schedule_once", arguments); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", arguments, err, want)
			}
		}
	})
}
