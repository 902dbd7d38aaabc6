package router

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// longestAnswer is the largest answer to a command, in bytes.
const longestAnswer = 32 << 10

// handOver publishes a command of an extension, in the order of the conversation,
// without waiting for a turn. It returns the answer to give at once; empty: none.
func (r *MessageRouter) handOver(tx *bus.Tx, q request, c *command.Slash, rest string) (string, error) {
	dir, conversation := r.directory.Current(), q.conversation
	if c.State == contract.StateFailed {
		return q.say("/%s can't run: %s has failed.", c.Name, q.say(c.Title)) +
			directory.Hint(q.say(" Restart it with %s."), dir.Program.Restart, c.Extension), nil
	}
	if c.Withheld {
		return q.say("/%s can't run: the owner hasn't allowed it as %s describes it now.", c.Name, q.say(c.Title)) +
			directory.Hint(q.say(" They can allow it with %s."), dir.Program.Allow, c.Extension), nil
	}
	principal, err := r.principal(tx, conversation, q.person, q.account.ID)
	if err != nil {
		return "", err
	}
	given := contract.Command{
		Name: c.Name, Text: rest, ReplyTo: conversation.Handle, Channel: q.here.channel.ID, Group: conversation.Group,
		Sender: q.UserName, MessageID: q.MessageID, Language: q.Language, Principal: principal,
		Accounts: principal.Accounts, Timezone: q.person.Timezone,
	}
	// Without an agent that answers here there is no session, and the command runs.
	if agent, refusal := pickAgent(dir, q.here.channel.ID, cmp.Or(q.AgentID, conversation.Agent)); refusal == "" {
		s, err := r.chat(tx, agent, conversation)
		if err != nil {
			return "", err
		}
		given.Session, given.Agent, given.Memory = journal.SessionID(s.ID), agent, dir.Agent(agent).Spec.GetMemory()
	}
	if _, err := tx.Emit(contract.TopicCommand+c.Name, conversation.Handle, given); err != nil {
		return "", err
	}
	if c.State == contract.StateBackingOff || c.State == contract.StateInactive {
		return q.say("%s isn't running. /%s will run when it's back.", q.say(c.Title), c.Name), nil
	}
	return "", nil
}

// given is the command that an event carries to the extension that handles it;
// nil: the event is none, or the extension only observes it.
func (r *MessageRouter) given(e *busv1.Event, extension string) *contract.Command {
	name, isCommand := strings.CutPrefix(e.GetTopic(), contract.TopicCommand)
	if !isCommand || e.GetSource() != contract.KernelSource {
		return nil
	}
	if c := r.directory.Current().Command(name); c != nil && c.Extension != extension {
		return nil
	}
	var given contract.Command
	if json.Unmarshal(e.GetPayload(), &given) != nil {
		return nil
	}
	return &given
}

// answered sends the answer of an extension to a command, which is acknowledged
// with it, to where the command was given.
func (r *MessageRouter) answered(tx *bus.Tx, content string) error {
	e := tx.Lease.Event
	given := r.given(e, tx.Lease.Extension)
	if given == nil || content == "" {
		return nil
	}
	cut := "\n\n" + words.Say(given.Language, "[cut: it was longer]")
	return r.answer(tx, e, given, contract.Truncate(content, longestAnswer, cut))
}

func (r *MessageRouter) answer(tx *bus.Tx, e *busv1.Event, given *contract.Command, text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	to, err := r.resolve(tx, given.ReplyTo)
	if err != nil {
		return err
	}
	if to == nil {
		return tx.Dead(e, fmt.Sprintf("the conversation %q of the answer no longer exists", given.ReplyTo))
	}
	return r.send(tx, to, contract.ChannelSend{
		Text: text, Kind: contract.SendReply, ReplyTo: given.MessageID, Language: given.Language,
	})
}

// commandDied answers a command that won't run. It returns false if the event is no
// command of the extension.
func (r *MessageRouter) commandDied(tx *bus.Tx, d *journal.Delivery, e *busv1.Event, extension string) (bool, error) {
	given := r.given(e, extension)
	if given == nil {
		return false, nil
	}
	text := words.Say(given.Language, "/%s didn't run: %s.", given.Name, words.Translate(given.Language, d.Reason))
	if d.Uncertain {
		text = words.Say(given.Language, "/%s was interrupted, so it's unknown whether it took effect: %s.", given.Name,
			words.Translate(given.Language, d.Reason))
	}
	return true, r.answer(tx, e, given, text)
}
