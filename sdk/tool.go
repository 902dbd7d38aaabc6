package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// Tool is one tool of an extension. Schema is the JSON Schema of its arguments, an
// object; the kernel checks arguments against it before Call runs.
type Tool struct {
	Name        string // lower-case letters, digits, underscores
	Description string // for the model: its purpose and when to use it
	Schema      json.RawMessage
	ReadOnly    bool // no effect at all
	Idempotent  bool // repeating it has no further effect
	Interrupt   bool // may be cancelled when a new message of the user waits
	Waits       bool // only waits, as long as its turn lasts; no message cancels it
	Private     bool // granted by full name only, never by a wildcard
	Approve     bool // a person is asked before each call
	Final       bool // a call that succeeds ends its turn: the text beside it is the final one
	// Command also makes it a slash command for people; it has no slash. The manifest
	// names it under provides.commands. The kernel parses a person's text into
	// arguments by Schema. An error of Call is the answer.
	Command string
	Call    func(ctx context.Context, c ToolCall) (ToolResult, error)
	// Say renders the content of a result as the answer to the command, in Markdown. The
	// language is that of the person, an IETF tag; empty: English.
	// Nil: the answer is the content or, if that is a JSON object, its field text.
	Say func(content, language string) string
}

// ToolCall is one call. A second one with the same ID repeats the first.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage
	Session   string
	Agent     string
	ReplyTo   string // opaque handle of the conversation that asked; may be empty
	Channel   string // id of that conversation's channel; may be empty
	Sender    string // who asked, as shown to people; may be empty
	Language  string // of the person who asked, an IETF tag; empty: English or unknown
	Group     bool   // others can read that conversation
	// Principal is whose things the call may see and change. Store it with what people
	// set up, and show and change only what it Sees.
	Principal contract.Principal
	Thread    string   // of the input that the turn answers; see busv1.Input
	Input     string   // the dedupe key of that input, if this extension queued it
	Memory    []string // scopes of memory that the agent may read and write
	Location  *time.Location
	Repeat    bool   // an earlier attempt may have run
	Command   string // the slash command with which a person called it; empty: an agent called it
}

// Decode decodes the arguments into v; without arguments v is unchanged.
func (c ToolCall) Decode(v any) error {
	if len(c.Arguments) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.Arguments, v); err != nil {
		return fmt.Errorf("decode the arguments of %s: %w", c.Name, err)
	}
	return nil
}

// ToolResult is committed together with its effects. Content is for the model,
// usually JSON. An error returned by Call reaches the model as well, as a failed
// call.
type ToolResult struct {
	Content string
	IsError bool
	// Nothing, of a read-only tool that gives context: it has nothing to say for any
	// arguments and any principal, so an agent need not call it again soon.
	Nothing bool
	Effects Effects
	// Blobs are the hashes of files that the content names, as Attachment.Reference does;
	// the session keeps them. See Kernel.PutBlob.
	Blobs []string
}

// JSON returns a result whose content is v, encoded as JSON.
func JSON(v any, effects ...Effect) (ToolResult, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return ToolResult{}, err
	}
	return ToolResult{Content: string(b), Effects: effects}, nil
}
