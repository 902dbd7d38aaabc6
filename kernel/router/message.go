package router

import (
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"net/url"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// message routes what a person wrote: admission comes before the text is read.
func (r *MessageRouter) message(tx *bus.Tx, e *busv1.Event, m contract.UserMessage) error {
	now := r.directory.Current()
	c := now.Channel(e.GetSource())
	if c == nil {
		return tx.Dead(e, fmt.Sprintf("%q is no channel", e.GetSource()))
	}
	if m.ConversationID == "" {
		return tx.Dead(e, "it names no conversation")
	}
	ok, err := admitted(tx, c, m.UserID)
	if err != nil {
		return err
	}
	if !ok {
		return r.greetStranger(tx, c, m)
	}
	if err := noteOwner(tx, c, m); err != nil {
		return err
	}
	conversation, err := r.conversation(tx, c.ID, m.ConversationID, m.ThreadID, m.Group)
	if err != nil {
		return err
	}
	here := &place{channel: c, address: m.ConversationID, thread: m.ThreadID}
	if len(m.Attachments) > 0 && !m.Edited {
		if err := r.send(tx, here, contract.ChannelSend{Text: unread(m.Attachments), Kind: contract.SendReply, ReplyTo: m.MessageID}); err != nil || m.Text == "" {
			return err
		}
	}
	q := request{conversation: conversation, here: here, user: m.UserID, name: m.UserName, agent: m.AgentID, message: m.MessageID}
	if name, rest, isCommand := parseCommand(m.Text); isCommand && !m.Edited {
		return r.command(tx, q, name, rest)
	}
	if !m.Edited && len(m.Attachments) == 0 {
		if settled, err := r.replied(tx, q, m.Text); settled || err != nil {
			return err
		}
	}
	agent, refusal := pickAgent(now, c.ID, cmp.Or(m.AgentID, conversation.Agent))
	if refusal != "" {
		if err := tx.Dead(e, refusal); err != nil {
			return err
		}
		return r.send(tx, here, contract.ChannelSend{Text: refusal, Kind: contract.SendReply, ReplyTo: m.MessageID})
	}
	s, err := r.chat(tx, agent, conversation)
	if err != nil {
		return err
	}
	in := contract.AgentInput{Kind: contract.InputUser, Sender: m.UserName, Text: withAttachments(m), ReplyTo: conversation.Handle, SentAt: m.SentAt}
	if m.MessageID != "" {
		in.Meta = map[string]any{"message_id": m.MessageID}
	}
	if m.Edited {
		return r.edit(tx, s, m, in)
	}
	_, _, err = r.sessions.Queue(tx, s, in, "")
	return err
}

// edit gives a message that no turn has begun with its new text; later, the
// change is noted.
func (r *MessageRouter) edit(tx *bus.Tx, s *journal.Session, m contract.UserMessage, in contract.AgentInput) error {
	ds, events, err := r.sessions.Waiting(tx, s, 100)
	if err != nil {
		return err
	}
	for i, waiting := range events {
		if m.MessageID == "" || messageID(waiting) != m.MessageID {
			continue
		}
		if replaced, err := r.sessions.Replace(tx, s, ds[i], in); replaced || err != nil {
			return err
		}
		break
	}
	in.Kind = contract.InputRecord
	in.Text = "The user has edited an earlier message of theirs. It now reads:\n\n" + in.Text
	_, _, err = r.sessions.Queue(tx, s, in, "")
	return err
}

// unread says that attachments were not looked at.
func unread(attachments []contract.Attachment) string {
	kinds := make([]string, len(attachments))
	for i, a := range attachments {
		kinds[i] = strings.ReplaceAll(a.Kind, "_", " ")
	}
	return "I can only read text so far, and did not look at the " + strings.Join(kinds, ", ") + "."
}

func withAttachments(m contract.UserMessage) string {
	text := m.Text
	for _, a := range m.Attachments {
		note := "[attached: " + a.Kind
		if a.Name != "" {
			note += " " + a.Name
		}
		text = strings.TrimSpace(text + "\n" + note + "]")
	}
	return text
}

// conversation is the stored conversation of an address, made on first use.
func (r *MessageRouter) conversation(tx *bus.Tx, channel, address, thread string, group bool) (*journal.Conversation, error) {
	c, err := tx.ConversationByAddress(channel, address, thread)
	if err != nil {
		return nil, err
	}
	if c != nil {
		if group && !c.Group { // it was made by something sent there
			c.Group = true
			err = tx.PutConversation(c)
		}
		return c, err
	}
	var raw [10]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return nil, err
	}
	c = &journal.Conversation{
		Handle:  strings.ToLower(base32.StdEncoding.EncodeToString(raw[:])),
		Channel: channel, Address: address, Thread: thread, Group: group, CreatedAt: tx.Now,
	}
	return c, tx.PutConversation(c)
}

