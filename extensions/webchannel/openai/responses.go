package openaiapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// responseRequest is the body of POST /v1/responses, without what is ignored.
type responseRequest struct {
	Model        string          `json:"model"`
	Input        json.RawMessage `json:"input"`
	Instructions string          `json:"instructions"`
	Stream       bool            `json:"stream"`
	Previous     string          `json:"previous_response_id"`
	Conversation json.RawMessage `json:"conversation"`
	User         string          `json:"user"`
	Metadata     json.RawMessage `json:"metadata"`
	Background   bool            `json:"background"`
	Tools        []any           `json:"tools"`
	TopLogprobs  int             `json:"top_logprobs"`
	Prompt       json.RawMessage `json:"prompt"`
	Text         struct {
		Format format `json:"format"`
	} `json:"text"`
}

// read checks what a request asks for.
func (c *responseRequest) read() (q request, err error) {
	switch {
	case len(c.Tools) > 0:
		return q, unsupported("tools", noTools)
	case c.Background:
		return q, unsupported("background", "A turn goes on without its client: ask again with the same Idempotency-Key.")
	case c.TopLogprobs > 0:
		return q, unsupported("top_logprobs", "Agents report no probabilities.")
	case given(c.Prompt):
		return q, unsupported("prompt", "There are no stored prompts: an agent has its own instructions.")
	case c.Text.Format.Type != "" && c.Text.Format.Type != "text":
		return q, unsupported("text.format", "Agents answer with text: ask for JSON in the message.")
	case c.Previous != "" && given(c.Conversation):
		return q, invalid("previous_response_id", "Name either a conversation or a response to continue, not both.")
	}
	q = request{model: c.Model, stream: c.Stream, user: c.User}
	if q.conversation, err = named(c.Metadata); err != nil {
		return q, err
	}
	if given(c.Conversation) {
		var object struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(c.Conversation, &object.ID) != nil && json.Unmarshal(c.Conversation, &object) != nil {
			return q, invalid("conversation", "A conversation is its name, or an object with its id.")
		}
		q.conversation = object.ID
	}
	if c.Previous != "" {
		if q.previous, err = parseResponse(c.Previous); err != nil {
			return q, err
		}
	}
	if c.Instructions != "" {
		q.said = append(q.said, said{role: "system", text: c.Instructions})
	}
	items, err := c.items()
	q.said = append(q.said, items...)
	return q, err
}

// items reads the input: a text, or a list.
func (c *responseRequest) items() (all []said, err error) {
	var text string
	if json.Unmarshal(c.Input, &text) == nil {
		return []said{{role: "user", text: text}}, nil
	}
	var items []struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Output  json.RawMessage `json:"output"`
		Name    string          `json:"name"`
	}
	if len(c.Input) == 0 || json.Unmarshal(c.Input, &items) != nil {
		return nil, invalid("input", "The input is a text, or a list of messages.")
	}
	for i, item := range items {
		at := fmt.Sprintf("input[%d]", i)
		switch item.Type {
		case "", "message":
			one := said{role: item.Role}
			if one.text, one.files, err = readContent(at+".content", item.Content); err != nil {
				return nil, err
			}
			all = append(all, one)
		case "function_call", "function_call_output", "reasoning":
			all = append(all, said{role: item.Type, name: item.Name, text: string(item.Output)})
		default:
			return nil, unsupported(at+".type", "Items of type %q can't be used.", item.Type)
		}
	}
	return all, nil
}

// reply is an answer of /v1/responses.
type reply struct {
	ID           string         `json:"id"`
	Object       string         `json:"object"`
	CreatedAt    int64          `json:"created_at"`
	Status       string         `json:"status"` // in_progress, completed, incomplete, failed
	Error        any            `json:"error"`
	Incomplete   any            `json:"incomplete_details"`
	Instructions any            `json:"instructions"`
	Model        string         `json:"model"`
	Output       []item         `json:"output"`
	Previous     any            `json:"previous_response_id"`
	Conversation any            `json:"conversation"`
	Metadata     map[string]any `json:"metadata"`
	Parallel     bool           `json:"parallel_tool_calls"`
	ToolChoice   string         `json:"tool_choice"`
	Tools        []any          `json:"tools"`
	Usage        *replyUsage    `json:"usage"`
}

type item struct {
	ID      string    `json:"id"`
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Role    string    `json:"role"`
	Content []content `json:"content"`
}

