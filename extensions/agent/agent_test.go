package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
	loop "github.com/switchboard-run/switchboard/sdk/agent"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// options are those of a built-in agent.
func options(id string) sdktest.Options {
	return sdktest.Options{
		Manifest: "../../manifests/" + id + ".yaml", Timezone: "Europe/Berlin",
		Channels: []*kernelv1.Channel{
			{Id: "cli_channel", Name: "Terminal", Default: true},
			{Id: "telegram_channel", Name: "Telegram"},
		},
	}
}

//nolint:paralleltest // the suite counts goroutines
func TestConformance(t *testing.T) {
	for _, id := range []string{"orchestrator", "echo"} {
		t.Run(id, func(t *testing.T) {
			sdktest.Conformance(t, func() sdk.Extension { return New(id) }, options(id))
		})
	}
}

// heard is the input that an agent was handed.
func heard(t *testing.T, o sdktest.Outcome) (in contract.AgentInput) {
	t.Helper()
	decode(t, o.Event.GetPayload(), &in)
	return in
}

func output(t *testing.T, o sdktest.Outcome) contract.AgentOutput {
	t.Helper()
	o.MustAck(t)
	last := o.Effects[len(o.Effects)-1].GetPublish()
	if last.GetTopic() != contract.TopicAgentOutput {
		t.Fatalf("the last effect is no output but %v", last)
	}
	var out contract.AgentOutput
	decode(t, last.GetPayload(), &out)
	return out
}

func TestEcho(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, New("echo"), options("echo"))
	o := k.Hear(contract.UserMessage{Text: "hello"})
	if out := output(t, o); out.Text != "hello" || out.Outcome != contract.OutcomeOK {
		t.Errorf("echo returned %+v", out)
	}
	if rows := k.History(heard(t, o).Session); len(rows) != 2 {
		t.Errorf("history %v", rows)
	}
	if shown := k.AwaitSent("cli_channel", 1); shown[0].Text != "hello" {
		t.Errorf("shown %+v", shown)
	}
}

// A turn with a tool over the wire, and the request that the model sees.
func TestTurnWithTool(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, New("orchestrator"), options("orchestrator"))
	var requests []*sdk.CompleteRequest
	k.ScriptModel(func(r *sdk.CompleteRequest) ([]*extensionv1.Delta, error) {
		requests = append(requests, r)
		if len(requests) == 1 {
			return []*extensionv1.Delta{{Call: &busv1.Call{
				ProviderId: "x", Name: "send_to_channel", Arguments: []byte(`{"channel_id":"telegram_channel","text":"Hi!"}`),
			}}, {Finish: "tool_calls"}}, nil
		}
		return []*extensionv1.Delta{{Text: "Done: it is "}, {Text: "in Telegram."}, {Finish: "stop"}}, nil
	})
	m := contract.UserMessage{
		UserID: "4711", UserName: "Anna", ConversationID: "address-4711", Text: "say hi to me in Telegram",
	}
	o := k.Hear(m)
	out := output(t, o)
	sent := k.Sent("telegram_channel")
	if out.Text != "Done: it is in Telegram." || len(sent) != 1 || sent[0].Text != "Hi!" {
		t.Errorf("sent %v, said %+v", sent, out)
	}
	if len(requests) != 2 {
		t.Fatalf("the model was asked %d times", len(requests))
	}
	system := requests[0].GetMessages()[0].GetContent()
	for _, want := range []string{"You are a personal assistant.", "`send_to_channel`"} {
		if !strings.Contains(system, want) {
			t.Errorf("the system prompt lacks %q:\n%s", want, system)
		}
	}
	preamble, text := loop.SplitPreamble(requests[0].GetMessages()[1].GetContent())
	for _, want := range []string{"Current channel: cli_channel (Terminal)",
		"Channel telegram_channel (Telegram): ready", "Europe/Berlin)"} {
		if !strings.Contains(preamble, want) {
			t.Errorf("the preamble lacks %q:\n%s", want, preamble)
		}
	}
	if text != m.Text {
		t.Errorf("the message is %q", text)
	}
	handle := heard(t, o).ReplyTo
	if handle == "" {
		t.Error("the input has no handle of its conversation")
	}
	for _, r := range requests {
		if text := r.String(); strings.Contains(text, handle) || strings.Contains(text, "4711") {
			t.Errorf("an address reaches the model:\n%s", text)
		}
	}

	// The next turn has the whole conversation.
	m.Text, m.MessageID = "thanks", ""
	out = output(t, k.Hear(m))
	if n := len(requests[2].GetMessages()); n != 6 || out.Outcome != contract.OutcomeOK {
		t.Errorf("the next request has %d messages", n)
	}
}

