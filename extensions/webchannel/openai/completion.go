package openaiapi

import (
	"context"
	"net/http"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// completion is an answer, or a chunk of one, of /v1/chat/completions.
type completion struct {
	ID      string           `json:"id"`
	Object  string           `json:"object"`
	Created int64            `json:"created"`
	Model   string           `json:"model"`
	Choices []choice         `json:"choices"`
	Usage   *completionUsage `json:"usage,omitempty"`
}

type choice struct {
	Index        int      `json:"index"`
	Message      *message `json:"message,omitempty"`
	Delta        *delta   `json:"delta,omitempty"`
	Logprobs     any      `json:"logprobs"`
	FinishReason *string  `json:"finish_reason"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Refusal any    `json:"refusal"`
}

type delta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type completionUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (u *usage) ofCompletion() *completionUsage {
	if u == nil {
		return nil
	}
	c := &completionUsage{Prompt: u.input, Completion: u.output, Total: u.input + u.output}
	c.Details.Cached = u.cached
	return c
}

func (s *server) completions(w http.ResponseWriter, r *http.Request, v door.Visitor) error {
	var body completionRequest
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
	c := completion{
		ID: "chatcmpl-" + x.place.message, Object: "chat.completion", Created: x.line.At.Unix(), Model: q.model,
	}
	if q.stream {
		return x.streamCompletion(r.Context(), w, c, q.usage)
	}
	a, err := x.wait(r.Context(), func(string) error { return nil })
	if err != nil {
		return err
	}
	if f := a.fault(); f != nil {
		return f
	}
	c.Choices = []choice{{Message: &message{Role: "assistant", Content: a.text}, FinishReason: a.reason()}}
	c.Usage = a.usage.ofCompletion()
	return writeJSON(w, c)
}

// reason is why the answer ends.
func (a answer) reason() *string {
	reason := "stop"
	if a.outcome == contract.OutcomeCapped {
		reason = "length"
	}
	return &reason
}

// streamCompletion streams an answer in chunks.
func (x *exchange) streamCompletion(
	ctx context.Context, w http.ResponseWriter, c completion, withUsage bool,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.Object = "chat.completion.chunk"
	out := open(ctx, w)
	send := func(d delta, reason *string) error {
		c.Choices = []choice{{Delta: &d, FinishReason: reason}}
		return out.event("", c)
	}
	empty := ""
	if err := send(delta{Role: "assistant", Content: &empty}, nil); err != nil {
		return nil //nolint:nilerr // the client is gone
	}
	a, err := x.wait(ctx, func(text string) error {
		if added := out.more(text); added != "" {
			return send(delta{Content: &added}, nil)
		}
		return nil
	})
	f := a.fault()
	if err != nil {
		f = x.s.faultOf(err)
	}
	if f != nil {
		_ = out.event("", map[string]any{"error": f.body()})
		return nil
	}
	if added := out.rest(a.text); added != "" {
		if err := send(delta{Content: &added}, nil); err != nil {
			return nil //nolint:nilerr // the client is gone
		}
	}
	_ = send(delta{}, a.reason())
	if withUsage && a.usage != nil {
		c.Choices, c.Usage = []choice{}, a.usage.ofCompletion()
		_ = out.event("", c)
	}
	_ = out.write("data: [DONE]\n\n")
	return nil
}
