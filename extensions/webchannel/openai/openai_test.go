package openaiapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/sdk/netguard"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

var options = sdktest.Options{Manifest: "testdata/web_channel.yaml"}

const agent = "web_channel"

// bed is the endpoint on a kernel, with an agent that the test plays.
type bed struct {
	*sdktest.Kernel
	t    *testing.T
	chat *chat.Chat
	part *server
	site *httptest.Server
	// answer is what the agent does with an input.
	answer func(ctx context.Context, in contract.AgentInput, d sdk.Delivery) (contract.AgentOutput, error)

	mu    sync.Mutex
	now   time.Time
	heard []contract.AgentInput
	v     door.Visitor
}

func start(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, now: time.Now(), v: door.Visitor{
		User: "anna", Person: "p1", Name: "Anna", Role: "owner", Token: "laptop", Scopes: []string{door.ScopeMessages}, Language: "en",
	}}
	b.answer = func(_ context.Context, in contract.AgentInput, _ sdk.Delivery) (contract.AgentOutput, error) {
		return contract.AgentOutput{Outcome: contract.OutcomeOK, Text: "You said: " + in.Text}, nil
	}
	b.Kernel = sdktest.Start(t, b.extension(), options)
	return b
}

func (b *bed) extension() sdk.Extension {
	c := chat.New(b.clock)
	return sdk.Extension{
		ID: "web_channel", Channel: c, HandleAgent: b.handle,
		Start: func(ctx context.Context, k *sdk.Kernel) error {
			c.Start(k)
			b.serve(ctx, c, k)
			return nil
		},
		Stop: func(context.Context) error {
			b.site.Close()
			c.Stop()
			return nil
		},
	}
}

func (b *bed) serve(ctx context.Context, c *chat.Chat, k *sdk.Kernel) {
	guard, err := netguard.New(netguard.Options{})
	if err != nil {
		b.t.Error(err)
	}
	mux := http.NewServeMux()
	conn := k.Services().Conn
	b.chat = c
	b.part = register(mux, Options{
		Context: ctx, Chat: c, Files: c, Store: k, Read: admin.Reader(conn), Manage: admin.Manager(conn), Images: guard,
		Now: b.clock, Log: k.Log(),
	})
	b.site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(door.With(r.Context(), b.v)))
	}))
}

func (b *bed) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bed) later(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// handle plays the agent.
func (b *bed) handle(ctx context.Context, d sdk.Delivery) (sdk.Effects, error) {
	var in contract.AgentInput
	if err := d.Decode(&in); err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.heard = append(b.heard, in)
	b.mu.Unlock()
	if in.Kind == contract.InputRecord {
		return nil, nil
	}
	out, err := b.answer(ctx, in, d)
	if err != nil {
		return nil, err
	}
	return sdk.Effects{sdk.Publish(contract.TopicAgentOutput, out)}, nil
}

func (b *bed) inputs() []contract.AgentInput {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]contract.AgentInput{}, b.heard...)
}

func (b *bed) client() *api.Client {
	c := api.DefaultConfig("a-token")
	c.BaseURL = b.site.URL + "/v1"
	return api.NewClientWithConfig(c)
}

func user(text string) api.ChatCompletionMessage {
	return api.ChatCompletionMessage{Role: "user", Content: text}
}

func (b *bed) ask(q api.ChatCompletionRequest) string {
	b.t.Helper()
	if q.Model == "" {
		q.Model = agent
	}
	a, err := b.client().CreateChatCompletion(b.t.Context(), q)
	if err != nil {
		b.t.Fatalf("ask %+v: %v", q.Messages, err)
	}
	return a.Choices[0].Message.Content
}

// post sends a body, and decodes the answer.
func (b *bed) post(path, body string, header ...string) (status int, answer map[string]any) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.site.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	if err := json.NewDecoder(got.Body).Decode(&answer); err != nil {
		b.t.Fatal(err)
	}
	return got.StatusCode, answer
}

func TestAnAgentIsAModel(t *testing.T) {
	t.Parallel()
	b := start(t)
	list, err := b.client().ListModels(t.Context())
	if err != nil || len(list.Models) == 0 {
		t.Fatalf("models %+v: %v", list, err)
	}
	if got := b.ask(api.ChatCompletionRequest{Messages: []api.ChatCompletionMessage{user("hi")}}); got != "You said: hi" {
		t.Errorf("answer %q", got)
	}
	_, err = b.client().GetModel(t.Context(), "nobody")
	var refused *api.APIError
	if !errors.As(err, &refused) || refused.HTTPStatusCode != http.StatusNotFound || refused.Code != "model_not_found" {
		t.Errorf("a model that there isn't: %v", err)
	}
}

func TestAStreamedAnswerComesInPieces(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.answer = func(ctx context.Context, in contract.AgentInput, _ sdk.Delivery) (contract.AgentOutput, error) {
		for _, text := range []string{"One", "One two"} {
			b.chat.Draft(ctx, sdk.Draft{Conversation: "anna", Thread: "api~laptop~u-anna", ID: "d1", Text: text,
				ReplyTo: fmt.Sprint(in.Meta["message_id"])})
		}
		return contract.AgentOutput{Outcome: contract.OutcomeOK, Text: "One two three"}, nil
	}
	s, err := b.client().CreateChatCompletionStream(t.Context(), api.ChatCompletionRequest{
		Model: agent, User: "anna", Messages: []api.ChatCompletionMessage{user("count")},
		StreamOptions: &api.StreamOptions{IncludeUsage: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	text, reason := "", ""
	for {
		chunk, err := s.Recv()
		if err != nil {
			break
		}
		for _, c := range chunk.Choices {
			text += c.Delta.Content
			reason += string(c.FinishReason)
		}
	}
	if text != "One two three" || reason != "stop" {
		t.Errorf("streamed %q, %q", text, reason)
	}
}
