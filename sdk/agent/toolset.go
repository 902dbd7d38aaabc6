package agent

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// maxWireName is the longest name of a tool that model APIs accept.
const maxWireName = 64

// toolset is the tools of an agent as a request names them.
type toolset struct {
	offered []*extensionv1.Tool // with their wire names
	byWire  map[string]string   // full name of a wire name
	byName  map[string]*extensionv1.Tool
	bytes   int
}

func (a *Agent) loadTools(ctx context.Context) (*toolset, error) {
	tools, err := a.kernel.ListTools(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the tools of %s: %w", a.name, err)
	}
	return newToolset(tools), nil
}

func newToolset(tools []*extensionv1.Tool) *toolset {
	s := &toolset{byWire: map[string]string{}, byName: map[string]*extensionv1.Tool{}}
	for _, t := range tools {
		wire := WireName(t.GetName())
		if _, taken := s.byWire[wire]; taken {
			continue
		}
		s.byWire[wire], s.byName[t.GetName()] = t.GetName(), t
		s.offered = append(s.offered, &extensionv1.Tool{
			Name: wire, Description: t.GetDescription(), Schema: t.GetSchema(),
			ReadOnly: t.GetReadOnly(), Idempotent: t.GetIdempotent(),
		})
		s.bytes += entryOverhead + len(wire) + len(t.GetDescription()) + len(t.GetSchema())
	}
	return s
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
	name := strings.Replace(cutRunes(strings.ToValidUTF8(wire, "?"), 128), "__", "/", 1)
	if name == "" {
		return "unnamed"
	}
	return name
}

func (s *toolset) readOnly(name string) bool { return s.byName[name].GetReadOnly() }

func (s *toolset) final(name string) bool { return s.byName[name].GetFinal() }

// WireName is the name of a tool in a request to a model, whose API allows only
// letters, digits, "_" and "-", and 64 of them: "core/send_to_channel" is
// "core__send_to_channel".
func WireName(name string) string {
	wire := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, strings.Replace(name, "/", "__", 1))
	if len(wire) > maxWireName {
		h := fnv.New32a()
		h.Write([]byte(name))
		wire = fmt.Sprintf("%s_%08x", wire[:maxWireName-9], h.Sum32())
	}
	return wire
}
