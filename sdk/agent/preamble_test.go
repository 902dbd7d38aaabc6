package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// resent counts the requests that do not begin with the whole previous one.
func resent(requests []*kernelv1.CompleteRequest) (n int) {
	for i, r := range requests[1:] {
		last := requests[i]
		if len(r.GetMessages()) < len(last.GetMessages()) ||
			!proto.Equal(&kernelv1.CompleteRequest{Tools: last.GetTools(), Messages: last.GetMessages()},
				&kernelv1.CompleteRequest{Tools: r.GetTools(), Messages: r.GetMessages()[:len(last.GetMessages())]}) {
			n++
		}
	}
	return n
}

// Tool rounds, steering, changed readiness and a new process for each input
// do not change the earlier part of a request.
func TestARequestBeginsWithThePreviousOne(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarts %v", restarts), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := steered()
				a := w.agent(t, &extensionv1.AgentSpec{})
				for i := range 5 {
					if restarts {
						a = w.agent(t, &extensionv1.AgentSpec{})
					}
					time.Sleep(time.Hour)
					w.channels[0].Readiness = &extensionv1.Readiness{State: extensionv1.Readiness_State(1 + i%4)}
					w.context.ChannelsEtag = fmt.Sprint(i)
					if err := w.deliver(t.Context(), a, input(fmt.Sprintf("x%d", i), user("go"))); err != nil {
						t.Fatal(err)
					}
				}
				if len(w.sent) < 10 {
					t.Fatalf("%d requests", len(w.sent))
				}
				if n := resent(w.sent); n > 0 {
					t.Errorf("%d of %d requests do not begin with the previous one: %q", n, len(w.sent), w.sent)
				}
			})
		})
	}
}

func TestAPreambleHasOnlyChangedLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.model = plainAnswer
		a := New(Options{})
		a.start(w, "Assistant", &extensionv1.AgentSpec{}, listing{}, time.UTC, hclog.NewNullLogger())
		preamble := func(id string) string {
			t.Helper()
			if err := w.deliver(t.Context(), a, input(id, user("hello"))); err != nil {
				t.Fatal(err)
			}
			messages := w.sent[len(w.sent)-1].GetMessages()
			preamble, text := SplitPreamble(messages[len(messages)-1].GetContent())
			if text != "hello" {
				t.Errorf("the text is %q", text)
			}
			return preamble
		}
		w.channels = append(w.channels, &kernelv1.Channel{Id: "telegram_channel", Name: "Telegram",
			Readiness: &extensionv1.Readiness{
				State: extensionv1.Readiness_STATE_OFFLINE,
			}})
		want := "Current time: 2000-01-01T01:00:00+01:00 (Saturday, Europe/Berlin)\n" +
			"cli_channel: ready\ntelegram_channel: offline"
		if got := preamble("e1"); got != want {
			t.Errorf("first preamble: %q, want %q", got, want)
		}
		time.Sleep(time.Minute)
		if got, want := preamble("e2"), "Current time: 2000-01-01T01:01:00+01:00 (Saturday, Europe/Berlin)"; got != want {
			t.Errorf("second preamble: %q, want %q", got, want)
		}
		time.Sleep(time.Minute)
		w.channels[1].Readiness, w.context.ChannelsEtag = nil, "c2"
		if got := preamble("e3"); !strings.HasSuffix(got, "Berlin)\ntelegram_channel: ready") {
			t.Errorf("preamble when a channel is ready: %q", got)
		}
		time.Sleep(time.Minute)
		w.channels, w.context.ChannelsEtag = w.channels[:1], "c3"
		if got := preamble("e4"); !strings.HasSuffix(got, "Berlin)\ntelegram_channel: gone") {
			t.Errorf("preamble when a channel is gone: %q", got)
		}
		if got := preamble("e5"); strings.Contains(got, "channel") {
			t.Errorf("preamble without changes: %q", got)
		}
	})
}

// listing is prompts with a preamble line for each channel.
type listing struct{ Plain }

func (listing) Preamble(s Scene) (string, error) {
	text := "Current time: " + s.Clock()
	for _, c := range s.Channels {
		text += "\n" + c.ID + ": " + c.Readiness
	}
	return text, nil
}

func TestALongTurnGetsTheTimeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.tool("a/wait", false)
		minutes := []time.Duration{1, 7, 2}
		w.run["a/wait"] = func(context.Context, *busv1.Call) (*extensionv1.CallResult, error) {
			time.Sleep(minutes[0] * time.Minute)
			minutes = minutes[1:]
			return &extensionv1.CallResult{Content: "waited"}, nil
		}
		w.model = func(_ context.Context, _ *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
			if len(minutes) == 0 {
				return text("done").emit(emit)
			}
			return calls("a__wait").emit(emit)
		}
		w.finish(t, &extensionv1.AgentSpec{}, input("e1", user("wait")))
		var times []string
		for _, r := range w.rows {
			if r.GetPreamble() != "" {
				times = append(times, r.GetKind()+" "+r.GetPreamble()[len("Current time: 2000-01-01T"):][:5])
			}
		}
		if want := []string{"input 01:00", "note 01:08"}; !slices.Equal(times, want) {
			t.Errorf("preambles %q, want %q", times, want)
		}
		if n := resent(w.sent); n > 0 {
			t.Errorf("%d requests do not begin with the previous one", n)
		}
	})
}

