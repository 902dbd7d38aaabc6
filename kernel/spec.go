package kernel

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/channel"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/session"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

// Spec is one extension as Go values: what it is, how it runs, and its grants.
// It must not be changed after it was given to Open or Apply.
type Spec struct {
	ID          string
	Name        string // for people and models; empty: the id
	Description string
	// Builtin says that the extension is part of the program: its tools' schemas
	// were checked when the program was tested, and it may call more often.
	Builtin bool
	// Process says how the extension runs. The kernel sets ID, Name, Check and
	// Init, and extends Fingerprint, which need only stand for what the kernel does
	// not see: files of the extension.
	Process     supervisor.Spec
	Provides    Provides
	Permissions Permissions
	Agent       *Agent // nil: not an agent
	Schedules   []contract.DeclaredSchedule

	Config  []byte // JSON
	Secrets map[string]string
	Missing []string // secrets that it needs and that are not set
	// DataDir and RunDir are the directories that the extension is told: for its
	// files and for its sockets. Prepare, if set, is called before each start.
	DataDir, RunDir string
	Prepare         func() error
	// Offer, if set, returns those of the described tools that others may use. It is called
	// at each change of any extension, with the same slice while that describes the same,
	// and must not call the kernel.
	Offer func(described []directory.Tool) []directory.Tool
}

// Provides is what others can use of an extension.
type Provides struct {
	Channel  *Channel // nil: not a channel
	Tools    bool
	Commands []Command
	Models   []string // <id>/<name> or <id>/*
	// Fallback says that its models are used only while no other provider is
	// configured, and only for turns.
	Fallback bool
}

// Channel is a way to talk to people.
type Channel = channel.Spec

// Command is a slash command.
type Command struct{ Name, Description string }

// Permissions are the grants of an extension. What is not here, and not implied
// by what it provides, is refused.
type Permissions struct {
	Publish   []string           // topic patterns
	Subscribe []bus.Subscription // without times: 30 s to handle it, 4 attempts, 24 h
	Effects   []string
	Tools     []string // patterns of tools that it may call for itself, outside of turns
	Models    []string // that it may ask outside of turns
	Presence  bool     // it may ask when a person was there last
	Blobs     bool     // it may store and read files
	Sessions  bool     // it may read all sessions, for an agent whose conversation no one else reads
	Admin     string   // bus.AdminRead or bus.AdminManage: the services of adminv1; empty: none
}

// Agent makes an extension an agent.
type Agent struct {
	Spec    *extensionv1.AgentSpec
	Approve []string // tools, as patterns, for which a person is asked first
}

// Settings are what the owner chose for all extensions together. The zero value
// is usable.
type Settings = directory.Settings

const (
	defaultMaxTurns   = 200
	defaultAckWait    = 30 * time.Second
	defaultMaxDeliver = 4
	defaultMaxAge     = 24 * time.Hour

	defaultKeep     = 30 * 24 * time.Hour
	defaultKeepDead = 90 * 24 * time.Hour

	defaultFile           = 50 << 20
	defaultExtensionFiles = 2 << 30
	defaultFiles          = 10 << 30
)

// plan is what shall run, and with which settings.
type plan struct {
	Settings
	members map[string]*Spec
}

func newPlan(specs []Spec, settings Settings) (*plan, error) {
	p := &plan{Settings: settings, members: map[string]*Spec{}}
	p.Location = cmp.Or(p.Location, time.UTC)
	p.MaxTurns = cmp.Or(p.MaxTurns, defaultMaxTurns)
	p.KeepEvents, p.KeepDead = cmp.Or(p.KeepEvents, defaultKeep), cmp.Or(p.KeepDead, defaultKeepDead)
	b := &p.Blobs
	b.File, b.Extension, b.Total = cmp.Or(b.File, defaultFile), cmp.Or(b.Extension, defaultExtensionFiles),
		cmp.Or(b.Total, defaultFiles)
	for i := range specs {
		s := &specs[i]
		switch {
		case s.ID == "":
			return nil, fmt.Errorf("%w: an extension has no id", contract.ErrInvalid)
		case p.members[s.ID] != nil:
			return nil, fmt.Errorf("%w: two extensions have the id %s", contract.ErrInvalid, s.ID)
		}
		p.members[s.ID] = s
	}
	return p, nil
}

func (p *plan) ids() []string { return slices.Sorted(maps.Keys(p.members)) }

func (s *Spec) commandNames() (names []string) {
	for _, c := range s.Provides.Commands {
		names = append(names, c.Name)
	}
	return names
}

func (s *Spec) name() string { return cmp.Or(s.Name, s.ID) }

// The kernel grants a channel its own sends, an agent its own inputs, and an
// extension the commands that it provides. A person waits for the answer to a
// command.
const (
	sendWait       = time.Minute
	sendDeliver    = 10
	sendAge        = 7 * 24 * time.Hour
	turnDeliver    = 5
	commandWait    = 10 * time.Minute
	commandDeliver = 3
	commandAge     = 10 * time.Minute
)

func (s *Spec) subscriptions() []bus.Subscription {
	subs := slices.Clone(s.Permissions.Subscribe)
	if len(s.Permissions.Tools) > 0 { // if the manifest has a subscription to its results, that counts
		subs = append(subs, bus.Subscription{Pattern: contract.TopicToolResult + s.ID})
	}
	for i := range subs {
		subs[i].AckWait = cmp.Or(subs[i].AckWait, defaultAckWait)
		subs[i].MaxDeliver = cmp.Or(subs[i].MaxDeliver, defaultMaxDeliver)
		subs[i].MaxAge = cmp.Or(subs[i].MaxAge, defaultMaxAge)
	}
	if c := s.Provides.Channel; c != nil {
		subs = append(subs, bus.Subscription{
			Pattern: contract.TopicChannelSend + s.ID, Ordered: true,
			AckWait: sendWait, MaxDeliver: sendDeliver, MaxAge: sendAge,
			Dedupe: c.Dedupe, Hold: c.HoldUncertain,
		})
	}
	if s.Agent != nil {
		subs = append(subs, bus.Subscription{
			Pattern: contract.TopicAgentInput + s.ID, Ordered: true, MaxDeliver: turnDeliver,
			AckWait: time.Duration(s.Agent.Spec.GetTurnTimeoutMs()) * time.Millisecond,
		})
	}
	if len(s.Provides.Commands) > 0 {
		subs = append(subs, bus.Subscription{
			Pattern: contract.TopicCommand + "*", Commands: s.commandNames(), Ordered: true,
			AckWait: commandWait, MaxDeliver: commandDeliver, MaxAge: commandAge,
		})
	}
	return subs
}

func (s *Spec) actor(generation int64) *bus.Actor {
	a := &bus.Actor{
		Builtin: s.Builtin, ID: s.ID, Generation: generation, Publish: s.Permissions.Publish, Effects: s.Permissions.Effects,
		Tools: s.Permissions.Tools, Models: s.Permissions.Models, Presence: s.Permissions.Presence,
		Blobs:    s.Permissions.Blobs,
		Sessions: s.Permissions.Sessions, Admin: s.Permissions.Admin,
		Channel: s.Provides.Channel != nil, Agent: s.Agent != nil,
	}
	for _, sub := range s.Permissions.Subscribe {
		a.Subscribe = append(a.Subscribe, sub.Pattern)
	}
	return a
}

// EffectPermissions are the effects that an extension has only when its Spec grants
// them, sorted. It has all others by what it provides.
func EffectPermissions() []string { return bus.Permissions((*session.Store)(nil).Effects()) }
