// Package directory describes the extensions at one moment: channels, agents, tools
// and models, with the configuration that routes between them. A Snapshot never
// changes; each decision uses one Snapshot.
package directory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/channel"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/metering"
	"github.com/switchboard-run/switchboard/contract/schema"
)

// Directory holds the current snapshot. It is safe for concurrent use.
type Directory struct {
	current atomic.Pointer[version]
}

type version struct {
	snapshot *Snapshot
	replaced chan struct{} // closed when it is no longer the current one
}

func newVersion(s *Snapshot) *version { return &version{snapshot: s, replaced: make(chan struct{})} }

func (d *Directory) version() *version {
	if d.current.Load() == nil {
		d.current.CompareAndSwap(nil, newVersion(&Snapshot{Settings: Settings{Location: time.UTC}}))
	}
	return d.current.Load()
}

// Current returns the current snapshot; before the first Set an empty one.
func (d *Directory) Current() *Snapshot { return d.version().snapshot }

// Set makes a snapshot the current one.
func (d *Directory) Set(s *Snapshot) {
	if old := d.current.Swap(newVersion(s)); old != nil {
		close(old.replaced)
	}
}

// Await returns the first good snapshot, from the current one on. When ctx ends
// first, it returns the current snapshot and false.
func (d *Directory) Await(ctx context.Context, good func(*Snapshot) bool) (*Snapshot, bool) {
	for {
		v := d.version()
		if good(v.snapshot) {
			return v.snapshot, true
		}
		select {
		case <-v.replaced:
		case <-ctx.Done():
			return v.snapshot, false
		}
	}
}

// Snapshot is the directory at one moment. Slices are sorted by id.
type Snapshot struct {
	Channels []Channel
	Agents   []Agent
	Tools    []Tool
	Commands []command.Slash // of extensions: by their names, then as their manifests list them
	Models   []Provider
	// Starting lists the extensions that start for the first time: their tools are
	// not known yet.
	Starting []string

	Settings

	ToolsEtag    string // of all tools and grants
	ChannelsEtag string
}

// Settings are what the owner chose for all extensions together. The zero value
// is usable.
type Settings struct {
	Location       *time.Location // nil: UTC
	DefaultAgent   string
	EnabledAgents  []string          // nil: all
	Routing        map[string]string // channel -> agent
	DefaultChannel string
	Hold           time.Duration // how long sends to a channel that is not ready are kept
	ModelOrder     []string      // of the model "default"; nil: by what is configured
	ModelNames     map[string][]string
	Limits         []metering.Limit // of what models may use
	Currency       string           // the default one of prices and limits
	// Price sets the cost of a completion by the price of its model, if that is known. Else
	// it is what the provider reported; nil: no model has a price.
	Price       func(*contract.ModelUsage)
	Completions int      // at a time; 0: no limit
	MaxTurns    int      // that follow from one event; 0: 200
	Approve     []string // tools, as patterns, for which a person is asked first
	// KeepEvents and KeepDead say how long settled events and dead deliveries are
	// kept; the start of a kernel alone reads them. Zero: 30 and 90 days.
	KeepEvents, KeepDead time.Duration
	Blobs                BlobLimits
	// SecretsFile is where the owner sets secrets, Program the commands of this
	// program: for texts.
	SecretsFile string
	Program     Program
}

// BlobLimits bound the files that are stored, in bytes. Zero: 50 MiB, 2 GiB and 10 GiB.
type BlobLimits struct {
	File      int64 // the largest one
	Extension int64 // those that one extension stored
	Total     int64 // all
}

// Program names commands of the program around the kernel, for texts. Empty: there
// is none.
type Program struct {
	Approve string // before a pairing code
	Allow   string // before the id of an extension
	Restart string // before the id of an extension
	Dead    string // lists dead letters
	Usage   string // shows what models cost
}

// Hint puts a command of a Program and its arguments into a text; empty without the
// command.
func Hint(format, command string, args ...string) string {
	if command == "" {
		return ""
	}
	return fmt.Sprintf(format, "`"+strings.Join(append([]string{command}, args...), " ")+"`")
}

// Channel connects people to the kernel.
type Channel struct {
	channel.Spec
	ID        string
	Name      string
	State     string // of the process
	Readiness *extensionv1.Readiness
}

// Ready reports whether sends can be delivered now.
func (c *Channel) Ready() bool {
	return c.State == contract.StateActive && c.Readiness.GetState() == extensionv1.Readiness_STATE_READY
}

// Configured reports whether the channel can become ready by itself.
func (c *Channel) Configured() bool {
	return c.Readiness.GetState() != extensionv1.Readiness_STATE_UNCONFIGURED
}

// Status is the readiness in one word, or the state of a process that does not
// serve.
func (c *Channel) Status() string {
	if c.State != contract.StateActive {
		return c.State
	}
	return cmp.Or(ReadinessWord(c.Readiness.GetState()), "offline")
}

// ReadinessWord is a readiness in one word; empty: unknown.
func ReadinessWord(r extensionv1.Readiness_State) string {
	name, known := extensionv1.Readiness_State_name[int32(r)]
	if !known || r == extensionv1.Readiness_STATE_UNSPECIFIED {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(name, "STATE_"))
}

// Transient reports whether a process in the state does not serve, but may soon.
func Transient(state string) bool {
	return state == contract.StateStarting || state == contract.StateStopping || state == contract.StateBackingOff
}

