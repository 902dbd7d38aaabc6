package discordchannel

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/switchboard-run/switchboard/contract"
	dc "github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const manifest = "../../manifests/discord_channel.yaml"

// People and places of the tests.
const (
	anna    = "1001"
	boris   = "1002"
	server  = "3001"
	general = "4001"
	thread  = "4002"
)

func optionsOf(s *dc.Server) sdktest.Options {
	return sdktest.Options{
		Manifest: manifest, Config: Config{APIURL: s.URL()}, Secrets: map[string]string{TokenName: s.Token()},
	}
}

// running is the channel, ready, with a server that has a channel and a thread in it.
func running(t *testing.T, opts ...dc.Option) (*dc.Server, *sdktest.Kernel) {
	t.Helper()
	return runningWith(t, func(*sdktest.Options) {}, opts...)
}

func runningWith(t *testing.T, change func(*sdktest.Options), opts ...dc.Option) (*dc.Server, *sdktest.Kernel) {
	t.Helper()
	s := dc.Start(t, opts...)
	s.AddUser(dc.User{ID: anna, Username: "anna.b", GlobalName: "Anna", Locale: "ru"})
	s.AddUser(dc.User{ID: boris, Username: "boris"})
	s.AddChannel(dc.Channel{ID: general, Type: dc.TypeText, Guild: server, Name: "general"})
	s.AddChannel(dc.Channel{ID: thread, Type: dc.TypeThread, Guild: server, Name: "picnic", Parent: general})
	options := optionsOf(s)
	change(&options)
	k := sdktest.Start(t, New(), options)
	k.AwaitReadiness(sdk.Ready)
	return s, k
}

// send returns a text for a channel.
func send(channel, text string) contract.ChannelSend {
	return contract.ChannelSend{Text: text, Conversation: channel, Kind: contract.SendReply}
}

// awaitMessage waits for the nth message of the bot in a channel.
func awaitMessage(t *testing.T, s *dc.Server, channel string, n int) dc.Message {
	t.Helper()
	m, err := s.WaitMessage(t.Context(), channel, n)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// until waits until the server is in a state.
func until(t *testing.T, s *dc.Server, what string, done func() bool) {
	t.Helper()
	if err := s.Wait(t.Context(), what, done); err != nil {
		t.Fatal(err)
	}
}

// texts returns what was received, in order.
func texts(all []contract.UserMessage) (said []string) {
	for _, m := range all {
		said = append(said, fmt.Sprintf("%s/%s %s: %s", m.ConversationID, m.ThreadID, m.UserName, m.Text))
	}
	return said
}
