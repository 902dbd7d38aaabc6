// Package telegramchannel is the Telegram channel: a bot that people write to.
//
// # Incoming
//
// Updates arrive by long polling. The messages of one poll and the cursor (the id of
// the next update, stored per bot) are one commit, and only the next poll confirms
// them to Telegram. So a crash loses nothing, and repeated updates are recognized by
// their dedupe key. Another bot token is another bot with its own cursor.
//
// The files of messages are downloaded and stored before the messages are published, by
// several downloads at once. A poll waits a few seconds for them. A message whose file
// takes longer, an album that may not be complete, and what follows them in the same
// conversation are stored with the cursor and published later, in order.
//
// All messages of private chats are published; in groups only those for the bot:
// mentions, replies to it, and commands that name it. Forum topics are threads. The
// kernel decides who may talk to the assistant.
//
// # Outgoing
//
// Markdown is converted to Telegram's entities, and sent as plain text if Telegram
// refuses them. Chats are paced separately: a rate-limited or slow chat delays no
// other. Messages of a conversation are sent in the order of the calls of Send.
// Telegram cannot recognize a repeated message: if a connection breaks after a request
// was written, Send reports an unknown outcome.
//
// Actions are an inline keyboard. A press is the message that types its command; it is
// stored with the cursor, and stays stored until its query is answered and the keyboard
// is gone.
//
// Files are streamed from the kernel while they are sent. A message of several requests
// stores how many were accepted, so a repetition goes on with the one in doubt.
//
// # Drafts
//
// While a turn runs, its chat shows that the bot is typing, and then the text so far,
// in a message that ends in a mark and grows. The final text is an edit of that
// message. Drafts always respect Telegram's rates and use only spare budget, so they
// do not delay sends. The message id of a draft is stored after Telegram accepted the
// message and before the first edit, until the final text was acknowledged: a final
// text that is repeated after a crash edits the same message, and needs no mark of a
// repetition. If the process is killed between the acceptance and the store, the
// unfinished message is left over, because Telegram has no way to query its id later.
//
// # Failures
//
// A missing token or network is a state, not an error. The readiness tells what
// happened and what to do, and the channel becomes ready again by itself. The token is
// in no log, error or readiness.
package telegramchannel

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/attachment"
	"github.com/switchboard-run/switchboard/sdk/draft"
	"github.com/switchboard-run/switchboard/sdk/typing"
)

// ID is the extension's id.
const ID = "telegram_channel"

// TokenName is the name of the secret that holds the bot's token.
const TokenName = "TELEGRAM_BOT_TOKEN" //nolint:gosec // a name, not the token

// New returns the extension for sdk.Serve.
func New() sdk.Extension {
	c := &channel{}
	return sdk.Extension{
		ID: ID,
		Start: func(ctx context.Context, k *sdk.Kernel) error {
			var cfg Config
			if err := k.Config(&cfg); err != nil {
				return err
			}
			set, err := cfg.settings(os.Getenv(URLVariable))
			if err != nil {
				return err
			}
			return c.start(ctx, k, set, strings.TrimSpace(k.Secret(TokenName)))
		},
		Stop:    c.stop,
		Channel: c,
	}
}

// kernel is the part of *sdk.Kernel that the channel uses.
type kernel interface {
	draft.Kernel
	Get(ctx context.Context, key string) (sdk.Value, error)
	Commands(ctx context.Context) ([]*kernelv1.Command, error)
	GetBlob(ctx context.Context, name string, to io.Writer) (sdk.Blob, error)
	PutBlob(ctx context.Context, from io.Reader) (sdk.Blob, error)
	SetReadiness(state extensionv1.Readiness_State, detail string)
}

var (
	_ kernel           = (*sdk.Kernel)(nil)
	_ sdk.Channel      = (*channel)(nil)
	_ sdk.DraftRemover = (*channel)(nil)
)

// channel implements sdk.Channel. It outlives its activations: the extension can be
// restarted.
type channel struct {
	active atomic.Pointer[activation]
}

// activation is the channel from one start to its stop.
type activation struct {
	kernel    kernel
	log       hclog.Logger
	set       settings
	api       *api // nil without a usable token
	pace      *pacer
	typing    *typing.Indicators[target]
	recent    recent
	drafts    *draft.Drafts[target, draftRecord]
	downloads *attachment.Downloads
	done      chan struct{} // closed when polling has ended
}

func (c *channel) start(ctx context.Context, k kernel, set settings, token string) error {
	a := &activation{kernel: k, log: k.Log(), set: set, pace: newPacer(set.pace),
		downloads: attachment.NewDownloads(set.files.stall), done: make(chan struct{})}
	switch {
	case token == "":
		k.SetReadiness(sdk.Unconfigured, noToken)
		close(a.done)
	case !tokenPattern.MatchString(token):
		k.SetReadiness(sdk.Degraded, badToken)
		close(a.done)
	default:
		var err error
		if a.api, err = newAPI(set.url, token, a.log); err != nil {
			return err
		}
		a.typing = typing.New(ctx, typingEvery, a.sendTyping)
		if a.drafts, err = newDrafts(ctx, a, token); err != nil {
			return err
		}
		k.SetReadiness(sdk.Offline, words.Sprintf("connecting to Telegram"))
		go func() {
			defer close(a.done)
			defer a.api.close()
			defer a.typing.Stop()
			defer a.drafts.Stop()
			a.run(ctx)
		}()
	}
	c.active.Store(a)
	return nil
}

// stop waits for the activation to end, which it does when the context of start ends.
func (c *channel) stop(ctx context.Context) error {
	a := c.active.Swap(nil)
	if a == nil {
		return nil
	}
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return errors.New("stop Telegram channel: polling has not ended in time")
	}
}
