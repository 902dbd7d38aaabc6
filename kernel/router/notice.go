package router

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/ask"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// output sends the final text of a turn to its reply target: replies, error messages
// and the results of jobs. A turn of a chat that ends without a text removes its draft.
func (r *MessageRouter) output(tx *bus.Tx, e *busv1.Event, out contract.AgentOutput) error {
	s, err := tx.Session(journal.ParseSessionID(out.Session))
	if err != nil || s == nil {
		return err
	}
	empty := contract.Blank(out.Text)
	if session.WorksFor(s) != 0 || empty && s.Conversation == 0 {
		return nil // the extension that made it subscribes, and only chats show drafts
	}
	turn, err := tx.Turn(out.Turn)
	if err != nil {
		return err
	}
	send := contract.ChannelSend{Text: out.Text, Kind: contract.SendReply, Session: out.Session}
	if turn != nil {
		send.DraftID = journal.EventID(turn.Inputs[0])
		if send.ReplyTo, send.Language, err = NewestMessage(tx, turn.Inputs); err != nil {
			return err
		}
	}
	target := out.ReplyTo
	if target == "" || s.OutboundKind == directory.OutboundExtension { // an extension subscribes to its own sessions
		if s.OutboundKind != directory.OutboundConversation {
			if out.Outcome == contract.OutcomeCapped && e.GetHop() > 0 { // it never ran
				return r.tellOwner(tx, "", out.Text)
			}
			return nil
		}
		target = s.OutboundTarget
	}
	if isJob(s) {
		send.Kind = contract.SendNotice
		if turn != nil && turn.UsedSend && out.Outcome == contract.OutcomeOK {
			return nil // it has sent its text itself
		}
	}
	to, err := r.resolve(tx, target)
	if err != nil {
		return err
	}
	if empty {
		if turn == nil || to == nil || to.address == "" || !to.channel.Drafts {
			return nil
		}
		send.Text = ""
		return r.send(tx, to, send)
	}
	if to == nil && isJob(s) {
		if to, err = r.preferred(tx, ""); err != nil {
			return err
		}
	}
	if to == nil {
		return tx.Dead(e, fmt.Sprintf("the conversation or channel %q of the answer no longer exists", target))
	}
	if turn != nil && len(turn.Inputs) > 0 && tx.Restored(turn.Inputs[0]) {
		return r.send(tx, to, send, bus.PossiblySent)
	}
	return r.send(tx, to, send)
}

// NewestMessage is the platform's id of the last message of a person among the
// inputs of a turn, and the language of that person; empty if there is none.
func NewestMessage(r journal.Reader, inputs []int64) (id, language string, err error) {
	for _, seq := range slices.Backward(inputs) {
		e, err := r.Event(seq)
		if id := messageID(e); id != "" || err != nil {
			return id, session.InputOf(e).Language, err
		}
	}
	return "", "", nil
}

func isJob(s *journal.Session) bool { return strings.HasPrefix(s.Key, "job:") }

// notify sends a notice.
func (r *MessageRouter) notify(tx *bus.Tx, e *busv1.Event, n contract.UserNotify) error {
	if contract.Blank(n.Text) {
		return tx.Dead(e, "the notice has no text")
	}
	if wrong := ask.CheckActions(e.GetSource(), n.Actions, r.directory.Current().Commands); wrong != "" {
		return tx.Dead(e, wrong)
	}
	to, err := r.destination(tx, n.ChannelID, n.ReplyTo)
	if err != nil {
		return err
	}
	if to == nil {
		return tx.Dead(e, "there is no channel for the notice")
	}
	n = ask.Translated(to.language, e.GetSource(), n)
	text, err := to.note(tx, e, n.ChannelID, n.Text)
	return errors.Join(err, r.send(tx, to, contract.ChannelSend{
		Text: text, Attachments: n.Attachments, Actions: n.Actions, Kind: contract.SendNotice, Asked: n.Asked,
		Private: n.Private,
	}))
}

// note notes in a text, and in a dead letter, that the named channel does not exist.
func (p *place) note(tx *bus.Tx, e *busv1.Event, channel, text string) (string, error) {
	if !p.instead {
		return text, nil
	}
	return words.Say(p.language, "[for %s] %s", channel, text),
		tx.Dead(e, fmt.Sprintf("channel %q does not exist; sent to %s instead", channel, p.channel.ID))
}

// destination is where a notice goes: the named channel (to the conversation it
// comes from if that is on it), the conversation, the preferred channel. Nil: there
// are no channels.
func (r *MessageRouter) destination(tx journal.Reader, channel, replyTo string) (*place, error) {
	named := r.directory.Current().Channel(channel)
	if replyTo != "" && (channel == "" || named != nil) {
		to, err := r.resolve(tx, replyTo)
		if err != nil || to != nil && (named == nil || named.ID == to.channel.ID) {
			return to, err
		}
	}
	if named != nil {
		return r.recipient(tx, named)
	}
	to, err := r.preferred(tx, "")
	if to != nil {
		to.instead = channel != ""
	}
	return to, err
}

