package admin

import (
	"context"
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// maxNamed is how many ids one request names.
const maxNamed = 500

// Event is an event with its deliveries.
type Event struct {
	*busv1.Event
	Deliveries []*adminv1.Delivery
}

// MarshalJSON implements json.Marshaler.
func (e Event) MarshalJSON() ([]byte, error) {
	deliveries := make([]*Object, len(e.Deliveries))
	for i, d := range e.Deliveries {
		deliveries[i] = JSON(d).Without("event")
	}
	return JSON(e.Event).Rename("created_at", "at").With("deliveries", deliveries).MarshalJSON()
}

// Events returns the events that a request selects. It must not follow.
func Events(ctx context.Context, c adminv1.ReadClient, q *adminv1.EventsRequest) ([]*busv1.Event, error) {
	return all(c.Events(ctx, q))
}

// EventByID returns one event.
func EventByID(ctx context.Context, c adminv1.ReadClient, id string) (Event, error) {
	found, err := WithDeliveries(ctx, c, &adminv1.EventsRequest{Ids: []string{id}})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%w: there is no event %q (any more)", contract.ErrNotFound, id)
	}
	if err != nil {
		return Event{}, err
	}
	return found[0], nil
}

// WithDeliveries returns the events that a request selects, with their deliveries.
func WithDeliveries(ctx context.Context, c adminv1.ReadClient, q *adminv1.EventsRequest) ([]Event, error) {
	found, err := Events(ctx, c, q)
	if err != nil {
		return nil, err
	}
	events := make([]Event, len(found))
	at := map[string]int{}
	var ids []string
	for i, e := range found {
		events[i].Event, at[e.GetId()], ids = e, i, append(ids, e.GetId())
	}
	for some := range slices.Chunk(ids, maxNamed) {
		deliveries, err := Deliveries(ctx, c, &adminv1.DeliveriesRequest{Events: some})
		if err != nil {
			return nil, err
		}
		for _, d := range deliveries {
			i := at[d.GetEvent()]
			events[i].Deliveries = append(events[i].Deliveries, d)
		}
	}
	return events, nil
}

// Deliveries returns the deliveries that a request selects.
func Deliveries(ctx context.Context, c adminv1.ReadClient, q *adminv1.DeliveriesRequest) ([]*adminv1.Delivery, error) {
	return all(c.Deliveries(ctx, q))
}

// eventsOf returns the ids of the events of deliveries, each once.
func eventsOf(deliveries []*adminv1.Delivery) (ids []string) {
	for _, d := range deliveries {
		ids = append(ids, d.GetEvent())
	}
	return unique(ids)
}

// LastSeq is the seq of the newest event; 0: there is none.
func LastSeq(ctx context.Context, c adminv1.ReadClient) (int64, error) {
	newest, err := Events(ctx, c, &adminv1.EventsRequest{Limit: 1})
	if err != nil || len(newest) == 0 {
		return 0, err
	}
	return newest[0].GetSeq(), nil
}

// DeadLetter is a delivery that was given up, with its event.
type DeadLetter struct {
	Event    *busv1.Event
	Delivery *adminv1.Delivery
}

// DeadLetters returns the newest dead letters, the newest first.
func DeadLetters(ctx context.Context, c adminv1.ReadClient, limit int32) (letters []DeadLetter, err error) {
	dead, err := Deliveries(ctx, c, &adminv1.DeliveriesRequest{Dead: true, Limit: limit})
	if err != nil {
		return nil, err
	}
	events := map[string]*busv1.Event{}
	for ids := range slices.Chunk(eventsOf(dead), maxNamed) {
		found, err := Events(ctx, c, &adminv1.EventsRequest{Ids: ids})
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			events[e.GetId()] = e
		}
	}
	for _, d := range dead {
		if e := events[d.GetEvent()]; e != nil { // it was not removed meanwhile
			letters = append(letters, DeadLetter{e, d})
		}
	}
	return letters, nil
}
