package openaitest

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/switchboard-run/switchboard/sdk/agent"
	"github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"
)

// Request is one completion request.
type Request struct {
	Model         string    `json:"model"`
	Messages      []Message `json:"messages"`
	Tools         []Tool    `json:"tools"`
	Stream        bool      `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           int `json:"max_tokens"`
	MaxCompletionTokens int `json:"max_completion_tokens"`

	Header http.Header     `json:"-"`
	Raw    json.RawMessage `json:"-"`
}

// Message is one message of a request.
type Message struct {
	Role string `json:"role"`
	// Content is the text, or the texts of all parts together.
	Content    Content    `json:"content"`
	Name       string     `json:"name"`
	ToolCalls  []ToolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// ToolCall is one call in an assistant's message.
type ToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

// Tool is one tool that a request offers.
type Tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// Content is a string, an array of parts, or null.
type Content struct {
	Text string
	// Preamble is what the run loop of an agent puts before the text, such as the
	// time. It is not part of Text.
	Preamble string
	// Null is set for null, and for a content that is not there.
	Null bool

	// Images are the pictures among the parts.
	Images []modelapitest.Image

	urls    []string // of the pictures
	present bool
	unknown string // the type of a part that is none
	wrong   string // the JSON type if it is not supported
	parts   int    // the length of an array; -1 otherwise
}

// UnmarshalJSON implements json.Unmarshaler. It also accepts types that the API
// refuses, for its error.
func (c *Content) UnmarshalJSON(b []byte) error {
	c.present, c.parts = true, -1
	switch b[0] {
	case 'n':
		c.Null = true
	case '"':
		err := json.Unmarshal(b, &c.Text)
		c.Preamble, c.Text = agent.SplitPreamble(c.Text)
		return err
	case '[':
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
			URL  struct {
				URL string `json:"url"`
			} `json:"image_url"`
		}
		if err := json.Unmarshal(b, &parts); err != nil {
			c.wrong = "array"
			return nil //nolint:nilerr // refused later, with the path
		}
		c.parts = len(parts)
		for _, p := range parts {
			switch p.Type {
			case "text":
				c.Text += p.Text
			case "image_url":
				c.urls = append(c.urls, p.URL.URL)
			default:
				c.unknown = p.Type
			}
		}
		c.Preamble, c.Text = agent.SplitPreamble(c.Text)
	case '{':
		c.wrong = "object"
	case 't', 'f':
		c.wrong = "boolean"
	default:
		c.wrong = "number"
	}
	return nil
}

// Last returns the text of the last message with the role, "" if there is none.
func (r Request) Last(role string) string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == role {
			return m.Content.Text
		}
	}
	return ""
}

// Images returns the pictures of all messages.
func (r Request) Images() (all []modelapitest.Image) {
	for _, m := range r.Messages {
		all = append(all, m.Content.Images...)
	}
	return all
}

// Results returns the texts of the tool results at the end of the messages.
func (r Request) Results() []string {
	i := len(r.Messages)
	for i > 0 && r.Messages[i-1].Role == "tool" {
		i--
	}
	var out []string
	for _, m := range r.Messages[i:] {
		out = append(out, m.Content.Text)
	}
	return out
}

// HasTool reports whether the request offers the tool.
func (r Request) HasTool(name string) bool {
	for _, t := range r.Tools {
		if t.Function.Name == name {
			return true
		}
	}
	return false
}
