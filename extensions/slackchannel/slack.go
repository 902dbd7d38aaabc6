// Package slackchannel is the Slack channel: an app that people write to.
//
// # Incoming
//
// Events arrive over a WebSocket (Socket Mode). What a batch of envelopes says is one
// commit, and only then they are acknowledged to Slack, which sends again what was not
// acknowledged: at once, after one minute and after five. The dedupe key of a message is
// its place and time, so neither a repeated envelope nor a second event for the same
// message is reported twice. Before Slack ends a connection, as it does every few hours,
// the next one is open. What was missed while nothing was connected is read from the
// histories of the conversations.
//
// Messages with files are stored when they arrive, with what follows them in the same
// conversation, and published after the downloads, in order.
//
// All direct messages are published; in channels only those for the app: mentions, and
// what is said in a thread where it was mentioned. A thread is a conversation of its own,
// except that a reply to a message of the assistant belongs to the conversation of that
// message and quotes it; the answer goes to the thread. The kernel decides who may talk to
// the assistant.
//
// # Outgoing
//
// Markdown becomes rich text blocks, in which nothing has to be escaped and nothing
// mentions anybody. Conversations are paced separately, and methods have limits of their
// own: a rate-limited or slow conversation delays no other. Messages of a conversation
// are sent in the order of the calls of Send.
//
// Each message carries its id as metadata. After an unknown outcome the message is looked
// up in the conversation, so a repetition needs a mark only if that fails.
//
// # Drafts
//
// A draft is a message that ends in a mark and grows; the final text is an edit of it.
// See sdk/draft. Slack has no sign of typing for apps.
//
// # Failures
//
// A missing token or network is a state, not an error. The readiness tells what happened
// and what to do, and the channel becomes ready again by itself. Tokens are in no log,
// error or readiness.
package slackchannel

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/draft"
)

// ID is the extension's id.
const ID = "slack_channel"

// Names of the secrets.
const (
	BotTokenName = "SLACK_BOT_TOKEN" //nolint:gosec // a name, not the token
	AppTokenName = "SLACK_APP_TOKEN" //nolint:gosec // likewise
)

// New returns the extension for sdk.Serve.
func New() sdk.Extension { return newExtension(func(*times) {}) }

// newExtension returns the extension with other times.
func newExtension(change func(*times)) sdk.Extension {
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
			change(&set.times)
			return c.start(ctx, k, set, strings.TrimSpace(k.Secret(BotTokenName)), strings.TrimSpace(k.Secret(AppTokenName)))
		},
		Stop:    c.stop,
		Channel: c,
	}
}

// kernel is the part of *sdk.Kernel that the channel uses.
type kernel interface {
	draft.Kernel
	Get(ctx context.Context, key string) (sdk.Value, error)
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
	api    *api // nil without usable tokens
	pace   *pacer
	drafts *draft.Drafts[target, draftRecord]
	token  chan error    // tells that the bot's token was refused
	done   chan struct{} // closed when receiving has ended
}

func (c *channel) start(ctx context.Context, k kernel, set settings, botToken, appToken string) error {
	a := &activation{
		kernel: k, log: k.Log(), set: set, pace: newPacer(set.pace), token: make(chan error, 1), done: make(chan struct{}),
	}
	problem := ""
	switch {
	case botToken == "" && appToken == "":
		k.SetReadiness(sdk.Unconfigured, noTokens)
		close(a.done)
		c.active.Store(a)
		return nil
	case !strings.HasPrefix(botToken, "xoxb-"):
		problem = badBotToken
	case !strings.HasPrefix(appToken, "xapp-"):
		problem = badAppToken
	}
	if problem != "" {
		k.SetReadiness(sdk.Degraded, problem)
		close(a.done)
		c.active.Store(a)
		return nil
	}
	a.api = newAPI(set.url, botToken, appToken)
	var err error
	if a.drafts, err = newDrafts(ctx, a, botToken); err != nil {
		return err
	}
	k.SetReadiness(sdk.Offline, words.Sprintf("connecting to Slack"))
	go func() {
		defer close(a.done)
		defer a.api.close()
		defer a.drafts.Stop()
		a.run(ctx)
	}()
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
		return errors.New("stop Slack channel: receiving has not ended in time")
	}
}
