package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// Event is a fact on the bus.
type Event struct {
	Seq         int64           `json:"seq" doc:"Total order of acceptance."`
	ID          string          `json:"id"`
	Topic       string          `json:"topic"`
	Key         string          `json:"key,omitempty" doc:"Events with the same key are handled in order."`
	Source      string          `json:"source" doc:"The extension that published it, or kernel."`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Correlation string          `json:"correlation_id,omitempty" doc:"The event that began the chain."`
	Causation   string          `json:"causation_id,omitempty" doc:"The event that led to this one."`
	Hop         int32           `json:"hop,omitempty"`
	Dedupe      string          `json:"dedupe_key,omitempty"`
	At          *time.Time      `json:"at,omitempty"`
	Deliveries  []Delivery      `json:"deliveries,omitempty" doc:"In lists only."`
}

// Delivery is one event for one extension.
type Delivery struct {
	Extension  string     `json:"extension"`
	Topic      string     `json:"topic" doc:"The pattern of the subscription."`
	State      string     `json:"state" doc:"pending, in flight, done, dead"`
	Attempts   int32      `json:"attempts" doc:"That failed."`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	SettledAt  *time.Time `json:"settled_at,omitempty"`
	Uncertain  bool       `json:"uncertain" doc:"An attempt may have had its effect."`
	Reason     string     `json:"reason,omitempty"`
	ProviderID string     `json:"provider_id,omitempty" doc:"The platform's id of what was sent."`
}

