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

// manyInputs bounds the unsettled inputs of one agent that are read: so many count as work.
const manyInputs = 1000

// personWaits reports whether an input of a person is unsettled.
func personWaits(j journal.Reader) (bool, error) {
	subscriptions, err := j.Subscriptions()
	if err != nil {
		return false, err
	}
	for _, s := range subscriptions {
		if s.ParkedAt != 0 || !strings.HasPrefix(s.Pattern, contract.TopicAgentInput) {
			continue
		}
		open, err := j.Deliveries(journal.DeliveryFilter{
			Subscription: s.ID, States: []journal.DeliveryState{journal.Pending, journal.InFlight}, Limit: manyInputs,
		})
		if err != nil || len(open) == manyInputs {
			return err == nil, err
		}
		for _, d := range open {
			e, err := j.Event(d.Seq)
			if err != nil || session.InputOf(e).Kind == contract.InputUser {
				return err == nil, err
			}
		}
	}
	return false, nil
}
