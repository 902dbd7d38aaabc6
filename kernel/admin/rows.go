package admin

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/session"
)

const defaultLimit = 100

// Events implements adminv1.ReadServer.
func (s *Service) Events(q *adminv1.EventsRequest, out adminv1.Read_EventsServer) error {
	pattern := strings.TrimPrefix(q.GetTopic(), "*")
	switch {
	case pattern != "" && !topic.ValidPattern(pattern):
		return fmt.Errorf("%w: %q is not a topic or a pattern such as channel.send.*", contract.ErrInvalid, pattern)
	case len(q.GetIds()) > 0:
		return each(s, out, q.GetIds(), func(r journal.Reader, id string) (*busv1.Event, error) {
			return r.Event(journal.ParseEventID(id))
		})
	case q.GetDedupeKey() != "":
		return each(s, out, []string{q.GetDedupeKey()}, func(r journal.Reader, key string) (*busv1.Event, error) {
			seq, _, err := r.EventByDedupe(q.GetSource(), key)
			if err != nil {
				return nil, err
			}
			return r.Event(seq)
		})
	}
	f := journal.EventFilter{
		After: max(0, q.GetAfter()), Before: q.GetBefore(), Topic: pattern, Correlation: q.GetCorrelationId(),
		Ascending: q.GetAscending(), Limit: cmp.Or(int(max(0, q.GetLimit())), defaultLimit),
	}
	err := s.Bus.Events(out.Context(), s.Bus.View, f, q.GetFollow(), out.Send)
	if err == nil && q.GetFollow() {
		err = fmt.Errorf("%w: the kernel has stopped", contract.ErrGone)
	}
	return err
}

// Deliveries implements adminv1.ReadServer.
func (s *Service) Deliveries(q *adminv1.DeliveriesRequest, out adminv1.Read_DeliveriesServer) error {
	f := journal.DeliveryFilter{ProviderID: q.GetProviderId(), After: q.GetAfter(), Limit: int(q.GetLimit())}
	if q.GetDead() {
		f.States = []journal.DeliveryState{journal.Dead}
	}
	return send(s, out, func(r journal.Reader) (rows []*adminv1.Delivery, err error) {
		var found []journal.Delivery
		if len(q.GetEvents()) == 0 {
			found, err = r.Deliveries(f)
		}
		for _, id := range q.GetEvents() {
			if f.Seq = journal.ParseEventID(id); f.Seq > 0 && err == nil {
				var some []journal.Delivery
				some, err = r.Deliveries(f)
				found = append(found, some...)
			}
		}
		if err != nil {
			return nil, err
		}
		subscriptions, err := r.Subscriptions()
		for _, d := range found {
			row := &adminv1.Delivery{
				Event: journal.EventID(d.Seq), State: d.State.String(), Attempts: int32(d.Attempts),
				StartedAtUs: d.StartedAt, SettledAtUs: d.SettledAt, Uncertain: d.Uncertain, Reason: valid(d.Reason),
				ProviderId: d.ProviderID,
			}
			is := func(x journal.Subscription) bool { return x.ID == d.Subscription }
			if i := slices.IndexFunc(subscriptions, is); i >= 0 {
				row.Extension, row.Topic = subscriptions[i].Extension, subscriptions[i].Pattern
			}
			rows = append(rows, row)
		}
		return rows, err
	})
}

// Sessions implements adminv1.ReadServer.
func (s *Service) Sessions(q *adminv1.SessionsRequest, out adminv1.Read_SessionsServer) error {
	switch {
	case len(q.GetIds()) > 0:
		return each(s, out, q.GetIds(), func(r journal.Reader, id string) (*adminv1.Session, error) {
			one, err := r.Session(journal.ParseSessionID(id))
			return s.session(r, one, err)
		})
	case q.GetKey() != "":
		return each(s, out, []string{q.GetKey()}, func(r journal.Reader, key string) (*adminv1.Session, error) {
			one, err := r.SessionByKey(q.GetAgent(), key)
			return s.session(r, one, err)
		})
	}
	return send(s, out, func(r journal.Reader) (rows []*adminv1.Session, err error) {
		found, err := r.Sessions(journal.SessionFilter{Agent: q.GetAgent(), Limit: int(q.GetLimit())})
		for i := 0; i < len(found) && err == nil; i++ {
			var row *adminv1.Session
			row, err = s.session(r, &found[i], nil)
			rows = append(rows, row)
		}
		return rows, err
	})
}

