package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
	loop "github.com/switchboard-run/switchboard/sdk/agent"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

const session = "s1"

func orchestrator() sdktest.Options {
	return sdktest.Options{
		ID: "orchestrator", Name: "Assistant", Timezone: "Europe/Berlin",
		Agent: &extensionv1.AgentSpec{Model: "default", Instructions: "You are a personal assistant."},
		Channels: []*kernelv1.Channel{
			{Id: "cli_channel", Name: "Terminal", Default: true},
			{Id: "telegram_channel", Name: "Telegram"},
		},
	}
}

//nolint:paralleltest // the suite counts goroutines
func TestConformance(t *testing.T) {
	for _, facts := range []sdktest.Facts{
		{ID: "orchestrator", Subscriptions: []string{"agent.input.orchestrator"}, Options: orchestrator()},
		{ID: "echo", Subscriptions: []string{"agent.input.echo"},
			Options: sdktest.Options{Agent: &extensionv1.AgentSpec{Echo: true}}},
	} {
		t.Run(facts.ID, func(t *testing.T) {
			sdktest.Conformance(t, func() sdk.Extension { return New(facts.ID) }, facts)
		})
	}
}

func turnAt(seq int64) *busv1.TurnContext {
	return &busv1.TurnContext{
		Session: session, HistorySeq: seq, Channel: "cli_channel", ChannelName: "Terminal",
		Timezone: "Europe/Berlin", ToolsEtag: "t", ChannelsEtag: "c",
	}
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
	k := sdktest.Start(t, New("echo"), sdktest.Options{Agent: &extensionv1.AgentSpec{Echo: true}})
	k.SetSession(&kernelv1.Session{Id: session})
	out := output(t, k.Hear(contract.AgentInput{Session: session, Text: "hello"}, turnAt(0)))
	if out.Text != "hello" || out.Outcome != contract.OutcomeOK {
		t.Errorf("echo says %+v", out)
	}
	if rows := k.History(session); len(rows) != 2 {
		t.Errorf("history %v", rows)
	}
}

// A turn with a tool over the wire, and the request that the model sees.
func TestTurnWithTool(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, New("orchestrator"), orchestrator())
	k.SetSession(&kernelv1.Session{Id: session})
	var sent []string
	k.ScriptTool(&extensionv1.Tool{Name: "core/send_to_channel", Schema: []byte(`{"type":"object"}`)},
		func(arguments []byte) *extensionv1.CallResult {
			sent = append(sent, string(arguments))
			return &extensionv1.CallResult{Content: `{"status":"delivered"}`}
		})
	var requests []*kernelv1.CompleteRequest
	k.ScriptModel(func(r *kernelv1.CompleteRequest) ([]*extensionv1.Delta, error) {
		requests = append(requests, r)
		if len(requests) == 1 {
			return []*extensionv1.Delta{{Call: &busv1.Call{
				ProviderId: "x", Name: "send_to_channel", Arguments: []byte(`{"channel_id":"telegram_channel","text":"Hi!"}`),
			}}, {Finish: "tool_calls"}}, nil
		}
		return []*extensionv1.Delta{{Text: "Done: it is "}, {Text: "in Telegram."}, {Finish: "stop"}}, nil
	})
	in := contract.AgentInput{Session: session, Sender: "4711 Anna", Text: "say hi to me in Telegram",
		ReplyTo: "h-secret-handle"}
	out := output(t, k.Hear(in, turnAt(0)))
	if out.Text != "Done: it is in Telegram." || len(sent) != 1 ||
		sent[0] != `{"channel_id":"telegram_channel","text":"Hi!"}` {
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
	preamble, heard := loop.SplitPreamble(requests[0].GetMessages()[1].GetContent())
	for _, want := range []string{"Current channel: cli_channel (Terminal)",
		"Channel telegram_channel (Telegram): ready", "Europe/Berlin)"} {
		if !strings.Contains(preamble, want) {
			t.Errorf("what is preamble lacks %q:\n%s", want, preamble)
		}
	}
	if heard != in.Text {
		t.Errorf("the message is %q", heard)
	}
	for _, r := range requests {
		if text := r.String(); strings.Contains(text, "secret-handle") || strings.Contains(text, "4711") {
			t.Errorf("an address reaches the model:\n%s", text)
		}
	}

	// The next turn has the whole conversation.
	out = output(t, k.Hear(contract.AgentInput{Session: session, Text: "thanks"}, turnAt(4)))
	if n := len(requests[2].GetMessages()); n != 6 || out.Outcome != contract.OutcomeOK {
		t.Errorf("the next request has %d messages", n)
	}
}

