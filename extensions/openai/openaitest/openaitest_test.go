package openaitest

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// post sends a body and returns the status, the header and the answer.
func post(t *testing.T, s *Server, body string) (int, http.Header, string) {
	t.Helper()
	status, header, answer, err := try(t, s, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, header, answer
}

func try(t *testing.T, s *Server, body string) (int, http.Header, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.BaseURL()+"/chat/completions",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sk-something-quite-secret")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b), err
}

const hello = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`

// The server refuses the same requests as the real API, with the same errors.
func TestChecks(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.Handle(func(Request) Answer { return Say("fine") })
	messages := func(m string) string { return `{"model":"m","messages":[` + m + `]}` }
	tool := func(f string) string {
		return `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":` + f +
			`}]}`
	}
	call := func(id string) string {
		return `{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}}`
	}
	user := `{"role":"user","content":"x"}`
	for _, tt := range []struct{ name, body, says string }{
		{"no JSON", `{`, "could not parse"},
		{"no model", `{"messages":[` + user + `]}`, "model parameter"},
		{"no messages", `{"model":"m","messages":[]}`, "'messages'"},
		{"empty tools", `{"model":"m","messages":[` + user + `],"tools":[]}`, "'tools'"},
		{"usage without a stream", `{"model":"m","messages":[` + user + `],"stream_options":{"include_usage":true}}`,
			"stream_options"},
		{"role", messages(`{"role":"bot","content":"x"}`), "Invalid value: 'bot'"},
		{"no content", messages(`{"role":"user"}`), "messages.[0].content"},
		{"null content", messages(`{"role":"user","content":null}`), "got null"},
		{"number as content", messages(`{"role":"user","content":7}`), "number"},
		{"no parts", messages(`{"role":"user","content":[]}`), "empty array"},
		{"assistant with nothing", messages(`{"role":"assistant"}`), "content"},
		{"empty calls", messages(`{"role":"assistant","content":"x","tool_calls":[]}`), "tool_calls"},
		{"user message with calls", messages(`{"role":"user","content":"x","tool_calls":[` + call("a") + `]}`), "tool_calls"},
		{"result without a call", messages(user + `,{"role":"tool","tool_call_id":"a","content":"x"}`),
			"preceding message"},
		{"result without an id", messages(`{"role":"assistant","tool_calls":[` + call("a") +
			`]},{"role":"tool","content":"x"}`), "tool_call_id"},
		{"result without content", messages(`{"role":"assistant","tool_calls":[` + call("a") +
			`]},{"role":"tool","tool_call_id":"a"}`), "content"},
		{"result of another call", messages(`{"role":"assistant","tool_calls":[` + call("a") +
			`]},{"role":"tool","tool_call_id":"b","content":"x"}`), "preceding message"},
		{"result twice", messages(`{"role":"assistant","tool_calls":[` + call("a") +
			`]},{"role":"tool","tool_call_id":"a","content":"x"},{"role":"tool","tool_call_id":"a","content":"x"}`),
			"preceding message"},
		{"result too late", messages(`{"role":"assistant","tool_calls":[` + call("a") + `]},` + user +
			`,{"role":"tool","tool_call_id":"a","content":"x"}`), "did not have response messages: a"},
		{"no result at the end", messages(`{"role":"assistant","tool_calls":[` + call("a") + `,` + call("b") +
			`]},{"role":"tool","tool_call_id":"b","content":"x"}`), "did not have response messages: a"},
		{"call without an id", messages(`{"role":"assistant","tool_calls":[` + call("") + `]}`), "id"},
		{"call with a long id", messages(`{"role":"assistant","tool_calls":[` + call(strings.Repeat("x", 41)) + `]}`),
			"maximum length 40"},
		{"call of an invalid name",
			messages(`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"core/f",` +
				`"arguments":"{}"}}]}`), "pattern"},
		{"call without arguments",
			messages(`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f"}}]}`),
			"arguments"},
		{"call without a type", messages(`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f",` +
			`"arguments":"{}"}}]}`), "'function'"},
		{"tool with an invalid name", tool(`{"name":"a.b"}`), "pattern"},
		{"schema of another type", tool(`{"name":"f","parameters":{"type":"string"}}`), "type: \\\"string\\\""},
		{"schema without a type", tool(`{"name":"f","parameters":{}}`), "None"},
		{"invalid schema", tool(`{"name":"f","parameters":[]}`), "Invalid schema"},
		{"array without items", tool(`{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"array"}}}}`),
			"missing items"},
		{"unknown type", tool(`{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"text"}}}}`),
			"not valid"},
		{"required that is not a list", tool(`{"name":"f","parameters":{"type":"object","required":"a"}}`), "required"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, _, answer := post(t, s, tt.body)
			var e struct {
				Error struct{ Message, Type string }
			}
			if err := json.Unmarshal([]byte(answer), &e); err != nil || status != http.StatusBadRequest ||
				e.Error.Type != invalidRequest || !strings.Contains(answer, tt.says) {
				t.Errorf("%d %s, want 400 with %q", status, answer, tt.says)
			}
		})
	}
	t.Run("valid requests", func(t *testing.T) {
		t.Parallel()
		for _, body := range []string{
			hello,
			messages(`{"role":"system","content":""},{"role":"user","content":[{"type":"text",` +
				`"text":"a"},{"type":"text","text":"b"}]},` +
				`{"role":"assistant","content":null,"tool_calls":[` + call("a") + `,` + call("b") + `]},` +
				`{"role":"tool","tool_call_id":"b","content":""},{"role":"tool","tool_call_id":"a","content":"x"},` +
				user),
			tool(`{"name":"f"}`),
			tool(`{"name":"f","parameters":{"type":"object","properties":{"a":{"type":["string","null"]},` +
				`"b":{"enum":["x"]},"c":true}}}`),
		} {
			if status, _, answer := post(t, s, body); status != http.StatusOK {
				t.Errorf("%s is refused: %d %s", body, status, answer)
			}
		}
	})
}

