package sdk

import (
	"context"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// Presence is the activity of people in all conversations.
type Presence struct {
	UserAt time.Time // when a person was last active; zero: never
	Busy   bool      // a person's message waits or is being answered
}

// Presence returns when a person was last active, but not who or where. The manifest
// needs permissions: {presence: true}.
func (k *Kernel) Presence(ctx context.Context) (Presence, error) {
	r, err := k.sessions.Presence(ctx, &kernelv1.PresenceRequest{})
	if err != nil {
		return Presence{}, contract.FromStatus(err)
	}
	p := Presence{Busy: r.GetBusy()}
	if us := r.GetUserAtUs(); us > 0 {
		p.UserAt = time.UnixMicro(us)
	}
	return p, nil
}