func (s *Service) session(r journal.Reader, one *journal.Session, err error) (*adminv1.Session, error) {
	if err != nil || one == nil {
		return nil, err
	}
	state, err := s.Store.State(r, s.Bus, one)
	if err != nil {
		return nil, err
	}
	row := &adminv1.Session{
		Id: journal.SessionID(one.ID), Agent: one.Agent, Key: one.Key, Title: one.Title, Group: one.Group,
		State: state.Name, Turns: int32(state.Turns), Waiting: int32(state.Waiting), OpenTurns: one.Stack,
		Rows: one.HistorySeq, CreatedAtUs: one.CreatedAt, ActiveAtUs: one.ActiveAt,
	}
	if one.Within != 0 {
		row.Within = journal.SessionID(one.Within)
	}
	c, err := r.Conversation(one.Conversation)
	if c != nil {
		row.Channel, row.Conversation, row.Thread = c.Channel, c.Address, c.Thread
		row.Ended = one.Key != router.ChatKey(c)
	}
	return row, err
}

// History implements adminv1.ReadServer.
func (s *Service) History(q *adminv1.HistoryRequest, out adminv1.Read_HistoryServer) error {
	return send(s, out, func(r journal.Reader) ([]*busv1.Entry, error) {
		one, err := session.Find(r, q.GetSession())
		if err != nil {
			return nil, err
		}
		rows, err := r.HistoryBefore(one.ID, q.GetBefore(), cmp.Or(int(max(0, q.GetLimit())), math.MaxInt32))
		return slices.DeleteFunc(rows, func(row *busv1.Entry) bool {
			return len(q.GetTurns()) > 0 && !slices.Contains(q.GetTurns(), row.GetTurn())
		}), err
	})
}

// Turns implements adminv1.ReadServer.
func (s *Service) Turns(q *adminv1.TurnsRequest, out adminv1.Read_TurnsServer) error {
	return each(s, out, q.GetIds(), func(r journal.Reader, id int64) (*adminv1.Turn, error) {
		t, err := r.Turn(id)
		if err != nil || t == nil {
			return nil, err
		}
		row := &adminv1.Turn{
			Id: id, Session: journal.SessionID(t.Session), Outcome: t.Outcome,
			StartedAtUs: t.StartedAt, EndedAtUs: t.EndedAt,
		}
		for _, seq := range t.Inputs {
			row.Inputs = append(row.Inputs, journal.EventID(seq))
		}
		return row, nil
	})
}

// Calls implements adminv1.ReadServer.
func (s *Service) Calls(q *adminv1.CallsRequest, out adminv1.Read_CallsServer) error {
	return each(s, out, q.GetIds(), func(r journal.Reader, id string) (*adminv1.Call, error) {
		c, err := r.Call(journal.ParseCallID(id))
		if err != nil || c == nil {
			return nil, err
		}
		return &adminv1.Call{
			Id: id, Session: journal.SessionID(c.Session), Turn: c.Turn, Name: c.Name, Arguments: c.Arguments,
			State: c.State.String(), Result: valid(c.Result), IsError: c.IsError,
			StartedAtUs: c.StartedAt, EndedAtUs: c.EndedAt,
		}, nil
	})
}

// Usage implements adminv1.ReadServer.
func (s *Service) Usage(ctx context.Context, q *adminv1.UsageRequest) (*adminv1.UsageResponse, error) {
	rows, from, err := s.Ledger.Rows(ctx, int(q.GetDays()))
	all := &adminv1.UsageResponse{FromUs: from.UnixMicro(), Currency: s.Known.Current().Currency}
	for _, r := range rows {
		all.Rows = append(all.Rows, &adminv1.Usage{
			Day: r.Day, Agent: r.Agent, Person: r.Person, Model: r.Model, Calls: r.Calls,
			InputTokens: r.Input, OutputTokens: r.Output,
			CachedTokens: r.Cached, EstimatedCalls: r.Estimated, CostMicros: r.Costs[all.Currency], Costs: r.Costs,
		})
	}
	return all, err
}