// A turn whose process was replaced between two steps goes on.
func TestTurnGoesOnAfterRestart(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, New("orchestrator"), orchestrator())
	ran := 0
	k.ScriptTool(&extensionv1.Tool{Name: "a/write"}, func([]byte) *extensionv1.CallResult {
		ran++
		return &extensionv1.CallResult{Content: "written"}
	})
	k.ScriptModel(func(r *kernelv1.CompleteRequest) ([]*extensionv1.Delta, error) {
		last := r.GetMessages()[len(r.GetMessages())-1]
		return []*extensionv1.Delta{{Text: "after " + last.GetContent()}}, nil
	})
	k.SetSession(&kernelv1.Session{Id: session},
		&busv1.Entry{Kind: contract.EntryInput, InputKind: contract.InputUser, Text: "do it", Seq: 1, Turn: 7,
			Preamble: "Current time: now", CreatedAtUs: time.Now().UnixMicro()},
		&busv1.Entry{Kind: contract.EntryAnswer, Seq: 2, Turn: 7,
			Calls: []*busv1.Call{{CallId: "call1", Name: "a/write", State: "open"}}})
	k.Restart(New("orchestrator"))
	turn := turnAt(2)
	turn.Turn, turn.Resumed = 7, true
	out := output(t, k.Hear(contract.AgentInput{Session: session, Text: "do it"}, turn))
	if out.Text != "after written" || ran != 1 || len(k.History(session)) != 4 {
		t.Errorf("said %q, ran %d times, history %v", out.Text, ran, k.History(session))
	}
}

func TestPromptsOfTheDataDir(t *testing.T) {
	t.Parallel()
	options := orchestrator()
	options.DataDir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(options.DataDir, "prompts"), 0o700); err != nil {
		t.Fatal(err)
	}
	override := "{{.Name}}, be terse. Current time: {{.Time}} ({{.Zone}})"
	if err := os.WriteFile(filepath.Join(options.DataDir, "prompts", "system.md"), []byte(override), 0o600); err != nil {
		t.Fatal(err)
	}
	k := sdktest.Start(t, New("orchestrator"), options)
	k.SetSession(&kernelv1.Session{Id: session})
	var system string
	k.ScriptModel(func(r *kernelv1.CompleteRequest) ([]*extensionv1.Delta, error) {
		system = r.GetMessages()[0].GetContent()
		return []*extensionv1.Delta{{Text: "ok"}}, nil
	})
	output(t, k.Hear(contract.AgentInput{Session: session, Text: "hi"}, turnAt(0)))
	if !strings.HasPrefix(system, "Assistant, be terse. Current time: 20") {
		t.Errorf("the system prompt is %q", system)
	}
}

// Sessions do not wait for each other: all are asked before one is answered.
func TestSessionsAreConcurrent(t *testing.T) {
	t.Parallel()
	const sessions = 50
	k := sdktest.Start(t, New("orchestrator"), orchestrator())
	var asked sync.WaitGroup
	asked.Add(sessions)
	k.ScriptModel(func(r *kernelv1.CompleteRequest) ([]*extensionv1.Delta, error) {
		asked.Done()
		asked.Wait()
		_, heard := loop.SplitPreamble(r.GetMessages()[1].GetContent())
		return []*extensionv1.Delta{{Text: "you are " + heard}}, nil
	})
	var turns []*sdktest.Handling
	for i := range sessions {
		id := fmt.Sprintf("s%d", i)
		k.SetSession(&kernelv1.Session{Id: id})
		turn := turnAt(0)
		turn.Session = id
		turns = append(turns, k.Begin("agent.input.orchestrator",
			contract.AgentInput{Session: id, Kind: contract.InputUser, Text: id}, sdktest.Keyed(id), sdktest.Turn(turn)))
	}
	for i, turn := range turns {
		if out := output(t, turn.Wait()); out.Text != fmt.Sprintf("you are s%d", i) {
			t.Errorf("session %d hears %q", i, out.Text)
		}
	}
}
