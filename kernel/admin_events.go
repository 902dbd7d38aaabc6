package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/control"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/trace"
)

// page is how many events are read at once.
const page = 500

// everything is the pattern of all topics, the kernel's included.
const everything = ""

func checkPattern(pattern string) error {
	if pattern == everything || pattern == "*" || topic.ValidPattern(pattern) {
		return nil
	}
	return fmt.Errorf("%w: %q is no topic and no pattern such as channel.send.*", contract.ErrInvalid, pattern)
}

func matches(pattern, name string) bool {
	return pattern == everything || pattern == "*" || topic.Match(pattern, name)
}

// Events implements control.Kernel.
func (a admin) Events(ctx context.Context, q control.EventQuery) ([]control.Event, error) {
	events := []control.Event{}
	if err := checkPattern(q.Topic); err != nil {
		return nil, err
	}
	return events, a.bus.View(ctx, func(r journal.Reader) error {
		newest, err := newestEvents(r, q)
		if err != nil {
			return err
		}
		events, err = showEvents(r, newest)
		return err
	})
}

// newestEvents are the newest that match, the oldest of them first. A topic is
// looked for among the newest control.Searched.
func newestEvents(r journal.Reader, q control.EventQuery) (found []*busv1.Event, err error) {
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	last, err := r.LastSeq()
	if err != nil {
		return nil, err
	}
	f := journal.EventFilter{Topic: q.Topic, After: last - control.Searched, Limit: page}
	if q.Topic == everything || q.Topic == "*" {
		f = journal.EventFilter{Limit: page}
	}
	for len(found) < limit {
		events, err := r.Events(f)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if len(found) < limit && matches(q.Topic, e.GetTopic()) {
				found = append(found, e)
			}
		}
		if len(events) < page {
			break
		}
		f.Before = events[len(events)-1].GetSeq()
	}
	slices.Reverse(found)
	return found, nil
}

// Follow implements control.Kernel. The watcher says only that there is
// something new: what it is, is read, so that a slow reader misses nothing.
func (a admin) Follow(ctx context.Context, q control.EventQuery, each func(control.Event) error) error {
	if err := checkPattern(q.Topic); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	w := a.bus.Watch(watching)
	var last int64
	var events []control.Event
	err := a.bus.View(ctx, func(r journal.Reader) error {
		seq, err := r.LastSeq()
		if last = seq; err != nil || q.Limit < 0 {
			return err
		}
		newest, err := newestEvents(r, q)
		if err == nil {
			events, err = showEvents(r, newest)
		}
		return err
	})
	for err == nil {
		// Outside of the view: a reader that stops reading must not hold it.
		for _, e := range events {
			if err := each(e); err != nil {
				return err
			}
		}
		full := false
		if events, full, err = a.after(ctx, &last, q.Topic); full || err != nil || len(events) > 0 {
			continue
		}
		if _, more := <-w.Events(); !more {
			if !errors.Is(w.Err(), bus.ErrSlow) {
				return w.Err()
			}
			w = a.bus.Watch(watching)
		}
	}
	return err
}

// after reads a page of the events behind last, and says whether there may be
// more.
func (a admin) after(ctx context.Context, last *int64, pattern string) (shown []control.Event, full bool, err error) {
	return shown, full, a.bus.View(ctx, func(r journal.Reader) error {
		events, err := r.Events(journal.EventFilter{After: *last, Limit: page, Ascending: true})
		if err != nil || len(events) == 0 {
			return err
		}
		full = len(events) == page
		*last = events[len(events)-1].GetSeq()
		shown, err = showEvents(r, slices.DeleteFunc(events, func(e *busv1.Event) bool { return !matches(pattern, e.GetTopic()) }))
		return err
	})
}

