package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// Get implements kernelv1.SessionsServer: an extension that may queue inputs gets any
// session, also by its agent and key; the others get those that they may read.
func (s sessionsService) Get(ctx context.Context, r *kernelv1.SessionRequest) (*kernelv1.Session, error) {
	a := actorOf(ctx)
	if !a.MayQueue() || r.GetSession() == "" && r.GetKey() == "" {
		return view(ctx, s.h, r.GetLane(), func(j journal.Reader, l *bus.Lease, out *kernelv1.Session) error {
			stored, err := readable(j, a, l, r.GetSession())
			return s.h.describe(j, stored, err, out)
		})
	}
	out := &kernelv1.Session{}
	return out, s.h.Bus.View(ctx, func(j journal.Reader) error {
		stored, err := j.Session(journal.ParseSessionID(r.GetSession()))
		if r.GetSession() == "" {
			stored, err = j.SessionByKey(r.GetAgent(), r.GetKey())
		}
		return s.h.describe(j, stored, err, out)
	})
}

// List implements kernelv1.SessionsServer.
func (s sessionsService) List(ctx context.Context, r *kernelv1.ListSessionsRequest,
) (*kernelv1.ListSessionsResponse, error) {
	return view(ctx, s.h, r.GetLane(), func(j journal.Reader, l *bus.Lease, out *kernelv1.ListSessionsResponse) error {
		var sessions []journal.Session
		a := actorOf(ctx)
		one, err := readable(j, a, l, r.GetSession())
		switch {
		case a.Sessions && r.GetSession() == "" && !inGroup(l, one):
			sessions, err = j.Sessions(journal.SessionFilter{Agent: r.GetAgent(), Limit: int(r.GetLimit())})
			sessions = slices.DeleteFunc(sessions, func(of journal.Session) bool {
				_, hidden := readable(j, a, l, journal.SessionID(of.ID))
				return hidden != nil
			})
		case one != nil && (r.GetAgent() == "" || r.GetAgent() == one.Agent):
			sessions = append(sessions, *one)
		}
		for i := range sessions {
			out.Sessions = append(out.Sessions, &kernelv1.Session{})
			if err := s.h.describe(j, &sessions[i], nil, out.GetSessions()[i]); err != nil {
				return err
			}
		}
		return err
	})
}

// History implements kernelv1.SessionsServer.
func (s sessionsService) History(ctx context.Context, r *kernelv1.HistoryRequest) (*kernelv1.HistoryResponse, error) {
	return view(ctx, s.h, r.GetLane(), func(j journal.Reader, l *bus.Lease, out *kernelv1.HistoryResponse) error {
		one, err := readable(j, actorOf(ctx), l, r.GetSession())
		if err != nil {
			return err
		}
		if limit := int(r.GetLimit()); limit > 0 {
			out.Entries, err = j.HistoryBefore(one.ID, r.GetBeforeSeq(), min(limit, mostRows))
			out.Truncated = len(out.Entries) > 0 && out.Entries[0].GetSeq() > 1
			return err
		}
		size := cmp.Or(max(0, r.GetMaxBytes()), defaultHistory)
		out.Entries, out.Truncated, err = j.History(one.ID, r.GetAfterSeq(), min(size, contract.MaxMessage/2))
		return err
	})
}

const (
	defaultHistory = 256 << 10
	mostRows       = 1000
)

// readable returns a session that the holder of a lease may read: its own, which needs
// no name, and with the grant any other, unless others can read its own.
func readable(j journal.Reader, a *bus.Actor, l *bus.Lease, named string) (*journal.Session, error) {
	own := journal.SessionID(l.Session)
	named = cmp.Or(named, own)
	s, err := j.Session(l.Session)
	switch {
	case err != nil:
		return nil, err
	case !a.Sessions && l.Session == 0:
		return nil, fmt.Errorf("%w: the lane belongs to no session", contract.ErrDenied)
	case !a.Sessions && named != own:
		return nil, fmt.Errorf("%w: the lane belongs to session %s, not to %s", contract.ErrDenied, own, named)
	case (named != own || s == nil) && inGroup(l, s):
		return nil, fmt.Errorf("%w: others can read this conversation, so no other session can be read from it",
			contract.ErrDenied)
	case named == own && s != nil:
		return s, nil
	}
	of, err := session.Find(j, named)
	if err != nil {
		return nil, err
	}
	p := l.For
	if s != nil {
		p, _, err = session.For(j, s, session.InputOf(l.Event).Person)
	} else if given := commandOf(l); given != nil {
		p = given.Caller()
	}
	whose, unknown := session.WhoseIs(j, of)
	if err = errors.Join(err, unknown); err == nil && !p.Sees(whose) {
		err = fmt.Errorf("%w: there is no session %q", contract.ErrNotFound, named)
	}
	return of, err
}

// inGroup reports whether others can read what the holder of a lease answers: in its
// own session or, without one, to a command or a call outside of any turn.
func inGroup(l *bus.Lease, own *journal.Session) bool {
	if own != nil {
		return own.Group
	}
	given := commandOf(l)
	return l.For.Group != "" || given != nil && given.Group
}

// commandOf returns the command that a lease is for; nil: it is for none.
func commandOf(l *bus.Lease) *contract.Command {
	if !strings.HasPrefix(l.Event.GetTopic(), contract.TopicCommand) {
		return nil
	}
	given := &contract.Command{}
	if json.Unmarshal(l.Event.GetPayload(), given) != nil {
		given.Group = true // it may be anyone's
	}
	return given
}

// describe fills in a stored session for the contract. The key of a chat, which holds
// an address, is left out.
func (h *Host) describe(j journal.Reader, s *journal.Session, err error, out *kernelv1.Session) error {
	if err != nil || s == nil {
		return errors.Join(err, contract.ErrNotFound)
	}
	state, err := h.Sessions.State(j, h.Bus, s)
	if err != nil {
		return err
	}
	out.Id, out.Agent, out.Key, out.State, out.Group = journal.SessionID(s.ID), s.Agent, s.Key, state.Name, s.Group
	out.Title = s.Title
	out.HistorySeq, out.CreatedAtUs, out.ActiveAtUs, out.UserAtUs = s.HistorySeq, s.CreatedAt, s.ActiveAt, s.UserAt
	if strings.HasPrefix(s.Key, "chan:") {
		out.Key = "chan"
	}
	if s.Conversation == 0 {
		return nil
	}
	c, err := j.Conversation(s.Conversation)
	if c != nil {
		out.Channel = c.Channel
	}
	return err
}
