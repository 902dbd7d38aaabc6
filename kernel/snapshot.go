package kernel

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/manifests"
)

// refresh puts a new snapshot of what is known in force, and lets the bus hold
// or resume the sends of channels accordingly.
func (k *Kernel) refresh() {
	k.refreshing.Lock() // an older snapshot must not come into force after a newer one
	defer k.refreshing.Unlock()
	k.mu.Lock()
	if k.plan == nil {
		k.mu.Unlock()
		return
	}
	s := k.snapshot()
	k.directory.Set(s)
	k.mu.Unlock()
	for i := range s.Channels {
		k.bus.Hold(s.Channels[i].ID, !s.Channels[i].Ready())
	}
}

// snapshot builds the directory; the caller holds k.mu.
func (k *Kernel) snapshot() *directory.Snapshot {
	c := k.plan.config
	s := &directory.Snapshot{
		Location: k.plan.zone, DefaultAgent: c.Agents.Default, EnabledAgents: c.Agents.Enabled, Routing: c.Agents.Routing,
		DefaultChannel: c.Channels.Default, Hold: c.Channels.Hold, ModelOrder: c.Models.Default, ModelNames: map[string][]string{},
		Approve: c.Approve, MaxTurns: cmp.Or(k.options.MaxTurns, defaultMaxTurns),
	}
	if c.Models.Scout != "" {
		s.ModelNames["scout"] = []string{c.Models.Scout}
	}
	s.DailyTokens, s.Completions = c.Models.DailyTokens, c.Models.Concurrency
	s.Tools = append(s.Tools, coreTools()...)
	for id, m := range k.plan.members {
		k.describe(s, id, m)
	}
	slices.SortFunc(s.Channels, func(a, b directory.Channel) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Agents, func(a, b directory.Agent) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Tools, func(a, b directory.Tool) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Models, func(a, b directory.Provider) int { return cmp.Compare(a.Extension, b.Extension) })
	slices.SortStableFunc(s.Commands, func(a, b directory.Command) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)), cmp.Compare(a.Extension, b.Extension))
	})
	s.ToolsEtag, s.ChannelsEtag = etags(s)
	return s
}

func (k *Kernel) describe(s *directory.Snapshot, id string, m *member) {
	status := k.status[id]
	state := string(cmp.Or(status.Between, status.State, supervisor.Starting)) // not told yet: it is about to be started
	readiness := &extensionv1.Readiness{State: cmp.Or(status.Readiness, extensionv1.Readiness_STATE_OFFLINE), Detail: status.ReadinessDetail}
	if len(m.missing) > 0 {
		readiness = &extensionv1.Readiness{
			State:  extensionv1.Readiness_STATE_UNCONFIGURED,
			Detail: k.howToConfigure(m, status),
		}
	}
	if channel := m.manifest.Provides.Channel; channel != nil {
		settings := k.plan.config.Channels.Of(id)
		allow, local := settings.AllowFrom, m.manifest.Run.Builtin == terminalBuiltin
		if local {
			allow = append(slices.Clone(allow), "*") // whoever can open its socket is the owner
		}
		s.Channels = append(s.Channels, directory.Channel{
			ID: id, Name: m.manifest.Name, MaxLength: channel.MaxLength, Formats: channel.Formats, Drafts: channel.Drafts,
			Hold: settings.Uncertain == "hold", AllowFrom: allow, Local: local, State: state, Readiness: readiness,
		})
	}
	if m.manifest.Agent != nil {
		s.Agents = append(s.Agents, directory.Agent{
			ID: id, Name: m.manifest.Name, Description: m.manifest.Description, State: state, Spec: m.agentSpec(),
			Approve: m.manifest.Agent.Approve,
		})
		s.Agents[len(s.Agents)-1].DailyTokens = m.manifest.Agent.Limits.DailyTokens
	}
	if len(m.manifest.Provides.Models) > 0 {
		s.Models = append(s.Models, directory.Provider{Extension: id, Models: m.manifest.Provides.Models, State: state, Readiness: readiness})
	}
	offered := k.described[id]
	switch {
	case status.State == supervisor.Failed:
	case offered == nil && m.manifest.Provides.Tools && arriving(state, status):
		s.Arriving = append(s.Arriving, id)
	default: // what it offered last is what it offers again once it is back
		s.Tools = append(s.Tools, offered.entries()...)
	}
	s.Commands = append(s.Commands, commands(m.manifest, offered.said(), state)...)
}