// preferred is where a notice goes that names no channel. A channel to avoid is taken
// if no other one can become ready.
func (r *MessageRouter) preferred(tx journal.Reader, avoid string) (*place, error) {
	dir := r.directory.Current()
	c := dir.PreferredChannel(avoid)
	anywhere := c == nil
	if anywhere {
		c = dir.FirstChannel(
			func(c *directory.Channel) bool { return c.ID != avoid && c.Configured() },
			func(c *directory.Channel) bool { return c.ID == avoid },
			func(*directory.Channel) bool { return true })
	}
	to, err := r.recipient(tx, c)
	if to != nil {
		to.anywhere = anywhere
	}
	return to, err
}

// task gives an agent a prompt; its final text goes where the task says.
func (r *MessageRouter) task(tx *bus.Tx, e *busv1.Event, t contract.AgentTask) error {
	switch {
	case t.Quiet:
		return r.job(tx, e, t, "")
	case t.ChannelID == "" && t.ReplyTo != "":
		return r.job(tx, e, t, t.ReplyTo)
	}
	to, err := r.destination(tx, t.ChannelID, t.ReplyTo)
	if err != nil {
		return err
	}
	if to == nil { // there are no channels
		to = &place{instead: t.ChannelID != ""}
	}
	if to.instead {
		text := words.Sprintf("A job of %s sends its answer to %q, but there is no such channel. I'll send it here instead.",
			e.GetSource(), t.ChannelID)
		err = errors.Join(tx.Dead(e, fmt.Sprintf("channel %q does not exist", t.ChannelID)), r.tellOwner(tx, "", text))
		if err != nil {
			return err
		}
	}
	return r.job(tx, e, t, to.target)
}

// job queues the prompt of a task in the session of its name. The final text goes to the
// target; if that is empty, it stays in the history.
func (r *MessageRouter) job(tx *bus.Tx, e *busv1.Event, t contract.AgentTask, target string) error {
	if strings.TrimSpace(t.Prompt) == "" {
		return tx.Dead(e, "the job has no prompt")
	}
	agent, refusal := pickAgent(r.directory.Current(), "", t.AgentID)
	if refusal != "" {
		text := words.Sprintf("A job of %s can't run. %v", e.GetSource(), refusal)
		return errors.Join(tx.Dead(e, refusal), r.tellOwner(tx, "", text))
	}
	c, err := tx.ConversationByHandle(t.Principal.Conversation)
	if err == nil && t.Principal.Group == "" {
		c, err = tx.ConversationByHandle(target)
	}
	if err == nil && c == nil {
		err = gone(tx, target)
	}
	if err != nil {
		return err
	}
	if c == nil && t.Principal.Group != "" {
		return tx.Dead(e, "the group that asked for the job no longer exists")
	}
	name := cmp.Or(t.Name, e.GetId())
	key := []string{agent, name}
	group := ""
	if c != nil && c.Group {
		g, err := r.group(tx, c, true)
		if err != nil {
			return err
		}
		if group = g.ID; !g.Household { // a session of its own, whose history holds nothing else
			key = append(key, group)
		}
	} else if t.Principal.Own {
		key = append(key, t.Principal.Person)
	}
	s, err := r.sessions.Open(tx, agent, sessionKey("job", key...), func(s *journal.Session) {
		s.Title = "job " + name
		if target != "" {
			s.OutboundKind, s.OutboundTarget = directory.OutboundConversation, target
		}
	})
	if err == nil && group != "" {
		err = r.within(tx, s, c, group)
	}
	if err != nil {
		return err
	}
	return r.sessions.Queue(tx, s, contract.AgentInput{
		Kind: contract.InputTask, Sender: e.GetSource(), Text: t.Prompt, ReplyTo: target, Person: t.Principal.Person,
	})
}

// within makes a session that is no chat belong to the chat of a group, which reads what
// it says.
func (r *MessageRouter) within(tx *bus.Tx, s *journal.Session, c *journal.Conversation, group string) error {
	if p, err := session.Principal(tx, s, contract.Principal{}); p.Group == group || err != nil {
		return err
	}
	agent, _ := pickAgent(r.directory.Current(), c.Channel, cmp.Or(c.Agent, s.Agent))
	chat, err := r.chat(tx, cmp.Or(agent, s.Agent), c)
	if err != nil {
		return err
	}
	s.Group, s.Within = true, chat.ID
	return tx.PutSession(s)
}

// tellOwner sends a notice, in the owner's language, to the preferred channel; if that is the one to avoid, to
// another one if there is one.
func (r *MessageRouter) tellOwner(tx *bus.Tx, avoid, text string) error {
	to, err := r.preferred(tx, avoid)
	if err != nil || to == nil {
		return err
	}
	return r.send(tx, to, contract.ChannelSend{Text: words.Translate(to.language, text), Kind: contract.SendNotice})
}
