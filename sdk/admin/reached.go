package admin

import (
	"context"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
)

// Reach is how far an event came.
type Reach struct {
	// Event is its id; empty: it does not exist (any more).
	Event string `json:"event,omitempty"`
	// Delivered says that a channel delivered something that followed from it.
	Delivered bool `json:"delivered"`
}

// What followed from an event is searched among so many events after it.
const (
	followedAtOnce = 2000
	followed       = 20_000
)

// Reached says how far the event came that a source published under a dedupe
// key. What followed from it is searched among the next 20,000 events.
func Reached(ctx context.Context, c adminv1.ReadClient, source, dedupeKey string) (r Reach, err error) {
	found, err := Events(ctx, c, &adminv1.EventsRequest{Source: source, DedupeKey: dedupeKey})
	if err != nil || len(found) == 0 {
		return r, err
	}
	last, err := LastSeq(ctx, c)
	if err != nil {
		return r, err
	}
	r.Event = found[0].GetId()
	seq := found[0].GetSeq()
	for after := seq; after < min(last, seq+followed) && !r.Delivered; after += followedAtOnce {
		sends, err := WithDeliveries(ctx, c, &adminv1.EventsRequest{
			After: after, Before: after + followedAtOnce + 1, CorrelationId: found[0].GetCorrelationId(), Topic: contract.TopicChannelSend + "*",
			Limit: followedAtOnce, Ascending: true,
		})
		if err != nil {
			return r, err
		}
		r.Delivered = slices.ContainsFunc(sends, func(e Event) bool {
			return slices.ContainsFunc(e.Deliveries, func(d *adminv1.Delivery) bool {
				return d.GetState() == "done" && d.GetProviderId() != ""
			})
		})
	}
	return r, nil
}
