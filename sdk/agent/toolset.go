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
	// maxWireName is the largest length of a tool's name that model APIs accept.
	maxWireName = 64
	// maxNames bounds the list of names in the description of find_tools, in bytes.
	maxNames = 190
)

// toolset is the set of tools that an agent may use. It is safe for concurrent use.
type toolset struct {
	tools  []*extensionv1.Tool
	byName map[string]*extensionv1.Tool
	byWire map[string]string // full name by wire name
	byBare map[string]string // full name by name without extension; empty: ambiguous
	offers []string          // patterns of the tools that each request describes; none: all

	mu          sync.Mutex
	byExtension map[string]*offer // by the extension that created the session
}

// offer is the part of a toolset that the requests of a session describe. The model
// calls the other tools through use_tool.
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
		offers: offers, byExtension: map[string]*offer{},
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

// offer returns the offer in a session that an extension created. It includes that
// extension's tools; empty: none.
func (s *toolset) offer(extension string) *offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.byExtension[extension]; o != nil {
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
		forHidden := name == contract.ToolFind || name == contract.ToolUse
		if o.hidden[name] || forHidden && len(o.hidden) == 0 {
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
	s.byExtension[extension] = o
	return o
}

func (s *toolset) offered(name, extension string) bool {
	if len(s.offers) == 0 || name == contract.ToolFind || name == contract.ToolUse ||
		strings.HasPrefix(name, extension+"/") {
		return true
	}
	return slices.ContainsFunc(s.offers, func(pattern string) bool {
		prefix, wild := strings.CutSuffix(pattern, "*")
		return pattern == name || wild && strings.HasPrefix(name, prefix)
	})
}

// names lists the hidden tools by extension. Where that is longer than maxNames bytes, it
// lists how many each extension has, and of the extension mcp each server: a request costs
// the same with any number of tools.
func (s *toolset) names(hidden map[string]bool) string {
	var all []string // tools by extension
	var groups []string
	count := map[string]int{}
	last := ""
	for _, t := range s.tools {
		name := t.GetName()
		if !hidden[name] {
			continue
		}
		extension, bare, _ := strings.Cut(name, "/")
		if extension == last {
			all[len(all)-1] += ", " + bare
		} else {
			all = append(all, extension+": "+bare)
		}
		last = extension
		group, _, _ := strings.Cut(name, "__")
		if group == name {
			group = extension
		}
		if count[group]++; count[group] == 1 {
			groups = append(groups, group)
		}
	}
	text := strings.Join(all, "; ")
	if len(text) <= maxNames {
		return text
	}
	text = ""
	for i, group := range groups {
		next := fmt.Sprintf("%s (%d), ", group, count[group])
		if more := fmt.Sprintf("and %d more", len(groups)-i); len(text)+len(next)+len(more) > maxNames {
			return text + more
		}
		text += next
	}
	return strings.TrimSuffix(text, ", ")
}

// fullName returns the full name of the tool that a model called wire. For an unknown
// tool it returns a name that the kernel refuses with a reason for the model.
func (s *toolset) fullName(wire string) string {
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

// resolve returns the full name and the arguments of a call, which may go through
// use_tool.
func (s *toolset) resolve(wire string, arguments []byte) (string, []byte) {
	name := s.fullName(wire)
	if name == contract.ToolUse {
		if inner, innerArguments, ok := contract.UsedTool(arguments); ok {
			return s.fullName(inner), innerArguments
		}
	}
	return name, arguments
}

// render returns the name and the arguments of a recorded call in a request.
func (o *offer) render(name string, arguments []byte) (string, []byte) {
	if o == nil || !o.hidden[name] {
		return WireName(name), arguments
	}
	inner := json.RawMessage(arguments)
	if !json.Valid(inner) {
		inner, _ = json.Marshal(string(arguments)) //nolint:errchkjson // a string
	}
	all, _ := json.Marshal(struct { //nolint:errchkjson // valid JSON
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}{name, inner})
	return WireName(contract.ToolUse), all
}

func (s *toolset) readOnly(name string) bool { return s.byName[name].GetReadOnly() }

func (s *toolset) final(name string) bool { return s.byName[name].GetFinal() }

// WireName returns the name of a tool in requests to models, whose APIs allow at most
// 64 letters, digits, "_" and "-": core/send_to_channel becomes "send_to_channel", and
// scheduler/schedule_once "scheduler__schedule_once".
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
