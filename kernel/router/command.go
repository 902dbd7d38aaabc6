package router

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

var commandForm = regexp.MustCompile(`^/([a-z][a-z0-9_]*)(?:\s+([\s\S]*))?$`)

// parseCommand splits "/name rest". Anything else that begins with a slash (a
// path, say) is text.
func parseCommand(text string) (name, rest string, ok bool) {
	m := commandForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", "", false
	}
	return m[1], strings.TrimSpace(m[2]), true
}

// help is the answer to /help: the commands of the kernel, and the names of those
// that extensions have. With the name of a command or an extension behind it, it
// is what they do.
func (r *MessageRouter) help(about string) string {
	extensions := r.directory.Current().Commands
	if about != "" {
		return describe(extensions, about)
	}
	var b strings.Builder
	b.WriteString("Write to me as you would to a person. These commands always work, also while I am busy:\n")
	for _, c := range directory.Builtin() {
		name := c.Name
		if name == "agent" {
			name += " [name]"
		}
		fmt.Fprintf(&b, "\n- /%s: %s", name, c.Description)
	}
	if len(extensions) > 0 {
		b.WriteString("\n\nExtensions add these; /help NAME says what one does:\n")
	}
	for i, c := range extensions {
		switch {
		case i > 0 && extensions[i-1].Extension == c.Extension:
			b.WriteString(", ")
		case c.State == directory.StateFailed:
			fmt.Fprintf(&b, "\n- %s (has failed): ", c.Title)
		default:
			fmt.Fprintf(&b, "\n- %s: ", c.Title)
		}
		b.WriteString("/" + c.Name)
	}
	return b.String()
}

// describe says what a command does, or all of an extension.
func describe(extensions []directory.Command, about string) string {
	about = strings.ToLower(strings.TrimPrefix(about, "/"))
	var lines []string
	for _, c := range slices.Concat(directory.Builtin(), extensions) {
		if about != c.Name && (c.Extension == "" || about != c.Extension && about != strings.ToLower(c.Title)) {
			continue
		}
		line := fmt.Sprintf("- /%s: %s", c.Name, c.Description)
		if c.State == directory.StateFailed {
			line += fmt.Sprintf(" (%s has failed)", c.Title)
		}
		lines = append(lines, line)
	}
	if lines == nil {
		return fmt.Sprintf("There is no command and no extension with commands named %s. /help lists those that exist.", about)
	}
	return strings.Join(lines, "\n")
}

// request is who gives a command, and where.
type request struct {
	conversation *journal.Conversation
	here         *place
	user, name   string // the id, and as shown to people
	agent        string // that was asked for by name
	message      string // the platform's id of it
}

// command answers a slash command in the commit that accepts it.
func (r *MessageRouter) command(tx *bus.Tx, q request, name, rest string) error {
	answer, err := r.execute(tx, q, name, rest)
	if err != nil || answer == "" {
		return err
	}
	return r.send(tx, q.here, contract.ChannelSend{Text: answer, Kind: contract.SendReply, ReplyTo: q.message})
}

func (r *MessageRouter) execute(tx *bus.Tx, q request, name, rest string) (string, error) {
	c := q.conversation
	switch name {
	case "start": // what stands behind it is the platform's
		return r.help(""), nil
	case "help":
		return r.help(rest), nil
	case "status":
		return r.howThingsAre(tx, c, q.here.channel.ID)
	case "new":
		if _, err := r.stop(tx, c, ""); err != nil {
			return "", err
		}
		c.Epoch++
		return "A new conversation. What was said before is kept, and I begin without it.", tx.PutConversation(c)
	case "stop":
		n, err := r.stop(tx, c, "Stopped.")
		if n > 0 || err != nil {
			return "", err // the turn itself says that it was stopped
		}
		return "Nothing is running here.", nil
	case "agent":
		return r.chooseAgent(tx, c, q.here.channel.ID, rest)
	case "sethome":
		return r.setHome(tx, q)
	case "questions", "answer", "approve", "deny":
		return r.aboutQuestions(tx, q, name, rest)
	}
	if known := r.directory.Current().Command(name); known != nil {
		return r.handOver(tx, q, known, rest)
	}
	return fmt.Sprintf("There is no command /%s. /help lists those that exist.", name), nil
}

