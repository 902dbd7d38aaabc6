package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Get implements kernelv1.SessionsServer: an extension that may queue inputs gets any
// session, also by its agent and key; the others get those that they may read.
func (s sessionsService) Get(ctx context.Context, r *kernelv1.SessionRequest) (*kernelv1.Session, error) {
	id, a := journal.ParseSessionID(r.GetSession()), actorOf(ctx)
	if !a.MayQueue() || id == 0 && r.GetKey() == "" {
		return view(ctx, s.h, r.GetLane(), func(j journal.Reader, l *bus.Lease, out *kernelv1.Session) error {
			id := cmp.Or(id, l.Session)
			if err := mayRead(j, a, l, id, r.GetSession()); err != nil {
				return err
			}
			stored, err := j.Session(id)
			return s.h.describe(j, stored, err, out)
		})
	}
	out := &kernelv1.Session{}
	return out, s.h.Bus.View(ctx, func(j journal.Reader) (err error) {
		var stored *journal.Session
		if id != 0 {
			stored, err = j.Session(id)
		} else {
			stored, err = j.SessionByKey(r.GetAgent(), r.GetKey())
		}
		return s.h.describe(j, stored, err, out)
	})
}

// List implements kernelv1.SessionsServer.
func (s sessionsService) List(ctx context.Context, r *kernelv1.ListSessionsRequest,
) (*kernelv1.ListSessionsResponse, error) {
	return view(ctx, s.h, r.GetLane(), func(j journal.Reader, l *bus.Lease, out *kernelv1.ListSessionsResponse) error {
		sessions, err := visible(j, actorOf(ctx), l, r)
		for i := range sessions {
			out.Sessions = append(out.Sessions, &kernelv1.Session{})
			if err := s.h.describe(j, &sessions[i], nil, out.GetSessions()[i]); err != nil {
				return err
			}
		}
		return err
	})
}

// visible are the sessions that the holder of a lease may read: its own, and with
// the grant all others, unless others can read its own.
func visible(j journal.Reader, a *bus.Actor, l *bus.Lease, r *kernelv1.ListSessionsRequest) ([]journal.Session, error) {
	one := l.Session
	if r.GetSession() != "" {
		one = journal.ParseSessionID(r.GetSession())
		if err := mayRead(j, a, l, one, r.GetSession()); err != nil {
			return nil, err
		}
	} else if own, err := j.Session(l.Session); err != nil {
		return nil, err
	} else if a.Sessions && (own == nil || !own.Group) {
		return j.Sessions(journal.SessionFilter{Agent: r.GetAgent(), Limit: int(r.GetLimit())})
	}
	s, err := j.Session(one)
	if s == nil || r.GetAgent() != "" && r.GetAgent() != s.Agent {
		return nil, err
	}
	return []journal.Session{*s}, err
}

// History implements kernelv1.SessionsServer.
func (s sessionsService) History(ctx context.Context, r *kernelv1.HistoryRequest) (*kernelv1.HistoryResponse, error) {
	return view(ctx, s.h, r.GetLane(), func(j journal.Reader, l *bus.Lease, out *kernelv1.HistoryResponse) (err error) {
		id := cmp.Or(journal.ParseSessionID(r.GetSession()), l.Session)
		if err := mayRead(j, actorOf(ctx), l, id, r.GetSession()); err != nil {
			return err
		}
		if limit := int(r.GetLimit()); limit > 0 {
			out.Entries, err = j.HistoryBefore(id, r.GetBeforeSeq(), min(limit, mostRows))
			out.Truncated = len(out.Entries) > 0 && out.Entries[0].GetSeq() > 1
			return err
		}
		size := r.GetMaxBytes()
		if size <= 0 {
			size = defaultHistory
		}
		out.Entries, out.Truncated, err = j.History(id, r.GetAfterSeq(), min(size, contract.MaxMessage/2))
		return err
	})
}

const (
	defaultHistory = 256 << 10
	mostRows       = 1000
)

// mayRead refuses a session that is not visible to the holder of a lease.
func mayRead(j journal.Reader, a *bus.Actor, l *bus.Lease, id int64, named string) error {
	if id != 0 && id == l.Session && (named == "" || named == journal.SessionID(id)) {
		return nil
	}
	if !a.Sessions {
		if l.Session == 0 {
			return fmt.Errorf("%w: the lane belongs to no session", contract.ErrDenied)
		}
		return fmt.Errorf("%w: the lane belongs to session %s, not to %s",
			contract.ErrDenied, journal.SessionID(l.Session), named)
	}
	if own, err := j.Session(l.Session); err != nil {
		return err
	} else if own != nil && own.Group {
		return fmt.Errorf("%w: others can read this conversation (%s), so no other session can be read from it",
			contract.ErrDenied, journal.SessionID(own.ID))
	}
	if s, err := j.Session(id); err != nil {
		return err
	} else if s == nil {
		return fmt.Errorf("%w: there is no session %q", contract.ErrNotFound, named)
	}
	return nil
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
