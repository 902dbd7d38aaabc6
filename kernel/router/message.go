package router

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
)

// admit checks who wrote a message before its text is read. Nothing of a stranger's
// message is stored, but their pairing code.
func (r *MessageRouter) admit(tx *bus.Tx, e *busv1.Event) (route func() error, err error) {
	var m contract.UserMessage
	unroutable := ""
	c := r.directory.Current().Channel(e.GetSource())
	if c == nil {
		unroutable = fmt.Sprintf("%q is no channel", e.GetSource())
	} else if err := json.Unmarshal(e.GetPayload(), &m); err != nil {
		unroutable = undecoded(e, err)
	}
	if unroutable != "" {
		return func() error { return tx.Dead(e, unroutable) }, nil
	}
	a, p, err := r.people.Find(tx, c.ID, m.UserID)
	switch {
	case err != nil, p != nil && p.Role == people.RoleBlocked:
		return nil, err
	case !people.Admitted(c, m.UserID, a, p):
		return nil, r.greetStranger(tx, c, m)
	case m.ConversationID == "":
		return func() error { return tx.Dead(e, "the message names no conversation") }, nil
	}
	return func() error { return r.message(tx, e, c, m, a, p) }, nil
}

// message routes the message of a person who is admitted.
func (r *MessageRouter) message(
	tx *bus.Tx, e *busv1.Event, c *directory.Channel, m contract.UserMessage, a *people.Account, p *people.Person,
) error {
	dir := r.directory.Current()
	owner, err := r.people.OwnerOn(tx, c)
	if err != nil {
		return err
	}
	if err := noteOwner(tx, owner, c, m); err != nil {
		return err
	}
	conversation, err := r.conversation(tx, c.ID, m.ConversationID, m.ThreadID, m.Group)
	if err != nil {
		return err
	}
	owns := c.Local || m.UserID != "" && m.UserID == owner.UserID
	known := a
	if a, err = r.account(tx, known, m, c.ID, owns); err != nil {
		return err
	}
	q := request{
		UserMessage: m, conversation: conversation, account: a, person: p,
		here: &place{channel: c, address: m.ConversationID, thread: m.ThreadID, language: m.Language},
	}
	if a != known { // it is new, or has changed
		if q.person, err = a.Of(tx); err != nil {
			return err
		}
	}
	q.owner = owns || q.person.May(people.RoleOwner)
	name, rest, isCommand := command.Parse(m.Text)
	said := !m.Edited && !m.Reaction && m.ForwardedFrom == ""
	isCommand = isCommand && said
	if conversation.Group {
		if err := r.meetGroup(tx, q, !isCommand); err != nil {
			return err
		}
	}
	if unread := q.unread(); len(unread) > 0 && !m.Edited {
		problem := q.say("I couldn't read this: %s.", strings.Join(unread, ", "))
		if err := r.reply(tx, q, problem); err != nil || m.Text == "" && len(unread) == len(m.Attachments) {
			return err
		}
	}
	if isCommand {
		answer, err := r.command(tx, q, name, rest)
		if err != nil || answer == "" {
			return err
		}
		return r.reply(tx, q, answer)
	}
	if said && len(m.Attachments) == 0 {
		if settled, err := r.replied(tx, q, m.Text); settled || err != nil {
			return err
		}
	}
	agent, refusal := pickAgent(dir, c.ID, cmp.Or(m.AgentID, conversation.Agent))
	if refusal != "" {
		return errors.Join(tx.Dead(e, refusal), r.reply(tx, q, words.Translate(q.Language, refusal)))
	}
	s, err := r.chat(tx, agent, conversation)
	if err != nil {
		return err
	}
	in := contract.AgentInput{
		Kind: contract.InputUser, Sender: m.UserName, Language: m.Language,
		Text:    contract.WithReferences(m.Text, m.Attachments),
		ReplyTo: conversation.Handle, Person: a.ID, SentAt: m.SentAt, ForwardedFrom: m.ForwardedFrom,
		Attachments: m.Attachments, Quote: m.Quote,
	}
	if m.Reaction {
		in.Kind = contract.InputRecord
	}
	in.Meta = map[string]any{}
	if m.MessageID != "" {
		in.Meta["message_id"] = m.MessageID
	}
	if conversation.Model != "" {
		in.Meta[contract.MetaModel] = conversation.Model
	}
	if m.Edited {
		return r.edit(tx, s, m, in)
	}
	return r.sessions.Queue(tx, s, in)
}

// edit replaces the text of a message that no turn has begun with. Otherwise it
// records the change in the history.
func (r *MessageRouter) edit(tx *bus.Tx, s *journal.Session, m contract.UserMessage, in contract.AgentInput) error {
	ds, events, err := r.sessions.Waiting(tx, s, 100)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(events, func(e *busv1.Event) bool { return m.MessageID != "" && messageID(e) == m.MessageID })
	if i >= 0 {
		if replaced, err := r.sessions.Replace(tx, s, ds[i], in); replaced || err != nil {
			return err
		}
	}
	in.Kind, in.Quote = contract.InputRecord, nil
	in.Text = "The user edited an earlier message. It now reads:\n\n" + in.Text
	return r.sessions.Queue(tx, s, in)
}

