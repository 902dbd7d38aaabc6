package admin_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 5000, time.UTC).Local()
	written, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]*admin.Object{
		`{"id":"x","builtin":true,"kinds":["agent"],"pid":7,"since":` + string(written) + `,"restarts":0,"sandbox":{"level":"full","files":[]}}`: admin.JSON(
			&adminv1.Extension{Id: "x", Builtin: true, Kinds: []string{"agent"}, Pid: 7, SinceUs: at.UnixMicro(), Sandbox: &adminv1.Sandbox{Level: "full"}}),
		`{"seq":1,"id":"e1","topic":"a.b","payload":{"a":"<b>"},"hop":0}`: admin.JSON(
			&busv1.Event{Id: "e1", Seq: 1, Topic: "a.b", Payload: []byte(`{"a":"<b>"}`)}),
		`{"state":"done","tries":0,"uncertain":false}`:                  admin.JSON(&adminv1.Delivery{Event: "e1", State: "done"}).Without("event").Rename("attempts", "tries"),
		`{"channel_id":"tea","events":[],"provider_ids":[],"more":[1]}`: admin.JSON(&adminv1.Sent{ChannelId: "milk"}).With("channel_id", "tea").With("more", []int{1}),
		`{}`: admin.JSON(&adminv1.StatusRequest{}),
	} {
		got, err := o.MarshalJSON()
		if err != nil || !json.Valid(got) {
			t.Errorf("%s, %v", got, err)
		}
		if string(got) != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
	}
	if _, err := admin.JSON(&busv1.Event{Payload: []byte("{")}).MarshalJSON(); err == nil {
		t.Error("a payload that is not JSON was written")
	}
}