func TestWholeAnswer(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.Queue(Answer{Text: "hi", Calls: []Call{{ID: "a", Name: "f", Arguments: `{"x":1}`}}, Input: 3, Output: 4})
	status, header, answer := post(t, s, hello)
	want := `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"hi",` +
		`"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},` +
		`"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`
	if status != http.StatusOK || strings.TrimSpace(answer) != want ||
		header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", status, answer)
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.Queue(Answer{Text: "héllo", Pieces: 2, Calls: []Call{{Name: "f", Arguments: `{"x":1}`}}})
	_, header, answer := post(t, s,
		`{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user",`+
			`"content":"x"}]}`)
	if header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("content type %s", header.Get("Content-Type"))
	}
	var text, arguments, last string
	usages := 0
	lines := bufio.NewScanner(strings.NewReader(answer))
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		last = data
		if data == "[DONE]" {
			continue
		}
		var c struct {
			Choices []struct {
				Delta struct {
					Content string
					Calls   []struct {
						Index    int
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
			Usage *usage
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for _, ch := range c.Choices {
			text += ch.Delta.Content
			for _, k := range ch.Delta.Calls {
				arguments += k.Function.Arguments
			}
		}
		if c.Usage != nil {
			usages++
		}
	}
	if text != "héllo" || arguments != `{"x":1}` || last != "[DONE]" || usages != 1 {
		t.Errorf("text %q, arguments %s, last %s, %d usages", text, arguments, last, usages)
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	s := New(t)
	ask := func(model string) string {
		_, _, answer := post(t, s, `{"model":"`+model+`","messages":[{"role":"user","content":"x"}]}`)
		var a struct {
			Choices []struct{ Message struct{ Content string } }
			Error   struct{ Message string }
		}
		if err := json.Unmarshal([]byte(answer), &a); err != nil {
			t.Fatal(err)
		}
		if len(a.Choices) == 0 {
			return a.Error.Message
		}
		return a.Choices[0].Message.Content
	}
	if got := ask("a"); !strings.Contains(got, "no answer is scripted for request 1") {
		t.Errorf("unscripted: %s", got)
	}
	s.Handle(func(r Request) Answer { return Say("common " + r.Model) })
	s.HandleFor("a", func(Request) Answer { return Say("own") })
	s.Queue(Say("queued for all"))
	s.QueueFor("a", Say("queued for a"))
	for _, tt := range []struct{ model, want string }{{"a", "queued for a"}, {"b", "queued for all"}, {"a", "own"},
		{"b", "common b"}} {
		if got := ask(tt.model); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.model, got, tt.want)
		}
	}
	s.Queue(Say("left"))
	if s.Left() != 1 || s.Total() != 5 || len(s.Requests()) != 5 {
		t.Errorf("left %d, total %d, kept %d", s.Left(), s.Total(), len(s.Requests()))
	}
	s.Keep(1)
	ask("c")
	if r := s.Requests(); len(r) != 1 || r[0].Model != "c" {
		t.Errorf("kept %+v", r)
	}
}

func TestKeyAndModels(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.RequireKey("sk-the-right-one")
	status, _, answer := post(t, s, hello)
	if status != http.StatusUnauthorized || !strings.Contains(answer, "invalid_api_key") ||
		strings.Contains(answer, "quite-secret") {
		t.Errorf("wrong key: %d %s", status, answer)
	}
	resp, err := http.Get(s.BaseURL() + "/models")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("no key: %d", resp.StatusCode)
	}

	s.RequireKey("")
	s.OnlyModels("m", "n")
	s.Queue(Say("x"))
	if status, _, _ := post(t, s, hello); status != http.StatusOK {
		t.Errorf("known model: %d", status)
	}
	if status, _, answer := post(t, s, strings.Replace(hello, `"m"`, `"z"`, 1)); status != http.StatusNotFound ||
		!strings.Contains(answer, "model_not_found") {
		t.Errorf("unknown model: %d %s", status, answer)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.BaseURL()+"/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer x")
	if resp, err = http.DefaultClient.Do(req); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var list struct{ Data []struct{ ID string } }
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || len(list.Data) != 2 || list.Data[0].ID != "m" {
		t.Errorf("models %+v, %v", list, err)
	}
	req.URL.Path = "/v1/nothing"
	if resp, err = http.DefaultClient.Do(req); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("unknown path: %d", resp.StatusCode)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	stream := strings.Replace(hello, `{"model"`, `{"stream":true,"model"`, 1)
	for _, tt := range []struct {
		name   string
		answer Answer
		status int
		cut    bool
		says   string
	}{
		{"rate limit", RateLimited("7"), 429, false, "rate_limit_exceeded"},
		{"failure", Fail(500, "oops"), 500, false, "oops"},
		{"cut", Break(Cut, "abc", 2), 200, true, `"content":"a"`},
		{"ends early", Break(EndEarly, "abc", 2), 200, false, `"content":"a"`},
		{"rubbish", Break(Rubbish, "abc", 2), 200, false, "[{]"},
		{"error chunk", Break(ErrorChunk, "abc", 2), 200, false, `data: {"error"`},
		{"page", Answer{ContentType: "text/html", Body: "<p>"}, 200, false, "<p>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := New(t)
			s.Queue(tt.answer)
			status, header, answer, err := try(t, s, stream)
			if status != tt.status || !strings.Contains(answer, tt.says) ||
				errors.Is(err, io.ErrUnexpectedEOF) != tt.cut {
				t.Errorf("%d %s, %v", status, answer, err)
			}
			if strings.Contains(answer, "[DONE]") {
				t.Errorf("a broken answer is done: %s", answer)
			}
			if tt.answer.RetryAfter != "" && header.Get("Retry-After") != tt.answer.RetryAfter {
				t.Errorf("Retry-After %q", header.Get("Retry-After"))
			}
		})
	}
}

// Close ends delayed and stalled answers; a gate releases a delayed one.
func TestGateAndClose(t *testing.T) {
	t.Parallel()
	s := New(t)
	gate := make(chan struct{})
	s.Queue(Answer{Text: "late", Gate: gate})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, _, answer, err := try(t, s, hello); err != nil || !strings.Contains(answer, "late") {
			t.Errorf("%s, %v", answer, err)
		}
	})
	close(gate)
	wg.Wait()

	s.Handle(func(Request) Answer { return Answer{Text: "never", Delay: time.Hour} })
	wg.Go(func() {
		if _, _, answer, err := try(t, s, hello); err == nil && strings.Contains(answer, "never") {
			t.Errorf("answered: %s", answer)
		}
	})
	s.Close()
	s.Close()
	wg.Wait()
}

func BenchmarkServer(b *testing.B) {
	s := New(b)
	s.Keep(0)
	s.Handle(func(Request) Answer { return Say("A short reply.") })
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.BaseURL()+"/chat/completions",
				strings.NewReader(hello))
			if err != nil {
				b.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer x")
			resp, err := client.Do(req)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}
