package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// UnknownAgent has LinkProblem say that nobody has the id.
const UnknownAgent = "unknown"

// LinkProblem is why a link is not in force, positioned at one of its keys; at
// the link itself without one.
func (c *Config) LinkProblem(link int, key, id, why string, known []string) Problem {
	path := strictyaml.Path("links", link)
	if key != "" {
		path = strictyaml.Path("links", link, key)
	}
	f := strictyaml.Fault{Message: why}
	if why == UnknownAgent {
		f = unknown("agent", id, known)
	}
	return c.doc.Locate(path, f)
}

func unknown(what, id string, known []string) strictyaml.Fault {
	return strictyaml.Fault{Message: fmt.Sprintf("there is no %s %q", what, id), Suggestion: strictyaml.Suggest(id, known)}
}

// References returns a problem for every extension, agent and channel that the
// configuration names and that is not among the ids known. They are hints, not
// errors: an extension may be dropped in later.
func (c *Config) References(known []string) Problems {
	var out Problems
	look := func(path, id, what string, key bool) {
		if id == "" || slices.Contains(known, id) {
			return
		}
		f := unknown(what, id, known)
		if key {
			out = append(out, c.doc.LocateKey(path, f))
		} else {
			out = append(out, c.doc.Locate(path, f))
		}
	}
	look("agents.default", c.Agents.Default, "agent", false)
	for i, id := range c.Agents.Enabled {
		look(strictyaml.Path("agents", "enabled", i), id, "agent", false)
	}
	for channel, agent := range c.Agents.Routing {
		path := strictyaml.Path("agents", "routing", channel)
		if !c.doc.Has(path) {
			path = strictyaml.Path("agents", "channel_map", channel)
		}
		look(path, channel, "channel", true)
		look(path, agent, "agent", false)
	}
	look("channels.default", c.Channels.Default, "channel", false)
	for id := range c.Channels.ByID {
		look(strictyaml.Path("channels", id), id, "channel", true)
	}
	for i, m := range c.Models.Default {
		provider, _, _ := strings.Cut(m, "/")
		path := strictyaml.Path("models", "default", i)
		look(path, provider, "model provider", false)
	}
	provider, _, _ := strings.Cut(c.Models.Scout, "/")
	look("models.scout", provider, "model provider", false)
	for i, l := range c.Links {
		look(strictyaml.Path("links", i, "from"), l.From, "agent", false)
		look(strictyaml.Path("links", i, "to"), l.To, "agent", false)
	}
	for id := range c.Extensions {
		look(strictyaml.Path("extensions", id), id, "extension", true)
	}
	return out.Sort()
}
