package sdk

import (
	"context"
	"encoding/json"
	"time"
)

// Tool is one callable. Schema is the JSON Schema of its arguments, an object;
// the kernel checks arguments against it before Call runs.
type Tool struct {
	Name        string // lower-case letters, digits, underscores
	Description string // for the model: what it does and when to use it
	Schema      json.RawMessage
	ReadOnly    bool   // no effect at all
	Idempotent  bool   // repeating it has no further effect
	Interrupt   bool   // may be cancelled when a new message of the user waits
	Private     bool   // granted by full name only, never by a wildcard
	Approve     bool   // a person is asked before each call
	Command     string // also a slash command for people, without the slash
	Call        func(ctx context.Context, c ToolCall) (ToolResult, error)
}

// ToolCall is one call, made once: a second call with the same ID is a repeat
// of the first.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage
	Session   string
	Agent     string
	ReplyTo   string   // opaque handle of the conversation that asked; may be empty
	Channel   string   // id of that conversation's channel; may be empty
	Sender    string   // who asked, as shown to people
	Group     bool     // others can read that conversation
	Memory    []string // scopes of memory that the agent may read and write
	Location  *time.Location
	Repeat    bool // an earlier attempt may have run
}

// ToolResult is committed together with its effects. Content is for the model,
// usually JSON. An error returned by Call reaches the model as well, as a failed
// call.
type ToolResult struct {
	Content string
	IsError bool
	// Nothing says, of a read-only tool that gives context, that it knows nothing
	// at all, whatever it is asked: an agent need not ask it again at once.
	Nothing bool
	Effects Effects
}

// JSON is a result whose content is v.
func JSON(v any, effects ...Effect) (ToolResult, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return ToolResult{}, err
	}
	return ToolResult{Content: string(b), Effects: effects}, nil
}
