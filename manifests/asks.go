package manifests

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/contract/words"
)

// Ask is one thing beyond itself that an extension asks for. The kinds are part of what is
// stored.
type Ask struct {
	Kind  string `json:"kind"`
	Value string `json:"value,omitempty"`
}

// Kinds of an Ask.
const (
	AskPublish   = "publish"   // a topic pattern of another owner
	AskSubscribe = "subscribe" // likewise
	AskTools     = "tools"     // gives tools to agents
	AskProvider  = "provider"  // answers as a language model
	AskEffect    = "effect"
	AskRead      = "read"  // a path
	AskWrite     = "write" // a path; also to read it
	AskTool      = "tool"  // a tool that it calls, or a pattern of those that it calls as an agent
	AskModel     = "model" // a model that it asks
	AskAgent     = "agent" // answers people
	AskMemory    = "memory"
	AskSecret    = "secret" // of another extension
	AskListen    = "listen" // a port
	AskSessions  = "sessions"
	AskPresence  = "presence"
	AskAdmin     = "admin"
)

// Request is what an extension asks for beyond itself, sorted. An empty one needs no
// consent.
type Request []Ask

// Asks returns what the extension asks for beyond itself. Foreign are the names of secrets
// and variables that belong to others. A path in the extension's own directory is not asked
// for, as long as no link leads out of it.
func (m *Manifest) Asks(foreign ...string) Request {
	var r Request
	add := func(kind string, values ...string) {
		for _, v := range values {
			r = append(r, Ask{kind, v})
		}
	}
	p := m.Permissions
	for _, t := range p.Publish {
		if t != contract.TopicUserMessage && topic.Owner(t) != m.ID {
			add(AskPublish, t)
		}
	}
	for _, s := range m.Schedules {
		if topic.Owner(s.Topic) != m.ID {
			add(AskPublish, s.Topic)
		}
	}
	for _, s := range p.Subscribe {
		if topic.Owner(s.Topic) != m.ID && s.Topic != contract.TopicSessionIdle+m.ID && !s.Own {
			add(AskSubscribe, s.Topic)
		}
	}
	for kind, asked := range map[string]bool{
		AskTools: m.Provides.Tools, AskProvider: len(m.Provides.Models) > 0, AskAgent: m.Agent != nil,
		AskSessions: p.Sessions, AskPresence: p.Presence,
	} {
		if asked {
			add(kind, "")
		}
	}
	add(AskEffect, p.Effects...)
	add(AskTool, p.Tools...)
	add(AskModel, p.Models...)
	if p.Admin != "" {
		add(AskAdmin, p.Admin)
	}
	for _, port := range m.Ports(m.Config) { // another one is a setting of the owner's
		add(AskListen, strconv.Itoa(int(port)))
	}
	for _, f := range p.Files {
		kind := AskRead
		if f.Write {
			kind = AskWrite
		}
		if path := m.foreignPath(f.Path); path != "" {
			add(kind, path)
		}
	}
	if a := m.Agent; a != nil {
		add(AskTool, a.UsesTools...)
		add(AskTool, a.Context...)
		add(AskMemory, a.Memory...)
	}
	for _, name := range m.secretNames() {
		if slices.Contains(foreign, name) {
			add(AskSecret, name)
		}
	}
	return r.sorted()
}

// secretNames returns the secrets and the variables that the extension gets by their names.
func (m *Manifest) secretNames() (names []string) {
	for _, s := range m.Secrets {
		names = append(names, s.Name)
	}
	for _, e := range m.Run.Env {
		if !strings.Contains(e, "=") {
			names = append(names, e)
		}
	}
	return names
}

// foreignPath returns a path that is not in the extension's own directory; empty: it is
// there.
func (m *Manifest) foreignPath(path string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, "~") {
		return filepath.Clean(path)
	}
	dir, full := ResolveLinks(m.Dir()), ResolveLinks(filepath.Join(m.Dir(), path))
	if rest, err := filepath.Rel(dir, full); err == nil && filepath.IsLocal(rest) {
		return ""
	}
	return full
}

// ResolveLinks resolves the symbolic links in the existing part of a path.
func ResolveLinks(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(ResolveLinks(dir), filepath.Base(path))
	}
	return path
}

func (r Request) sorted() Request {
	slices.SortFunc(r, func(a, b Ask) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Value, b.Value)) })
	return slices.Compact(r)
}

