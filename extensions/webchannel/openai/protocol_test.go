package openaiapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
)

func TestEarlierMessagesAreARecord(t *testing.T) {
	t.Parallel()
	b := start(t)
	conversation := []api.ChatCompletionMessage{
		{Role: "system", Content: "Obey me."}, user("My name is Ada."), {Role: "assistant", Content: "Hello Ada."}, user("Who am I?"),
	}
	b.ask(api.ChatCompletionRequest{Messages: conversation, User: "ada"})
	got := b.Received()
	if len(got) != 2 || !got[0].Reaction || got[1].Reaction {
		t.Fatalf("the kernel has %+v", got)
	}
	for _, part := range []string{"system: Obey me.", "user: My name is Ada.", "assistant: Hello Ada."} {
		if !strings.Contains(got[0].Text, part) {
			t.Errorf("the record lacks %q: %s", part, got[0].Text)
		}
	}
	if heard := b.inputs(); len(heard) != 1 || heard[0].Text != "Who am I?" || got[0].ThreadID != got[1].ThreadID {
		t.Errorf("the agent heard %+v", heard)
	}
	conversation = append(conversation, api.ChatCompletionMessage{Role: "assistant", Content: "You said: Who am I?"}, user("And now?"))
	b.ask(api.ChatCompletionRequest{Messages: conversation, User: "ada"})
	if got := b.Received(); len(got) != 3 || got[2].Text != "And now?" {
		t.Errorf("what the agent knows is told again: %+v", got[2:])
	}
}

func TestANameKeepsASession(t *testing.T) {
	t.Parallel()
	b := start(t)
	ask := func(q api.ChatCompletionRequest) string {
		q.Messages = []api.ChatCompletionMessage{user("hi")}
		b.ask(q)
		all := b.inputs()
		return all[len(all)-1].Session
	}
	first, again := ask(api.ChatCompletionRequest{User: "a b"}), ask(api.ChatCompletionRequest{User: "a b"})
	named := ask(api.ChatCompletionRequest{User: "a b", Metadata: map[string]string{"conversation": "x"}})
	fresh, other := ask(api.ChatCompletionRequest{}), ask(api.ChatCompletionRequest{})
	if first != again || named == first || fresh == other || fresh == first {
		t.Errorf("sessions: %s %s, %s, %s %s", first, again, named, fresh, other)
	}
	b.v.Token = "phone"
	if foreign := ask(api.ChatCompletionRequest{User: "a b"}); foreign == first {
		t.Error("another token has the same conversation")
	}
}

func TestAResponseIsContinued(t *testing.T) {
	t.Parallel()
	b := start(t)
	status, first := b.post("/v1/responses", `{"model": "web_channel", "input": "one", "instructions": "Be brief."}`)
	if status != http.StatusOK || first["status"] != "completed" {
		t.Fatalf("status %d: %v", status, first)
	}
	next := fmt.Sprintf(`{"model": "web_channel", "input": [{"role": "user", "content": "two"}], "instructions": "Be brief.",
		"previous_response_id": %q}`, first["id"])
	status, second := b.post("/v1/responses", next)
	if status != http.StatusOK || second["previous_response_id"] != first["id"] {
		t.Fatalf("status %d: %v", status, second)
	}
	got := b.inputs()
	if len(got) != 2 || got[1].Text != "two" || got[0].Session != got[1].Session || len(b.Received()) != 3 {
		t.Errorf("the agent heard %+v, the kernel %+v", got, b.Received())
	}
	if status, answer := b.post("/v1/responses", next); status != http.StatusBadRequest {
		t.Errorf("an earlier response is continued: status %d: %v", status, answer)
	}
	unknown := response{"f-gone", "m"}.id()
	status, answer := b.post("/v1/responses", `{"model": "web_channel", "input": "x", "previous_response_id": "`+unknown+`"}`)
	if status != http.StatusNotFound {
		t.Errorf("one that there isn't: status %d: %v", status, answer)
	}
}

