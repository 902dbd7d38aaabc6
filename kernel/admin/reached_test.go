package admin_test

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func reached(w *kerneltest.World, source string, keys ...string) (out []admin.Reach) {
	w.T.Helper()
	w.Settle()
	for _, key := range keys {
		r, err := admin.Reached(w.T.Context(), reads(w), source, key)
		if err != nil {
			w.T.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func expectReached(t *testing.T, got []admin.Reach, want ...admin.Reach) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("reached %+v, want %+v", got, want)
	}
}

func TestReached(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		watcher := w.Extension(bus.Actor{ID: "watcher", Publish: []string{contract.TopicAgentTask}})
		published := map[string]string{}
		task := func(key string) *kerneltest.Turn {
			t.Helper()
			e := kerneltest.Publish(contract.TopicAgentTask, contract.AgentTask{Prompt: key, Name: key, Quiet: true})
			e.GetPublish().DedupeKey = key
			published[key] = watcher.Must("", e)[0].GetEventId()
			return orchestrator.Hears(key)
		}

		task("silent").Answers("OK")
		turn := task("sends")
		send := turn.Asks([2]string{"core/send_to_channel", `{"channel_id":"telegram","text":"the kettle"}`})[0]
		sent := turn.Calls(send)
		expectReached(t, reached(w, "watcher", "sends"), admin.Reach{Event: published["sends"]})
		telegram.Shows(": the kettle")
		if _, err := sent(); err != nil {
			t.Fatal(err)
		}
		turn.Answers("OK")
		orchestrator.HearsRecord("the kettle")
		refused := task("refused")
		again := refused.Calls(
			refused.Asks([2]string{"core/send_to_channel", `{"channel_id":"telegram","text":"the stove"}`})[0],
		)
		telegram.Drops(telegram.Take(), "the chat is gone")
		if _, err := again(); err != nil {
			t.Fatal(err)
		}
		refused.Answers("OK")

		expectReached(t, reached(w, "watcher", "sends", "silent", "refused", "never"),
			admin.Reach{Event: published["sends"], Delivered: true}, admin.Reach{Event: published["silent"]},
			admin.Reach{Event: published["refused"]}, admin.Reach{})
		expectReached(t, reached(w, "another", "sends"), admin.Reach{})
	})
}

// long is a store in which the second event of a chain is a message that was
// delivered, so many events after the first.
type long struct {
	adminv1.ReadClient
	distance int64
	asked    int
}

func (l *long) Events(
	_ context.Context,
	q *adminv1.EventsRequest,
	_ ...grpc.CallOption,
) (adminv1.Read_EventsClient, error) {
	seq := 1 + l.distance
	switch {
	case q.GetDedupeKey() != "":
		return &collected[busv1.Event]{rows: []*busv1.Event{{Id: "e1", Seq: 1, CorrelationId: "e1"}}}, nil
	case q.GetLimit() == 1:
		return &collected[busv1.Event]{rows: []*busv1.Event{{Seq: seq + 1000}}}, nil
	}
	if l.asked++; q.GetCorrelationId() != "e1" || seq <= q.GetAfter() || seq >= q.GetBefore() {
		return &collected[busv1.Event]{}, nil
	}
	return &collected[busv1.Event]{rows: []*busv1.Event{{Id: "e2", Seq: seq}}}, nil
}

func (l *long) Deliveries(
	_ context.Context,
	q *adminv1.DeliveriesRequest,
	_ ...grpc.CallOption,
) (adminv1.Read_DeliveriesClient, error) {
	c := &collected[adminv1.Delivery]{}
	if slices.Contains(q.GetEvents(), "e2") {
		c.rows = append(c.rows, &adminv1.Delivery{Event: "e2", State: "done", ProviderId: "7"})
	}
	return c, nil
}

// A question about an old event does not read the whole store.
func TestReachedIsBounded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		distance int64
		want     bool
		asked    int
	}{{1, true, 1}, {2000, true, 1}, {2001, true, 2}, {20_000, true, 10}, {20_001, false, 10}, {1_000_000, false, 10}} {
		l := &long{distance: tc.distance}
		got, err := admin.Reached(t.Context(), l, "watcher", "a")
		if err != nil || got.Event != "e1" || got.Delivered != tc.want || l.asked != tc.asked {
			t.Errorf("%d events later: %+v after %d questions, %v", tc.distance, got, l.asked, err)
		}
	}
}