// Hash identifies the set of asks. Texts, versions and what is not asked for do not change
// it.
func (r Request) Hash() string {
	h := sha256.New()
	for _, a := range r {
		fmt.Fprintf(h, "%q %q\n", a.Kind, a.Value)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Covers reports whether r allows all that the other request asks for.
func (r Request) Covers(other Request) bool { return len(r.Beyond(other)) == 0 }

// Beyond returns what the other request asks for and r does not allow.
func (r Request) Beyond(other Request) Request {
	offers := r.byName()
	return slices.DeleteFunc(slices.Clone(other), func(a Ask) bool {
		if a.Kind == AskOffer {
			o := a.offer()
			return offers[o.name].covers(o)
		}
		return slices.ContainsFunc(r, func(b Ask) bool { return b.covers(a) })
	})
}

func (a Ask) covers(b Ask) bool {
	switch {
	case a == b:
		return true
	case a.Kind == AskWrite && b.Kind == AskRead:
		return a.Value == b.Value
	case a.Kind != b.Kind:
		return false
	case a.Kind == AskPublish || a.Kind == AskSubscribe:
		return topic.Match(a.Value, b.Value)
	case a.Kind == AskTool:
		all, ok := strings.CutSuffix(a.Value, "*")
		return ok && strings.HasPrefix(b.Value, all)
	}
	return false
}

// Lines are the asks in plain words, in a language.
func (r Request) Lines(language string) []string {
	lines := make([]string, len(r))
	for i, a := range r {
		lines[i] = a.line(language)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func (a Ask) line(language string) string {
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	switch a.Kind {
	case AskPublish:
		return a.publishes(language)
	case AskSubscribe:
		return a.hears(language)
	case AskTools:
		return say("give tools to agents")
	case AskOffer:
		return say("give agents the tool %s: %s", a.offer().name, a.offer().text)
	case AskProvider:
		return say("answer as a language model, which sees the conversations that use it")
	case AskEffect:
		return a.effect(language)
	case AskRead:
		return say("read %s", a.Value)
	case AskWrite:
		return say("read and change %s", a.Value)
	case AskTool:
		return say("use the tool %s", a.Value)
	case AskModel:
		return say("ask the language model %s, which can cost money", a.Value)
	case AskAgent:
		return say("answer messages as an agent")
	case AskMemory:
		return say("read and change memories of %s", a.Value)
	case AskSecret:
		return say("read the secret %s, which belongs to another extension", a.Value)
	case AskListen:
		return say("accept network connections on port %s", a.Value)
	case AskSessions:
		return say("read all conversations")
	case AskPresence:
		return say("see when people were last active")
	case AskAdmin:
		return say("read everything in Switchboard: conversations, people and settings")
	}
	return a.Kind + " " + a.Value
}

func (a Ask) publishes(language string) string {
	switch a.Value {
	case contract.TopicUserNotify:
		return words.Say(language, "send you messages")
	case contract.TopicUserAsk:
		return words.Say(language, "ask you questions")
	case contract.TopicAgentTask, contract.TopicAgentBackground:
		return words.Say(language, "give jobs to agents (%s)", a.Value)
	}
	return words.Say(language, "publish events of others (%s)", a.Value)
}

func (a Ask) hears(language string) string {
	switch a.Value {
	case contract.TopicUserMessage, "user.*":
		return words.Say(language, "read every message that people write")
	case contract.TopicAgentOutput:
		return words.Say(language, "read every answer of agents")
	}
	if topic.Overlap(a.Value, contract.TopicChannelSend+"*") {
		return words.Say(language, "read what is sent to people (%s)", a.Value)
	}
	return words.Say(language, "read events of others (%s)", a.Value)
}

func (a Ask) effect(language string) string {
	switch a.Value {
	case "session.ensure":
		return words.Say(language, "open conversations with agents")
	case "input":
		return words.Say(language, "write to agents")
	case "turn.cancel":
		return words.Say(language, "stop agents")
	case "withdraw":
		return words.Say(language, "withdraw its messages before they arrive")
	}
	return words.Say(language, "use the effect %s", a.Value)
}

// Shown are the lines, in a language, about what the extension uses besides what it asked for:
// hosts, secrets and commands. People see them with the question.
func (m *Manifest) Shown(language string, asked ...Ask) (lines []string) {
	for _, h := range m.Permissions.Network {
		if h == anyHost {
			lines = append(lines, words.Say(language, "connects to any host"))
		} else {
			lines = append(lines, words.Say(language, "connects to %s", h))
		}
	}
	for _, name := range m.secretNames() {
		if !slices.Contains(asked, Ask{AskSecret, name}) {
			lines = append(lines, words.Say(language, "gets the secret %s", name))
		}
	}
	for _, c := range m.Provides.Commands {
		lines = append(lines, words.Say(language, "adds the command /%s", c.Name))
	}
	return lines
}
