package router

import (
	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// formerly is how many earlier sessions of a conversation /stop reaches: messages that
// waited at a /new are still answered there.
const formerly = 3

// stop ends the turns of all agents in a conversation. With all, it also ends what waits
// there, and has extensions end what they do for it. It returns what to say.
func (r *MessageRouter) stop(tx *bus.Tx, q request, all bool) (string, error) {
	c := q.conversation
	event := contract.ConversationStopped{Conversation: c.Handle, Language: q.Language}
	var dropped []contract.AgentInput
	ended := 0
	if all {
		ended = working(tx, c, nil) // also what an extension will end
	}
	for _, a := range r.directory.Current().Agents {
		for then := *c; then.Epoch >= max(0, c.Epoch-formerly); then.Epoch-- {
			s, err := tx.SessionByKey(a.ID, ChatKey(&then))
			if err != nil {
				return "", err
			}
			if s == nil {
				continue
			}
			n, waited, err := r.sessions.Stop(tx, s, all)
			if err != nil {
				return "", err
			}
			ended, dropped = ended+n, append(dropped, waited...)
			event.Sessions = append(event.Sessions, journal.SessionID(s.ID))
		}
	}
	if all {
		if _, err := tx.Emit(contract.TopicStopped, "", event); err != nil {
			return "", err
		}
	}
	return command.Stopped(q.Language, ended, dropped), nil
}
