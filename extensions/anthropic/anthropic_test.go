package anthropic

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/extensions/anthropic/anthropictest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
	"github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

const testKey = "sk-ant-test-0123456789"

func TestSuite(t *testing.T) {
	t.Parallel()
	modelapitest.Suite(t, modelapitest.Subject{
		Kind: Kind(), Base: "/v1", Serve: func(l net.Listener) modelapitest.Fake { return anthropictest.Serve(l) },
	})
}

const manifest = "../../manifests/anthropic.yaml"

func TestConformance(t *testing.T) { //nolint:paralleltest // goroutines are counted
	s := anthropictest.New(t)
	sdktest.Conformance(t, func() sdk.Extension { return New(ID) }, sdktest.Options{
		Manifest: manifest,
		Config:   map[string]any{"base_url": s.URL, "model": "claude-test", "timeout": "1m"},
		Secrets:  map[string]string{KeyName: testKey},
	})
}

// connect returns a client of a server, and the function that completes with it.
func connect(t *testing.T, s *anthropictest.Server) func(*sdk.CompleteRequest) (text string, last *sdk.Delta) {
	t.Helper()
	server, err := modelapi.NewServer(Kind(), ID, modelapi.Config{BaseURL: s.URL, Key: KeyName}, testKey)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return func(r *sdk.CompleteRequest) (text string, last *sdk.Delta) {
		t.Helper()
		err := server.Complete(t.Context(), r, func(d *sdk.Delta) error {
			text += d.GetText()
			last = d
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return text, last
	}
}

// A request asks for a cache of what the next one begins with.
func TestTheBeginningIsCached(t *testing.T) {
	t.Parallel()
	s := anthropictest.New(t)
	s.Always(anthropictest.Answer{Text: "Done.", Input: 100, Cached: 80})
	complete := connect(t, s)
	say := func(role, text string) *extensionv1.Message { return &extensionv1.Message{Role: role, Content: text} }
	r := &sdk.CompleteRequest{
		Model: "claude-test", Messages: []*extensionv1.Message{say("system", "You are."), say("user", "one")},
		Tools: []*extensionv1.Tool{{Name: "look"}, {Name: "listen"}},
	}
	complete(r)
	call := say("assistant", "Looking.")
	call.Calls = []*busv1.Call{{CallId: "a", Name: "look", Arguments: []byte(`{"at":1}`)}}
	r.Messages = append(r.Messages, call, &extensionv1.Message{Role: "tool", CallId: "a", Content: "a cat"})
	complete(r)
	r.Messages = append(r.Messages, say("assistant", "A cat."), say("user", "two"))
	_, last := complete(r)
	requests := s.Requests()
	for i, want := range []string{"tools system 0", "tools system 0 2", "tools system 2 4"} {
		if got := strings.Join(requests[i].CachePoints(), " "); got != want {
			t.Errorf("request %d has the cache points %s, want %s", i, got, want)
		}
	}
	if u := last.GetUsage(); u.GetInputTokens() != 100 || u.GetCachedTokens() != 80 {
		t.Errorf("usage %v", u)
	}
	second := requests[1]
	if got := second.Results(); !slices.Equal(got, []string{"a cat"}) || string(second.Messages[1].Content[1].Input) != `{"at":1}` {
		t.Errorf("the call and its result are %+v", second.Messages)
	}
}

// What the server says apart from text and calls is skipped; an overloaded server is
// asked again.
func TestOddStreams(t *testing.T) {
	t.Parallel()
	s := anthropictest.New(t)
	complete := connect(t, s)
	ask := &sdk.CompleteRequest{Model: "claude-test", Messages: []*extensionv1.Message{{Role: "user", Content: "hi"}}}
	stream := func(events ...string) anthropictest.Answer {
		return anthropictest.Answer{Body: "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"}
	}
	const end = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`
	s.Queue(stream(`{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_creation_input_tokens":7}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`,
		`{"type":"content_block_stop","index":0}`, `{"type":"something_new"}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"He"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"llo"}}`, end, `{"type":"message_stop"}`))
	text, last := complete(ask)
	if u := last.GetUsage(); text != "Hello" || last.GetFinish() != "stop" || u.GetInputTokens() != 12 || u.GetOutputTokens() != 9 {
		t.Errorf("got %q and %v", text, last)
	}
	s.Queue(anthropictest.Answer{Fault: modelapitest.ErrorChunk, AfterChunks: 1, Code: "overloaded_error"},
		modelapitest.Say("Now."))
	if text, _ := complete(ask); text != "Now." {
		t.Errorf("after an overload: %q", text)
	}
}

func TestDefaultModel(t *testing.T) {
	t.Parallel()
	for want, models := range map[string][]string{
		"claude-sonnet-5": {"claude-opus-6", "claude-sonnet-5", "claude-haiku-5", "claude-sonnet-4"}, "other": {"other", "b"},
	} {
		s := anthropictest.New(t)
		s.OnlyModels(models...)
		s.Always(modelapitest.Say("hi"))
		connect(t, s)(&sdk.CompleteRequest{Messages: []*extensionv1.Message{{Role: "user", Content: "hi"}}})
		if got := s.Requests()[0].Model; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	}
}
