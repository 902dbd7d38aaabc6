package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// page is how many events are read at once.
const page = 500

func all(pattern string) bool { return pattern == "" || pattern == "*" }

func matches(pattern, name string) bool { return all(pattern) || topic.Match(pattern, name) }

// Events implements adminv1.ReadServer. What is sent is read page by page, so
// that a slow reader holds no view of the store.
func (s *Service) Events(q *adminv1.EventsRequest, out adminv1.Read_EventsServer) error {
	if t := q.GetTopic(); !all(t) && !topic.ValidPattern(t) {
		return fmt.Errorf("%w: %q is not a topic or a pattern such as channel.send.*", contract.ErrInvalid, t)
	}
	ctx := out.Context()
	if q.GetFollow() {
		return s.follow(ctx, q, out.Send)
	}
	named := len(q.GetIds()) > 0 || q.GetDead() || q.GetProviderId() != "" || q.GetDedupeKey() != ""
	f := journal.EventFilter{
		After: q.GetAfter(), Before: q.GetBefore(), Topic: strings.TrimPrefix(q.GetTopic(), "*"), Correlation: q.GetCorrelationId(),
		Limit: page, Ascending: q.GetAscending(),
	}
	left := int(q.GetLimit())
	if left <= 0 {
		left = 100
	}
	for {
		var rows []*adminv1.Event
		read := 0
		if err := s.Bus.View(ctx, func(r journal.Reader) (err error) {
			var events []*busv1.Event
			if named {
				events, err = eventsNamed(r, q, left)
			} else if events, err = r.Events(f); len(events) > 0 {
				read = len(events)
				if f.Before = events[read-1].GetSeq(); f.Ascending {
					f.After, f.Before = f.Before, q.GetBefore()
				}
				events = slices.DeleteFunc(events, func(e *busv1.Event) bool { return !matches(q.GetTopic(), e.GetTopic()) })
				events = events[:min(left, len(events))]
			}
			if err == nil {
				rows, err = eventRows(r, events, q.GetBare())
			}
			return err
		}); err != nil {
			return err
		}
		if err := send(rows, out.Send); err != nil {
			return err
		}
		if left -= len(rows); left <= 0 || read < page {
			return nil
		}
	}
}

func send[T any](rows []T, out func(T) error) error {
	for _, row := range rows {
		if err := out(row); err != nil {
			return err
		}
	}
	return nil
}

// eventsNamed reads the events that a request names in another way than by a range.
func eventsNamed(r journal.Reader, q *adminv1.EventsRequest, limit int) (events []*busv1.Event, err error) {
	var seqs []int64
	for _, id := range q.GetIds() {
		seqs = append(seqs, journal.ParseEventID(id))
	}
	if q.GetDedupeKey() != "" {
		seq, _, err := r.EventByDedupe(q.GetSource(), q.GetDedupeKey())
		if err != nil {
			return nil, err
		}
		seqs = append(seqs, seq)
	}
	if q.GetDead() || q.GetProviderId() != "" {
		f := journal.DeliveryFilter{ProviderID: q.GetProviderId(), After: q.GetAfter(), Limit: limit}
		if q.GetDead() {
			f.States = []journal.DeliveryState{journal.Dead}
		}
		ds, err := r.Deliveries(f)
		if err != nil {
			return nil, err
		}
		for _, d := range ds {
			if !slices.Contains(seqs, d.Seq) {
				seqs = append(seqs, d.Seq)
			}
		}
	}
	for _, seq := range seqs {
		if e, err := r.Event(seq); err != nil {
			return nil, err
		} else if e != nil {
			events = append(events, e)
		}
	}
	return events, nil
}

// follow sends what is accepted. The watcher says only that there is something
// new; it is read from the store, so that a slow reader misses nothing.
func (s *Service) follow(ctx context.Context, q *adminv1.EventsRequest, out func(*adminv1.Event) error) error {
	w, last := s.Bus.Watch(ctx), q.GetAfter()
	for {
		var rows []*adminv1.Event
		read := 0
		if err := s.Bus.View(ctx, func(r journal.Reader) (err error) {
			if last < 0 {
				last, err = r.LastSeq()
				return err
			}
			events, err := r.Events(journal.EventFilter{After: last, Limit: page, Ascending: true})
			if read = len(events); err == nil && read > 0 {
				last = events[read-1].GetSeq()
				events = slices.DeleteFunc(events, func(e *busv1.Event) bool { return !matches(q.GetTopic(), e.GetTopic()) })
				rows, err = eventRows(r, events, q.GetBare())
			}
			return err
		}); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		if err := send(rows, out); err != nil {
			return err
		}
		if read > 0 {
			continue
		}
		if _, more := <-w.Events(); !more {
			if !errors.Is(w.Err(), bus.ErrSlow) {
				return cmp.Or(context.Cause(ctx), w.Err(), errStopped)
			}
			w = s.Bus.Watch(ctx)
		}
	}
}

func eventRows(r journal.Reader, events []*busv1.Event, bare bool) (rows []*adminv1.Event, err error) {
	known, err := r.Subscriptions()
	if err != nil {
		return nil, err
	}
	subs := make(map[int64]journal.Subscription, len(known))
	for _, sub := range known {
		subs[sub.ID] = sub
	}
	for _, e := range events {
		row := &adminv1.Event{
			Id: e.GetId(), Seq: e.GetSeq(), AtUs: e.GetCreatedAtUs(), Topic: e.GetTopic(), Key: e.GetKey(), Source: e.GetSource(),
			CorrelationId: e.GetCorrelationId(), CausationId: e.GetCausationId(), Hop: e.GetHop(), DedupeKey: e.GetDedupeKey(),
			Payload: e.GetPayload(),
		}
		rows = append(rows, row)
		if bare {
			continue
		}
		ds, err := r.Deliveries(journal.DeliveryFilter{Seq: e.GetSeq()})
		if err != nil {
			return nil, err
		}
		for _, d := range ds {
			row.Deliveries = append(row.Deliveries, &adminv1.Delivery{
				Extension: subs[d.Subscription].Extension, Topic: subs[d.Subscription].Pattern, State: d.State.String(),
				Attempts: int32(d.Attempts), StartedAtUs: d.StartedAt, SettledAtUs: d.SettledAt, Uncertain: d.Uncertain,
				Reason: valid(d.Reason), ProviderId: d.ProviderID,
			})
		}
	}
	return rows, nil
}

// valid is a text as gRPC carries it.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
