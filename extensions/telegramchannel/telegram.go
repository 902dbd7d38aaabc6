// Package telegramchannel is the channel to Telegram: a bot that people write
// to, served as an extension.
//
// # Incoming
//
// Updates come by long polling. The messages of one answer and the cursor (the
// id of the next update, kept under the id of the bot) are one commit, and only
// after it does Telegram hear that they arrived. So a crash at any point loses
// nothing, and what Telegram then gives again is recognized by its dedupe key.
// Another bot token is another bot with a cursor of its own.
//
// Private chats are reported always; in groups only what is meant for the bot:
// a mention, a reply to it, a command that names it. Topics of a forum are
// threads. Who may talk to the assistant is not decided here.
//
// # Outgoing
//
// Markdown becomes Telegram's entities, and goes out as it is where Telegram
// refuses them. Chats are paced one by one: a chat that Telegram slows down, or
// that is slow to answer, holds no other. The order within a conversation is
// the order in which Send is called for it. Telegram cannot tell a repeat from
// a new message: when a connection breaks after a request was written, Send
// says that the outcome is unknown.
//
// # Drafts
//
// While a turn runs its chat shows that the bot is typing, and once there is
// enough of it the text so far, in a message that ends in a mark and grows. The
// final text is an edit of that message. Drafts keep Telegram's rates whatever is
// configured, and use only what sends leave over, so that they never delay one.
// Which message is the draft of which turn is stored after Telegram has accepted
// it and before it is edited, until the final text has been acknowledged. A final
// text that is repeated after a crash edits the same message again, and needs no
// mark of a repetition. If the process is killed between the acceptance and the
// store, a beginning of the text with its mark is left behind: Telegram gives a
// message its id only when it has it, and has no way to ask for it later.
//
// # Failures
//
// No token is a state, not an error; neither is a network that is down. The
// readiness says what is the matter and what to do, and the channel gets back
// to ready by itself. The token stands in no log, error or readiness.
package telegramchannel

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// ID is the extension's id.
const ID = "telegram_channel"

// TokenName is the name of the secret that holds the bot's token.
const TokenName = "TELEGRAM_BOT_TOKEN" //nolint:gosec // a name, not the token

// New is the extension, ready to be served.
func New() sdk.Extension {
	c := &channel{}
	return sdk.Extension{
		ID: ID,
		Start: func(ctx context.Context, k *sdk.Kernel) error {
			var cfg Config
			if err := k.Config(&cfg); err != nil {
				return err
			}
			set, err := cfg.settings(os.Getenv(URLEnv))
			if err != nil {
				return err
			}
			return c.start(ctx, k, set, strings.TrimSpace(k.Secret(TokenName)))
		},
		Stop:    c.stop,
		Channel: c,
	}
}

// kernel is what the channel needs of the kernel.
type kernel interface {
	Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
	Get(ctx context.Context, key string) (sdk.Value, error)
	Scan(ctx context.Context, prefix string, each func(sdk.Value) error) error
	Commands(ctx context.Context) ([]*kernelv1.Command, error)
	SetReadiness(state extensionv1.Readiness_State, detail string)
	Log() hclog.Logger
}

var (
	_ kernel           = (*sdk.Kernel)(nil)
	_ sdk.Channel      = (*channel)(nil)
	_ sdk.DraftRemover = (*channel)(nil)
)

// channel outlives its activations: the extension may be started again.
type channel struct {
	active atomic.Pointer[activation]
}

// activation is the channel from one start to its stop.
type activation struct {
	kernel kernel
	log    hclog.Logger
	set    settings
	api    *api // nil without a usable token
	pace   *pacer
	typing *typist
	drafts *drafter
	done   chan struct{} // closed when polling has ended
}

func (c *channel) start(ctx context.Context, k kernel, set settings, token string) error {
	a := &activation{kernel: k, log: k.Log(), set: set, pace: newPacer(set.pace), done: make(chan struct{})}
	switch {
	case token == "":
		k.SetReadiness(sdk.Unconfigured, noToken)
		close(a.done)
	case !tokenShape.MatchString(token):
		k.SetReadiness(sdk.Degraded, badToken)
		close(a.done)
	default:
		var err error
		if a.api, err = newAPI(set.url, token, a.log); err != nil {
			return err
		}
		a.typing = newTypist(ctx, a.act)
		if a.drafts, err = newDrafter(ctx, a, token); err != nil {
			return err
		}
		k.SetReadiness(sdk.Offline, "connecting to Telegram")
		go func() {
			defer close(a.done)
			defer a.api.close()
			defer a.typing.stop()
			defer a.drafts.stop()
			a.run(ctx)
		}()
	}
	c.active.Store(a)
	return nil
}

// stop waits until all that start began has ended, as it does once the context
// of start has.
func (c *channel) stop(ctx context.Context) error {
	a := c.active.Swap(nil)
	if a == nil {
		return nil
	}
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return errors.New("polling Telegram has not ended yet")
	}
}

// pause waits, and says whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