// showEvents adds what became of the events.
func showEvents(r journal.Reader, events []*busv1.Event) ([]control.Event, error) {
	shown := make([]control.Event, 0, len(events))
	subs, err := subscribers(r)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		x := control.Event{
			ID: e.GetId(), At: time.UnixMicro(e.GetCreatedAtUs()), Topic: e.GetTopic(), Key: e.GetKey(), Source: e.GetSource(),
			Correlation: e.GetCorrelationId(), Causation: e.GetCausationId(), Hop: e.GetHop(), DedupeKey: e.GetDedupeKey(),
			Payload: json.RawMessage(e.GetPayload()), Deliveries: []control.Delivery{},
		}
		ds, err := r.Deliveries(journal.DeliveryFilter{Seq: e.GetSeq()})
		if err != nil {
			return nil, err
		}
		for _, d := range ds {
			s := subs[d.Subscription]
			x.Deliveries = append(x.Deliveries, control.Delivery{
				Extension: s.Extension, Topic: s.Pattern, State: d.State.String(), Attempts: d.Attempts, StartedAt: microseconds(d.StartedAt),
				SettledAt: microseconds(d.SettledAt), Uncertain: d.Uncertain, Reason: d.Reason, ProviderID: d.ProviderID,
			})
		}
		shown = append(shown, x)
	}
	return shown, nil
}

func subscribers(r journal.Reader) (map[int64]journal.Subscription, error) {
	known, err := r.Subscriptions()
	subs := make(map[int64]journal.Subscription, len(known))
	for _, s := range known {
		subs[s.ID] = s
	}
	return subs, err
}

func readEvent(r journal.Reader, id string) (*busv1.Event, error) {
	e, err := r.Event(journal.ParseEventID(id))
	if err == nil && e == nil {
		err = fmt.Errorf("%w: there is no event %q (any more): `switchboard events tail` shows the newest", contract.ErrNotFound, id)
	}
	return e, err
}

// Event implements control.Kernel.
func (a admin) Event(ctx context.Context, id string) (x control.Event, err error) {
	return x, a.bus.View(ctx, func(r journal.Reader) error {
		e, err := readEvent(r, id)
		if err != nil {
			return err
		}
		shown, err := showEvents(r, []*busv1.Event{e})
		if err == nil {
			x = shown[0]
		}
		return err
	})
}

// DeadLetters implements control.Kernel.
func (a admin) DeadLetters(ctx context.Context, limit int) ([]control.DeadLetter, error) {
	letters := []control.DeadLetter{}
	return letters, a.bus.View(ctx, func(r journal.Reader) error {
		subs, err := subscribers(r)
		if err != nil {
			return err
		}
		dead, err := r.Deliveries(journal.DeliveryFilter{States: []journal.DeliveryState{journal.Dead}, Limit: limit})
		if err != nil {
			return err
		}
		for _, d := range dead {
			e, err := r.Event(d.Seq)
			if err != nil {
				return err
			}
			letters = append(letters, control.DeadLetter{
				Event: journal.EventID(d.Seq), Topic: e.GetTopic(), Extension: subs[d.Subscription].Extension, At: time.UnixMicro(e.GetCreatedAtUs()),
				DiedAt: time.UnixMicro(d.SettledAt), Attempts: d.Attempts, Reason: d.Reason,
			})
		}
		return nil
	})
}

// Resubmit implements control.Kernel.
func (a admin) Resubmit(ctx context.Context, id string) (int, error) {
	var e *busv1.Event
	if err := a.bus.View(ctx, func(r journal.Reader) (err error) {
		e, err = readEvent(r, id)
		return err
	}); err != nil {
		return 0, err
	}
	again := 0
	if err := a.bus.Do(func(tx *bus.Tx) (err error) {
		again, err = a.router.Again(tx, e)
		return err
	}); err != nil || again > 0 {
		return again, err
	}
	return a.bus.Resubmit(e.GetSeq())
}

// Trace implements control.Kernel.
func (a admin) Trace(ctx context.Context, id string) (t *trace.Trace, err error) {
	return t, a.bus.View(ctx, func(r journal.Reader) (err error) {
		t, err = trace.Build(r, id)
		return err
	})
}

// Reached implements control.Kernel.
func (a admin) Reached(ctx context.Context, events []trace.Ref) (reached []trace.Reach, err error) {
	if len(events) > control.MaxReached {
		return nil, fmt.Errorf("%w: %d events are too many at once: ask for at most %d", contract.ErrInvalid, len(events), control.MaxReached)
	}
	return reached, a.bus.View(ctx, func(r journal.Reader) (err error) {
		reached, err = trace.Reached(r, events)
		return err
	})
}
