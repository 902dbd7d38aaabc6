package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// megaphone is an extension whose tool is also the command /shout.
func megaphone(tool sdk.Tool) sdk.Extension {
	tool.Name, tool.Command, tool.Description = "shout", "shout", "Shouts."
	if tool.Schema == nil {
		tool.Schema = json.RawMessage(`{"type":"object","required":["text"],
			"properties":{"text":{"type":"string"},"volume":{"type":"integer","maximum":11}}}`)
	}
	return sdk.Extension{ID: "megaphone", Tools: []sdk.Tool{tool}}
}

func shout(_ context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var in struct{ Text string }
	if err := json.Unmarshal(c.Arguments, &in); err != nil {
		return sdk.ToolResult{}, err
	}
	effects := sdk.Effects{sdk.Publish("megaphone.shouted", in.Text), sdk.Put("last", in.Text)}
	return sdk.ToolResult{Content: strings.ToUpper(in.Text), Effects: effects}, nil
}

func TestCommandRunsItsTool(t *testing.T) {
	t.Parallel()
	calls := make(chan sdk.ToolCall, 1)
	k := sdktest.Start(t, megaphone(sdk.Tool{Call: func(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
		calls <- c
		return shout(ctx, c)
	}}), sdktest.Options{Timezone: "Europe/Berlin"})
	if k.Describe().GetEvents() {
		t.Error("an extension with only a tool reports that it handles events")
	}
	answer := k.Command("shout", "volume=11 hey you", func(r *extensionv1.CallRequest) {
		r.Session, r.ReplyTo, r.Group, r.Memory = "s7", "h", true, []string{"personal"}
	})
	if answer != "HEY YOU" {
		t.Errorf("the answer is %q", answer)
	}
	var last string
	if k.Stored("last", &last) == 0 || last != "hey you" || k.Await("megaphone.shouted") == nil {
		t.Errorf("the effects are not committed: stored %q", last)
	}
	c := <-calls
	if !strings.HasPrefix(c.ID, "e") || c.Location.String() != "Europe/Berlin" || c.Principal.Person == "" {
		t.Errorf("the call %s is in %s, for %+v", c.ID, c.Location, c.Principal)
	}
	c.ID, c.Location, c.Principal = "", nil, contract.Principal{}
	if want := (sdk.ToolCall{
		Name: "shout", Arguments: json.RawMessage(`{"text":"hey you","volume":11}`), Session: "s7",
		Agent: "caller", ReplyTo: "h", Channel: "persons", Group: true, Sender: "Anna", Memory: []string{"personal"},
		Command: "shout",
	}); !reflect.DeepEqual(c, want) {
		t.Errorf("the call is\n%+v, want\n%+v", c, want)
	}
	for text, words := range map[string][]string{
		"":                {"Usage: /shout TEXT [volume=NUMBER]"},
		"volume=loud hey": {"Volume must be a whole number, not 'loud'. Usage: /shout"},
		"volume=12 hey":   {"Volume: got 12, want at most 11", "Usage"},
	} {
		answer := k.Command("shout", text)
		for _, word := range words {
			if !strings.Contains(answer, word) {
				t.Errorf("/shout %s is answered with %q, without %q", text, answer, word)
			}
		}
	}
	select {
	case c := <-calls:
		t.Errorf("the tool was called with %s", c.Arguments)
	default:
	}
}

func TestEveryResultOfACommandIsAnswered(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		result sdk.ToolResult
		err    error
		say    func(content, language string) string
		answer string
	}{
		{name: "text", result: sdk.ToolResult{Content: "**hi**"}, answer: "**hi**"},
		{name: "nothing", result: sdk.ToolResult{Content: " \n"}, answer: "Done."},
		{name: "a JSON string", result: sdk.ToolResult{Content: `"hi"`}, answer: "hi"},
		{name: "JSON with a text", result: sdk.ToolResult{Content: `{"n":1,"text":"one"}`}, answer: "one"},
		{name: "other JSON", result: sdk.ToolResult{Content: `{"n":1}`}, answer: "```json\n{\n  \"n\": 1\n}\n```"},
		{name: "not quite JSON", result: sdk.ToolResult{Content: `[sic] {`}, answer: "[sic] {"},
		{name: "rendered", result: sdk.ToolResult{Content: `{"n":1}`}, say: func(c, _ string) string { return "so: " + c },
			answer: `so: {"n":1}`},
		{name: "a failed result", result: sdk.ToolResult{Content: "no voice", IsError: true},
			say: func(string, string) string { return "never" }, answer: "No voice."},
		{name: "an error", err: errors.New("no voice left"), answer: "No voice left."},
		{name: "a drop", err: sdk.Drop("never"), answer: "Never."},
		{name: "a panic", err: errPanic, answer: "Tool shout: panic: boom."},
		{name: "a conflict", err: contract.ErrConflict, answer: "the second call"},
		{name: "invalid effects", result: sdk.ToolResult{Effects: sdk.Effects{sdk.Put("k", make(chan int))}},
			answer: "Effects of shout: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			call := func(context.Context, sdk.ToolCall) (sdk.ToolResult, error) {
				calls++
				switch {
				case errors.Is(tt.err, errPanic):
					panic("boom")
				case calls == 2:
					return sdk.ToolResult{Content: "the second call"}, nil
				}
				return tt.result, tt.err
			}
			k := sdktest.Start(t, megaphone(sdk.Tool{Say: tt.say, Call: call}), sdktest.Options{})
			if answer := k.Command("shout", "hey"); !strings.HasPrefix(answer, tt.answer) {
				t.Errorf("the answer is %q", answer)
			}
		})
	}
}

var errPanic = errors.New("panic")

// A repeat is marked as one. A tool with effects is not run again.
func TestInterruptedCommandIsRepeatedOnlyIfHarmless(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		tool   sdk.Tool
		answer string
	}{
		{"harmful", sdk.Tool{}, "/shout was interrupted, so I don't know"},
		{"read-only", sdk.Tool{ReadOnly: true}, "repeat: true"},
		{"idempotent", sdk.Tool{Idempotent: true}, "repeat: true"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			called := make(chan struct{})
			crashing := tt.tool
			crashing.Call = func(ctx context.Context, _ sdk.ToolCall) (sdk.ToolResult, error) {
				close(called)
				<-ctx.Done()
				return sdk.ToolResult{}, ctx.Err()
			}
			tt.tool.Call = func(_ context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
				return sdk.ToolResult{Content: fmt.Sprint("repeat: ", c.Repeat)}, nil
			}
			k := sdktest.Start(t, megaphone(crashing), sdktest.Options{})
			answer := make(chan string)
			go func() { answer <- k.Command("shout", "hey") }()
			<-called
			k.Lose()
			k.Restart(megaphone(tt.tool))
			if got := <-answer; !strings.HasPrefix(got, tt.answer) {
				t.Errorf("the answer is %q", got)
			}
			if got := k.Command("shout", "hey"); got != "repeat: false" {
				t.Errorf("the next answer is %q", got)
			}
		})
	}
}

func TestInvalidCommandsAreRefused(t *testing.T) {
	t.Parallel()
	tool := func(name, schema string) sdk.Tool {
		return sdk.Tool{Name: name, Command: "shout", Schema: json.RawMessage(schema), Call: shout}
	}
	for want, tools := range map[string][]sdk.Tool{
		"both the command /shout": {tool("a", "{}"), tool("b", "{}")},
		"Schema of tool a":        {tool("a", `{"type":`)},
	} {
		if _, err := sdk.NewServer(sdktest.Logger(t), sdk.Extension{ID: "x", Tools: tools}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
