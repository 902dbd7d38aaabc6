package anthropictest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"
)

// Request is one completion request.
type Request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
	System    []Block   `json:"system"`
	Tools     []Tool    `json:"tools"`
	Messages  []Message `json:"messages"`

	Header http.Header     `json:"-"`
	Raw    json.RawMessage `json:"-"`

	blind bool // images are refused
}

// Message is one message of a request.
type Message struct {
	Role    string  `json:"role"`
	Content []Block `json:"content"`
}

// Block is a part of a message.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   string          `json:"content"`
	IsError   bool            `json:"is_error"`
	Cache     *Cache          `json:"cache_control"`
	Source    *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"`
	} `json:"source"`
}

func (b Block) image() modelapitest.Image {
	if b.Source == nil || b.Source.Type != "base64" {
		return modelapitest.Image{}
	}
	return modelapitest.Image{MIME: b.Source.MediaType, Data: b.Source.Data}
}

// Tool is one tool that a request offers.
type Tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Schema      map[string]any `json:"input_schema"`
	Cache       *Cache         `json:"cache_control"`
}

// Cache is a cache point.
type Cache struct {
	Type string `json:"type"`
}

// Last returns the last text of the user.
func (r Request) Last() string {
	for _, m := range slices.Backward(r.Messages) {
		for _, b := range slices.Backward(m.Content) {
			if m.Role == "user" && b.Type == "text" {
				return b.Text
			}
		}
	}
	return ""
}

// Results returns the texts of the tool results in the last message.
func (r Request) Results() (out []string) {
	for _, b := range r.Messages[len(r.Messages)-1].Content {
		if b.Type == "tool_result" {
			out = append(out, b.Content)
		}
	}
	return out
}

// CachePoints returns where the request has cache points, such as "tools system 1 3".
func (r Request) CachePoints() (points []string) {
	for _, t := range r.Tools {
		if t.Cache != nil {
			points = append(points, "tools")
		}
	}
	for _, b := range r.System {
		if b.Cache != nil {
			points = append(points, "system")
		}
	}
	for i, m := range r.Messages {
		for _, b := range m.Content {
			if b.Cache != nil {
				points = append(points, string(rune('0'+i)))
			}
		}
	}
	return points
}

// check parses the request, and returns the error of the real API if it would refuse it.
func (r *Request) check() *apiError {
	if t := r.Header.Get("Content-Type"); t != "application/json" {
		return bad("content-type: %q is not application/json", t)
	}
	d := json.NewDecoder(bytes.NewReader(r.Raw))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return bad("The request body is not valid JSON: %v", err)
	}
	switch {
	case r.Model == "":
		return bad("model: Field required")
	case r.MaxTokens < 1:
		return bad("max_tokens: Field required, at least 1")
	case !r.Stream:
		return bad("anthropictest: only streams are served")
	case len(r.Messages) == 0:
		return bad("messages: at least one message is required")
	case len(r.CachePoints()) > 4:
		return bad("A maximum of 4 blocks with cache_control may be provided. Found %d.", len(r.CachePoints()))
	}
	for i, b := range r.System {
		if b.Type != "text" || strings.TrimSpace(b.Text) == "" {
			return bad("system.%d: text content blocks must contain non-whitespace text", i)
		}
	}
	if e := r.checkTools(); e != nil {
		return e
	}
	return r.checkMessages()
}

var (
	toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	toolID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

func (r *Request) checkTools() *apiError {
	names := map[string]bool{}
	for i, t := range r.Tools {
		switch {
		case !toolName.MatchString(t.Name):
			return bad("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'", i)
		case names[t.Name]:
			return bad("tools: Tool names must be unique.")
		case t.Schema["type"] != "object":
			return bad("tools.%d.custom.input_schema.type: Input should be 'object'", i)
		}
		names[t.Name] = true
	}
	return nil
}

func (r *Request) checkMessages() *apiError {
	var open []string // tool uses of the message before
	for i, m := range r.Messages {
		want := []string{"user", "assistant"}[i%2]
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return bad("messages.%d.role: Input should be 'user' or 'assistant'", i)
		case m.Role != want:
			return bad("messages: roles must alternate between \"user\" and \"assistant\", beginning with \"user\"; "+
				"message %d is of %q", i, m.Role)
		case len(m.Content) == 0:
			return bad("messages.%d: all messages must have non-empty content", i)
		}
		uses, e := r.checkBlocks(i, m, open)
		if e != nil {
			return e
		}
		open = uses
	}
	switch last := r.Messages[len(r.Messages)-1]; {
	case last.Role == "assistant":
		return bad("This model does not support assistant message prefill. The conversation must end with a user message.")
	case len(open) > 0:
		return bad("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s",
			len(r.Messages), strings.Join(open, ", "))
	}
	return nil
}

// checkBlocks checks a message that follows one with the tool uses open, and returns its
// own.
func (r *Request) checkBlocks(i int, m Message, open []string) (uses []string, e *apiError) {
	text := false
	for k, b := range m.Content {
		switch b.Type {
		case "text":
			if text = true; strings.TrimSpace(b.Text) == "" {
				return nil, bad("messages: text content blocks must contain non-whitespace text")
			}
			if m.Role == "assistant" && strings.TrimRight(b.Text, " \n\t") != b.Text && i == len(r.Messages)-1 {
				return nil, bad("messages: final assistant content cannot end with trailing whitespace")
			}
		case "image":
			wrong := b.image().Wrong([]string{"jpeg", "png", "gif", "webp"}, 5<<20*3/4) // the limit is that of the base64
			switch {
			case m.Role != "user":
				return nil, bad("messages.%d: `image` blocks can only be in `user` messages", i)
			case r.blind:
				return nil, bad("messages.%d.content.%d: this model does not support image input", i, k)
			case wrong != "":
				return nil, bad("messages.%d.content.%d.image.source.base64: Could not process image: %s", i, k, wrong)
			}
			text = true
		case "tool_use":
			switch {
			case m.Role != "assistant":
				return nil, bad("messages.%d: `tool_use` blocks can only be in `assistant` messages", i)
			case !toolID.MatchString(b.ID):
				return nil, bad("messages.%d.content.%d.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", i, k)
			case slices.Contains(uses, b.ID):
				return nil, bad("messages.%d: `tool_use` ids must be unique", i)
			case !toolName.MatchString(b.Name):
				return nil, bad("messages.%d.content.%d.tool_use.name: String should match pattern", i, k)
			case len(r.Tools) == 0:
				return nil, bad("Requests which include `tool_use` or `tool_result` blocks must define tools")
			case !bytes.HasPrefix(b.Input, []byte("{")):
				return nil, bad("messages.%d.content.%d.tool_use.input: Input should be a valid dictionary", i, k)
			}
			uses = append(uses, b.ID)
		case "tool_result":
			at := slices.Index(open, b.ToolUseID)
			switch {
			case m.Role != "user":
				return nil, bad("messages.%d: `tool_result` blocks can only be in `user` messages", i)
			case text:
				return nil, bad("messages.%d: `tool_result` blocks must come before text", i)
			case at < 0:
				return nil, bad("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each "+
					"`tool_result` block must have a corresponding `tool_use` block in the previous message.", i, k, b.ToolUseID)
			}
			open = slices.Delete(slices.Clone(open), at, at+1)
		default:
			return nil, bad("messages.%d.content.%d: Input tag %q found using 'type' does not match any of the expected tags",
				i, k, b.Type)
		}
	}
	if len(open) > 0 {
		return nil, bad("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", i,
			strings.Join(open, ", "))
	}
	return uses, nil
}
