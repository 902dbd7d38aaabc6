package agent

import (
	"context"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// Prompts renders the texts of an agent.
type Prompts interface {
	// System returns the system prompt. It should not depend on the time or the
	// channels: each request repeats it, and a provider caches a request only up to
	// the first byte that differs.
	System(Scene) (string, error)
	// Preamble returns the facts that change, such as the time, in lines of the form
	// "key: value". The first message of a conversation has all lines, later ones
	// those that have changed.
	Preamble(Scene) (string, error)
	// Say returns the text for people when a turn ends without an answer.
	Say(Ending) (string, error)
}

// Scene is the data for the texts of an agent. It has no addresses of people.
type Scene struct {
	Name         string  // of the agent
	Instructions string  // of its manifest
	Channel      Channel // of the conversation; zero: no person takes part
	Group        bool    // others can read the conversation
	Channels     []Channel
	Now          time.Time // in the time zone of the conversation
	Zone         string    // IANA name of that time zone

	tools *toolset
}

// Channel describes a channel.
type Channel struct {
	ID        string
	Name      string
	Readiness string // ready, unconfigured, degraded, offline
	Default   bool

	drafts bool
}

// Time returns the current time to the second, in RFC 3339.
func (s Scene) Time() string { return s.Now.Format(time.RFC3339) }

// Clock returns the current time with its weekday and zone:
// 2026-03-01T09:30:00+01:00 (Sunday, Europe/Berlin).
func (s Scene) Clock() string {
	return s.Time() + " (" + s.Now.Weekday().String() + ", " + s.Zone + ")"
}

// With returns the scene of an agent that may use these tools.
func (s Scene) With(tools []*extensionv1.Tool) Scene {
	s.tools = newToolset(tools, nil)
	return s
}

// Has reports whether the agent may use the tool with this full name.
func (s Scene) Has(tool string) bool {
	if s.tools == nil {
		return false
	}
	_, ok := s.tools.byName[tool]
	return ok
}

// HasTools reports whether the agent may use any tool.
func (s Scene) HasTools() bool { return s.tools != nil && len(s.tools.tools) > 0 }

// Tool returns the name under which the model calls a tool.
func (s Scene) Tool(name string) string { return WireName(name) }

// Reasons why a turn ended without an answer of the model.
const (
	WhyError   = "error"   // the model failed
	WhyEmpty   = "empty"   // the model gave an empty answer twice
	WhyCapped  = "capped"  // the turn used all its steps
	WhyTimeout = "timeout" // the turn took too long
)

// Ending describes how a turn ended without an answer of the model.
type Ending struct {
	Why      string
	Detail   string // of an error: the message of the model's provider
	Steps    int    // of capped: the limit
	Limit    time.Duration
	Language string // of the person, an IETF tag; empty: English
}

func (a *Agent) loadChannels(ctx context.Context) ([]Channel, error) {
	list, err := a.kernel.Channels(ctx)
	if err != nil {
		return nil, err
	}
	return describeChannels(list), nil
}

func describeChannels(list []*kernelv1.Channel) []Channel {
	channels := make([]Channel, 0, len(list))
	for _, c := range list {
		name := c.GetName()
		if name == "" {
			name = c.GetId()
		}
		channels = append(channels, Channel{
			ID: c.GetId(), Name: name, Default: c.GetDefault(), drafts: c.GetDrafts(),
			Readiness: readinessWord(c.GetReadiness().GetState()),
		})
	}
	return channels
}

func readinessWord(s extensionv1.Readiness_State) string {
	switch s {
	case extensionv1.Readiness_STATE_UNCONFIGURED:
		return "unconfigured"
	case extensionv1.Readiness_STATE_DEGRADED:
		return "degraded"
	case extensionv1.Readiness_STATE_OFFLINE:
		return "offline"
	default:
		return "ready"
	}
}
