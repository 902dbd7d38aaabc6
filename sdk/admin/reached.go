package admin

import (
	"context"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
)

// Reach says whether an event exists, and whether it led to a message.
type Reach struct {
	// Event is its id; empty: it does not exist, or no longer.
	Event string `json:"event,omitempty"`
	// Delivered says that a channel delivered something that the event led to.
	Delivered bool `json:"delivered"`
}

// How many events after an event are searched for what it led to.
const (
	followedAtOnce = 2000
	followed       = 20_000
)

// Reached looks up the event that a source published under a dedupe key, and searches
// the next 20,000 events for a message that it led to.
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
			After: after, Before: after + followedAtOnce + 1, CorrelationId: found[0].GetCorrelationId(),
			Topic: contract.TopicChannelSend + "*", Limit: followedAtOnce, Ascending: true,
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
