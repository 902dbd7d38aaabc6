package router

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
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
	empty := strings.TrimSpace(out.Text) == ""
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
		if send.ReplyTo, err = NewestMessage(tx, turn.Inputs); err != nil {
			return err
		}
	}
	target := out.ReplyTo
	if target == "" || s.OutboundKind == directory.OutboundExtension { // an extension subscribes to its own sessions
		if s.OutboundKind != directory.OutboundConversation {
			if out.Outcome == contract.OutcomeCapped && e.GetHop() > 0 { // it never ran
				return r.tellOwner(tx, nil, out.Text)
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
		d, err := r.destination(tx, "", "")
		if err != nil {
			return err
		}
		to, send.Anywhere = d.to, d.anywhere
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
// inputs of a turn; empty if there is none.
func NewestMessage(r journal.Reader, inputs []int64) (string, error) {
	for _, seq := range slices.Backward(inputs) {
		e, err := r.Event(seq)
		if err != nil {
			return "", err
		}
		if e == nil {
			continue
		}
		if id := messageID(e); id != "" {
			return id, nil
		}
	}
	return "", nil
}

func isJob(s *journal.Session) bool { return strings.HasPrefix(s.Key, "job:") }

// notify sends a notice.
func (r *MessageRouter) notify(tx *bus.Tx, e *busv1.Event, n contract.UserNotify) error {
	if strings.TrimSpace(n.Text) == "" {
		return tx.Dead(e, "the notice has no text")
	}
	d, err := r.destination(tx, n.ChannelID, n.ReplyTo)
	if err != nil {
		return err
	}
	if d.to == nil {
		return tx.Dead(e, "there is no channel for the notice")
	}
	if err := d.note(tx, e, n.ChannelID, &n.Text); err != nil {
		return err
	}
	return r.send(tx, d.to, contract.ChannelSend{Text: n.Text, Kind: contract.SendNotice, Anywhere: d.anywhere})
}

// destination is where a notice goes.
type destination struct {
	to       *place // nil: there are no channels
	replied  bool   // the conversation of replyTo
	unknown  bool   // the named channel does not exist, this is another one
	anywhere bool   // none was named and none is ready: the first that is may have it
}

// note notes in a text, and in a dead letter, that the named channel does not exist.
func (d destination) note(tx *bus.Tx, e *busv1.Event, channel string, text *string) error {
	if !d.unknown {
		return nil
	}
	*text = forChannel(channel) + *text
	return tx.Dead(e, fmt.Sprintf("channel %q does not exist; sent to %s instead", channel, d.to.channel.ID))
}

// target is the reply target of the destination, which is replyTo if that led there.
func (d destination) target(replyTo string) string {
	switch {
	case d.to == nil:
		return ""
	case d.replied:
		return replyTo
	}
	return defaultPlace + d.to.channel.ID
}

// destination is where a notice goes: the named channel (to the conversation it
// comes from if that is on it), the conversation, the preferred channel.
func (r *MessageRouter) destination(tx journal.Reader, channel, replyTo string) (d destination, err error) {
	dir := r.directory.Current()
	if replyTo != "" {
		if d.to, err = r.resolve(tx, replyTo); err != nil {
			return d, err
		}
	}
	d.unknown = channel != "" && dir.Channel(channel) == nil
	if d.replied = d.to != nil && !d.unknown && (channel == "" || channel == d.to.channel.ID); d.replied {
		return d, nil
	}
	c := dir.Channel(channel)
	if c == nil {
		c = dir.PreferredChannel()
	}
	if c == nil {
		d.anywhere = true
		c = dir.FirstChannel((*directory.Channel).Configured, func(*directory.Channel) bool { return true })
	}
	d.to = nil
	if c != nil {
		d.to, err = r.recipient(tx, c)
	}
	return d, err
}

func forChannel(id string) string { return "[for " + id + "] " }

// task gives an agent a prompt; its final text goes where the task says.
func (r *MessageRouter) task(tx *bus.Tx, e *busv1.Event, t contract.AgentTask) error {
	switch {
	case t.Quiet:
		return r.job(tx, e, t.Prompt, t.AgentID, t.Name, "")
	case t.ChannelID == "" && t.ReplyTo != "":
		return r.job(tx, e, t.Prompt, t.AgentID, t.Name, t.ReplyTo)
	}
	d, err := r.destination(tx, t.ChannelID, t.ReplyTo)
	if err != nil {
		return err
	}
	if d.unknown {
		text := fmt.Sprintf("A job of %s sends its answer to %q, but there is no such channel. I'll send it here instead.",
			e.GetSource(), t.ChannelID)
		err = errors.Join(tx.Dead(e, fmt.Sprintf("channel %q does not exist", t.ChannelID)), r.tellOwner(tx, nil, text))
		if err != nil {
			return err
		}
	}
	return r.job(tx, e, t.Prompt, t.AgentID, t.Name, d.target(t.ReplyTo))
}

// background is a task whose final text stays in the history.
func (r *MessageRouter) background(tx *bus.Tx, e *busv1.Event, t contract.AgentBackground) error {
	return r.job(tx, e, t.Prompt, t.AgentID, t.Name, "")
}

func (r *MessageRouter) job(tx *bus.Tx, e *busv1.Event, prompt, asked, name, target string) error {
	if strings.TrimSpace(prompt) == "" {
		return tx.Dead(e, "the job has no prompt")
	}
	agent, refusal := pickAgent(r.directory.Current(), "", asked)
	if refusal != "" {
		text := fmt.Sprintf("A job of %s can't run. %s", e.GetSource(), refusal)
		return errors.Join(tx.Dead(e, refusal), r.tellOwner(tx, nil, text))
	}
	if name == "" {
		name = e.GetId()
	}
	s, err := r.sessions.Open(tx, agent, sessionKey("job", agent, name), func(s *journal.Session) {
		s.OutboundKind, s.OutboundTarget, s.Title = directory.OutboundNowhere, "", "job "+name
		if target != "" {
			s.OutboundKind, s.OutboundTarget = directory.OutboundConversation, target
		}
	})
	if err != nil {
		return err
	}
	c, err := tx.ConversationByHandle(target)
	if err != nil {
		return err
	}
	if c != nil && c.Group && !s.Group { // others read its text there
		s.Group = true
		if err := tx.PutSession(s); err != nil {
			return err
		}
	}
	in := contract.AgentInput{Kind: contract.InputTask, Sender: e.GetSource(), Text: prompt, ReplyTo: target}
	_, _, err = r.sessions.Queue(tx, s, in, "")
	return err
}

// tellOwner sends a notice to the preferred channel; if that is the one to avoid, to
// another one if there is one.
func (r *MessageRouter) tellOwner(tx *bus.Tx, avoid *directory.Channel, text string) error {
	d, err := r.destination(tx, "", "")
	if err != nil || d.to == nil {
		return err
	}
	if avoid != nil && d.to.channel.ID == avoid.ID {
		configured := func(c *directory.Channel) bool { return c.ID != avoid.ID && c.Configured() }
		ready := func(c *directory.Channel) bool { return configured(c) && c.Ready() }
		if c := r.directory.Current().FirstChannel(ready, configured); c != nil {
			if d.to, err = r.recipient(tx, c); err != nil {
				return err
			}
		}
	}
	return r.send(tx, d.to, contract.ChannelSend{Text: text, Kind: contract.SendNotice, Anywhere: d.anywhere})
}