// Without a summary, old turns are left out many at a time.
func TestOldTurnsAreLeftOutInLargeSteps(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.model = func(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		if r.GetPurpose() != "" {
			return contract.ErrUnavailable
		}
		return text("noted").emit(emit)
	}
	a := w.agent(t, &extensionv1.AgentSpec{MaxTokens: 2000})
	for i := range 200 {
		if err := w.deliver(t.Context(), a, input(fmt.Sprintf("e%d", i), user(strings.Repeat("x", 200)))); err != nil {
			t.Fatal(err)
		}
	}
	w.sent = slices.DeleteFunc(w.sent, func(r *kernelv1.CompleteRequest) bool { return r.GetPurpose() != "" })
	if n := resent(w.sent); n == 0 || n > 40 {
		t.Errorf("%d of %d requests do not begin with the previous one", n, len(w.sent))
	}
}

// Hidden tools are found, called through use_tool or by their own
// names, and recorded under their full names.
func TestHiddenToolsAreCalledThroughUseTool(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for _, name := range []string{contract.ToolFind, contract.ToolUse, "core/list", "tasks/push", "tasks/run",
		"other/run"} {
		w.tool(name, false)
	}
	spec := &extensionv1.AgentSpec{Offers: []string{"core/*"}}
	answers := []*said{
		{calls: []*busv1.Call{{Name: "use_tool", Arguments: []byte(`{"name":"tasks/push","arguments":{"prompt":"dig"}}`)}}},
		{calls: []*busv1.Call{{Name: "use_tool", Arguments: []byte(`{"name":"push","arguments":"{\"prompt\":\"dig\"}"}`)}}},
		{calls: []*busv1.Call{{Name: "tasks__run", Arguments: []byte(`{"count":1}`)}}},
		{calls: []*busv1.Call{{Name: "use_tool", Arguments: []byte(`{"arguments":{}}`)}}},
		{text: "done"},
	}
	w.model = func(_ context.Context, _ *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		next := answers[0]
		answers = answers[1:]
		return next.emit(emit)
	}
	w.finish(t, spec, input("e1", user("dig")))
	want := []string{`tasks/push{"prompt":"dig"}`, `tasks/push{"prompt":"dig"}`, `tasks/run{"count":1}`,
		`core/use_tool{"arguments":{}}`}
	if !slices.Equal(w.ran, want) {
		t.Errorf("ran %q, want %q", w.ran, want)
	}
	last := w.sent[len(w.sent)-1]
	var names, called []string
	for _, tool := range last.GetTools() {
		names = append(names, tool.GetName())
	}
	if want := []string{"find_tools", "use_tool", "list"}; !slices.Equal(names, want) {
		t.Errorf("offered: %q, want %q", names, want)
	}
	if got, want := last.GetTools()[0].GetDescription(),
		"There are: tasks: push, run; other: run."; !strings.HasSuffix(got, want) {
		t.Errorf("find_tools is described as %q, want %q at the end", got, want)
	}
	for _, m := range last.GetMessages() {
		for _, c := range m.GetCalls() {
			called = append(called, c.GetName()+string(c.GetArguments()))
		}
	}
	want = []string{
		`use_tool{"name":"tasks/push","arguments":{"prompt":"dig"}}`,
		`use_tool{"name":"tasks/push","arguments":{"prompt":"dig"}}`,
		`use_tool{"name":"tasks/run","arguments":{"count":1}}`, `use_tool{"arguments":{}}`,
	}
	if !slices.Equal(called, want) {
		t.Errorf("the calls are shown as %q, want %q", called, want)
	}
	if n := resent(w.sent); n > 0 {
		t.Errorf("%d requests do not begin with the previous one", n)
	}

	w.context.Extension = "tasks"
	answers = []*said{{text: "done"}}
	w.finish(t, spec, input("e2", user("again")))
	if got := len(w.sent[len(w.sent)-1].GetTools()); got != 5 {
		t.Errorf("a session of tasks is offered %d tools, want its two as well", got)
	}
	w.context.Extension = ""
	answers = []*said{{text: "done"}}
	w.finish(t, &extensionv1.AgentSpec{}, input("e3", user("and again")))
	if got := len(w.sent[len(w.sent)-1].GetTools()); got != 4 {
		t.Errorf("an agent that offers all its tools is offered %d, want 4 and nothing to find others", got)
	}
}

func TestSlimSchema(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object","properties":{},"required":[],"additionalProperties":false}`: `{"properties":{},"type":"object"}`,
		`{"type":"object","properties":{"title":{"type":"string","minLength":1},"pattern":{"enum":[{"title":"x"}]}},` +
			`"required":["title"]}`: `{"properties":{"pattern":{"enum":[{"title":"x"}]},"title":{"type":"string"}},` +
			`"required":["title"],"type":"object"}`,
		`{"type":"array","items":{"anyOf":[{"type":"string","maxLength":5},{"const":{"pattern":"y"}}]}}`: `{"items":{` +
			`"anyOf":[{"type":"string"},{"const":{"pattern":"y"}}]},"type":"array"}`,
		`not JSON`: `not JSON`,
		``:         ``,
	} {
		if got := string(slim([]byte(schema))); got != want {
			t.Errorf("%s is sent as %s, want %s", schema, got, want)
		}
	}
}

func TestSplitPreamble(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "hello", "~~~\nx", "[Backlog]\na"} {
		if preamble, rest := SplitPreamble(withPreamble("a: b\nc: d", text)); preamble != "a: b\nc: d" || rest != text {
			t.Errorf("%q: %q, %q", text, preamble, rest)
		}
		if preamble, rest := SplitPreamble(text); preamble != "" || rest != text {
			t.Errorf("%q: %q, %q", text, preamble, rest)
		}
	}
}
