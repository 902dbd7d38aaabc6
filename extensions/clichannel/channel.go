// Package clichannel is the terminal channel: it serves the chat socket for any
// number of `switchboard chat` terminals. The extension itself never reads a
// terminal.
//
// Promises. A terminal's message is acknowledged when the kernel has it on disk; a
// message that is sent again after a reconnect counts once. A message to people is
// delivered when at least one terminal has confirmed that it is on the screen; until
// then Send asks for a retry, and the next terminal that attaches shows it. A
// terminal shows a repeated message once, so the manifest declares dedupe. All
// terminals of a conversation show the same messages, including those typed at the
// others; a message without a conversation goes to every interactive terminal. A file is
// stored before the message that brings it is accepted, and can be saved for 30 days at
// the terminals of its conversation. The channel is ready while a terminal is attached.
//
// Delivery to a second terminal is not promised: a terminal that cannot keep up is
// detached and delays no other. Drafts, echoes and states may be lost. Only processes
// of the same user can connect, and one that connects often does not keep others out.
package clichannel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/ownuser"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/attachment"
)

// ID is the extension's id.
const ID = "cli_channel"

// LocalUser is the user id of all terminals: only the owner of the account can
// open the socket.
const LocalUser = "local"

// Config is the extension's configuration. Both texts are shown to a terminal
// that attaches.
type Config struct {
	Greeting string `json:"greeting"` // one line, such as the model in use
	Hint     string `json:"hint"`     // what to do next
}

// Extension returns the extension for sdk.Serve.
func Extension() sdk.Extension {
	return newChannel().extension()
}

func (c *channel) extension() sdk.Extension {
	return sdk.Extension{ID: ID, Start: c.start, Stop: c.stop, Channel: c}
}

// kernel is the part of *sdk.Kernel that the channel uses.
type kernel interface {
	Receive(ctx context.Context, m contract.UserMessage, dedupe string, effects ...sdk.Effect) error
	Commands(ctx context.Context) ([]*kernelv1.Command, error)
	SetReadiness(state extensionv1.Readiness_State, detail string)
	Log() hclog.Logger
	attachment.Storage
	fileStore
}

// channel implements sdk.Channel and sdk.Drafter.
type channel struct {
	hub          *hub
	sendTimeout  time.Duration // how long Send waits for a terminal to show a message
	aloneTimeout time.Duration // and how long while none is attached: the kernel then holds messages
	retryDelay   time.Duration // how soon Send is retried
	helloTimeout time.Duration
	writeTimeout time.Duration // of one frame
	checkPeer    func(net.Conn) (pid int, err error)
	token        string // required of terminals; empty: none

	server *server
	files  *files
}

var (
	_ sdk.Channel = (*channel)(nil)
	_ sdk.Drafter = (*channel)(nil)
)

func newChannel() *channel {
	return &channel{
		hub: newHub(), sendTimeout: 3 * time.Second, aloneTimeout: 500 * time.Millisecond, retryDelay: 2 * time.Second,
		helloTimeout: helloTimeout, writeTimeout: writeTimeout, checkPeer: ownuser.Check,
	}
}

func (c *channel) start(ctx context.Context, k *sdk.Kernel) error {
	var config Config
	err := k.Config(&config)
	if err != nil {
		return err
	}
	dir := k.RunDir()
	if dir == "" {
		dir = os.Getenv(wire.RunDirVariable)
	}
	if c.token, err = loadToken(k.DataDir()); err != nil {
		return err
	}
	return c.serve(ctx, k, dir, config)
}

// serve opens the socket in dir and serves it until ctx is done.
func (c *channel) serve(ctx context.Context, k kernel, dir string, config Config) error {
	l, err := listen(dir)
	if err != nil {
		return err
	}
	c.files = &files{store: k, now: time.Now}
	c.server = newServer(k, c, l, config)
	k.SetReadiness(sdk.Offline, noTerminal)
	c.server.start(ctx)
	return nil
}

func (c *channel) stop(context.Context) error {
	if c.server == nil {
		return nil
	}
	return c.server.stop()
}

var noTerminal = words.Sprintf("no terminal is attached: open one with `switchboard chat`")

// errNoTerminal is the retry reason while no terminal is attached.
var errNoTerminal = errors.New(noTerminal)

// Send shows m on the terminals of its conversation. Its files can be saved from the
// moment that they are named there.
func (c *channel) Send(ctx context.Context, m sdk.Message) (sdk.Receipt, error) {
	files, err := c.files.keepSent(ctx, m.Conversation, m.Attachments)
	if err != nil {
		return sdk.Receipt{}, err
	}
	d := c.hub.open(wire.Frame{
		Type: wire.Message, ID: m.ID, Conversation: m.Conversation, Text: m.Text,
		ReplyTo: m.ReplyTo, Notice: m.Notice, Repeat: m.Repeat, Part: m.Part, Parts: m.Parts, Session: m.Session,
		Draft: m.DraftID, Attachments: files, Actions: m.Actions,
	})
	defer c.hub.close(d)
	patience := c.sendTimeout
	if c.hub.alone() {
		patience = min(patience, c.aloneTimeout)
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-d.shown:
		return sdk.Receipt{ProviderID: m.ID, Conversation: d.conversation}, nil
	case <-ctx.Done():
		return sdk.Receipt{}, context.Cause(ctx)
	case <-late.C:
		return sdk.Receipt{}, sdk.Retry(c.retryDelay, c.hub.unshownReason(m.Conversation))
	}
}

// Draft shows the text so far, including to terminals that attach later.
func (c *channel) Draft(_ context.Context, d sdk.Draft) {
	c.hub.draft(wire.Frame{Type: wire.Draft, Conversation: d.Conversation, ID: d.ID, Text: d.Text, Done: d.Done})
}

// alone reports whether no terminal is attached.
func (h *hub) alone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.terminals) == 0
}

// unshownReason explains why a message was not shown.
func (h *hub) unshownReason(conversation string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.terminals {
		if t.wants(conversation) {
			return errors.New("the terminal has not confirmed the message")
		}
	}
	if conversation != "" && len(h.terminals) > 0 {
		return fmt.Errorf("no terminal is attached to conversation %q", conversation)
	}
	return errNoTerminal
}
