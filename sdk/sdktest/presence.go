package sdktest

import (
	"context"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// SetPresence says when a person was there last.
func (k *Kernel) SetPresence(p sdk.Presence) {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	k.state.presence = p
}

func (v sessionsService) Presence(context.Context, *kernelv1.PresenceRequest) (*kernelv1.PresenceResponse, error) {
	s := v.k.state
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &kernelv1.PresenceResponse{Busy: s.presence.Busy}
	if at := s.presence.UserAt; !at.IsZero() {
		out.UserAtUs = at.UnixMicro()
	}
	return out, nil
}
