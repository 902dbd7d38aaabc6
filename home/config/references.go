package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract/near"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// UnknownAgent is the reason for an id that no agent has.
const UnknownAgent = "unknown"

// LinkProblem returns a problem of a link that is not in force, with the position
// of one of its keys, or of the link if key is empty.
func (c *Config) LinkProblem(link int, key, id, reason string, known []string) Problem {
	path := strictyaml.Path("links", link)
	if key != "" {
		path = strictyaml.Path("links", link, key)
	}
	f := strictyaml.Fault{Message: reason}
	if reason == UnknownAgent {
		f = unknown("agent", id, known)
	}
	return c.doc.Locate(path, f)
}

func unknown(kind, id string, known []string) strictyaml.Fault {
	return strictyaml.Fault{Message: fmt.Sprintf("there is no %s %q", kind, id), Suggestion: near.Best(id, known)}
}

// coreTools is the owner of the kernel's tools.
const coreTools = "core"

// References returns a problem for each extension, agent and channel in the
// configuration that is not among the known ids. They are hints, not errors: an
// extension may be dropped in later.
func (c *Config) References(known []string) Problems {
	var out Problems
	check := func(path, id, kind string, key bool) {
		if id == "" || slices.Contains(known, id) {
			return
		}
		f := unknown(kind, id, known)
		if key {
			out = append(out, c.doc.LocateKey(path, f))
		} else {
			out = append(out, c.doc.Locate(path, f))
		}
	}
	check("agents.default", c.Agents.Default, "agent", false)
	for i, id := range c.Agents.Enabled {
		check(strictyaml.Path("agents", "enabled", i), id, "agent", false)
	}
	for id, agent := range c.Agents.ByID {
		check(strictyaml.Path("agents", id), id, "agent", true)
		for i, change := range agent.Tools {
			owner, _, _ := strings.Cut(change[1:], "/")
			if owner != coreTools {
				check(strictyaml.Path("agents", id, "tools", i), owner, "extension", false)
			}
		}
	}
	for channel, agent := range c.Agents.Routing {
		path := strictyaml.Path("agents", "routing", channel)
		if !c.doc.Has(path) {
			path = strictyaml.Path("agents", "channel_map", channel)
		}
		check(path, channel, "channel", true)
		check(path, agent, "agent", false)
	}
	check("channels.default", c.Channels.Default, "channel", false)
	for id := range c.Channels.ByID {
		check(strictyaml.Path("channels", id), id, "channel", true)
	}
	for key, names := range map[string][]string{"default": c.Models.Default, "transcribe": c.Models.Transcribe} {
		for i, m := range names {
			provider, _, _ := strings.Cut(m, "/")
			check(strictyaml.Path("models", key, i), provider, "model provider", false)
		}
	}
	provider, _, _ := strings.Cut(c.Models.Scout, "/")
	check("models.scout", provider, "model provider", false)
	for i, l := range c.Links {
		check(strictyaml.Path("links", i, "from"), l.From, "agent", false)
		check(strictyaml.Path("links", i, "to"), l.To, "agent", false)
	}
	for id := range c.Extensions {
		check(strictyaml.Path("extensions", id), id, "extension", true)
	}
	return out.Sort()
}
