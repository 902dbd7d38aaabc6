package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/scheduler"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// BenchmarkStartWithTenThousand measures the time from the start of the extension to
// its first answer, over gRPC.
func BenchmarkStartWithTenThousand(b *testing.B) {
	o := options()
	o.KV = map[string]any{}
	for i := range 10_000 {
		id := fmt.Sprint("r", i+1)
		o.KV["schedule/"+id] = []byte(fmt.Sprintf(`{"id":%q,"revision":1,"kind":"recurring","state":"active",`+
			`"message":"water the plants","topic":"system.user.notify",`+
			`"reply_to":"0123456789abcdef","timezone":"Europe/Berlin","cron":"0 9 * * *",`+
			`"anchor":"2026-01-01T00:00:00Z","next":"2999-01-01T08:00:00Z","created_at":"2026-01-01T00:00:00Z"}`,
			id))
	}
	k := sdktest.New(b, o)
	for b.Loop() {
		k.Restart(scheduler.New())
		k.MustCall("schedule_once", map[string]any{"message": "m", "delay_seconds": 3600})
	}
}
