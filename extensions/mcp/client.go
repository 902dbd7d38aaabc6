package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/contract/words"
)

// relistDelay collects notifications that a list has changed.
const relistDelay = 500 * time.Millisecond

// client returns the client of one session.
func (s *server) client(x *session) *mcp.Client {
	relist := s.relister(x)
	return mcp.NewClient(&mcp.Implementation{Name: "switchboard", Version: "0.1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{ // no roots, no sampling
			Elicitation: &mcp.ElicitationCapabilities{
				Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
			},
		},
		ElicitationHandler: func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return s.elicit(ctx, x, r.Params)
		},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { relist() },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { relist() },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { relist() },
	})
}

// relister returns a function that lists again what the server has, soon and not more
// often than needed.
func (s *server) relister(x *session) func() {
	due := make(chan struct{}, 1)
	go func() {
		for {
			select {
			case <-due:
			case <-x.link.Done():
				return
			case <-s.e.background.Done():
				return
			}
			select {
			case <-time.After(relistDelay):
			case <-x.link.Done():
				return
			}
			select {
			case <-due:
			default:
			}
			ctx, cancel := context.WithTimeout(s.e.background, startTimeout)
			if err := s.list(ctx, x); err != nil {
				s.e.log.Warn("list the changed tools of an MCP server", "server", s.ID, "error", err)
			}
			cancel()
		}
	}()
	return func() {
		select {
		case due <- struct{}{}:
		default:
		}
	}
}

// list reads what the server has, and stores it.
func (s *server) list(ctx context.Context, x *session) error {
	said := x.InitializeResult()
	caps := said.Capabilities
	if caps == nil {
		caps = &mcp.ServerCapabilities{}
	}
	next := record{Version: said.ProtocolVersion, Resources: caps.Resources != nil}
	if i := said.ServerInfo; i != nil {
		next.Title = strings.TrimSpace(cut(strings.Map(words.Printable, i.Name+" "+i.Version), 100))
	}
	if caps.Tools != nil {
		for t, err := range x.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			if len(next.Tools) == maxTools {
				s.e.log.Warn("an MCP server has too many tools: the rest is left out", "server", s.ID, "most", maxTools)
				break
			}
			next.Tools = append(next.Tools, infoOf(t))
		}
	}
	if caps.Prompts != nil {
		for p, err := range x.Prompts(ctx, nil) {
			if err != nil {
				return err
			}
			if len(next.Prompts) == maxTools {
				break
			}
			next.Prompts = append(next.Prompts, promptOf(p))
		}
	}
	return s.keep(next)
}

// infoOf is a tool as the catalogue keeps it.
func infoOf(t *mcp.Tool) toolInfo {
	info := toolInfo{Name: cut(t.Name, 200), Description: cut(t.Description, 4*maxDescription)}
	var compact bytes.Buffer
	raw, err := json.Marshal(t.InputSchema)
	if err == nil {
		err = json.Compact(&compact, raw)
	}
	info.Schema = json.RawMessage(compact.Bytes())
	if t.Annotations != nil {
		info.Idempotent = t.Annotations.IdempotentHint
	}
	switch {
	case err != nil:
		info.Broken = fmt.Sprintf("its schema cannot be read: %s", cut(err.Error(), 200))
	default:
		info.Broken = inspect(info)
	}
	if info.Broken != "" {
		info.Schema = nil
	}
	return info
}

func promptOf(p *mcp.Prompt) prompt {
	out := prompt{Name: cut(p.Name, 200), Description: cut(strings.Map(words.Printable, p.Description), 200)}
	for _, required := range []bool{true, false} {
		for _, a := range p.Arguments {
			if a.Required == required {
				out.Arguments = append(out.Arguments, a.Name)
			}
		}
		if required {
			out.Required = len(out.Arguments)
		}
	}
	return out
}

// keep stores what the server has. What the owner decided about a tool stays with it. The
// tools of a server that they have just allowed are allowed as they are.
func (s *server) keep(next record) error {
	err := s.e.book.change(s.ID, func(r *record) {
		known := map[string]toolInfo{}
		for _, t := range r.Tools {
			known[t.Name] = t
		}
		first := r.Listed != s.hash
		for i := range next.Tools {
			t := &next.Tools[i]
			was, old := known[t.Name]
			t.Allowed, t.Was, t.Refused = was.Allowed, was.Was, was.Refused
			if first && (!old || was.Allowed == "") {
				t.Allowed, t.Was = t.sum(), describeChange(*t)
			}
		}
		r.Listed, r.Version, r.Title = s.hash, next.Version, next.Title
		r.Tools, r.Prompts, r.Resources = next.Tools, next.Prompts, next.Resources
	})
	s.e.wake()
	return err
}

// describeChange is what of a tool a question about a change shows.
func describeChange(t toolInfo) string {
	return cut(strings.Join(strings.Fields(strings.Map(words.Printable, t.Description)), " "), 300)
}
