// Package router is the MessageRouter: the kernel's own subscriptions. It
// decides who is admitted, which agent hears a message, where an output, a
// notice or a job's result goes, and how a long text is split.
//
// It runs in the commit that accepts an event: a message and the input that it leads
// to are one commit. What cannot be routed becomes a dead letter and an answer to the
// sender, in the same commit. The router never waits, calls out or fails a publisher.
//
// A reply goes to the conversation whose message it answers and never anywhere else.
// Only a notice may go to another channel, and it says so.
package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/kernel/questions"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// MessageRouter routes messages, outputs, notices and jobs. It is safe for concurrent
// use; its state is in the store.
type MessageRouter struct {
	directory *directory.Directory
	sessions  *session.Store
	questions *questions.Store
	status    func(language string) string // the text of /status
	people    *people.Store
}

// New returns a router; status writes the answer to /status.
func New(d *directory.Directory, s *session.Store, status func(language string) string) *MessageRouter {
	return &MessageRouter{
		directory: d, sessions: s, questions: &questions.Store{}, people: &people.Store{}, status: status,
	}
}

// Hooks are the hooks of the router and of the sessions.
func (r *MessageRouter) Hooks() bus.Hooks {
	h := r.sessions.Hooks()
	h.Accept, h.Dead, h.Receipt, h.Repeat, h.Resend = r.accept, r.died, r.delivered, r.marked, r.resend
	endTurn, withdrawInput := h.Ack, h.Withdraw
	h.Ack = func(tx *bus.Tx, content string) error {
		if err := endTurn(tx, content); err != nil {
			return err
		}
		return r.answered(tx, content)
	}
	h.Withdraw = func(tx *bus.Tx, e *busv1.Event) (bus.Withdrawal, error) {
		if e.GetTopic() == contract.TopicUserAsk {
			return r.unask(tx, e)
		}
		return withdrawInput(tx, e)
	}
	return h
}

// accept returns what routes an event. A stranger's message has no route.
func (r *MessageRouter) accept(tx *bus.Tx, e *busv1.Event) (route func() error, err error) {
	switch e.GetTopic() {
	case contract.TopicUserMessage:
		return r.admit(tx, e)
	case contract.TopicAgentOutput:
		route = decode(tx, e, r.output)
	case contract.TopicUserNotify:
		route = decode(tx, e, r.notify)
	case contract.TopicUserAsk:
		route = decode(tx, e, r.ask)
	case contract.TopicAgentTask:
		route = decode(tx, e, r.task)
	case contract.TopicAgentBackground:
		route = decode(tx, e, func(tx *bus.Tx, e *busv1.Event, t contract.AgentTask) error { return r.job(tx, e, t, "") })
	default:
		route = bus.NoRoute
	}
	return route, nil
}

func decode[T any](tx *bus.Tx, e *busv1.Event, route func(*bus.Tx, *busv1.Event, T) error) func() error {
	return func() error {
		var payload T
		if err := json.Unmarshal(e.GetPayload(), &payload); err != nil {
			return tx.Dead(e, undecoded(e, err))
		}
		err := route(tx, e, payload)
		if errors.Is(err, errRevoked) {
			return tx.Dead(e, err.Error())
		}
		return err
	}
}

func undecoded(e *busv1.Event, err error) string {
	return fmt.Sprintf("decode the payload of %s: %v", e.GetTopic(), err)
}

// place is where a text goes: a conversation of a channel, or the channel's
// default recipient.
type place struct {
	channel  *directory.Channel
	address  string // empty: the default recipient
	thread   string
	target   string // the reply target that leads here
	anywhere bool   // no channel was named and none is ready: the first that is may have it
	language string // of the recipient, an IETF tag; empty: English or unknown
	instead  bool   // of a channel that was named and does not exist
	unasked  bool   // no person waits for it, though it is a reply
	asker    string // the account that asked for it, whose person's quiet hours do not hold it
	held     bool   // it was held, and is to be sent now
	group    bool   // it is a group, the owner's home
}

// defaultPlace is a channel as a reply target, in place of a conversation.
const defaultPlace = "#"

// resolve is the place of a reply target; nil if it doesn't exist. For one of a person
// who was revoked it returns errRevoked.
func (r *MessageRouter) resolve(tx journal.Reader, target string) (*place, error) {
	dir := r.directory.Current()
	if id, isChannel := strings.CutPrefix(target, defaultPlace); isChannel {
		return r.recipient(tx, dir.Channel(id))
	}
	conversation, err := tx.ConversationByHandle(target)
	if err == nil && conversation == nil {
		err = gone(tx, target)
	}
	if err != nil || conversation == nil {
		return nil, err
	}
	c := dir.Channel(conversation.Channel)
	if c == nil {
		return nil, nil
	}
	return &place{channel: c, address: conversation.Address, thread: conversation.Thread, target: target}, nil
}

// recipient is the default recipient of a channel: the owner's conversation if one is
// known and no group but the household's; otherwise the channel decides. Nil: there is no
// channel.
func (r *MessageRouter) recipient(tx journal.Reader, c *directory.Channel) (*place, error) {
	if c == nil {
		return nil, nil
	}
	o, err := r.people.OwnerOn(tx, c)
	if err != nil {
		return nil, err
	}
	to := &place{channel: c, address: o.Conversation, thread: o.Thread, language: o.Language, target: defaultPlace + c.ID}
	home, err := tx.ConversationByAddress(c.ID, o.Conversation, o.Thread)
	if err != nil || home == nil || !home.Group {
		return to, err
	}
	household, err := r.isHousehold(tx, home)
	to.group = true
	to.leaveGroup(!household)
	return to, err
}

// leaveGroup lets the channel find the owner if a text must not go to a group.
func (p *place) leaveGroup(must bool) {
	if must && p.group {
		p.address, p.thread = "", ""
	}
}