// chat is the session of an agent with a conversation.
func (r *MessageRouter) chat(tx *bus.Tx, agent string, c *journal.Conversation) (*journal.Session, error) {
	s, err := r.sessions.Open(tx, agent, ChatKey(c), func(s *journal.Session) {
		s.OutboundKind, s.OutboundTarget = directory.OutboundConversation, c.Handle
		s.Conversation, s.Group = c.ID, c.Group
	})
	if err == nil && c.Group && !s.Group {
		s.Group = true
		err = tx.PutSession(s)
	}
	return s, err
}

// ChatKey is the key of the sessions that a conversation has now.
func ChatKey(c *journal.Conversation) string {
	key := sessionKey("chan", c.Channel, c.Address)
	if c.Thread != "" {
		key = sessionKey("chan", c.Channel, c.Address, c.Thread)
	}
	if c.Epoch > 0 {
		key += fmt.Sprintf("~%d", c.Epoch)
	}
	return key
}

// sessionKey joins parts that cannot run into each other.
func sessionKey(kind string, parts ...string) string {
	var key strings.Builder
	key.WriteString(kind)
	for _, p := range parts {
		key.WriteByte(':')
		key.WriteString(strings.NewReplacer("~", "%7E", ":", "%3A").Replace(url.PathEscape(p)))
	}
	return key.String()
}

// pickAgent is the agent of a message: the one that was asked for, or the one
// that the configuration maps the channel to, or the default, or the first of
// those enabled; where the configuration enables none, echo. A named one that is
// not enabled is refused, never replaced.
func pickAgent(now *directory.Snapshot, channel, asked string) (agent, refusal string) {
	if asked != "" {
		if !now.Enabled(asked) {
			return "", notEnabled(now, asked, "You asked for it: /agent chooses another one.")
		}
		return asked, ""
	}
	if mapped := now.Routing[channel]; mapped != "" {
		if !now.Enabled(mapped) {
			return "", notEnabled(now, mapped, "The configuration maps this channel to it: see agents.routing in config.yaml.")
		}
		return mapped, ""
	}
	if now.DefaultAgent != "" {
		if !now.Enabled(now.DefaultAgent) {
			return "", notEnabled(now, now.DefaultAgent, "The configuration makes it the default: see agents.default in config.yaml.")
		}
		return now.DefaultAgent, ""
	}
	for _, id := range now.EnabledAgents {
		if now.Enabled(id) {
			return id, ""
		}
	}
	echo, none := "", now.EnabledAgents != nil && len(now.EnabledAgents) == 0
	for _, a := range now.Agents {
		switch {
		case none && a.Spec.GetEcho():
			echo = a.ID
		case !now.Enabled(a.ID):
		case a.Spec.GetEcho():
			echo = a.ID
		default:
			return a.ID, ""
		}
	}
	if echo == "" {
		return "", "No agent is enabled, so nobody can answer. See agents.enabled in config.yaml."
	}
	return echo, ""
}

// DefaultAgent is who answers where nobody is asked for and nobody is mapped;
// empty: nobody can.
func DefaultAgent(now *directory.Snapshot) string {
	agent, _ := pickAgent(now, "", "")
	return agent
}

func notEnabled(now *directory.Snapshot, agent, why string) string {
	if now.Agent(agent) == nil {
		return fmt.Sprintf("There is no agent %q. %s", agent, why)
	}
	return fmt.Sprintf("The agent %q is not enabled. %s", agent, why)
}
