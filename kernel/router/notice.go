package router

import (
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// output sends the final text of a turn to its reply target: the one rule
// behind replies, error messages and the results of jobs.
func (r *MessageRouter) output(tx *bus.Tx, e *busv1.Event, out contract.AgentOutput) error {
	if strings.TrimSpace(out.Text) == "" {
		return nil
	}
	s, err := tx.Session(journal.ParseSessionID(out.Session))
	if err != nil || s == nil {
		return err
	}
	send := contract.ChannelSend{Text: out.Text, Kind: contract.SendReply, Session: out.Session}
	turn, err := tx.Turn(out.Turn)
	if err != nil {
		return err
	}
	if turn != nil {
		send.DraftID = journal.EventID(turn.Inputs[0])
	}
	target := out.ReplyTo
	if target == "" {
		if s.OutboundKind != directory.OutboundConversation {
			return nil // nowhere, or to the extension that subscribed
		}
		target = s.OutboundTarget
	}
	if isJob(s) {
		send.Kind = contract.SendNotice
		if turn != nil && turn.UsedSend && out.Outcome == contract.OutcomeOK {
			return nil // what it had to say, it has sent
		}
	}
	to, err := r.resolve(tx, target)
	if err != nil {
		return err
	}
	if to == nil {
		return r.unroutable(tx, e, fmt.Sprintf("the conversation or channel %q that it answers does not exist any more", target))
	}
	return r.send(tx, to, send)
}

func isJob(s *journal.Session) bool { return strings.HasPrefix(s.Key, "job:") }

// notify tells a person something.
func (r *MessageRouter) notify(tx *bus.Tx, e *busv1.Event, n contract.UserNotify) error {
	if strings.TrimSpace(n.Text) == "" {
		return r.unroutable(tx, e, "it has no text")
	}
	to, prefix, err := r.destination(tx, n.ChannelID, n.ReplyTo)
	if err != nil {
		return err
	}
	if to == nil {
		return r.unroutable(tx, e, "there is no channel to send it to")
	}
	if prefix != "" {
		if err := r.unroutable(tx, e, fmt.Sprintf("channel %q does not exist; it was sent to %s instead", n.ChannelID, to.channel.ID)); err != nil {
			return err
		}
	}
	return r.send(tx, to, contract.ChannelSend{Text: prefix + n.Text, Kind: contract.SendNotice})
}

// destination is where a notice goes: the named channel (to the conversation it
// comes from if that is on it), the conversation, the preferred channel. The
// prefix says that the named channel does not exist.
func (r *MessageRouter) destination(tx *bus.Tx, channel, replyTo string) (to *place, prefix string, err error) {
	now := r.directory.Current()
	if replyTo != "" {
		if to, err = r.resolve(tx, replyTo); err != nil {
			return nil, "", err
		}
	}
	if channel != "" {
		if c := now.Channel(channel); c != nil {
			if to != nil && to.channel.ID == channel {
				return to, "", nil
			}
			to, err = r.recipient(tx, c)
			return to, "", err
		}
		prefix, to = forChannel(channel), nil
	}
	if to != nil {
		return to, prefix, nil
	}
	c := now.PreferredChannel()
	if c == nil && len(now.Channels) > 0 {
		c = &now.Channels[0] // held until it, or another one, is ready
	}
	if c == nil {
		return nil, prefix, nil
	}
	to, err = r.recipient(tx, c)
	return to, prefix, err
}

func forChannel(id string) string { return "[for " + id + "] " }

// task has an agent do something; its final text goes where the task says.
func (r *MessageRouter) task(tx *bus.Tx, e *busv1.Event, t contract.AgentTask) error {
	target := t.ReplyTo
	if t.ChannelID != "" {
		to, err := r.resolve(tx, t.ReplyTo)
		if err != nil {
			return err
		}
		if to == nil || to.channel.ID != t.ChannelID {
			target = defaultPlace + t.ChannelID
		}
		if r.directory.Current().Channel(t.ChannelID) == nil {
			if err := r.unroutable(tx, e, fmt.Sprintf("channel %q does not exist", t.ChannelID)); err != nil {
				return err
			}
			target = ""
		}
	}
	if target == "" {
		to, _, err := r.destination(tx, "", "")
		if err != nil {
			return err
		}
		if to != nil {
			target = defaultPlace + to.channel.ID
		}
	}
	return r.job(tx, e, t.Prompt, t.AgentID, t.Name, target)
}

// background is a task whose final text stays in the history.
func (r *MessageRouter) background(tx *bus.Tx, e *busv1.Event, t contract.AgentBackground) error {
	return r.job(tx, e, t.Prompt, t.AgentID, t.Name, "")
}

func (r *MessageRouter) job(tx *bus.Tx, e *busv1.Event, prompt, asked, name, target string) error {
	if strings.TrimSpace(prompt) == "" {
		return r.unroutable(tx, e, "it has no prompt")
	}
	agent, refusal := pickAgent(r.directory.Current(), "", asked)
	if refusal != "" {
		if err := r.unroutable(tx, e, refusal); err != nil {
			return err
		}
		return r.tellOwner(tx, nil, fmt.Sprintf("A job that %s asked for cannot run. %s", e.GetSource(), refusal))
	}
	if name == "" {
		name = e.GetId()
	}
	s, err := r.sessions.Open(tx, agent, sessionKey("job", agent, name), func(s *journal.Session) {
		s.OutboundKind, s.OutboundTarget = directory.OutboundNowhere, ""
		if target != "" {
			s.OutboundKind, s.OutboundTarget = directory.OutboundConversation, target
		}
	})
	if err != nil {
		return err
	}
	_, _, err = r.sessions.Queue(tx, s, contract.AgentInput{Kind: contract.InputTask, Sender: e.GetSource(), Text: prompt, ReplyTo: target}, "")
	return err
}

// tellOwner sends a notice to the preferred channel, or to another one if that
// is the one to avoid.
func (r *MessageRouter) tellOwner(tx *bus.Tx, avoid *directory.Channel, text string) error {
	now := r.directory.Current()
	c := now.PreferredChannel()
	if avoid != nil && (c == nil || c.ID == avoid.ID) {
		c = nil
		for i := range now.Channels {
			if other := &now.Channels[i]; other.ID != avoid.ID && other.Configured() && (c == nil || other.Ready() && !c.Ready()) {
				c = other
			}
		}
	}
	if c == nil {
		return nil
	}
	to, err := r.recipient(tx, c)
	if err != nil {
		return err
	}
	return r.send(tx, to, contract.ChannelSend{Text: text, Kind: contract.SendNotice})
}
