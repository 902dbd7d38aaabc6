package admin

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/router"
)

// Sessions implements adminv1.ReadServer.
func (s *Service) Sessions(ctx context.Context, q *adminv1.SessionsRequest) (*adminv1.SessionsResponse, error) {
	all := &adminv1.SessionsResponse{}
	return all, s.Bus.View(ctx, func(r journal.Reader) (err error) {
		var found []journal.Session
		add := func(one *journal.Session, err error) error {
			if one != nil {
				found = append(found, *one)
			}
			return err
		}
		for _, id := range q.GetIds() {
			if err := add(r.Session(journal.ParseSessionID(id))); err != nil {
				return err
			}
		}
		switch {
		case len(q.GetIds()) > 0:
		case q.GetKey() != "":
			err = add(r.SessionByKey(q.GetAgent(), q.GetKey()))
		default:
			found, err = r.Sessions(journal.SessionFilter{Agent: q.GetAgent(), Limit: int(q.GetLimit())})
		}
		for i := 0; i < len(found) && err == nil; i++ {
			var row *adminv1.Session
			row, err = s.sessionRow(r, &found[i])
			all.Sessions = append(all.Sessions, row)
		}
		return err
	})
}

func (s *Service) sessionRow(r journal.Reader, one *journal.Session) (*adminv1.Session, error) {
	x := &adminv1.Session{
		Id: journal.SessionID(one.ID), Agent: one.Agent, Key: one.Key, Group: one.Group, Rows: one.HistorySeq, OpenTurns: one.Stack,
		CreatedAtUs: one.CreatedAt, ActiveAtUs: one.ActiveAt,
	}
	if agent := s.Known.Current().Agent(one.Agent); agent != nil {
		x.Memory = agent.Spec.GetMemory()
	}
	state, err := s.Store.State(r, s.Bus, one)
	if err != nil {
		return nil, err
	}
	newest, _, err := r.History(one.ID, 0, 1)
	if err != nil {
		return nil, err
	}
	if len(newest) > 0 {
		x.Last = beginning(newest[len(newest)-1].GetText())
	}
	oldest, err := r.HistoryBefore(one.ID, 2, 1)
	if err != nil {
		return nil, err
	}
	if len(oldest) > 0 {
		x.BegunBy = oldest[0].GetSender()
	}
	x.State, x.Turns, x.Waiting = state.Name, int32(state.Turns), int32(state.Waiting)
	if one.Conversation == 0 {
		return x, nil
	}
	c, err := r.Conversation(one.Conversation)
	if err == nil && c != nil {
		x.Channel, x.Conversation, x.Thread, x.Ended = c.Channel, c.Address, c.Thread, one.Key != router.ChatKey(c)
	}
	return x, err
}

const beginningRunes = 80

func beginning(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > beginningRunes {
		return string(r[:beginningRunes-1]) + "…"
	}
	return s
}

// History implements adminv1.ReadServer.
func (s *Service) History(q *adminv1.HistoryRequest, out adminv1.Read_HistoryServer) error {
	var rows []*busv1.Entry
	if err := s.Bus.View(out.Context(), func(r journal.Reader) error {
		one, err := r.Session(journal.ParseSessionID(q.GetSession()))
		switch {
		case err != nil:
			return err
		case one == nil:
			return fmt.Errorf("%w: there is no session %q", contract.ErrNotFound, q.GetSession())
		}
		rows, _, err = r.History(one.ID, 0, math.MaxInt64)
		return err
	}); err != nil {
		return err
	}
	for _, row := range rows {
		if len(q.GetTurns()) > 0 && !slices.Contains(q.GetTurns(), row.GetTurn()) {
			continue
		}
		e := &adminv1.Entry{
			Seq: row.GetSeq(), AtUs: row.GetCreatedAtUs(), Kind: row.GetKind(), Turn: row.GetTurn(), Input: row.GetInput(),
			InputKind: row.GetInputKind(), Sender: row.GetSender(), Model: row.GetModel(), Text: row.GetText(), CallId: row.GetCallId(),
			IsError: row.GetIsError(),
		}
		for _, c := range row.GetCalls() {
			e.Calls = append(e.Calls, &adminv1.ToolCall{Id: c.GetCallId(), Name: c.GetName(), Arguments: valid(string(c.GetArguments()))})
		}
		if err := out.Send(e); err != nil {
			return err
		}
	}
	return nil
}

// Turns implements adminv1.ReadServer.
func (s *Service) Turns(ctx context.Context, q *adminv1.TurnsRequest) (*adminv1.TurnsResponse, error) {
	all := &adminv1.TurnsResponse{}
	return all, s.Bus.View(ctx, func(r journal.Reader) error {
		for _, id := range q.GetIds() {
			t, err := r.Turn(id)
			if err != nil {
				return err
			}
			if t == nil {
				continue
			}
			x := &adminv1.Turn{
				Id: t.ID, Session: journal.SessionID(t.Session), Outcome: t.Outcome, StartedAtUs: t.StartedAt, EndedAtUs: t.EndedAt,
			}
			for _, seq := range t.Inputs {
				x.Inputs = append(x.Inputs, journal.EventID(seq))
			}
			all.Turns = append(all.Turns, x)
		}
		return nil
	})
}

// Calls implements adminv1.ReadServer.
func (s *Service) Calls(q *adminv1.CallsRequest, out adminv1.Read_CallsServer) error {
	for _, id := range q.GetIds() {
		var c *journal.Call
		if err := s.Bus.View(out.Context(), func(r journal.Reader) (err error) {
			c, err = r.Call(journal.ParseCallID(id))
			return err
		}); err != nil {
			return err
		}
		if c == nil {
			continue
		}
		if err := out.Send(&adminv1.Call{
			Id: id, Session: journal.SessionID(c.Session), Turn: c.Turn, Name: c.Name, Arguments: valid(string(c.Arguments)),
			State: c.State.String(), Result: valid(c.Result), IsError: c.IsError, StartedAtUs: c.StartedAt, EndedAtUs: c.EndedAt,
		}); err != nil {
			return err
		}
	}
	return nil
}

// Usage implements adminv1.ReadServer.
func (s *Service) Usage(ctx context.Context, q *adminv1.UsageRequest) (*adminv1.UsageResponse, error) {
	rows, from, err := s.Ledger.Rows(ctx, int(q.GetDays()))
	all := &adminv1.UsageResponse{FromUs: from.UnixMicro()}
	for _, r := range rows {
		all.Rows = append(all.Rows, &adminv1.Usage{
			Day: r.Day, Agent: r.Agent, Model: r.Model, Calls: r.Calls, InputTokens: r.Input, OutputTokens: r.Output, CachedTokens: r.Cached, EstimatedCalls: r.Estimated,
		})
	}
	return all, err
}
