package trace_test

import (
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/trace"
)

func reached(w *kerneltest.World, refs ...trace.Ref) (out []trace.Reach) {
	w.T.Helper()
	w.Settle()
	w.Read(func(r journal.Reader) (err error) {
		out, err = trace.Reached(r, refs)
		return err
	})
	return out
}

func expectReached(t *testing.T, got []trace.Reach, want ...trace.Reach) {
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
		ref := func(key string) trace.Ref { return trace.Ref{Source: "watcher", DedupeKey: key} }

		task("silent").Answers("OK")
		turn := task("sends")
		send := turn.Asks([2]string{"core/send_to_channel", `{"channel_id":"telegram","text":"the kettle"}`})[0]
		sent := turn.Calls(send)
		expectReached(t, reached(w, ref("sends")), trace.Reach{Event: published["sends"]})
		telegram.Shows(": the kettle")
		if _, err := sent(); err != nil {
			t.Fatal(err)
		}
		turn.Answers("OK")
		orchestrator.HearsRecord("the kettle")
		refused := task("refused")
		again := refused.Calls(refused.Asks([2]string{"core/send_to_channel", `{"channel_id":"telegram","text":"the stove"}`})[0])
		telegram.Drops(telegram.Take(), "the chat is gone")
		if _, err := again(); err != nil {
			t.Fatal(err)
		}
		refused.Answers("OK")

		expectReached(t, reached(w,
			ref("sends"), ref("silent"), ref("refused"), ref("never"), trace.Ref{}, trace.Ref{Source: "another", DedupeKey: "sends"},
			trace.Ref{ID: published["sends"]}, trace.Ref{ID: "e999"}, trace.Ref{ID: "nonsense"},
		),
			trace.Reach{Event: published["sends"], Delivered: true}, trace.Reach{Event: published["silent"]}, trace.Reach{Event: published["refused"]},
			trace.Reach{}, trace.Reach{}, trace.Reach{},
			trace.Reach{Event: published["sends"], Delivered: true}, trace.Reach{}, trace.Reach{},
		)
		for _, e := range w.Events(contract.TopicChannelSend + "telegram") { // what was sent leads to nothing further
			expectReached(t, reached(w, trace.Ref{ID: e.GetId()}), trace.Reach{Event: e.GetId()})
		}
	})
}

// long is a store in which the second event of a chain is a message that was
// delivered, so many events behind the first.
type long struct {
	journal.Reader
	distance int64
	asked    int
}

func (l *long) Event(seq int64) (*busv1.Event, error) {
	e := &busv1.Event{Seq: seq, Id: journal.EventID(seq), Topic: contract.TopicAgentTask, CorrelationId: "e1"}
	if seq != 1 {
		e.Topic = contract.TopicChannelSend + "telegram"
	}
	return e, nil
}

func (l *long) LastSeq() (int64, error) { return l.distance + 1000, nil }

func (l *long) Events(f journal.EventFilter) ([]*busv1.Event, error) {
	l.asked++
	seq := 1 + l.distance
	if f.Correlation != "e1" || seq <= f.After || seq >= f.Before {
		return nil, nil
	}
	e, err := l.Event(seq)
	return []*busv1.Event{e}, err
}

func (l *long) Deliveries(f journal.DeliveryFilter) ([]journal.Delivery, error) {
	return []journal.Delivery{{Seq: f.Seq, State: journal.Done, ProviderID: "7"}}, nil
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
		got, err := trace.Reached(l, []trace.Ref{{ID: "e1"}})
		if err != nil || len(got) != 1 || got[0].Delivered != tc.want || l.asked != tc.asked {
			t.Errorf("%d events later: %+v after %d questions, %v", tc.distance, got, l.asked, err)
		}
	}
}