type eventQuery struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"Events in a page."`
	Cursor string `query:"cursor" maxLength:"1000" doc:"The next of the page before."`
	Topic  string `query:"topic" maxLength:"300" doc:"Only these: a topic, or a pattern such as channel.send.*"`
	After  after  `query:"after" doc:"A stream begins after this seq; absent: with the next event."`
	LastID after  `header:"Last-Event-ID" doc:"The id of the last event that was received: the stream continues after it."`
	Accept string `header:"Accept" hidden:"true"`
	follow bool
}

// after is a sequence number that may be given.
type after struct {
	Seq int64
	Set bool
}

// Receiver implements huma.ParamWrapper.
func (n *after) Receiver() reflect.Value { return reflect.ValueOf(n).Elem().Field(0) }

// OnParamSet implements huma.ParamReactor.
func (n *after) OnParamSet(set bool, _ any) { n.Set = set }

// Schema implements huma.SchemaProvider.
func (*after) Schema(huma.Registry) *huma.Schema {
	least := 0.0
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &least}
}

// eventSearch is how many of the newest events a page of one topic is searched in: a store
// may have millions.
const eventSearch = 200_000

func (a *api) events(h huma.API) {
	list := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Page[Event]](), true, "")
	ok := streamResponse("Events. In a stream each has its seq as id, and itself as data.")
	ok.Content["application/json"] = &huma.MediaType{Schema: list}
	add(h, op{
		method: http.MethodGet, path: "/events", id: "list-events", tag: "events", scope: door.ScopeEvents, long: true,
		summary: "Follow the events (SSE), or list them, the newest first",
		about: "A stream of server-sent events, or with Accept: application/json, limit or cursor a list. A client that " +
			"comes back with Last-Event-ID gets each later event once, as long as events are kept. A list of one topic is " +
			"searched in the newest 200,000 events.",
		responses: map[string]*huma.Response{"200": ok},
	}, a.getEvents)
	add(h, op{
		method: http.MethodGet, path: "/events/{id}", id: "get-event", tag: "events", scope: door.ScopeEvents,
		summary: "Show an event with its deliveries",
	}, func(ctx context.Context, _ door.Visitor, in *ByID) (*eventResponse, error) {
		e, err := admin.EventByID(ctx, a.Read, in.ID)
		if err != nil {
			return nil, err
		}
		return &eventResponse{eventOf(e)}, nil
	})
}

type eventResponse struct{ Body Event }

// Resolve implements huma.Resolver: it notes whether a page is asked for.
func (q *eventQuery) Resolve(c huma.Context) []error {
	page := c.Query("limit") != "" || c.Query("cursor") != "" || strings.Contains(q.Accept, "application/json")
	q.follow = wantsStream(q.Accept) || q.LastID.Set || !page
	return nil
}

func (a *api) getEvents(ctx context.Context, v door.Visitor, in *eventQuery) (*streaming, error) {
	serve, leave := a.listEvents, func() {}
	if in.follow {
		var err error
		if leave, err = a.enter(v); err != nil {
			return nil, err
		}
		serve = a.followEvents
	}
	return &streaming{func(c huma.Context) {
		defer leave()
		if err := serve(ctx, c, in); err != nil {
			_, w := humago.Unwrap(c)
			writeProblem(w, asProblem(problemOf(err)))
		}
	}}, nil
}

// listEvents writes a page.
func (a *api) listEvents(ctx context.Context, c huma.Context, in *eventQuery) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last, err := admin.LastSeq(ctx, a.Read)
	if err != nil {
		return err
	}
	q := &adminv1.EventsRequest{Topic: in.Topic, Before: last + 1, Limit: int32(in.Limit + 1)} //nolint:gosec // bounded
	if err := (Paging{Cursor: in.Cursor}).at(&q.Before); err != nil {
		return err
	}
	if in.Topic != "" && in.Topic != "*" {
		q.After = max(0, q.GetBefore()-eventSearch)
	}
	found, err := admin.WithDeliveries(ctx, a.Read, q)
	if err != nil {
		return err
	}
	page := Page[Event]{Items: []Event{}}
	for _, e := range found[:min(len(found), in.Limit)] {
		page.Items = append(page.Items, eventOf(e))
	}
	if len(found) > in.Limit {
		page.Next = cursor(page.Items[in.Limit-1].Seq)
	}
	c.SetHeader("Content-Type", "application/json")
	return json.NewEncoder(c.BodyWriter()).Encode(page)
}

// followEvents writes the stream. An error comes before its first byte.
func (a *api) followEvents(ctx context.Context, c huma.Context, in *eventQuery) error {
	var from int64
	switch {
	case in.LastID.Set:
		from = in.LastID.Seq
	case in.After.Set:
		from = in.After.Seq
	default:
		last, err := admin.LastSeq(ctx, a.Read)
		if err != nil {
			return err
		}
		from = last
	}
	s := newSSE(c)
	if err := s.begin(from); err != nil {
		return nil //nolint:nilerr // the client is gone
	}
	err := relay(ctx, a, door.From(ctx), s, func(ctx context.Context, yield func(*busv1.Event) bool) error {
		events, err := a.Read.Events(ctx, &adminv1.EventsRequest{
			Topic: in.Topic, After: from, Follow: true, Limit: math.MaxInt32,
		})
		for err == nil {
			var e *busv1.Event
			if e, err = events.Recv(); err == nil && !yield(e) {
				return nil
			}
		}
		return err
	}, func(e *busv1.Event) error {
		return s.send(e.GetSeq(), "", eventOf(admin.Event{Event: e}))
	})
	if ctx.Err() == nil && a.Closing.Err() == nil && !errors.Is(err, io.EOF) {
		a.Log.Debug("a stream of events has ended; its client comes back", "error", err)
	}
	return nil
}

func eventOf(e admin.Event) Event {
	x := Event{
		Seq: e.GetSeq(), ID: e.GetId(), Topic: e.GetTopic(), Key: e.GetKey(), Source: e.GetSource(), Payload: e.GetPayload(),
		Correlation: e.GetCorrelationId(), Causation: e.GetCausationId(), Hop: e.GetHop(), Dedupe: e.GetDedupeKey(),
		At: moment(e.GetCreatedAtUs()),
	}
	for _, d := range e.Deliveries {
		x.Deliveries = append(x.Deliveries, Delivery{
			Extension: d.GetExtension(), Topic: d.GetTopic(), State: d.GetState(), Attempts: d.GetAttempts(),
			StartedAt: moment(d.GetStartedAtUs()), SettledAt: moment(d.GetSettledAtUs()), Uncertain: d.GetUncertain(),
			Reason: d.GetReason(), ProviderID: d.GetProviderId(),
		})
	}
	return x
}
