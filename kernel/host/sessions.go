package host

import (
	"context"
	"errors"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Get implements kernelv1.SessionsServer: of its own session whoever holds the
// lane, of any whoever may queue inputs there, by its agent and key, too. Nothing
// that was said is in it.
func (s sessionsService) Get(ctx context.Context, r *kernelv1.SessionRequest) (*kernelv1.Session, error) {
	id, named := journal.ParseSessionID(r.GetSession()), r.GetKey() != ""
	if !actorOf(ctx).MayQueue() || id == 0 && !named {
		var err error
		if id, err = s.h.own(ctx, r.GetLane(), r.GetSession()); err != nil {
			return nil, err
		}
	}
	var found *kernelv1.Session
	return found, s.h.Bus.View(ctx, func(j journal.Reader) error {
		var stored *journal.Session
		var err error
		if id != 0 {
			stored, err = j.Session(id)
		} else {
			stored, err = j.SessionByKey(r.GetAgent(), r.GetKey())
		}
		if err != nil || stored == nil {
			return errors.Join(err, contract.ErrNotFound)
		}
		found, err = s.h.session(j, stored)
		return err
	})
}

// List implements kernelv1.SessionsServer: an agent sees others than the session
// whose lane it holds if it may use core/list_sessions.
func (s sessionsService) List(ctx context.Context, r *kernelv1.ListSessionsRequest) (*kernelv1.ListSessionsResponse, error) {
	l, err := s.h.lease(ctx, r.GetLane())
	if err != nil {
		return nil, err
	}
	out := &kernelv1.ListSessionsResponse{}
	return out, s.h.Bus.View(ctx, func(j journal.Reader) error {
		others, err := s.h.Tools.SeesOtherSessions(j, l)
		if err != nil {
			return err
		}
		var sessions []journal.Session
		if others {
			sessions, err = j.Sessions(journal.SessionFilter{Agent: r.GetAgent(), Limit: int(r.GetLimit())})
		} else if own, e := j.Session(l.Session); own != nil {
			sessions = append(sessions, *own)
		} else {
			err = e
		}
		if err != nil {
			return err
		}
		for i := range sessions {
			found, err := s.h.session(j, &sessions[i])
			if err != nil {
				return err
			}
			out.Sessions = append(out.Sessions, found)
		}
		return nil
	})
}

// session is a stored session as the contract shows it. The key of a chat holds
// an address, and is not told.
func (h *Host) session(j journal.Reader, s *journal.Session) (*kernelv1.Session, error) {
	state, err := h.Sessions.State(j, h.Bus, s)
	if err != nil {
		return nil, err
	}
	out := &kernelv1.Session{
		Id: journal.SessionID(s.ID), Agent: s.Agent, Key: s.Key, State: state.Name, HistorySeq: s.HistorySeq,
		CreatedAtUs: s.CreatedAt, ActiveAtUs: s.ActiveAt, UserAtUs: s.UserAt,
	}
	if strings.HasPrefix(s.Key, "chan:") {
		out.Key = "chan"
	}
	if s.Conversation == 0 {
		return out, nil
	}
	c, err := j.Conversation(s.Conversation)
	if c != nil {
		out.Channel = c.Channel
	}
	return out, err
}
