package discordchannel

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// press is a pressed button: an interaction, and the message with the button. It is stored
// with its command until the buttons are gone.
type press struct {
	ID      string `json:"id,omitempty"`
	Channel string `json:"channel"`
	Message string `json:"message"`
}

// pressPrefix begins the keys of the stored presses.
const pressPrefix = "press/"

// presses are the presses that are stored, and whose buttons are not removed yet.
type presses struct {
	*activation
	running sync.WaitGroup
}

// publish returns the effects that publish a message: its press is stored before it.
func (b *presses) publish(m *pendingMessage) sdk.Effects {
	if m.Press == nil {
		return sdk.Effects{m.effect()}
	}
	return sdk.Effects{sdk.Put(pressPrefix+m.Press.ID, m.Press), m.effect()}
}

// stateOf returns what became of a message by the result of its publication: that of a
// person who is not admitted has become no event.
func stateOf(result *busv1.EffectResult) storedState {
	if result.GetEventId() == "" {
		return rejected
	}
	return published
}

// settle removes the buttons of a press that had to wait, unless they are not for its
// person.
func (b *presses) settle(ctx context.Context, p *press, state storedState) {
	if p == nil {
		return
	}
	b.running.Go(func() {
		if state == rejected {
			b.forget(ctx, p)
			return
		}
		b.removeButtons(ctx, p)
	})
}

// load removes the buttons of the messages whose presses were stored by a process that
// ended before it could remove them.
func (b *presses) load(ctx context.Context) error {
	var left []*press
	err := b.kernel.Scan(ctx, pressPrefix, func(v sdk.Value) error {
		p := &press{}
		if err := v.Decode(p); err != nil {
			b.log.Error("decode a press", "key", v.Key, "error", err)
		}
		p.ID = strings.TrimPrefix(v.Key, pressPrefix)
		left = append(left, p)
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range left {
		b.settle(ctx, p, published)
	}
	return nil
}

// removeButtons removes the buttons of a message, with retries, and forgets the press.
func (b *presses) removeButtons(ctx context.Context, p *press) {
	for n := 1; p.Message != ""; n++ {
		err := b.api.do(ctx, request{
			method: http.MethodPatch, path: messagesOf(target(p.Channel)) + "/" + p.Message,
			body: map[string]any{"components": []component{}},
		}, nil)
		if err == nil {
			break
		}
		kind, wait := classify(err)
		if kind == refused {
			break
		}
		b.log.Info("remove the buttons of a message; it is tried again", "error", b.api.redact(err))
		if kind != limited {
			wait = pause.Backoff(n)
		}
		if !pause.For(ctx, wait) {
			return
		}
	}
	b.forget(ctx, p)
}

func (b *presses) forget(ctx context.Context, p *press) {
	if _, err := b.kernel.Commit(ctx, sdk.Delete(pressPrefix+p.ID)); err != nil && ctx.Err() == nil {
		b.log.Warn("forget a press", "error", err)
	}
}
