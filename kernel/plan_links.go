package kernel

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/home/config"
)

// linksExtension is the extension that the links of the configuration are for.
// The kernel tells it which there are, and lets the agents that are linked use
// its tools; what a link does, it does not know.
const linksExtension = "links"

const (
	linkTools   = linksExtension + "/*"
	linkContext = linksExtension + "/peers"
)

// plannedLink is a link as the extension reads it.
type plannedLink struct {
	From        string `json:"from"`
	To          string `json:"to"`
	FromAbout   string `json:"from_about,omitempty"` // what the agent is, for the other one
	ToAbout     string `json:"to_about,omitempty"`
	Mode        string `json:"mode"`
	MaxMessages int    `json:"max_messages"`
	IdleSeconds int64  `json:"idle_seconds"`
	Problem     string `json:"problem,omitempty"` // why it is not in force
}

// planLinks hands the links to their extension, finds those that cannot be in
// force, and marks the agents of the others.
func (p *plan) planLinks() error {
	all := []plannedLink{}
	for i, l := range p.config.Links {
		planned := plannedLink{From: l.From, To: l.To, Mode: l.Mode, MaxMessages: l.MaxMessages, IdleSeconds: int64(l.Idle.Seconds())}
		if problem, bad := p.linkProblem(i, l); bad {
			p.linkProblems = append(p.linkProblems, problem)
			planned.Problem = problem.String()
		} else {
			from, to := p.members[l.From], p.members[l.To]
			from.linked, to.linked = true, true
			planned.FromAbout, planned.ToAbout = from.about(), to.about()
		}
		all = append(all, planned)
	}
	m := p.members[linksExtension]
	if m == nil {
		return nil
	}
	m.config = maps.Clone(m.config)
	if m.config == nil {
		m.config = map[string]any{}
	}
	m.config["links"] = all
	raw, err := json.Marshal(m.config)
	if err != nil {
		return fmt.Errorf("configuration of %s: %w", linksExtension, err)
	}
	m.raw = raw
	return nil
}

func (m *member) about() string {
	if m.manifest.Description == "" {
		return m.manifest.Name
	}
	return m.manifest.Name + ": " + m.manifest.Description
}

// linkProblem says why a link cannot be in force.
func (p *plan) linkProblem(i int, l config.Link) (config.Problem, bool) {
	for _, side := range []struct{ key, id string }{{"from", l.From}, {"to", l.To}} {
		if why := p.unlinkable(side.id); why != "" {
			return p.config.LinkProblem(i, side.key, side.id, why, p.known()), true
		}
	}
	if p.members[linksExtension] == nil {
		return p.config.LinkProblem(i, "", "", fmt.Sprintf("links are not in force: the extension %s is switched off or cannot start", linksExtension), nil), true
	}
	return config.Problem{}, false
}

// unlinkable says why an agent cannot be linked; empty: it can.
func (p *plan) unlinkable(id string) string {
	m := p.members[id]
	switch {
	case !slices.Contains(p.known(), id):
		return config.UnknownAgent
	case m == nil:
		return fmt.Sprintf("the agent %q is switched off or cannot start, so this link is not in force", id)
	case m.manifest.Agent == nil:
		return fmt.Sprintf("%q is no agent, so this link is not in force", id)
	case p.config.Agents.Enabled != nil && !slices.Contains(p.config.Agents.Enabled, id):
		return fmt.Sprintf("the agent %q is not in agents.enabled, so this link is not in force", id)
	}
	return ""
}

// known is the ids of all extensions, whether they may start or not.
func (p *plan) known() (ids []string) {
	for _, e := range p.entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// agentSpec is what an agent is told and granted: what its manifest says, and,
// if it is linked, the tools and the context of links.
func (m *member) agentSpec() *extensionv1.AgentSpec {
	s := agentSpec(m.manifest.Agent)
	if s == nil || !m.linked {
		return s
	}
	if !slices.Contains(s.UsesTools, linkTools) {
		s.UsesTools = append(slices.Clone(s.UsesTools), linkTools)
	}
	if len(s.Offers) > 0 && !slices.Contains(s.Offers, linkTools) {
		s.Offers = append(slices.Clone(s.Offers), linkTools)
	}
	if !slices.Contains(s.Context, linkContext) {
		s.Context = append(slices.Clone(s.Context), linkContext)
	}
	return s
}

// newProblems are those of the links that were not there before.
func newProblems(previous, next *plan) (fresh []config.Problem) {
	for _, problem := range next.linkProblems {
		if previous == nil || !slices.Contains(previous.linkProblems, problem) {
			fresh = append(fresh, problem)
		}
	}
	return fresh
}
