package bus

import (
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/topic"
)

// Actor is the author of a commit: one running generation of an extension, with the
// grants of its manifest. It comes from the connection, never from a message.
type Actor struct {
	Builtin    bool // part of the binary
	ID         string
	Generation int64
	Publish    []string // topic patterns
	Subscribe  []string // topic patterns, for watching
	Effects    []string // of the manifest: session.ensure, input, ...
	Tools      []string // patterns of tools it may call for itself
	Models     []string // it may ask outside of turns
	Presence   bool     // it may ask when a person was there last
	Blobs      bool     // it may store and read files
	Sessions   bool     // it may read all sessions, for an agent whose conversation no one else reads
	Channel    bool     // provides a channel
	Agent      bool     // is an agent
	Admin      string   // AdminRead or AdminManage: services of adminv1; empty: none
	kernel     bool
}

// Agents is the grant of effects that only agents may have.
func Agents(a *Actor, _ *busv1.Effect) error {
	if a.Agent {
		return nil
	}
	return fmt.Errorf("%w: only an agent writes to a session's history: %q has no agent section", contract.ErrDenied, a.ID)
}

// Channels is the grant of effects that only channels may have.
func Channels(a *Actor, _ *busv1.Effect) error {
	if a.Channel {
		return nil
	}
	return fmt.Errorf("%w: only a channel gives receipts: %q lacks \"provides: {channel: ...}\"", contract.ErrDenied, a.ID)
}

func mayPublish(a *Actor, e *busv1.Effect) error {
	t := e.GetPublish().GetTopic()
	switch {
	case !topic.ValidTopic(t):
		return fmt.Errorf("%w: %q is not a topic: lower-case words with dots between them", contract.ErrInvalid, t)
	case t == contract.TopicAgentOutput && a.Agent:
		return nil
	case t == contract.TopicAgentOutput, topic.KernelOnly(t) != "":
		return fmt.Errorf("%w: %q is published by the kernel alone", contract.ErrDenied, t)
	case t == contract.TopicUserMessage && !a.Channel:
		return fmt.Errorf("%w: only a channel reports messages of people: %q lacks \"provides: {channel: ...}\"",
			contract.ErrDenied, a.ID)
	}
	if slices.ContainsFunc(a.Publish, func(pattern string) bool { return topic.Match(pattern, t) }) {
		return nil
	}
	return fmt.Errorf("%w: the manifest of %q lacks \"permissions: {publish: [%s]}\"", contract.ErrDenied, a.ID, t)
}

// MayWatch reports whether the actor may read events of the pattern.
func (a *Actor) MayWatch(pattern string) error {
	if a.kernel || slices.ContainsFunc(a.Subscribe, func(granted string) bool { return topic.Covers(granted, pattern) }) {
		return nil
	}
	return fmt.Errorf("%w: the manifest of %q lacks \"permissions: {subscribe: [{topic: %s}]}\"", contract.ErrDenied,
		a.ID, pattern)
}

// MayQueue reports whether the actor may queue inputs of sessions.
func (a *Actor) MayQueue() bool { return a.kernel || slices.Contains(a.Effects, "input") }

// MayAskPresence reports whether the actor may know when a person was there last.
func (a *Actor) MayAskPresence() error {
	if a.kernel || a.Presence {
		return nil
	}
	return fmt.Errorf("%w: the manifest of %q lacks \"permissions: {presence: true}\"", contract.ErrDenied, a.ID)
}

// Grants of the services of adminv1; who may manage may also read.
const (
	AdminRead   = "read"
	AdminManage = "manage"
)

// MayAdminister says whether the actor may read by adminv1.Read, or change something
// by adminv1.Manage.
func (a *Actor) MayAdminister(reading bool) error {
	need := AdminManage
	if reading {
		need = AdminRead
	}
	if a.Admin == need || a.Admin == AdminManage {
		return nil
	}
	return fmt.Errorf("%w: the manifest of %q lacks \"permissions: {admin: %s}\"", contract.ErrDenied, a.ID, need)
}
