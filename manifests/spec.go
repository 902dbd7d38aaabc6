package manifests

import (
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/kernel/bus"
)

// Spec returns the kernel's spec of the extension: its identity, what it provides and its
// permissions, without its process and config.
func (m *Manifest) Spec() kernel.Spec {
	s := kernel.Spec{
		ID: m.ID, Name: m.Name, Description: m.Description,
		Provides: m.provides(), Agent: m.agent(),
		Permissions: kernel.Permissions{
			Publish: m.Permissions.Publish, Effects: m.Permissions.Effects, Tools: m.Permissions.Tools,
			Models: m.Permissions.Models, Presence: m.Permissions.Presence,
			Blobs:    m.Permissions.Blobs || m.Agent != nil, // an agent reads what came with its inputs
			Sessions: m.Permissions.Sessions, Admin: m.Permissions.Admin,
		},
	}
	for _, sub := range m.Permissions.Subscribe {
		s.Permissions.Subscribe = append(s.Permissions.Subscribe, bus.Subscription{
			Pattern: sub.Topic, Ordered: sub.Ordered, AckWait: sub.AckWait, MaxDeliver: sub.MaxDeliver,
			MaxAge: sub.MaxAge, Own: sub.Own,
		})
	}
	return s
}

func (m *Manifest) provides() kernel.Provides {
	p := kernel.Provides{Tools: m.Provides.Tools, Models: m.Provides.Models, Fallback: m.Provides.Fallback}
	for _, c := range m.Provides.Commands {
		p.Commands = append(p.Commands, kernel.Command{Name: c.Name, Description: c.Description})
	}
	if c := m.Provides.Channel; c != nil {
		p.Channel = &kernel.Channel{
			MaxLength: c.MaxLength, Formats: c.Formats, Dedupe: c.Dedupe, Drafts: c.Drafts, Actions: c.Actions, Local: c.Local,
			Attachments: c.Attachments, MaxAttachment: int64(c.MaxAttachment),
		}
	}
	return p
}

func (m *Manifest) agent() *kernel.Agent {
	a := m.Agent
	if a == nil {
		return nil
	}
	return &kernel.Agent{
		Approve: a.Approve,
		Spec: &extensionv1.AgentSpec{
			Model: a.Model, Instructions: a.Instructions, UsesTools: a.UsesTools, Offers: a.Offers,
			Context: a.Context, Echo: a.Echo, NoHistory: a.History == HistoryNone, Memory: a.Memory,
			MaxSteps: int32(a.Limits.MaxSteps), MaxTokens: int64(a.Limits.MaxTokens),
			TurnTimeoutMs: a.Limits.TurnTimeout.Milliseconds(),
		},
	}
}
