package admin_test

import (
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func TestNoteBusy(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	since := func(d time.Duration) int64 { return now.Add(-d).UnixMicro() }
	rows := []*adminv1.Extension{
		{Id: "hung", State: "active", Readiness: "ready"},
		{Id: "quick", State: "active", Readiness: "ready"},
		{Id: "plain", State: "active"},
		{Id: "offline", State: "active", Readiness: "offline", Detail: "no network"},
		{Id: "stopped", State: "inactive"},
		{Id: "mute", State: "active", SinceUs: since(time.Minute)},
		{Id: "new", State: "active", SinceUs: since(time.Second)},
	}
	admin.NoteBusy(rows, []*adminv1.Subscription{
		{Extension: "hung", HandlingSinceUs: since(12 * time.Second)},
		{Extension: "hung", HandlingSinceUs: since(45*time.Second + time.Millisecond)}, {Extension: "hung"},
		{Extension: "quick", HandlingSinceUs: since(9 * time.Second)},
		{Extension: "plain", HandlingSinceUs: since(time.Hour)},
		{Extension: "offline", HandlingSinceUs: since(time.Hour)},
		{Extension: "stopped", HandlingSinceUs: since(time.Hour)},
		{Extension: "mute", NoCredit: true, Deliveries: 3}, {Extension: "new", NoCredit: true, Deliveries: 1},
	}, now)
	for i, want := range []string{
		"busy: has been handling one delivery for 45s", "ready: ", "busy: has been handling one delivery for 1h0m0s", "offline: no network", ": ",
		"degraded: takes no deliveries (3 waiting): it has given no credit since it started, see `switchboard extensions verify`",
		": ",
	} {
		if got := rows[i].Readiness + ": " + rows[i].Detail; got != want {
			t.Errorf("%s is shown as %q, want %q", rows[i].Id, got, want)
		}
	}
}
