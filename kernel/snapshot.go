package kernel

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
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
	s := &directory.Snapshot{Settings: k.plan.Settings}
	s.Tools = append(s.Tools, coreTools()...)
	for _, id := range k.plan.ids() {
		k.describe(s, k.plan.members[id])
	}
	slices.SortFunc(s.Tools, func(a, b directory.Tool) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(s.Commands, func(a, b command.Slash) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)), cmp.Compare(a.Extension, b.Extension))
	})
	s.ToolsEtag, s.ChannelsEtag = etags(s)
	return s
}

func (k *Kernel) describe(s *directory.Snapshot, x *Spec) {
	status := k.status[x.ID]
	state := string(cmp.Or(status.Between, status.State, supervisor.Starting)) // no status yet: it is about to start
	readiness := &extensionv1.Readiness{
		State: cmp.Or(status.Readiness, extensionv1.Readiness_STATE_OFFLINE), Detail: status.ReadinessDetail,
	}
	if len(x.Missing) > 0 {
		readiness = &extensionv1.Readiness{
			State: extensionv1.Readiness_STATE_UNCONFIGURED, Detail: k.howToConfigure(x, status),
		}
	}
	if c := x.Provides.Channel; c != nil {
		known := directory.Channel{ID: x.ID, Name: x.name(), Spec: *c, State: state, Readiness: readiness}
		if c.Local {
			known.AllowFrom = append(slices.Clone(c.AllowFrom), "*") // a user who can open its socket is the owner
		}
		s.Channels = append(s.Channels, known)
	}
	if a := x.Agent; a != nil {
		s.Agents = append(s.Agents, directory.Agent{
			ID: x.ID, Name: x.name(), Description: x.Description, State: state,
			Spec: a.Spec, Approve: a.Approve,
		})
	}
	if len(x.Provides.Models) > 0 {
		s.Models = append(s.Models, directory.Provider{
			Extension: x.ID, Models: x.Provides.Models, Fallback: x.Provides.Fallback, State: state, Readiness: readiness,
		})
	}
	offered, known := k.described[x.ID]
	if x.Offer != nil {
		offered.tools = x.Offer(offered.tools)
	}
	switch {
	case status.State == supervisor.Failed:
	case !known && x.Provides.Tools && arriving(state, status):
		s.Starting = append(s.Starting, x.ID)
	default: // what it offered last is what it offers again once it is back
		s.Tools = append(s.Tools, offered.tools...)
	}
	s.Commands = append(s.Commands, x.commands(offered, state)...)
}

// soon is how long the pause before a start may be for the tools of an extension
// to be waited for.
const soon = 5 * time.Second

// arriving says that an extension that has not described itself yet does so soon:
// it is starting, or will be in a moment.
func arriving(state string, status supervisor.Status) bool {
	return state == contract.StateStarting || state == contract.StateBackingOff && time.Until(status.RetryAt) < soon
}

// commands are the slash commands of an extension. A command without a description
// has that of its tool, unless that is withheld.
func (s *Spec) commands(o offer, state string) (all []command.Slash) {
	for _, c := range s.Provides.Commands {
		command := command.Slash{Name: c.Name, Description: c.Description, Extension: s.ID, Title: s.name(), State: state}
		is := func(t *extensionv1.Tool) bool { return t.GetCommand() == c.Name }
		i := slices.IndexFunc(o.tools, func(t directory.Tool) bool { return is(t.Tool) })
		command.Withheld = i < 0 && slices.ContainsFunc(o.GetTools(), is)
		if i >= 0 && command.Description == "" {
			command.Description, _, _ = strings.Cut(o.tools[i].Tool.GetDescription(), ". ")
		}
		command.Description = cmp.Or(command.Description, "of "+s.name())
		all = append(all, command)
	}
	return all
}

// secretsName is what extensions call the file of secrets, whose place they do not
// know.
const secretsName = "secrets.env"

// howToConfigure is what the extension itself says that it needs, if it says so.
func (k *Kernel) howToConfigure(s *Spec, status supervisor.Status) string {
	file := cmp.Or(k.plan.SecretsFile, secretsName)
	if status.Readiness == extensionv1.Readiness_STATE_UNCONFIGURED && status.ReadinessDetail != "" {
		return strings.ReplaceAll(status.ReadinessDetail, secretsName, file)
	}
	return fmt.Sprintf("set %s in the environment or in %s", strings.Join(s.Missing, " and "), file)
}

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
func (k *Kernel) statusText(language string) string {
	now := k.directory.Current()
	var b strings.Builder
	for i := range now.Channels {
		c := &now.Channels[i]
		fmt.Fprintf(&b, "- %s: %s", words.Say(language, c.Name), words.Say(language, c.Status()))
		if c.Readiness.GetDetail() != "" && !c.Ready() {
			fmt.Fprintf(&b, " (%s)", words.Translate(language, c.Readiness.GetDetail()))
		}
		b.WriteByte('\n')
	}
	for i := range now.Models {
		p := &now.Models[i]
		if word := directory.ReadinessWord(p.Readiness.GetState()); word != "unconfigured" {
			b.WriteString(words.Say(language, "- Model provider %s: %s", p.Extension, words.Say(language, word)) + "\n")
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, s := range k.status {
		if s.State == supervisor.Failed || s.State == supervisor.BackingOff {
			fmt.Fprintf(&b, "- %s: %s: %s\n", id, words.Say(language, string(s.State)), words.Translate(language, s.LastError))
		}
	}
	return strings.TrimSpace(b.String())
}
