package home

import (
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract/topic"
)

// unused returns what an extension provides or waits for in vain: tools that no agent and no
// extension may call, and subscriptions to topics that no one publishes.
func (p *plan) unused(id string) (why []string) {
	x := p.members[id].manifest
	if x.Provides.Tools && len(x.Provides.Commands) == 0 && !p.calls(id) {
		why = append(why, fmt.Sprintf("no agent may use its tools: give them to one in config.yaml, "+
			"agents: {NAME: {tools: [+%s/*]}}, or to the default one with `switchboard extensions allow %s --tools`", id, id))
	}
	schedules := slices.ContainsFunc(x.Permissions.Tools, func(tool string) bool {
		return strings.HasPrefix(tool, "scheduler/")
	})
	for _, s := range x.Permissions.Subscribe {
		if schedules && topic.Owner(s.Topic) == id {
			continue // it may schedule them itself
		}
		if !p.published(s.Topic) {
			why = append(why, fmt.Sprintf("it subscribes to %s, which no extension publishes: is the name right?", s.Topic))
		}
	}
	return why
}

// calls reports whether an agent or another extension may call a tool of an extension.
func (p *plan) calls(id string) bool {
	for _, m := range p.members {
		patterns := slices.Clone(m.manifest.Permissions.Tools)
		if a := m.manifest.Agent; a != nil {
			patterns = append(p.toolsOf(m.manifest.ID, a.UsesTools), a.Context...)
		}
		if slices.ContainsFunc(patterns, func(pattern string) bool {
			return pattern == "*" || strings.HasPrefix(pattern, id+"/")
		}) {
			return true
		}
	}
	return false
}

// published reports whether the kernel or an extension may publish a topic of a pattern.
func (p *plan) published(pattern string) bool {
	overlaps := func(other string) bool { return topic.Overlap(other, pattern) }
	if slices.ContainsFunc(topic.KernelPatterns(), overlaps) {
		return true
	}
	for _, m := range p.members {
		for _, s := range m.manifest.Schedules {
			if overlaps(s.Topic) {
				return true
			}
		}
		for _, grant := range m.manifest.Permissions.Publish {
			if grant != "*" && overlaps(grant) { // the scheduler may publish all, and does what schedules say
				return true
			}
		}
	}
	return false
}
