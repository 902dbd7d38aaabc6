package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Tool is one callable. Schema is the JSON Schema of its arguments, an object;
// the kernel checks arguments against it before Call runs.
type Tool struct {
	Name        string // lower-case letters, digits, underscores
	Description string // for the model: what it does and when to use it
	Schema      json.RawMessage
	ReadOnly    bool // no effect at all
	Idempotent  bool // repeating it has no further effect
	Interrupt   bool // may be cancelled when a new message of the user waits
	Waits       bool // only waits, as long as its turn lasts; no message cancels it
	Private     bool // granted by full name only, never by a wildcard
	Approve     bool // a person is asked before each call
	Final       bool // a call that succeeds ends its turn: the text beside it is the final one
	// Command makes it also a slash command for people, without the slash; the
	// manifest names it under provides.commands. The kernel makes the arguments of
	// what a person writes, by Schema. An error of Call is the answer.
	Command string
	Call    func(ctx context.Context, c ToolCall) (ToolResult, error)
	// Say writes the content of a result for people, as the answer to the command,
	// in Markdown. Without it, that is the content, or, of a JSON object, its field
	// text.
	Say func(content string) string
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
	Thread    string   // of the input that the turn answers; see busv1.Input
	Input     string   // the dedupe key of that input, if this extension had queued it
	Memory    []string // scopes of memory that the agent may read and write
	Location  *time.Location
	Repeat    bool   // an earlier attempt may have run
	Command   string // by which a person calls it; empty: an agent does
}

// Decode reads the arguments into v; without any, v stays as it is.
func (c ToolCall) Decode(v any) error {
	if len(c.Arguments) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.Arguments, v); err != nil {
		return fmt.Errorf("the arguments of %s cannot be read: %w", c.Name, err)
	}
	return nil
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