func TestAResponseIsStreamed(t *testing.T) {
	t.Parallel()
	b := start(t)
	got, err := http.Post(b.site.URL+"/v1/responses", "application/json", //nolint:noctx // a test
		strings.NewReader(`{"model": "web_channel", "input": "hi", "stream": true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	all, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for line := range strings.Lines(string(all)) {
		if kind, is := strings.CutPrefix(line, "event: response."); is {
			kinds = append(kinds, strings.TrimSpace(kind))
		}
	}
	want := "created in_progress output_item.added content_part.added output_text.delta output_text.done " +
		"content_part.done output_item.done completed"
	if strings.Join(kinds, " ") != want || !strings.Contains(string(all), `"delta":"You said: hi"`) {
		t.Errorf("got %s", all)
	}
}

func TestWhatCannotBeDoneIsRefused(t *testing.T) {
	t.Parallel()
	b := start(t)
	const say = `"model": "web_channel", "messages": [{"role": "user", "content": "hi"}]`
	const input = `"model": "web_channel", "input": "hi"`
	for body, param := range map[string]string{
		say + `, "tools": [{"type": "function"}]`:                "tools",
		say + `, "functions": [{}]`:                              "functions",
		say + `, "n": 2`:                                         "n",
		say + `, "logprobs": true`:                               "logprobs",
		say + `, "top_logprobs": 3`:                              "top_logprobs",
		say + `, "logit_bias": {"50256": -100}`:                  "logit_bias",
		say + `, "stop": ["\n"]`:                                 "stop",
		say + `, "response_format": {"type": "json_object"}`:     "response_format",
		say + `, "modalities": ["text", "audio"]`:                "modalities",
		say + `, "stream": 1`:                                    "stream",
		`"model": "", "messages": []`:                            "model",
		`"model": "web_channel", "messages": []`:                 "messages",
		`"model": "web_channel", "messages": [{"role": "tool"}]`: "messages",
		input + `, "tools": [{"type": "web_search"}]`:            "tools",
		input + `, "background": true`:                           "background",
		input + `, "text": {"format": {"type": "json_schema"}}`:  "text.format",
		input + `, "prompt": {"id": "x"}`:                        "prompt",
	} {
		path := "/v1/chat/completions"
		if strings.Contains(body, `"input"`) {
			path = "/v1/responses"
		}
		status, answer := b.post(path, "{"+body+"}")
		fault, _ := answer["error"].(map[string]any)
		if status != http.StatusBadRequest || fault["param"] != param || fault["type"] != "invalid_request_error" ||
			fault["message"] == "" || fault["code"] == nil {
			t.Errorf("%s: status %d: %v", body, status, answer)
		}
	}
	if heard := b.inputs(); len(heard) != 0 {
		t.Errorf("the agent heard %+v", heard)
	}
	status, answer := b.post("/v1/chat/completions", "{"+say+`, "temperature": 0, "seed": 1, "max_tokens": 5, "n": 1, "stop": null,
		"tools": [], "response_format": {"type": "text"}, "something": {"new": true}}`)
	if status != http.StatusOK {
		t.Errorf("harmless fields: status %d: %v", status, answer)
	}
}

func TestAKeyIsOneMessage(t *testing.T) {
	t.Parallel()
	b := start(t)
	const body = `{"model": "web_channel", "messages": [{"role": "user", "content": "hi"}]}`
	_, first := b.post("/v1/chat/completions", body, "Idempotency-Key", "k1")
	b.Restart(b.extension())
	status, second := b.post("/v1/chat/completions", body, "Idempotency-Key", "k1")
	if status != http.StatusOK || first["id"] != second["id"] || fmt.Sprint(first["choices"]) != fmt.Sprint(second["choices"]) {
		t.Errorf("status %d: %v, then %v", status, first, second)
	}
	if heard := b.inputs(); len(heard) != 1 {
		t.Errorf("the agent heard %+v", heard)
	}
	status, answer := b.post("/v1/chat/completions", strings.Replace(body, "hi", "ho", 1), "Idempotency-Key", "k1")
	if status != http.StatusConflict {
		t.Errorf("the key with another message: status %d: %v", status, answer)
	}
}

func TestATurnGoesOnWithoutItsClient(t *testing.T) {
	t.Parallel()
	b := start(t)
	begun, end := make(chan struct{}), make(chan struct{})
	b.answer = func(context.Context, contract.AgentInput, sdk.Delivery) (contract.AgentOutput, error) {
		close(begun)
		<-end
		return contract.AgentOutput{Outcome: contract.OutcomeOK, Text: "Done."}, nil
	}
	const body = `{"model": "web_channel", "messages": [{"role": "user", "content": "hi"}]}`
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.site.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "k1")
	go func() {
		<-begun
		leave()
	}()
	if got, err := http.DefaultClient.Do(r); err == nil { // it left
		_ = got.Body.Close()
		t.Fatal("the client did not leave")
	}
	close(end)
	status, answer := b.post("/v1/chat/completions", body, "Idempotency-Key", "k1")
	if text, _ := json.Marshal(answer); status != http.StatusOK || !strings.Contains(string(text), "Done.") {
		t.Errorf("status %d: %s", status, text)
	}
}

func TestATurnThatFailsIsAnError(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[string]int{
		contract.OutcomeError: http.StatusBadGateway, contract.OutcomeTimeout: http.StatusGatewayTimeout,
		contract.OutcomeCancelled: http.StatusConflict, contract.OutcomeCapped: http.StatusOK, contract.OutcomeOK: http.StatusOK,
	} {
		b := start(t)
		b.answer = func(context.Context, contract.AgentInput, sdk.Delivery) (contract.AgentOutput, error) {
			return contract.AgentOutput{Outcome: outcome}, nil // without a text
		}
		_, err := b.client().CreateChatCompletion(t.Context(), api.ChatCompletionRequest{
			Model: agent, Messages: []api.ChatCompletionMessage{user("hi")},
		})
		status := http.StatusOK
		if refused, is := errors.AsType[*api.APIError](err); is {
			status = refused.HTTPStatusCode
		}
		if status != want {
			t.Errorf("%s: status %d, want %d: %v", outcome, status, want, err)
		}
	}
}

func TestACommandIsAnswered(t *testing.T) {
	t.Parallel()
	b := start(t)
	if got := b.ask(api.ChatCompletionRequest{Messages: []api.ChatCompletionMessage{user("/help")}}); !strings.Contains(got, "/") {
		t.Errorf("answer %q", got)
	}
}

func TestAnImageIsAnAttachment(t *testing.T) {
	t.Parallel()
	b := start(t)
	const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	see := func(url string) error {
		_, err := b.client().CreateChatCompletion(t.Context(), api.ChatCompletionRequest{Model: agent,
			Messages: []api.ChatCompletionMessage{{Role: "user", MultiContent: []api.ChatMessagePart{
				{Type: api.ChatMessagePartTypeText, Text: "What is this?"},
				{Type: api.ChatMessagePartTypeImageURL, ImageURL: &api.ChatMessageImageURL{URL: url}},
			}}}})
		return err
	}
	if err := see(pixel); err != nil {
		t.Fatal(err)
	}
	got := b.inputs()[0].Attachments
	if len(got) != 1 || got[0].Kind != contract.KindImage || got[0].MIME != "image/png" || got[0].Blob == "" {
		t.Errorf("attachments %+v", got)
	}
	for _, bad := range []string{
		"data:image/png;base64,aGVsbG8=", "data:image/png;base64,???", "data:image/png,x", "http://example.org/a.png",
		"https://127.0.0.1/a.png", "https://localhost/a.png", "file:///etc/passwd", "https://169.254.169.254/latest",
	} {
		var refused *api.APIError
		if err := see(bad); !errors.As(err, &refused) || refused.HTTPStatusCode != http.StatusBadRequest {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestAFreshConversationExpires(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.ask(api.ChatCompletionRequest{Messages: []api.ChatCompletionMessage{user("hi")}})
	b.ask(api.ChatCompletionRequest{Messages: []api.ChatCompletionMessage{user("hi")}, User: "ada"})
	fresh, kept := b.inputs()[0].Session, b.inputs()[1].Session
	sessions := func() (all []string) {
		rows, err := b.part.Read.Sessions(t.Context(), &adminv1.SessionsRequest{Ids: []string{fresh, kept}})
		for err == nil {
			var row *adminv1.Session
			if row, err = rows.Recv(); err == nil {
				all = append(all, row.GetId())
			}
		}
		return all
	}
	conversations := func() int {
		all, err := b.chat.List(t.Context(), b.v)
		if err != nil {
			t.Fatal(err)
		}
		return len(all) - 1 // the main one
	}
	for _, after := range []time.Duration{freshKept - time.Minute, 2 * time.Minute} {
		if got := sessions(); len(got) != 2 || conversations() != 2 {
			t.Errorf("before it expires: sessions %q, %d conversations", got, conversations())
		}
		b.later(after)
		b.Restart(b.extension()) // what was stored decides, not the process
		if err := b.part.sweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := sessions(); len(got) != 1 || got[0] != kept || conversations() != 1 || len(b.Keys(recordPrefix)) != 1 {
		t.Errorf("afterwards: sessions %q of %s, %d conversations, records %q", got, kept, conversations(), b.Keys(recordPrefix))
	}
}

func TestATokenWithoutTheScopeIsRefused(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, v := range []door.Visitor{{}, {User: "anna", Person: "p1", Role: "owner", Token: "x", Scopes: []string{door.ScopeRead}}} {
		b.v = v
		for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/v1/nothing"} {
			if status, answer := b.post(path, "{}"); status != http.StatusForbidden {
				t.Errorf("%s: status %d: %v", path, status, answer)
			}
		}
	}
}
