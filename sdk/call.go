package sdk

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// CallOption sets an option of Call.
type CallOption func(*busv1.CallTool)

// TextsTo sets where the tool sends its own texts, such as a reminder when it is due: a
// ReplyTo that the kernel has given. Without it they go to the preferred channel.
func TextsTo(replyTo string) CallOption { return func(c *busv1.CallTool) { c.ReplyTo = replyTo } }

// Call calls a tool of another extension, or of the kernel, once: the call is stored with
// the other effects and survives crashes. The extension acts for the household, not for a
// person. Its manifest names the tool under permissions.tools.
//
// The id is the extension's own; a second call with it changes nothing. The arguments are
// encoded as JSON. The result comes later, to Extension.Results.
func Call(id, tool string, arguments any, options ...CallOption) Effect {
	b, err := encodePayload(arguments)
	if err != nil {
		return Effect{err: fmt.Errorf("arguments of %s: %w: %w", tool, contract.ErrInvalid, err)}
	}
	c := &busv1.CallTool{Id: id, Tool: tool, Arguments: b}
	for _, o := range options {
		o(c)
	}
	return Effect{pb: &busv1.Effect{Kind: &busv1.Effect_Call{Call: c}}}
}

// CallResult is how a Call ended.
type CallResult struct {
	ID      string // of the call
	Tool    string
	Content string // for models, usually JSON; of an error: what is wrong
	// IsError: the call failed, was refused by the owner, or its outcome is unknown.
	IsError bool
	Event   Event // tool.result.<extension>
}

// Decode decodes the content, which must be JSON, into v. Its error drops the result.
func (r CallResult) Decode(v any) error {
	if err := json.Unmarshal([]byte(r.Content), v); err != nil {
		return Drop(fmt.Sprintf("decode the result of %s: %v", r.Tool, err))
	}
	return nil
}

// result passes an event with a result to its handler.
func (a *activation) result(ctx context.Context, e Event) (Effects, error) {
	var r contract.ToolResult
	if err := e.Decode(&r); err != nil {
		return nil, err
	}
	return a.instance.ext.Results(ctx, CallResult{ID: r.ID, Tool: r.Tool, Content: r.Content, IsError: r.Error, Event: e})
}