// A turn continues after its process was replaced while a tool ran.
func TestTurnContinuesAfterRestart(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, New("orchestrator"), options("orchestrator"))
	ran := 0
	running, release := make(chan struct{}), make(chan struct{})
	k.ScriptTool(&extensionv1.Tool{Name: "memory/write"}, func([]byte) *extensionv1.CallResult {
		ran++
		close(running)
		<-release
		return &extensionv1.CallResult{Content: "written"}
	})
	k.ScriptModel(func(r *sdk.CompleteRequest) ([]*extensionv1.Delta, error) {
		last := r.GetMessages()[len(r.GetMessages())-1]
		if last.GetRole() == "tool" {
			return []*extensionv1.Delta{{Text: "after " + last.GetContent()}}, nil
		}
		return []*extensionv1.Delta{{Call: &busv1.Call{ProviderId: "x", Name: "memory__write", Arguments: []byte("{}")}}}, nil
	})
	turn := k.BeginHear(contract.UserMessage{Text: "do it"})
	<-running
	k.Lose()
	o := turn.Wait()
	if o.Lost == nil {
		t.Errorf("the first attempt ended: %s", o)
	}
	k.Restart(New("orchestrator"))
	close(release)
	said := k.AwaitSent("cli_channel", 1)[0].Text
	if rows := k.History(heard(t, o).Session); said != "after written" || ran != 1 || len(rows) != 4 {
		t.Errorf("said %q, ran %d times, history %v", said, ran, rows)
	}
}

func TestPromptsOfTheDataDir(t *testing.T) {
	t.Parallel()
	o := options("orchestrator")
	o.DataDir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(o.DataDir, "prompts"), 0o700); err != nil {
		t.Fatal(err)
	}
	override := "{{.Name}}, be terse. Current time: {{.Time}} ({{.Zone}})"
	if err := os.WriteFile(filepath.Join(o.DataDir, "prompts", "system.md"), []byte(override), 0o600); err != nil {
		t.Fatal(err)
	}
	k := sdktest.Start(t, New("orchestrator"), o)
	var system string
	k.ScriptModel(func(r *sdk.CompleteRequest) ([]*extensionv1.Delta, error) {
		system = r.GetMessages()[0].GetContent()
		return []*extensionv1.Delta{{Text: "ok"}}, nil
	})
	output(t, k.Hear(contract.UserMessage{Text: "hi"}))
	if !strings.HasPrefix(system, "Assistant, be terse. Current time: 20") {
		t.Errorf("the system prompt is %q", system)
	}
}

// Sessions do not wait for each other: all are asked before one is answered.
func TestSessionsAreConcurrent(t *testing.T) {
	t.Parallel()
	const sessions = 50
	k := sdktest.Start(t, New("orchestrator"), options("orchestrator"))
	var asked sync.WaitGroup
	asked.Add(sessions)
	k.ScriptModel(func(r *sdk.CompleteRequest) ([]*extensionv1.Delta, error) {
		asked.Done()
		asked.Wait()
		_, text := loop.SplitPreamble(r.GetMessages()[1].GetContent())
		return []*extensionv1.Delta{{Text: "you are " + text}}, nil
	})
	var turns []*sdktest.Handling
	for i := range sessions {
		id := fmt.Sprintf("s%d", i)
		turns = append(turns, k.BeginHear(contract.UserMessage{ConversationID: id, Text: id}))
	}
	for i, turn := range turns {
		if out := output(t, turn.Wait()); out.Text != fmt.Sprintf("you are s%d", i) {
			t.Errorf("session %d got %q", i, out.Text)
		}
	}
}
