package slackchannel

import (
	"context"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/switchboard-run/switchboard/contract"
	st "github.com/switchboard-run/switchboard/extensions/slackchannel/slacktest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const manifest = "../../manifests/slack_channel.yaml"

// People and conversations of the tests.
const (
	anna   = "UANNA"
	boris  = "UBORIS"
	direct = "DANNA"
	office = "COFFICE"
)

// world is the channel on a kernel, and its workspace.
type world struct {
	*sdktest.Kernel
	t     *testing.T
	slack *st.Server
}

func kernelOptions(s *st.Server) sdktest.Options {
	return sdktest.Options{
		Manifest: manifest,
		Config:   Config{APIURL: s.URL()},
		Secrets:  map[string]string{BotTokenName: s.BotToken(), AppTokenName: s.AppToken()},
	}
}

// quick is the extension with short pauses.
func quick() sdk.Extension { return newExtension(func(t *times) { t.settle, t.tokenRetry = 0, 0 }) }

// running is a channel that is ready.
func running(t *testing.T, opts ...st.Option) *world {
	t.Helper()
	return runningWith(t, func(*sdktest.Options) {}, opts...)
}

func runningWith(t *testing.T, change func(*sdktest.Options), opts ...st.Option) *world {
	t.Helper()
	s := st.Start(t, opts...)
	s.AddUser(st.User{ID: anna, Name: "Anna", Locale: "ru-RU"})
	s.AddUser(st.User{ID: boris, Name: "Boris"})
	s.AddConversation(office, st.Channel, "office")
	s.AddConversation(direct, st.Direct, "")
	w := &world{t: t, slack: s}
	options := kernelOptions(s)
	change(&options)
	w.Kernel = sdktest.Start(t, quick(), options)
	w.AwaitReadiness(sdk.Ready)
	return w
}

// hears waits for the nth message that the channel reports.
func (w *world) hears(n int) contract.UserMessage {
	w.t.Helper()
	return w.AwaitReceived(n)[n-1]
}

// only checks that nothing but n messages is reported, after everything was acknowledged.
func (w *world) only(n int) {
	w.t.Helper()
	w.acknowledged()
	if got := w.Received(); len(got) != n {
		w.t.Errorf("%d messages are reported, want %d: %+v", len(got), n, got)
	}
}

func (w *world) acknowledged() {
	w.t.Helper()
	if err := w.slack.WaitAcknowledged(w.ctx()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ctx() context.Context { return w.t.Context() }

// awaits waits until done reports true.
func (w *world) awaits(what string, done func() bool) {
	w.t.Helper()
	if err := w.slack.Wait(w.ctx(), what, done); err != nil {
		w.t.Fatal(err)
	}
}

// said is what the assistant has said in a conversation.
func (w *world) said(channel string) (all []string) {
	for _, m := range w.slack.Messages(channel) {
		all = append(all, m.Said)
	}
	return all
}

func (w *world) saysOnly(channel string, want ...string) {
	w.t.Helper()
	if got := w.said(channel); !slices.Equal(got, want) {
		w.t.Errorf("Slack has %q, want %q", got, want)
	}
}

// text is a message to Anna as the kernel sends it.
func text(s string) contract.ChannelSend {
	return contract.ChannelSend{Text: s, Conversation: direct, Kind: contract.SendReply}
}
