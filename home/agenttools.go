package home

import (
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/home/consent"
)

// toolsOf returns the patterns of the tools that an agent may use: those of its manifest,
// those that the owner gave the default agent with their consent, and the changes of
// config.yaml.
func (p *plan) toolsOf(agent string, uses []string) []string {
	uses = slices.Clone(uses)
	if agent == p.defaultAgent() {
		for _, e := range p.entries {
			if a := p.asked[e.ID]; a != nil && a.tools && (a.state == consent.Allowed || a.older) {
				uses = changeTools(uses, "+"+e.ID+"/*")
			}
		}
	}
	for _, change := range p.config.Agents.ByID[agent].Tools {
		uses = changeTools(uses, change)
	}
	return uses
}

// defaultAgent returns the agent that answers where nothing else is configured; empty: there
// is none.
func (p *plan) defaultAgent() string {
	a := p.config.Agents
	if a.Default == "" && len(a.Enabled) > 0 {
		return a.Enabled[0]
	}
	return a.Default
}

// changeTools adds the pattern after a + to those of an agent, or takes away the one after
// a -, which stays as an exclusion if another pattern covers a part of it.
func changeTools(uses []string, change string) []string {
	pattern := change[1:]
	if change[0] == '+' {
		uses = slices.DeleteFunc(uses, func(p string) bool { return p == pattern || coversTool("-"+pattern, p) })
		return append(uses, pattern)
	}
	uses = slices.DeleteFunc(uses, func(p string) bool { return coversTool(pattern, p) })
	if slices.ContainsFunc(uses, func(p string) bool { return coversTool(p, pattern) }) {
		uses = append(uses, change)
	}
	return uses
}

// coversTool reports whether a pattern covers a tool or a narrower pattern.
func coversTool(pattern, other string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	return pattern == other || wild && strings.HasPrefix(other, prefix)
}
