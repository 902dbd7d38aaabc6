package kernel

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/control"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// The heartbeat keeps its figures and its newest escalations under one key of
// its store. What came of these is read from the journal.
const (
	heartbeatExtension = "heartbeat"
	heartbeatState     = "state"
)

func (a admin) heartbeat(r journal.Reader) (*control.Heartbeat, error) {
	a.mu.Lock()
	var m *member
	if a.plan != nil {
		m = a.plan.members[heartbeatExtension]
	}
	a.mu.Unlock()
	if m == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	v, err := r.KVGet(heartbeatExtension, heartbeatState)
	if err != nil {
		return nil, err
	}
	var stored struct {
		Figures control.Heartbeat `json:"figures"`
		Recent  []struct {
			Key    string    `json:"key"`
			At     time.Time `json:"at"`
			Reason string    `json:"reason"`
		} `json:"recent"`
	}
	if v.Version != 0 {
		if err := json.Unmarshal(v.Value, &stored); err != nil {
			stored.Figures.Problem = "what it has stored cannot be read: " + err.Error()
		}
	}
	h := stored.Figures
	for _, s := range m.manifest.Schedules {
		if t, err := m.manifest.Timing(s, m.config); err == nil {
			h.EverySeconds = int64(t.Every / time.Second)
		}
	}
	h.Undelivered = []control.Escalation{}
	for _, e := range stored.Recent {
		seq, found, err := r.EventByDedupe(heartbeatExtension, e.Key)
		if err != nil {
			return nil, err
		}
		if !found {
			continue // retention has removed it
		}
		delivered, err := ledToDelivery(r, seq)
		if err != nil {
			return nil, err
		}
		h.Followed++
		if delivered {
			h.Deliveries++
		} else {
			h.Undelivered = append(h.Undelivered, control.Escalation{Event: journal.EventID(seq), At: e.At, Reason: e.Reason})
		}
	}
	return &h, nil
}

// What an event led to is looked for among so many events behind it.
const (
	followedAtOnce = 2000
	followed       = 20_000
)

// ledToDelivery says whether a channel delivered something that follows from an
// event.
func ledToDelivery(r journal.Reader, seq int64) (bool, error) {
	cause, err := r.Event(seq)
	if err != nil || cause == nil {
		return false, err
	}
	last, err := r.LastSeq()
	if err != nil {
		return false, err
	}
	for after := seq; after < min(last, seq+followed); after += followedAtOnce {
		events, err := r.Events(journal.EventFilter{
			After: after, Before: after + followedAtOnce + 1, Correlation: cause.GetCorrelationId(), Limit: followedAtOnce, Ascending: true,
		})
		if err != nil {
			return false, err
		}
		for _, e := range events {
			if !strings.HasPrefix(e.GetTopic(), contract.TopicChannelSend) {
				continue
			}
			delivered, err := wasDelivered(r, e.GetSeq())
			if delivered || err != nil {
				return delivered, err
			}
		}
	}
	return false, nil
}

func wasDelivered(r journal.Reader, seq int64) (bool, error) {
	ds, err := r.Deliveries(journal.DeliveryFilter{Seq: seq, States: []journal.DeliveryState{journal.Done}})
	for _, d := range ds {
		if d.ProviderID != "" {
			return true, nil
		}
	}
	return false, err
}