// handleLength is the number of random characters of a handle, of 5 bits each.
const handleLength = 16

// conversation is the stored conversation of an address, created on first use.
func (r *MessageRouter) conversation(tx *bus.Tx, channel, address, thread string, group bool,
) (*journal.Conversation, error) {
	c, err := tx.ConversationByAddress(channel, address, thread)
	switch {
	case err != nil, c != nil && (c.Group || !group):
		return c, err
	case c == nil:
		c = &journal.Conversation{
			Handle: newHandle(), Channel: channel, Address: address, Thread: thread, CreatedAt: tx.Now,
		}
	} // otherwise it was created for something sent there
	if c.Group = group; group {
		if _, err := r.group(tx, c, false); err != nil {
			return nil, err
		}
	}
	return c, tx.PutConversation(c)
}

func newHandle() string { return strings.ToLower(rand.Text()[:handleLength]) }

// chat is the session of an agent with a conversation. The history of one that a group
// may not read any more is not continued.
func (r *MessageRouter) chat(tx *bus.Tx, agent string, c *journal.Conversation) (*journal.Session, error) {
	open := func() (*journal.Session, error) {
		s, err := r.sessions.Open(tx, agent, ChatKey(c), func(s *journal.Session) {
			s.OutboundKind, s.OutboundTarget = directory.OutboundConversation, c.Handle
			s.Conversation, s.Group = c.ID, c.Group
		})
		if err == nil && c.Group && !s.Group { // from before others read the conversation
			s.Group = true
			err = tx.PutSession(s)
		}
		return s, err
	}
	s, err := open()
	if err != nil || !c.Group {
		return s, err
	}
	g, err := r.group(tx, c, true)
	if err != nil || s.CreatedAt >= g.Since {
		return s, err
	}
	c.Epoch++
	if err := tx.PutConversation(c); err != nil {
		return nil, err
	}
	return open()
}

// ChatKey is the key of the sessions that a conversation has now.
func ChatKey(c *journal.Conversation) string {
	parts := []string{c.Channel, c.Address, c.Thread}
	if c.Thread == "" {
		parts = parts[:2]
	}
	key := sessionKey("chan", parts...)
	if c.Epoch > 0 {
		key += fmt.Sprintf("~%d", c.Epoch)
	}
	return key
}

// sessionKey joins parts unambiguously.
func sessionKey(kind string, parts ...string) string {
	var key strings.Builder
	key.WriteString(kind)
	for _, p := range parts {
		key.WriteByte(':')
		key.WriteString(strings.NewReplacer("~", "%7E", ":", "%3A").Replace(url.PathEscape(p)))
	}
	return key.String()
}

// pickAgent is the agent of a message: the one that was asked for, the one that the
// configuration maps the channel to, the default, or the first one enabled; if the
// configuration enables none, echo. A named agent that is not enabled is refused,
// never replaced.
func pickAgent(dir *directory.Snapshot, channel, asked string) (agent, refusal string) {
	for _, named := range [][2]string{
		{asked, "You asked for it: /agent chooses another one."},
		{dir.Routing[channel], "The configuration maps this channel to it (agents.routing)."},
		{dir.DefaultAgent, "The configuration makes it the default (agents.default)."},
	} {
		switch agent, why := named[0], named[1]; {
		case agent == "":
		case dir.Enabled(agent):
			return agent, ""
		default:
			return "", notEnabled(dir, agent, why)
		}
	}
	if i := slices.IndexFunc(dir.EnabledAgents, dir.Enabled); i >= 0 {
		return dir.EnabledAgents[i], ""
	}
	echo, none := "", dir.EnabledAgents != nil && len(dir.EnabledAgents) == 0
	for _, a := range dir.Agents {
		switch enabled := dir.Enabled(a.ID); {
		case a.Spec.GetEcho() && (enabled || none):
			echo = a.ID
		case enabled:
			return a.ID, ""
		}
	}
	if echo == "" {
		return "", "The configuration enables no agent (agents.enabled)."
	}
	return echo, ""
}

// DefaultAgent answers where no agent is asked for or mapped; empty: there is none.
func DefaultAgent(dir *directory.Snapshot) string {
	agent, _ := pickAgent(dir, "", "")
	return agent
}

func notEnabled(dir *directory.Snapshot, agent, why string) string {
	if dir.Agent(agent) == nil {
		return words.Sprintf("There is no agent %q. %v", agent, why)
	}
	return words.Sprintf("The agent %q is not enabled. %v", agent, why)
}
