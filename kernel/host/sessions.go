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

// List implements kernelv1.SessionsServer.
func (s sessionsService) List(ctx context.Context, r *kernelv1.ListSessionsRequest) (*kernelv1.ListSessionsResponse, error) {
	l, err := s.h.lease(ctx, r.GetLane())
	if err != nil {
		return nil, err
	}
	out := &kernelv1.ListSessionsResponse{}
	return out, s.h.Bus.View(ctx, func(j journal.Reader) error {
		sessions, err := visible(j, actorOf(ctx), l, r)
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
	l, err := s.h.lease(ctx, r.GetLane())
	if err != nil {
		return nil, err
	}
	size := r.GetMaxBytes()
	if size <= 0 {
		size = defaultHistory
	}
	id := cmp.Or(journal.ParseSessionID(r.GetSession()), l.Session)
	out := &kernelv1.HistoryResponse{}
	return out, s.h.Bus.View(ctx, func(j journal.Reader) (err error) {
		if err := mayRead(j, actorOf(ctx), l, id, r.GetSession()); err != nil {
			return err
		}
		if limit := int(r.GetLimit()); limit > 0 {
			out.Entries, err = j.HistoryBefore(id, r.GetBeforeSeq(), min(limit, mostRows))
			out.Truncated = len(out.Entries) > 0 && out.Entries[0].GetSeq() > 1
			return err
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
		return fmt.Errorf("%w: the lane is that of session %s, not of %s", contract.ErrDenied, journal.SessionID(l.Session), named)
	}
	if own, err := j.Session(l.Session); err != nil {
		return err
	} else if own != nil && own.Group {
		return fmt.Errorf("%w: others can read this conversation, so only it can be read from here (%s)", contract.ErrDenied, journal.SessionID(own.ID))
	}
	if s, err := j.Session(id); err != nil {
		return err
	} else if s == nil {
		return fmt.Errorf("%w: there is no session %q", contract.ErrNotFound, named)
	}
	return nil
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
		CreatedAtUs: s.CreatedAt, ActiveAtUs: s.ActiveAt, UserAtUs: s.UserAt, Group: s.Group,
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