// soon is how long the pause before a start may be for the tools of an extension
// to be waited for.
const soon = 5 * time.Second

// arriving says that an extension that has not said yet what it offers does so
// soon: it is being started, or will be in a moment.
func arriving(state string, status supervisor.Status) bool {
	return state == directory.StateStarting || state == directory.StateBackingOff && time.Until(status.RetryAt) < soon
}

// commands are the slash commands of an extension. What its manifest does not
// say of one, the tool of the same command does.
func commands(m *manifests.Manifest, d *extensionv1.Description, state string) (all []directory.Command) {
	for _, c := range m.Provides.Commands {
		command := directory.Command{Name: c.Name, Description: c.Description, Extension: m.ID, Title: m.Name, State: state}
		for _, t := range d.GetTools() {
			if t.GetCommand() == c.Name && command.Description == "" {
				command.Description, _, _ = strings.Cut(t.GetDescription(), ". ")
			}
		}
		command.Description = cmp.Or(command.Description, "of "+m.Name)
		all = append(all, command)
	}
	return all
}

// howToConfigure is what the extension itself says it needs, if it says so. It
// does not know where the secrets are kept.
func (k *Kernel) howToConfigure(m *member, status supervisor.Status) string {
	if status.Readiness == extensionv1.Readiness_STATE_UNCONFIGURED && status.ReadinessDetail != "" {
		return strings.ReplaceAll(status.ReadinessDetail, secretsName, k.options.Home.Secrets())
	}
	return fmt.Sprintf("set %s in the environment or in %s", strings.Join(m.missing, " and "), k.options.Home.Secrets())
}

// secretsName is what extensions call the file of secrets.
const secretsName = "secrets.env"

const terminalBuiltin = "cli_channel"

// etags stand for what agents are told of tools and of channels.
func etags(s *directory.Snapshot) (toolset, channels string) {
	h := sha256.New()
	for _, t := range s.Tools {
		fmt.Fprintln(h, t.Name, t.Sum)
	}
	for _, a := range s.Agents {
		fmt.Fprintln(h, a.ID, a.Spec.GetUsesTools())
	}
	toolset = hex.EncodeToString(h.Sum(nil)[:8])
	h.Reset()
	for i := range s.Channels {
		c := &s.Channels[i]
		fmt.Fprintln(h, c.ID, c.Name, c.Status(), c.Readiness.GetDetail(), c.ID == s.DefaultChannel)
	}
	return toolset, hex.EncodeToString(h.Sum(nil)[:8])
}

// statusText is the answer to /status.
func (k *Kernel) statusText() string {
	now := k.directory.Current()
	var b strings.Builder
	for i := range now.Channels {
		c := &now.Channels[i]
		fmt.Fprintf(&b, "- %s: %s", c.Name, c.Status())
		if c.Readiness.GetDetail() != "" && !c.Ready() {
			fmt.Fprintf(&b, " (%s)", c.Readiness.GetDetail())
		}
		b.WriteByte('\n')
	}
	for i := range now.Models {
		p := &now.Models[i]
		if word := directory.ReadinessWord(p.Readiness.GetState()); word != "unconfigured" {
			fmt.Fprintf(&b, "- Model provider %s: %s\n", p.Extension, word)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, s := range k.status {
		if s.State == supervisor.Failed || s.State == supervisor.BackingOff {
			fmt.Fprintf(&b, "- %s: %s: %s\n", id, s.State, s.LastError)
		}
	}
	return strings.TrimSpace(b.String())
}
