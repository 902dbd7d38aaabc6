package clichannel

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	client "github.com/switchboard-run/switchboard/extensions/clichannel/terminal"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

const manifest = "../../manifests/cli_channel.yaml"

// hasty is the extension without a wait for terminals.
func hasty() sdk.Extension {
	c := newChannel()
	c.sendTimeout = time.Millisecond
	return c.extension()
}

func TestConformance(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	sdktest.Conformance(t, hasty, sdktest.Options{Manifest: manifest, Config: Config{Greeting: "a test model"}})
}

// TestFromTheTerminalToTheKernelAndBack runs the real client against the real
// extension, which restarts between a message and its answer.
func TestFromTheTerminalToTheKernelAndBack(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, Extension(), sdktest.Options{Manifest: manifest})
	k.AwaitReadiness(sdk.Offline)

	var out bytes.Buffer
	result := make(chan error, 1)
	go func() {
		result <- client.Run(t.Context(), client.Options{
			Socket: filepath.Join(k.RunDir(), wire.SocketName), TokenFile: filepath.Join(k.DataDir(), wire.TokenName),
			In: strings.NewReader("hi\nпока\n"), Out: &out,
		})
	}()
	heard := k.AwaitReceived(1)
	if heard[0].Text != "hi" || heard[0].UserID != LocalUser || heard[0].ConversationID != wire.DefaultConversation {
		t.Fatalf("got %+v", heard)
	}
	k.Restart(Extension())
	k.AwaitReadiness(sdk.Ready) // the terminal has reconnected
	answer := func(m contract.UserMessage, text string) {
		receipt := k.Send(contract.ChannelSend{Text: text, Conversation: m.ConversationID,
			ReplyTo: m.MessageID}).MustAck(t).Receipt()
		if receipt.GetConversation() != m.ConversationID || receipt.GetProviderId() == "" {
			t.Errorf("receipt %v", receipt)
		}
	}
	answer(heard[0], "hello")
	answer(k.AwaitReceived(2)[1], "bye")
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if out.String() != "hello\nbye\n" {
		t.Errorf("printed %q", out.String())
	}
	if got := k.Received(); len(got) != 2 {
		t.Errorf("the kernel has %+v", got)
	}
	k.AwaitReadiness(sdk.Offline)
}

func TestASendWithoutTerminalIsRetried(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, hasty(), sdktest.Options{Manifest: manifest})
	m := contract.ChannelSend{Text: "x", Conversation: "terminal", Kind: contract.SendReply} // as the last terminal leaves
	out := k.Hand(contract.TopicChannelSend+ID, m).MustBe(t, busv1.Outcome_KIND_RETRY)
	if out.RetryAfter <= 0 || !strings.Contains(out.Reason, "switchboard chat") {
		t.Errorf("got %s in %s", out, out.RetryAfter)
	}
}

func TestAFullStoreIsReportedToTheTerminal(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, Extension(), sdktest.Options{Manifest: manifest})
	k.FailCommits(1, fmt.Errorf("no space left on device: %w", contract.ErrFull))
	err := client.Run(t.Context(), client.Options{
		Socket: filepath.Join(k.RunDir(), wire.SocketName), TokenFile: filepath.Join(k.DataDir(), wire.TokenName),
		In: strings.NewReader("hi\n"), Out: &bytes.Buffer{},
	})
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v", err)
	}
}
