package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/contract/schema"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// offered is a tool that the kernel is told of.
type offered struct {
	Name        string          `json:"name"` // <server>__<tool>
	Server      string          `json:"server"`
	Tool        string          `json:"tool"` // the server's name of it; empty: it reads resources
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	ReadOnly    bool            `json:"read_only,omitempty"`
	Idempotent  bool            `json:"idempotent,omitempty"`
}

const offeredFile = "offered.json"

// readOffered reads the tools that were offered last. Without them there are none until the
// extension runs.
func readOffered(file string) (all []offered) {
	if file == "" {
		return nil
	}
	if data, err := os.ReadFile(file); err == nil { //nolint:gosec // the kernel names it
		_ = json.Unmarshal(data, &all)
	}
	return all
}

// offer tells the kernel of the tools, if they have changed.
func (e *extension) offer() error {
	var all []offered
	taken := map[string]string{}
	size := 0
	for _, s := range e.all() {
		for _, o := range s.offers(taken) {
			if size += len(o.Description) + len(o.Schema) + len(o.Name) + 32; size > maxOffered {
				e.log.Warn("the descriptions of all tools are too large: leaving out a tool", "server", o.Server, "tool", o.Tool)
				continue
			}
			all = append(all, o)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	e.mu.Lock()
	same := e.offered == string(text)
	e.mu.Unlock()
	if same {
		return nil
	}
	if err := e.k.SetTools(append(e.ownTools(), e.toolsOf(all)...)); err != nil {
		return err
	}
	e.mu.Lock()
	e.offered = string(text)
	e.mu.Unlock()
	return writeFile(filepath.Join(e.k.DataDir(), offeredFile), all)
}

// Limits of what a server may describe.
const (
	maxOffered     = 400 << 10 // of all tools together: the kernel takes 512 KiB
	maxSchema      = 32 << 10
	maxDescription = 1000 // characters
	maxTools       = 256  // of one server
	maxName        = 64 - len(ID+"__")
)

// inspect says why a tool cannot be offered; empty: it can.
func inspect(t toolInfo) string {
	switch {
	case len(t.Schema) > maxSchema:
		return fmt.Sprintf("its schema has %d KiB, and %d are allowed", len(t.Schema)>>10, maxSchema>>10)
	case toolName(t.Name) == "":
		return "its name has no letter"
	}
	if _, err := schema.Compile(t.Schema); err != nil {
		return "its schema is invalid: " + cut(err.Error(), 200)
	}
	var object struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(t.Schema, &object); err != nil || object.Type != "object" {
		return "its schema is not that of an object"
	}
	return ""
}

// offers returns the tools of the server that agents may use, under names that are not
// taken, which it adds.
func (s *server) offers(taken map[string]string) (all []offered) {
	r := s.e.book.get(s.ID)
	if s.state() != mcpfile.Allowed || r.Listed != s.hash {
		return nil
	}
	for _, t := range r.Tools {
		if t.Broken != "" || t.Allowed != t.sum() {
			continue
		}
		name := fullName(s.ID, t.Name)
		if _, twice := taken[name]; twice {
			continue // said by problems
		}
		taken[name] = t.Name
		all = append(all, offered{
			Name: name, Server: s.ID, Tool: t.Name, Schema: t.Schema, Idempotent: t.Idempotent,
			Description: describe(s.Name, t.Description), ReadOnly: s.readOnly(t.Name),
		})
	}
	if r.Resources {
		all = append(all, s.resourceTool())
	}
	return all
}

// describe is the description of a tool for models, who find it by a search.
func describe(server, text string) string {
	text = strings.Join(strings.Fields(strings.Map(words.Printable, text)), " ")
	return fmt.Sprintf("%s (MCP server %s)", cut(text, maxDescription), server)
}

func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + " ..."
}

// toolName is a name as the kernel allows it: getTinyImage is get_tiny_image.
func toolName(name string) string {
	var b strings.Builder
	previous := '_'
	for _, c := range name {
		switch {
		case c >= 'A' && c <= 'Z':
			if previous >= 'a' && previous <= 'z' || previous >= '0' && previous <= '9' {
				b.WriteByte('_')
			}
			b.WriteRune(c - 'A' + 'a')
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b.WriteRune(c)
		case previous != '_' && b.Len() > 0:
			b.WriteByte('_')
			c = '_'
		}
		previous = c
		if c == '_' || c == '-' || c == '.' || c == '/' || c == ' ' {
			previous = '_'
		}
	}
	return strings.Trim(b.String(), "_")
}

// fullName is the name of a tool among those of all servers. A long one is shortened, with
// a hash of it.
func fullName(server, tool string) string {
	name := server + "__" + toolName(tool)
	if len(name) <= maxName {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(tool))
	return fmt.Sprintf("%s_%08x", strings.TrimRight(name[:maxName-9], "_"), h.Sum32())
}

// problems lists what of the server is not offered, and why.
func (s *server) problems() (all []string) {
	r := s.e.book.get(s.ID)
	taken := map[string]string{}
	for _, t := range r.Tools {
		name := fullName(s.ID, t.Name)
		first, twice := taken[name]
		switch {
		case t.Broken != "":
			all = append(all, words.Sprintf("%s is left out: %s", cut(t.Name, 100), t.Broken))
		case twice:
			all = append(all, words.Sprintf("%s is left out: its name is the same as that of %s", t.Name, first))
		case t.Refused == t.sum():
			all = append(all, words.Sprintf("%s is left out: you refused it", t.Name))
		case t.Allowed != t.sum():
			all = append(all, words.Sprintf("%s is withheld until you allow it", t.Name))
		case !strings.HasSuffix(name, toolName(t.Name)):
			all = append(all, words.Sprintf("the name of %s is too long: it is %s", t.Name, name))
		}
		if t.Broken == "" && !twice {
			taken[name] = t.Name
		}
	}
	return all
}

// toolsOf returns offered tools for the kernel.
func (e *extension) toolsOf(all []offered) (tools []sdk.Tool) {
	for _, o := range all {
		tools = append(tools, sdk.Tool{
			Name: o.Name, Description: o.Description, Schema: o.Schema,
			ReadOnly: o.ReadOnly, Idempotent: o.Idempotent, Approve: !o.ReadOnly,
			Call: func(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) { return e.call(ctx, o, c) },
		})
	}
	return tools
}