// Agent is one agent.
type Agent struct {
	ID          string
	Name        string
	Description string
	State       string
	Spec        *extensionv1.AgentSpec
	Approve     []string // patterns of tools that need approval
}

// Tool is one tool under its full name.
type Tool struct {
	Name      string // <extension>/<tool>
	Extension string
	Tool      *extensionv1.Tool // its name is the short one
	Sum       string            // hash of what agents see of it
	// Schema returns the schema of the arguments, compiled on first use; nil: any
	// arguments are valid.
	Schema func() *schema.Schema
}

// Full describes the tool under its full name.
func (t *Tool) Full() *extensionv1.Tool {
	full := proto.CloneOf(t.Tool)
	full.Name = t.Name
	return full
}

// Provider is an extension that completes prompts.
type Provider struct {
	Extension string
	Models    []string // patterns: <id>/<name> or <id>/*
	Fallback  bool     // used only while no other provider is configured
	State     string
	Readiness *extensionv1.Readiness
}

// Channel is the channel of an id; nil if there is none.
func (s *Snapshot) Channel(id string) *Channel {
	return find(s.Channels, func(c *Channel) bool { return c.ID == id })
}

// Command is the command of an extension by its name; nil if there is none.
func (s *Snapshot) Command(name string) *command.Slash {
	return find(s.Commands, func(c *command.Slash) bool { return c.Name == name })
}

// CommandTool is the tool that a command of an extension calls; nil: it is withheld, or not
// described.
func (s *Snapshot) CommandTool(c *command.Slash) *Tool {
	return find(s.Tools, func(t *Tool) bool { return t.Extension == c.Extension && t.Tool.GetCommand() == c.Name })
}

// Agent is the agent of an id, enabled or not; nil if there is none.
func (s *Snapshot) Agent(id string) *Agent {
	return find(s.Agents, func(a *Agent) bool { return a.ID == id })
}

// Tool is the tool of a full name; nil if there is none.
func (s *Snapshot) Tool(name string) *Tool {
	return find(s.Tools, func(t *Tool) bool { return t.Name == name })
}

// Provider is the provider of an extension's id; nil if there is none.
func (s *Snapshot) Provider(id string) *Provider {
	return find(s.Models, func(p *Provider) bool { return p.Extension == id })
}

func find[T any](all []T, is func(*T) bool) *T {
	for i := range all {
		if is(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// Enabled reports whether an agent may be asked.
func (s *Snapshot) Enabled(agent string) bool {
	return s.Agent(agent) != nil && (s.EnabledAgents == nil || slices.Contains(s.EnabledAgents, agent))
}

// MayUse reports whether the agent's manifest grants a tool. A private tool is
// granted by its full name only.
func (s *Snapshot) MayUse(agent string, t *Tool) bool {
	a := s.Agent(agent)
	return a != nil && t.Matches(a.Spec.GetUsesTools())
}

// Offered reports whether each request of the agent to a model describes a tool
// that it may use.
func (s *Snapshot) Offered(agent string, t *Tool) bool {
	a := s.Agent(agent)
	return a != nil && (len(a.Spec.GetOffers()) == 0 || t.Matches(a.Spec.GetOffers()))
}

// Matches reports whether a pattern names the tool, or ends with * and begins its name
// and that of other tools. A private tool is matched by its full name only. A pattern after
// a - excludes what it matches.
func (t *Tool) Matches(patterns []string) bool {
	return coretool.Grants(patterns, t.Name, t.Tool.GetPrivate())
}

// NeedsApproval reports whether a person must approve the agent's call of a tool:
// the tool, the agent's manifest or the configuration demands it.
func (s *Snapshot) NeedsApproval(agent string, t *Tool) bool {
	patterns := s.Approve
	if a := s.Agent(agent); a != nil {
		patterns = slices.Concat(patterns, a.Approve)
	}
	return t.Tool.GetApprove() || coretool.Matches(patterns, t.Name)
}

// UsesToolsOf reports whether the agent's manifest grants tools of an extension.
func (s *Snapshot) UsesToolsOf(agent, extension string) bool {
	a := s.Agent(agent)
	return a != nil && slices.ContainsFunc(a.Spec.GetUsesTools(), func(pattern string) bool {
		return strings.HasPrefix(pattern, extension+"/") || coretool.Matches([]string{pattern}, extension+"/")
	})
}

// PreferredChannel is where a notice goes that names none: the default channel,
// else the first that is ready, but not the one to avoid. Nil: there is none.
func (s *Snapshot) PreferredChannel(avoid string) *Channel {
	return s.FirstChannel(
		func(c *Channel) bool { return c.ID == s.DefaultChannel && c.ID != avoid },
		func(c *Channel) bool { return c.Ready() && c.ID != avoid })
}

// FirstChannel is the first channel that fits the first condition that any fits; nil:
// none fits one.
func (s *Snapshot) FirstChannel(conditions ...func(*Channel) bool) *Channel {
	for _, fits := range conditions {
		if c := find(s.Channels, fits); c != nil {
			return c
		}
	}
	return nil
}

// Outbound kinds, for readers of stored sessions.
const (
	OutboundNowhere      = int32(busv1.Outbound_KIND_UNSPECIFIED)
	OutboundConversation = int32(busv1.Outbound_KIND_CONVERSATION)
	OutboundExtension    = int32(busv1.Outbound_KIND_EXTENSION)
)
