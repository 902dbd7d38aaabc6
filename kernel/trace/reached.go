package trace

import (
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Ref names an event: by its id, or by who published it under which dedupe key.
type Ref struct {
	ID        string `json:"id,omitempty"`
	Source    string `json:"source,omitempty"`
	DedupeKey string `json:"dedupe_key,omitempty"`
}

// Reach is how far an event came.
type Reach struct {
	// Event is its id; empty: there is no such event (any more).
	Event string `json:"event,omitempty"`
	// Delivered says that a channel delivered something that came after it in its
	// chain of events.
	Delivered bool `json:"delivered"`
}

// Reached says of each event how far it came, in their order. What came after an
// event is looked for among the next 20,000 events of all.
func Reached(r journal.Reader, refs []Ref) ([]Reach, error) {
	reached := make([]Reach, len(refs))
	for i, ref := range refs {
		e, err := ref.event(r)
		if err != nil {
			return nil, err
		}
		if e == nil {
			continue
		}
		reached[i].Event = e.GetId()
		if reached[i].Delivered, err = ledToDelivery(r, e); err != nil {
			return nil, err
		}
	}
	return reached, nil
}

func (ref Ref) event(r journal.Reader) (*busv1.Event, error) {
	seq := journal.ParseEventID(ref.ID)
	if ref.ID == "" {
		found, known, err := r.EventByDedupe(ref.Source, ref.DedupeKey)
		if err != nil || !known {
			return nil, err
		}
		seq = found
	}
	if seq <= 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	return r.Event(seq)
}

// What an event led to is looked for among so many events behind it.
const (
	followedAtOnce = 2000
	followed       = 20_000
)

func ledToDelivery(r journal.Reader, cause *busv1.Event) (bool, error) {
	last, err := r.LastSeq()
	if err != nil {
		return false, err
	}
	seq := cause.GetSeq()
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
			if done, err := wasDelivered(r, e.GetSeq()); done || err != nil {
				return done, err
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