type content struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
	Logprobs    []any  `json:"logprobs"`
}

type replyUsage struct {
	Input   int64 `json:"input_tokens"`
	Output  int64 `json:"output_tokens"`
	Total   int64 `json:"total_tokens"`
	Details struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
}

func (u *usage) ofReply() *replyUsage {
	if u == nil {
		return nil
	}
	r := &replyUsage{Input: u.input, Output: u.output, Total: u.input + u.output}
	r.Details.Cached = u.cached
	return r
}

func (s *server) responses(w http.ResponseWriter, r *http.Request, v door.Visitor) error {
	var body responseRequest
	if err := readJSON(r, &body); err != nil {
		return err
	}
	q, err := body.read()
	if err != nil {
		return err
	}
	x, err := s.say(w, r, v, q)
	if err != nil {
		return err
	}
	defer x.leave()
	p := reply{
		ID: response{x.place.short, x.place.message}.id(), Object: "response", CreatedAt: x.line.At.Unix(),
		Status: "in_progress", Model: q.model, Output: []item{}, Metadata: map[string]any{}, ToolChoice: "auto",
		Tools: []any{},
	}
	if body.Previous != "" {
		p.Previous = body.Previous
	}
	if q.conversation != "" {
		p.Conversation = map[string]string{"id": q.conversation}
	}
	if q.stream {
		return x.streamReply(r.Context(), w, p)
	}
	a, err := x.wait(r.Context(), func(string) error { return nil })
	if err != nil {
		return err
	}
	if f := a.fault(); f != nil {
		return f
	}
	p.complete(a, x.item(a.text, "completed"))
	return writeJSON(w, p)
}

// complete ends a reply with its answer.
func (p *reply) complete(a answer, said item) {
	p.Status, p.Output, p.Usage = "completed", []item{said}, a.usage.ofReply()
	if a.outcome == contract.OutcomeCapped {
		p.Status, p.Incomplete = "incomplete", map[string]string{"reason": "max_output_tokens"}
	}
}

// item is the message of an answer.
func (x *exchange) item(text, status string) item {
	return item{
		ID: "msg_" + x.place.message, Type: "message", Status: status, Role: "assistant", Content: []content{contentOf(text)},
	}
}

func contentOf(text string) content {
	return content{Type: "output_text", Text: text, Annotations: []any{}, Logprobs: []any{}}
}

// streamReply streams an answer in the events of the protocol.
func (x *exchange) streamReply(ctx context.Context, w http.ResponseWriter, p reply) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := open(ctx, w)
	number := 0
	send := func(kind string, fields map[string]any) error {
		fields["type"], fields["sequence_number"] = kind, number
		number++
		return out.event(kind, fields)
	}
	started := x.item("", "in_progress")
	started.Content = []content{}
	part := func(fields map[string]any) map[string]any {
		fields["item_id"], fields["output_index"], fields["content_index"] = started.ID, 0, 0
		return fields
	}
	_ = send("response.created", map[string]any{"response": p})
	_ = send("response.in_progress", map[string]any{"response": p})
	_ = send("response.output_item.added", map[string]any{"output_index": 0, "item": started})
	_ = send("response.content_part.added", part(map[string]any{"part": contentOf("")}))
	add := func(text string) error {
		if text == "" {
			return nil
		}
		return send("response.output_text.delta", part(map[string]any{"delta": text, "logprobs": []any{}}))
	}
	a, err := x.wait(ctx, func(text string) error { return add(out.more(text)) })
	f := a.fault()
	if err != nil {
		f = x.s.faultOf(err)
	}
	if f != nil {
		p.Status, p.Error = "failed", map[string]string{"code": "server_error", "message": f.text}
		_ = send("response.failed", map[string]any{"response": p})
		return nil
	}
	_ = add(out.rest(a.text))
	whole := x.item(out.sent, "completed")
	p.complete(a, whole)
	_ = send("response.output_text.done", part(map[string]any{"text": out.sent, "logprobs": []any{}}))
	_ = send("response.content_part.done", part(map[string]any{"part": contentOf(out.sent)}))
	_ = send("response.output_item.done", map[string]any{"output_index": 0, "item": whole})
	kind := "response.completed"
	if p.Status == "incomplete" {
		kind = "response.incomplete"
	}
	_ = send(kind, map[string]any{"response": p})
	return nil
}
