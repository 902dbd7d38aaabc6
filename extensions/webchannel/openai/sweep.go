package openaiapi

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
)

// sweepEvery is how often expired conversations are looked for.
const sweepEvery = 10 * time.Minute

// sweep deletes expired conversations until ctx is done.
func (s *server) sweep(ctx context.Context) {
	for {
		if err := s.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("delete expired conversations of API clients: they are tried again", "error", err)
		}
		timer := time.NewTimer(sweepEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (s *server) sweepOnce(ctx context.Context) error {
	type found struct {
		record
		version int64
	}
	var expired []found
	now := s.Now().Unix()
	err := s.Store.Scan(ctx, recordPrefix, func(v sdk.Value) error {
		r := found{version: v.Version}
		if err := v.Decode(&r.record); err != nil {
			return err
		}
		if r.Expires != 0 && r.Expires <= now {
			expired = append(expired, r)
		}
		return nil
	})
	for _, r := range expired {
		if err != nil {
			break
		}
		if err = s.forget(ctx, r.record); err == nil {
			_, err = s.Store.Commit(ctx, sdk.DeleteAt(r.key(), r.version))
		}
	}
	return err
}

// forget deletes the sessions and the lines of a conversation.
func (s *server) forget(ctx context.Context, r record) error {
	v := door.Visitor{User: r.User}
	sessions := map[string]bool{}
	for after := int64(0); ; {
		const page = 100
		lines, err := s.Chat.Lines(ctx, v, r.Name, after, 0, page)
		if err != nil {
			return err
		}
		for _, l := range lines {
			after = l.Seq
			if l.Session != "" {
				sessions[l.Session] = true
			}
			if l.Mine && l.Event != "" {
				if err := s.sessionsOf(ctx, l.Event, sessions); err != nil {
					return err
				}
			}
		}
		if len(lines) < page {
			break
		}
	}
	for id := range sessions {
		if err := s.deleteSession(ctx, id, r); err != nil {
			return err
		}
	}
	return s.Chat.Delete(ctx, v, r.Name)
}

// sessionsOf adds the session that a message went to.
func (s *server) sessionsOf(ctx context.Context, event string, sessions map[string]bool) error {
	said, err := read(s.Read.Events(ctx, &adminv1.EventsRequest{Ids: []string{event}}))
	if err != nil || len(said) == 0 {
		return err
	}
	const near = 100
	next, err := read(s.Read.Events(ctx, &adminv1.EventsRequest{
		After: said[0].GetSeq(), CorrelationId: event, Topic: contract.TopicAgentInput + "*", Ascending: true, Limit: near,
	}))
	for _, e := range next {
		var in contract.AgentInput
		if e.GetCausationId() == event && json.Unmarshal(e.GetPayload(), &in) == nil && in.Session != "" {
			sessions[in.Session] = true
		}
	}
	return err
}

// deleteSession deletes a session if it is one of the conversation.
func (s *server) deleteSession(ctx context.Context, id string, r record) error {
	rows, err := s.Read.Sessions(ctx, &adminv1.SessionsRequest{Ids: []string{id}})
	if err != nil {
		return err
	}
	row, err := rows.Recv()
	if err != nil || row.GetThread() != r.Name || !strings.HasPrefix(r.Name, "api~") {
		return nil //nolint:nilerr // it is gone, or another one
	}
	_, err = s.Manage.DeleteSession(ctx, &adminv1.DeleteSessionRequest{Id: id})
	return err
}
