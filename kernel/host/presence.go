package host

import (
	"context"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// Presence implements kernelv1.SessionsServer: when a person last wrote, in any session,
// and whether one waits for an answer now.
func (s sessionsService) Presence(ctx context.Context, _ *kernelv1.PresenceRequest,
) (*kernelv1.PresenceResponse, error) {
	if err := actorOf(ctx).MayAskPresence(); err != nil {
		return nil, err
	}
	out := &kernelv1.PresenceResponse{}
	return out, s.h.Bus.View(ctx, func(j journal.Reader) error {
		sessions, err := j.Sessions(journal.SessionFilter{Limit: recentSessions})
		for i := range sessions {
			out.UserAtUs = max(out.UserAtUs, sessions[i].UserAt)
		}
		if err == nil {
			out.Busy, err = personWaits(j)
		}
		return err
	})
}

// recentSessions bounds the sessions that are read: older ones were not active since a
// person wrote.
const recentSessions = 1000

// manyInputs bounds the unsettled inputs that are read: more count as work.
const manyInputs = 1000

// personWaits reports whether an input of a person is unsettled.
func personWaits(j journal.Reader) (bool, error) {
	subscriptions, err := j.Subscriptions()
	if err != nil {
		return false, err
	}
	inputs := map[int64]bool{}
	for _, s := range subscriptions {
		inputs[s.ID] = s.ParkedAt == 0 && strings.HasPrefix(s.Pattern, contract.TopicAgentInput)
	}
	var open []int64
	err = j.Pending(func(d journal.Delivery) bool {
		if inputs[d.Subscription] {
			open = append(open, d.Seq)
		}
		return len(open) <= manyInputs
	})
	if err != nil || len(open) > manyInputs {
		return err == nil, err
	}
	for _, seq := range open {
		e, err := j.Event(seq)
		if err != nil {
			return false, err
		}
		if session.InputOf(e).Kind == contract.InputUser {
			return true, nil
		}
	}
	return false, nil
}
