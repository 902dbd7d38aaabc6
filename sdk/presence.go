package sdk

import (
	"context"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// Presence is when a person was there last, in whatever conversation.
type Presence struct {
	UserAt time.Time // zero: never
	Busy   bool      // a message of a person waits, or is being answered
}

// Presence tells when a person was there last, and neither who nor where. The
// manifest has to say permissions: {presence: true}.
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
