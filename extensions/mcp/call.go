package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/mcp/remote"
	"github.com/switchboard-run/switchboard/sdk"
)

// place is the conversation that a call is for.
type place struct {
	replyTo string
	group   bool
}

// openCall is a call that runs.
type openCall struct {
	place
	timer *time.Timer // ends it
}

// calls are the calls that run in a session.
type calls struct {
	mu   sync.Mutex
	next int64
	open map[int64]openCall
}

// add notes a call until its end. It calls timeout after a time.
func (c *calls) add(p place, most time.Duration, timeout func()) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	n, timer := c.next, time.AfterFunc(most, timeout)
	if c.open == nil {
		c.open = map[int64]openCall{}
	}
	c.open[n] = openCall{p, timer}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		timer.Stop()
		delete(c.open, n)
	}
}

// hold stops the timers of the calls that run: they wait for a person. Afterwards they
// have all their time again.
func (c *calls) hold(most time.Duration) (release func()) {
	each := func(change func(*time.Timer)) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, o := range c.open {
			change(o.timer)
		}
	}
	each(func(t *time.Timer) { t.Stop() })
	return func() { each(func(t *time.Timer) { t.Reset(most) }) }
}

// only returns the conversation of the calls that run, if it is one.
func (c *calls) only() (p place, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.open {
		if ok && o.place != p {
			return place{}, false
		}
		p, ok = o.place, true
	}
	return p, ok
}

// call calls a tool of a server.
func (e *extension) call(ctx context.Context, o offered, c sdk.ToolCall) (sdk.ToolResult, error) {
	s := e.server(o.Server)
	if s == nil {
		return sdk.ToolResult{}, fmt.Errorf("mcp.json has no server %s any more", o.Server)
	}
	if o.Tool == "" {
		return s.readResource(ctx, c)
	}
	if !s.allows(o) {
		return sdk.ToolResult{}, fmt.Errorf("the tool %s of the MCP server %s has changed, "+
			"and waits for the owner's consent", o.Tool, s.Name)
	}
	return s.do(ctx, c, o.Name, func(ctx context.Context, x *session) (sdk.ToolResult, error) {
		params := &mcp.CallToolParams{Name: o.Tool, Arguments: c.Arguments}
		result, err := x.CallTool(ctx, params)
		if err != nil {
			return sdk.ToolResult{}, err
		}
		return e.resultOf(ctx, s, result)
	})
}

// allows reports whether the tool is still the one that the owner allowed.
func (s *server) allows(o offered) bool {
	for _, t := range s.e.book.get(s.ID).Tools {
		if t.Name == o.Tool {
			return t.Broken == "" && t.Allowed == t.sum()
		}
	}
	return false
}

// do runs a request on a session, within the time that a call may take.
func (s *server) do(
	ctx context.Context, c sdk.ToolCall, what string, request func(context.Context, *session) (sdk.ToolResult, error),
) (sdk.ToolResult, error) {
	x, release, err := s.use(ctx)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	defer release()
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer x.calls.add(place{replyTo: c.ReplyTo, group: c.Group}, s.e.callTimeout, func() { cancel(errUnanswered) })()
	go func() { // a connection may not notice the end of the process
		select {
		case <-x.link.Done():
			cancel(nil)
		case <-bounded.Done():
		}
	}()
	result, err := request(bounded, x)
	if err == nil {
		return result, nil
	}
	var refused *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return sdk.ToolResult{}, ctx.Err()
	case errors.Is(err, remote.ErrLogin):
		return sdk.ToolResult{}, fmt.Errorf("the MCP server %s refused the call, and nothing was done: %w", s.Name,
			notSent(err))
	case errors.As(err, &refused) && strings.Contains(err.Error(), rejected):
		return sdk.ToolResult{}, fmt.Errorf("the request to the MCP server %s failed (%w): whether %s had its effect is "+
			"unknown. Do not simply repeat it: find out first, or tell the user", s.Name, notSent(err), what)
	case errors.As(err, &refused):
		return sdk.ToolResult{}, fmt.Errorf("the MCP server %s refused the call: %s", s.Name, cut(refused.Message, 1000))
	case errors.Is(context.Cause(bounded), errUnanswered):
		return sdk.ToolResult{}, fmt.Errorf("the MCP server %s did not answer within %s, and the call was cancelled: "+
			"whether %s had its effect is unknown. Do not simply repeat it", s.Name, s.e.callTimeout, what)
	}
	reason := s.because(x, err)
	return sdk.ToolResult{}, fmt.Errorf("the MCP server %s ended during the call (%w): "+
		"whether %s had its effect is unknown. Do not simply repeat it: find out first, or tell the user",
		s.Name, reason, what)
}

// Limits of a result.
const (
	maxText  = 256 << 10
	maxFiles = 20
)

// resultOf is the result of a call for the model.
func (e *extension) resultOf(ctx context.Context, s *server, r *mcp.CallToolResult) (sdk.ToolResult, error) {
	out := &content{e: e, server: s}
	for _, part := range r.Content {
		out.add(ctx, part)
	}
	if r.StructuredContent != nil && out.text.Len() == 0 {
		if text, err := json.Marshal(r.StructuredContent); err == nil {
			out.write(string(text))
		}
	}
	if out.text.Len() == 0 {
		out.write("The tool answered without a text.")
	}
	return sdk.ToolResult{Content: out.text.String(), IsError: r.IsError, Blobs: contract.BlobsOf(out.files)}, nil
}
