package router

import (
	"cmp"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// request is a message of a person who is admitted.
type request struct {
	contract.UserMessage
	conversation *journal.Conversation
	here         *place
	account      *people.Account
	person       *people.Person // of the account
	owner        bool           // of the channel, or of everything
}

// say is a text in the person's language.
func (q request) say(text string, args ...any) string { return words.Say(q.Language, text, args...) }

// command runs a slash command in the commit that accepts it, and returns its answer;
// empty: another event answers.
func (r *MessageRouter) command(tx *bus.Tx, q request, name, rest string) (string, error) {
	c := q.conversation
	if !q.person.May(people.RoleMember) && !forGuests(r.directory.Current(), name) {
		return q.say("As a guest you can chat with me, but not use /%s.", name), nil
	}
	switch name {
	case "start": // its arguments are the platform's
		return command.Help(q.Language, "", r.directory.Current().Commands), nil
	case "help":
		return command.Help(q.Language, rest, r.directory.Current().Commands), nil
	case "status":
		return r.statusHere(tx, q)
	case "new":
		if _, err := r.stop(tx, q, false); err != nil {
			return "", err
		}
		c.Epoch++
		return q.say("New conversation. The old one is saved, but I won't use it."), tx.PutConversation(c)
	case "stop":
		return r.stop(tx, q, rest != "answer")
	case "agent":
		return r.chooseAgent(tx, q, rest)
	case "model":
		return r.chooseModel(tx, q, rest)
	case "sethome":
		return r.setHome(tx, q)
	case "link":
		return r.link(tx, q, rest)
	case "timezone", "quiet":
		return r.setting(tx, q, name, rest)
	case "household":
		return r.household(tx, q, rest)
	case "questions", "answer", "approve", "deny":
		return r.aboutQuestions(tx, q, name, rest)
	}
	if known := r.directory.Current().Command(name); known != nil {
		return r.handOver(tx, q, known, rest)
	}
	return q.say("There is no command /%s. /help lists all commands.", name), nil
}

// statusHere is the answer to /status: what runs in this conversation, and the state
// of the system.
func (r *MessageRouter) statusHere(tx *bus.Tx, q request) (string, error) {
	c := q.conversation
	name, refusal := pickAgent(r.directory.Current(), q.here.channel.ID, c.Agent)
	if refusal != "" {
		return "- " + words.Translate(q.Language, refusal) + "\n" + r.status(q.Language), nil
	}
	s, err := tx.SessionByKey(name, ChatKey(c))
	if err != nil {
		return "", err
	}
	others := ""
	if n := working(tx, c, s); n > 0 {
		others = words.Count(q.Language, "; %d other agent is working for this conversation",
			"; %d other agents are working for this conversation", n, n)
	}
	here := q.say("%s is idle", name)
	if s != nil {
		_, waiting, err := r.sessions.Waiting(tx, s, manyInputs)
		if err != nil {
			return "", err
		}
		switch n := len(waiting); {
		case n > 1:
			here = words.Count(q.Language, "%s is working on %d message", "%s is working on %d messages", n, name, n)
		case n == 1 || len(s.Stack) > 0:
			here = q.say("%s is working", name)
		}
	}
	return q.say("- Here: %s%s", here, others) + "\n" + r.status(q.Language), nil
}

// working counts the other sessions that work for a conversation, such as its tasks.
func working(tx *bus.Tx, c *journal.Conversation, own *journal.Session) int {
	busy := map[int64]bool{}
	for _, l := range tx.Working() {
		in := session.InputOf(l.Event)
		if (own == nil || l.Session != own.ID) && in.ReplyTo == c.Handle && in.Kind != contract.InputRecord {
			busy[l.Session] = true
		}
	}
	return len(busy)
}

// manyInputs is the most inputs that /status counts.
const manyInputs = 100

func (r *MessageRouter) chooseAgent(tx *bus.Tx, q request, name string) (string, error) {
	dir, c := r.directory.Current(), q.conversation
	if name == "" {
		current, refusal := pickAgent(dir, q.here.channel.ID, c.Agent)
		if refusal != "" {
			current = words.Translate(q.Language, refusal)
		} else {
			current = q.say("%s answers here.", current)
		}
		var names []string
		for _, a := range dir.Agents {
			if dir.Enabled(a.ID) {
				names = append(names, a.ID)
			}
		}
		return current + " " + q.say("/agent NAME chooses one of: %s.", strings.Join(names, ", ")), nil
	}
	if !dir.Enabled(name) {
		return words.Translate(q.Language, notEnabled(dir, name, "/agent lists those that are.")), nil
	}
	c.Agent = name
	return q.say("%s answers here from now on.", name), tx.PutConversation(c)
}

// chooseModel is the answer to /model.
func (r *MessageRouter) chooseModel(tx *bus.Tx, q request, name string) (string, error) {
	provider, model, _ := strings.Cut(name, "/")
	switch {
	case name == "":
		return q.say("Model here: %s. /model PROVIDER/MODEL chooses one, /model default the usual one.",
			cmp.Or(q.conversation.Model, "default")), nil
	case !q.owner:
		return q.say("Only the owner can choose a model."), nil
	case name == "default":
		q.conversation.Model = ""
	case model == "" || strings.ContainsAny(model, " \n") || r.directory.Current().Provider(provider) == nil:
		return q.say("There is no model %s. Write /model PROVIDER/MODEL.", name), nil
	default:
		q.conversation.Model = name
	}
	return q.say("%s answers here from now on.", name), tx.PutConversation(q.conversation)
}

func (r *MessageRouter) setHome(tx *bus.Tx, q request) (string, error) {
	channel, c := q.here.channel, q.conversation
	if channel.Local {
		return q.say("Notices for %s always come here. Use /sethome in another chat to get notices there.", channel.Name), nil
	}
	owner, err := r.people.OwnerOn(tx, channel)
	switch {
	case err != nil:
		return "", err
	case owner.UserID == "":
		return q.say("%s has no owner yet. The owner is the first person approved, "+
			"or the first in channels.%s.allow_from.", channel.Name, channel.ID), nil
	case owner.UserID != q.UserID && c.Group:
		return q.say("Only the owner can use /sethome in a group."), nil
	case owner.UserID != q.UserID:
		q.person.Home = q.account.ID
		return q.say("What people send you comes here from now on."), people.Change(tx, q.person)
	case c.Group:
		g, err := r.group(tx, c, true)
		if err != nil || !g.Household {
			return q.say("Others can read this group. If it may get your reminders and notices, send /household first."), err
		}
	}
	owner.Channel, owner.Conversation, owner.Thread = channel.ID, c.Address, c.Thread
	return q.say("I'll send reminders and notices here from now on."), people.SetOwner(tx, owner)
}

// messageID is the platform's id of the message that an input carries.
func messageID(e *busv1.Event) string {
	id, _ := session.InputOf(e).Meta["message_id"].(string)
	return id
}
