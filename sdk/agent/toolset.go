package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

const (
	// maxWireName is the longest name of a tool that model APIs accept.
	maxWireName = 64
	// maxNamed is the most bytes of names of tools that find_tools can find.
	maxNamed = 500
)

// toolset is the tools that an agent may use. It is safe for concurrent use.
type toolset struct {
	tools  []*extensionv1.Tool
	byName map[string]*extensionv1.Tool
	byWire map[string]string // full name of a wire name
	byBare map[string]string // full name of a name without its extension; empty: several have it
	offers []string          // patterns of those that each request describes; none: all

	mu        sync.Mutex
	bySession map[string]*offer // by the extension that it answers to
}

// offer is what requests in a session describe of a toolset. The tools that it
// leaves out are called through use_tool.
type offer struct {
	*toolset
	described []*extensionv1.Tool // under their wire names
	hidden    map[string]bool     // full names
	bytes     int
}

func (a *Agent) loadTools(ctx context.Context) (*toolset, error) {
	tools, err := a.kernel.ListTools(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the tools of %s: %w", a.name, err)
	}
	return newToolset(tools, a.offers), nil
}

func newToolset(tools []*extensionv1.Tool, offers []string) *toolset {
	s := &toolset{
		byName: map[string]*extensionv1.Tool{}, byWire: map[string]string{}, byBare: map[string]string{},
		offers: offers, bySession: map[string]*offer{},
	}
	for _, t := range tools {
		name := t.GetName()
		wire := WireName(name)
		if _, taken := s.byWire[wire]; taken {
			continue
		}
		s.tools, s.byName[name], s.byWire[wire] = append(s.tools, t), t, name
		_, bare, _ := strings.Cut(name, "/")
		if _, taken := s.byBare[bare]; taken {
			name = ""
		}
		s.byBare[bare] = name
	}
	return s
}

// in is what requests describe in a session that answers to an extension, whose
// tools are among them; empty: it answers to none.
func (s *toolset) in(extension string) *offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.bySession[extension]; o != nil {
		return o
	}
	o := &offer{toolset: s, hidden: map[string]bool{}}
	if s.byName[contract.ToolFind] != nil && s.byName[contract.ToolUse] != nil {
		for _, t := range s.tools {
			if name := t.GetName(); !s.offered(name, extension) {
				o.hidden[name] = true
			}
		}
	}
	for _, t := range s.tools {
		name, description := t.GetName(), t.GetDescription()
		reaches := name == contract.ToolFind || name == contract.ToolUse
		if o.hidden[name] || reaches && len(o.hidden) == 0 {
			continue
		}
		schema := slim(t.GetSchema())
		if name == contract.ToolFind {
			description += " There are: " + s.names(o.hidden) + "."
		}
		o.described = append(o.described, &extensionv1.Tool{
			Name: WireName(name), Description: description, Schema: schema,
			ReadOnly: t.GetReadOnly(), Idempotent: t.GetIdempotent(),
		})
		o.bytes += entryOverhead + len(name) + len(description) + len(schema)
	}
	s.bySession[extension] = o
	return o
}

func (s *toolset) offered(name, extension string) bool {
	if len(s.offers) == 0 || name == contract.ToolFind || name == contract.ToolUse || strings.HasPrefix(name, extension+"/") {
		return true
	}
	return slices.ContainsFunc(s.offers, func(pattern string) bool {
		prefix, wild := strings.CutSuffix(pattern, "*")
		return pattern == name || wild && strings.HasPrefix(name, prefix)
	})
}

// names lists tools by extension, as far as they fit.
func (s *toolset) names(hidden map[string]bool) string {
	var b strings.Builder
	last, left := "", len(hidden)
	for _, t := range s.tools {
		if !hidden[t.GetName()] {
			continue
		}
		if b.Len() > maxNamed {
			fmt.Fprintf(&b, " and %d more", left)
			break
		}
		extension, bare, _ := strings.Cut(t.GetName(), "/")
		switch {
		case extension == last:
			b.WriteString(", " + bare)
		case last == "":
			b.WriteString(extension + ": " + bare)
		default:
			b.WriteString("; " + extension + ": " + bare)
		}
		last = extension
		left--
	}
	return b.String()
}

// full is the name of the tool that a model called wire. What is no tool keeps
// a name that the kernel will refuse with a reason for the model.
func (s *toolset) full(wire string) string {
	if name, ok := s.byWire[wire]; ok {
		return name
	}
	if _, ok := s.byName[wire]; ok {
		return wire
	}
	if name := s.byBare[wire]; name != "" {
		return name
	}
	name := strings.Replace(cutRunes(strings.ToValidUTF8(wire, "?"), 128), "__", "/", 1)
	if name == "" {
		return "unnamed"
	}
	return name
}

// understood is the tool that a model calls, with its arguments: through
// use_tool, or by its own name.
func (s *toolset) understood(wire string, arguments []byte) (string, []byte) {
	name := s.full(wire)
	if name == contract.ToolUse {
		if inner, its, ok := contract.UsedTool(arguments); ok {
			return s.full(inner), its
		}
	}
	return name, arguments
}

// shown is a recorded call as requests show it.
func (o *offer) shown(name string, arguments []byte) (string, []byte) {
	if o == nil || !o.hidden[name] {
		return WireName(name), arguments
	}
	its := json.RawMessage(arguments)
	if !json.Valid(its) {
		its, _ = json.Marshal(string(arguments)) //nolint:errchkjson // a string
	}
	all, _ := json.Marshal(struct { //nolint:errchkjson // valid JSON
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}{name, its})
	return WireName(contract.ToolUse), all
}

func (s *toolset) readOnly(name string) bool { return s.byName[name].GetReadOnly() }

func (s *toolset) final(name string) bool { return s.byName[name].GetFinal() }

// WireName is the name of a tool in a request to a model, whose API allows only
// letters, digits, "_" and "-", and 64 of them: core/send_to_channel is
// "send_to_channel", and scheduler/schedule_once "scheduler__schedule_once".
func WireName(name string) string {
	wire := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, strings.Replace(strings.TrimPrefix(name, "core/"), "/", "__", 1))
	if len(wire) > maxWireName {
		h := fnv.New32a()
		h.Write([]byte(name))
		wire = fmt.Sprintf("%s_%08x", wire[:maxWireName-9], h.Sum32())
	}
	return wire
}