// howThingsAre is the answer to /status: what is done in this conversation, and
// how the system is.
func (r *MessageRouter) howThingsAre(tx *bus.Tx, c *journal.Conversation, channel string) (string, error) {
	name, refusal := pickAgent(r.directory.Current(), channel, c.Agent)
	if refusal != "" {
		return "- " + refusal + "\n" + r.status(), nil
	}
	s, err := tx.SessionByKey(name, ChatKey(c))
	if err != nil {
		return "", err
	}
	var others string
	switch n := working(tx, c, s); n {
	case 0:
	case 1:
		others = "; another agent is at work for this conversation"
	default:
		others = fmt.Sprintf("; %d others are at work for this conversation", n)
	}
	here := name + " has nothing to do"
	if s != nil {
		_, waiting, err := r.sessions.Waiting(tx, s, manyInputs)
		if err != nil {
			return "", err
		}
		switch n := len(waiting); {
		case n > 1:
			here = fmt.Sprintf("%s is at work on %d messages", name, n)
		case n == 1 || len(s.Stack) > 0:
			here = name + " is at work"
		}
	}
	return "- Here: " + here + others + "\n" + r.status(), nil
}

// working is how many sessions other than that of a conversation are at work on
// what answers there in the end, such as its tasks.
func working(tx *bus.Tx, c *journal.Conversation, own *journal.Session) int {
	busy := map[int64]bool{}
	for _, l := range tx.Working() {
		var in contract.AgentInput
		if (own == nil || l.Session != own.ID) && json.Unmarshal(l.Event.GetPayload(), &in) == nil && in.ReplyTo == c.Handle {
			busy[l.Session] = true
		}
	}
	return len(busy)
}

// manyInputs is up to how many inputs /status counts.
const manyInputs = 100

// formerly is how many of a conversation's earlier sessions /stop reaches:
// messages that were waiting at a /new are still answered there.
const formerly = 3

// stop ends what runs in a conversation, whichever agent runs it.
func (r *MessageRouter) stop(tx *bus.Tx, c *journal.Conversation, text string) (ended int, err error) {
	for _, a := range r.directory.Current().Agents {
		for then := *c; then.Epoch >= max(0, c.Epoch-formerly); then.Epoch-- {
			s, err := tx.SessionByKey(a.ID, ChatKey(&then))
			if err != nil {
				return ended, err
			}
			if s == nil {
				continue
			}
			n, err := r.sessions.CancelTurns(tx, s, text)
			if err != nil {
				return ended, err
			}
			ended += n
		}
	}
	return ended, nil
}

func (r *MessageRouter) chooseAgent(tx *bus.Tx, c *journal.Conversation, channel, name string) (string, error) {
	now := r.directory.Current()
	if name == "" {
		current, refusal := pickAgent(now, channel, c.Agent)
		if refusal != "" {
			current = refusal
		} else {
			current = fmt.Sprintf("%s answers here.", current)
		}
		var names []string
		for _, a := range now.Agents {
			if now.Enabled(a.ID) {
				names = append(names, a.ID)
			}
		}
		return fmt.Sprintf("%s /agent NAME chooses one of: %s.", current, strings.Join(names, ", ")), nil
	}
	if !now.Enabled(name) {
		return notEnabled(now, name, "/agent lists those that are."), nil
	}
	c.Agent = name
	return fmt.Sprintf("%s answers here from now on.", name), tx.PutConversation(c)
}

func (r *MessageRouter) setHome(tx *bus.Tx, q request) (string, error) {
	channel, c := q.here.channel, q.conversation
	if channel.Local {
		return "What names no conversation comes up here anyway, if it goes to " + channel.Name + ". Give /sethome where other notices shall come.", nil
	}
	owner, err := ownerOn(tx, channel)
	switch {
	case err != nil:
		return "", err
	case owner.UserID == "":
		return fmt.Sprintf("Nobody is known as the owner on %s, so there is nobody whose notices could come here. "+
			"The owner is the first person approved, or the first named in channels.%s.allow_from.", channel.Name, channel.ID), nil
	case owner.UserID != q.user:
		return "Only the owner of this assistant can have notices come here.", nil
	}
	owner.Channel, owner.Conversation, owner.Thread = channel.ID, c.Address, c.Thread
	return "Notices on " + channel.Name + " that name no conversation come here from now on.", save(tx, ownerKey(channel.ID), owner)
}

// messageID is the platform's id of the message that an input carries.
func messageID(e *busv1.Event) string {
	var in contract.AgentInput
	if json.Unmarshal(e.GetPayload(), &in) != nil {
		return ""
	}
	id, _ := in.Meta["message_id"].(string)
	return id
}
