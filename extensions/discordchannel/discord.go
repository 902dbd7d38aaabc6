// Package discordchannel is the Discord channel: a bot that people write to.
//
// # Incoming
//
// Events arrive over the gateway, version 10. The messages of some events and the
// position (session and sequence number, stored per bot) are one commit, so a resumed
// session repeats what was not stored, and repetitions are recognized by their dedupe
// keys. The client of a library moves the sequence when an event arrives; this one moves
// it when the event is stored. If Discord has ended the session, the messages since the
// last stored position are read from the histories of the known conversations.
//
// All messages of private chats are published; in servers only those for the bot:
// mentions, replies to it, slash commands and buttons. Threads are threads of their
// channel. The kernel decides who may talk to the assistant.
//
// The files of messages are downloaded and stored before the messages are published. The
// gateway waits a moment for them. A message whose files take longer, and what follows it
// in the same conversation, are stored with the position and published later, in order.
//
// A press of a button or a slash command is stored first, then answered; the answer to a
// press removes the buttons.
//
// # Outgoing
//
// The limits of Discord's responses are kept per route and channel: a limited channel
// delays no other. Messages of a conversation are sent in the order of the calls of Send.
// A message has a nonce that Discord checks for some minutes, so a repetition within two
// minutes creates no second message. Later the channel's history is searched for the
// nonce first.
//
// # Drafts
//
// While a turn runs, its channel shows that the bot is typing, and then the text so far,
// in a message that ends in a mark and grows. The final text is an edit of that message.
// Drafts use only what the limits leave. The id of a draft's message is stored after
// Discord accepted it, and its nonce is that of the final text: a final text that is sent
// after a crash finds the message by either.
//
// # Failures
//
// A missing token or network is a state, not an error. The readiness tells what
// happened and what to do, and the channel becomes ready again by itself. The token is
// in no log, error or readiness.
package discordchannel

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
const ID = "discord_channel"

// TokenName is the name of the secret that holds the bot's token.
const TokenName = "DISCORD_BOT_TOKEN" //nolint:gosec // a name, not the token

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
	kernel kernel
	log    hclog.Logger
	set    settings
	api    *api // nil without a usable token
	typing *typing.Indicators[target]
	drafts *draft.Drafts[address, draftRecord]
	places *places
	// privateChats are the ids of private chats, by user.
	privateChats sync.Map
	downloads    *attachment.Downloads
	done         chan struct{} // closed when the gateway has ended
}

func (c *channel) start(ctx context.Context, k kernel, set settings, token string) error {
	a := &activation{kernel: k, log: k.Log(), set: set,
		downloads: attachment.NewDownloads(set.files.stall), done: make(chan struct{})}
	switch {
	case token == "":
		k.SetReadiness(sdk.Unconfigured, noToken)
		close(a.done)
	case !looksLikeToken(token):
		k.SetReadiness(sdk.Degraded, badToken)
		close(a.done)
	default:
		a.api = newAPI(set.url, token, set.pace)
		a.typing = typing.New(ctx, typingEvery, a.sendTyping)
		a.places = newPlaces(a)
		var err error
		if a.drafts, err = newDrafts(ctx, a, token); err != nil {
			return err
		}
		k.SetReadiness(sdk.Offline, words.Sprintf("connecting to Discord"))
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
		return errors.New("stop Discord channel: the gateway has not ended in time")
	}
}

// usable returns the activation if it can send messages.
func (c *channel) usable() (*activation, error) {
	a := c.active.Load()
	switch {
	case a == nil:
		return nil, sdk.Retry(time.Second, errors.New("the channel is starting"))
	case a.api == nil:
		return nil, sdk.Retry(defaultTokenRetry, errors.New(noToken))
	}
	return a, nil
}
