package tools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// input is an input with the current reply target, the channel of that, and whose
// things the turn may use.
type input struct {
	contract.AgentInput
	channel   string
	principal contract.Principal
	guest     bool   // who may only chat
	timezone  string // of the person; empty: the configured one
}

// describe fills in the caller of a tool: the session of the lane, and the sender
// and place of the input that the turn answers.
func (r *Runner) describe(q *extensionv1.CallRequest, l *bus.Lease, in input) {
	q.Session, q.Sender, q.ReplyTo, q.Channel = journal.SessionID(l.Session), in.Sender, in.ReplyTo, in.channel
	q.Group, q.Thread, q.Person, q.Principal = in.Group, in.Thread, in.Person, in.principal.Proto()
	q.Timezone = cmp.Or(in.timezone, r.Directory.Current().Location.String())
	if agent := r.Directory.Current().Agent(l.Agent); agent != nil {
		q.Memory = agent.Spec.GetMemory()
	}
}

func readInput(j journal.Reader, l *bus.Lease, e *busv1.Event) (in input, err error) {
	if err := json.Unmarshal(e.GetPayload(), &in.AgentInput); err != nil {
		return in, fmt.Errorf("%w: read the input %s: %w", contract.ErrInvalid, e.GetId(), err)
	}
	s := &journal.Session{Group: in.Group}
	if in.ReplyTo == "" || in.Group {
		stored, err := j.Session(l.Session)
		if err != nil {
			return in, err
		}
		if s = cmp.Or(stored, s); in.ReplyTo == "" && s.OutboundKind == directory.OutboundConversation {
			in.ReplyTo = s.OutboundTarget
		}
	}
	of, person, err := session.For(j, s, in.Person)
	if err != nil {
		return in, err
	}
	in.principal, in.guest, in.timezone = of, !person.May(people.RoleMember), person.Timezone
	in.principal.Conversation = cmp.Or(in.principal.Conversation, in.ReplyTo)
	in.channel, err = channelOf(j, in.ReplyTo)
	return in, err
}

// channelOf returns the channel of a reply target; empty: unknown.
func channelOf(j journal.Reader, target string) (string, error) {
	if channel, isDefault := strings.CutPrefix(target, "#"); isDefault {
		return channel, nil
	}
	c, err := j.ConversationByHandle(target)
	if c == nil {
		return "", err
	}
	return c.Channel, err
}
