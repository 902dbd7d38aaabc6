package home

import (
	"fmt"
	"maps"
	"slices"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/home/config"
)

// The extension whose manifest provides a topology gets the links of config.yaml as
// its setting "links". Linked agents may use its tools, and its tool "peers" is part
// of their context.
const (
	linksKey    = "links"
	linkTools   = "/*"
	linkContext = "/peers"
)

// plannedLink is a link in the setting of the extension.
type plannedLink struct {
	From        string `json:"from"`
	To          string `json:"to"`
	FromAbout   string `json:"from_about,omitempty"` // description of the agent for the other one
	ToAbout     string `json:"to_about,omitempty"`
	Mode        string `json:"mode"`
	MaxMessages int    `json:"max_messages"`
	IdleSeconds int64  `json:"idle_seconds"`
	Problem     string `json:"problem,omitempty"` // why it is not in force
}

// topology returns the id of the extension that provides links, running or not;
// empty: there is none.
func (p *plan) topology() string {
	for _, e := range p.entries {
		if e.Manifest != nil && e.Manifest.Provides.Topology {
			return e.ID
		}
	}
	return ""
}

// planLinks puts the links into the config of their extension, collects the problems
// of those that cannot be in force, and marks the agents of the others.
func (p *plan) planLinks() {
	id := p.topology()
	all := []plannedLink{}
	for i, l := range p.config.Links {
		planned := plannedLink{
			From: l.From, To: l.To, Mode: l.Mode, MaxMessages: l.MaxMessages, IdleSeconds: int64(l.Idle.Seconds()),
		}
		if problem, bad := p.linkProblem(i, l, id); bad {
			p.linkProblems = append(p.linkProblems, problem)
			planned.Problem = problem.String()
		} else {
			from, to := p.members[l.From], p.members[l.To]
			from.linked, to.linked = id, id
			planned.FromAbout, planned.ToAbout = from.about(), to.about()
		}
		all = append(all, planned)
	}
	if m := p.members[id]; m != nil {
		m.config = maps.Clone(m.config)
		if m.config == nil {
			m.config = map[string]any{}
		}
		m.config[linksKey] = all
	}
}

func (m *member) about() string {
	if m.manifest.Description == "" {
		return m.manifest.Name
	}
	return m.manifest.Name + ": " + m.manifest.Description
}

// linkProblem returns why a link cannot be in force, and whether that is so.
func (p *plan) linkProblem(i int, l config.Link, topology string) (config.Problem, bool) {
	for _, side := range []struct{ key, id string }{{"from", l.From}, {"to", l.To}} {
		if reason := p.unlinkable(side.id); reason != "" {
			return p.config.LinkProblem(i, side.key, side.id, reason, p.known()), true
		}
	}
	switch {
	case topology == "":
		return p.config.LinkProblem(i, "", "", "links are not in force: no extension provides them", nil), true
	case p.members[topology] == nil:
		reason := fmt.Sprintf("links are not in force: the extension %s is disabled or cannot start", topology)
		return p.config.LinkProblem(i, "", "", reason, nil), true
	}
	return config.Problem{}, false
}

// unlinkable returns why an agent cannot be linked; empty: it can.
func (p *plan) unlinkable(id string) string {
	m := p.members[id]
	switch {
	case !slices.Contains(p.known(), id):
		return config.UnknownAgent
	case m == nil:
		return fmt.Sprintf("the agent %q is disabled or cannot start, so this link is not in force", id)
	case m.manifest.Agent == nil:
		return fmt.Sprintf("%q is not an agent, so this link is not in force", id)
	case p.config.Agents.Enabled != nil && !slices.Contains(p.config.Agents.Enabled, id):
		return fmt.Sprintf("the agent %q is not in agents.enabled, so this link is not in force", id)
	}
	return ""
}

// known returns the ids of all extensions, running or not.
func (p *plan) known() (ids []string) {
	for _, e := range p.entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// link grants a linked agent the tools and the context of links.
func (m *member) link(s *extensionv1.AgentSpec) {
	if m.linked == "" {
		return
	}
	if tools := m.linked + linkTools; !slices.Contains(s.GetUsesTools(), tools) {
		s.UsesTools = append(slices.Clone(s.GetUsesTools()), tools)
	}
	if tools := m.linked + linkTools; len(s.GetOffers()) > 0 && !slices.Contains(s.GetOffers(), tools) {
		s.Offers = append(slices.Clone(s.GetOffers()), tools)
	}
	if context := m.linked + linkContext; !slices.Contains(s.GetContext(), context) {
		s.Context = append(slices.Clone(s.GetContext()), context)
	}
}

// newProblems returns the problems of links that the previous plan did not have.
func newProblems(previous, next *plan) (fresh []config.Problem) {
	for _, problem := range next.linkProblems {
		if previous == nil || !slices.Contains(previous.linkProblems, problem) {
			fresh = append(fresh, problem)
		}
	}
	return fresh
}
