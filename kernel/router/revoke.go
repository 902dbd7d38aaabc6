package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// Revoke withdraws the approval of a person, and ends what runs and waits for them, in
// one commit. Their private conversations get new handles, so whatever still holds an
// old one reaches no one, also after a new approval. A channel whose owner is revoked
// has none until the next approval. It returns what the kernel has ended; extensions end
// what they keep when they get the event.
func (r *MessageRouter) Revoke(tx *bus.Tx, channel, user string) (*adminv1.RevokeResponse, error) {
	a, err := r.people.Account(tx, channel, user)
	if err != nil {
		return nil, err
	}
	if a == nil || a.ApprovedAt == 0 {
		return nil, fmt.Errorf("%w: %q is not approved on %s", contract.ErrNotFound, user, channel)
	}
	ended := &adminv1.RevokeResponse{}
	return ended, errors.Join(r.endAccount(tx, a, false, ended), people.Delete(tx, a))
}

// endAccount ends what runs and waits for an account, and counts it; removed: and deletes
// what is its own.
func (r *MessageRouter) endAccount(tx *bus.Tx, a *people.Account, removed bool, ended *adminv1.RevokeResponse) error {
	v := &revocation{
		MessageRouter: r, tx: tx, account: *a, conversations: map[string]*journal.Conversation{}, sessions: map[int64]bool{},
		ended: ended,
	}
	for _, step := range []func() error{v.find, v.endQuestions, v.endHeld, v.endWaiting, v.close} {
		if err := step(); err != nil {
			return err
		}
	}
	e, err := tx.Emit(contract.TopicPersonRevoked, "", v.event(removed))
	ended.Event = e.GetId()
	for _, id := range slices.Sorted(maps.Keys(v.sessions)) {
		if err == nil && removed {
			err = r.sessions.Delete(tx, journal.SessionID(id))
		}
	}
	return err
}

type revocation struct {
	*MessageRouter
	tx            *bus.Tx
	account       people.Account
	conversations map[string]*journal.Conversation // private ones, by handle
	sessions      map[int64]bool                   // of these conversations, and those made within them
	ended         *adminv1.RevokeResponse
}

// find finds the person's private conversations and their sessions.
func (v *revocation) find() error {
	all, err := v.tx.Sessions(journal.SessionFilter{Limit: math.MaxInt32})
	if err != nil {
		return err
	}
	places := []string{v.account.Conversation, v.account.UserID}
	for _, s := range all {
		c, err := v.tx.Conversation(s.Conversation)
		if err != nil {
			return err
		}
		if c != nil && !c.Group && c.Channel == v.account.Channel && slices.Contains(places, c.Address) {
			v.conversations[c.Handle], v.sessions[s.ID] = c, true
		}
	}
	for n := -1; n != len(v.sessions); {
		n = len(v.sessions)
		for _, s := range all {
			if v.sessions[s.Within] {
				v.sessions[s.ID] = true
			}
		}
	}
	return nil
}

// endWaiting ends the turns, the inputs and the commands of the person, and the texts
// that wait to be sent to them.
func (v *revocation) endWaiting() error {
	subscriptions, err := v.tx.Subscriptions()
	if err != nil {
		return err
	}
	unsettled := []journal.DeliveryState{journal.Pending, journal.InFlight}
	seen := map[string]bool{} // keys of sessions
	for _, s := range subscriptions {
		waiting, err := v.tx.Deliveries(journal.DeliveryFilter{Subscription: s.ID, States: unsettled, Limit: math.MaxInt32})
		if err != nil {
			return err
		}
		for _, d := range waiting {
			switch {
			case strings.HasPrefix(s.Pattern, contract.TopicAgentInput) && !seen[d.Key]:
				seen[d.Key] = true
				err = v.endInputs(journal.ParseSessionID(d.Key))
			case s.Pattern == contract.TopicChannelSend+v.account.Channel:
				err = v.endDelivery(d, func(e *busv1.Event) bool { return v.unsent(payloadOf[contract.ChannelSend](e)) })
			case strings.HasPrefix(s.Pattern, contract.TopicCommand):
				err = v.endDelivery(d, v.caused)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// endHeld drops the texts that are held for the person.
func (v *revocation) endHeld() error {
	all, err := journal.All[held](v.tx, contract.KernelSource, heldPrefix)
	for _, h := range all {
		if err == nil && h.Channel == v.account.Channel && v.unsent(h.Send) {
			err = v.tx.KVDelete(contract.KernelSource, h.key())
		}
	}
	return err
}

// endInputs ends what runs and waits in a session because of the person.
func (v *revocation) endInputs(id int64) error {
	s, err := v.tx.Session(id)
	if err != nil || s == nil {
		return err
	}
	ended, err := v.MessageRouter.sessions.CancelInputs(v.tx, s, v.caused)
	switch {
	case isJob(s):
		v.ended.Jobs += int32(ended)
	case session.WorksFor(s) == 0 && s.OutboundKind != directory.OutboundExtension: // otherwise its maker counts it
		v.ended.Turns += int32(ended)
	}
	return err
}

func (v *revocation) endDelivery(d journal.Delivery, ends func(*busv1.Event) bool) error {
	e, err := v.tx.Event(d.Seq)
	if err != nil || e == nil || !ends(e) {
		return err
	}
	return v.tx.Settle(d, journal.Done, errRevoked.Error())
}

// unsent reports whether a text is for the person. A draft of theirs is still removed.
func (v *revocation) unsent(m contract.ChannelSend) bool {
	private := m.Conversation == "" && m.Owner == v.account.UserID
	for _, c := range v.conversations {
		private = private || c.Address == m.Conversation
	}
	if !private || m.RemovesDraft() {
		return false
	}
	v.ended.Sends++
	return true
}

// caused reports whether an input or a command is due to the person: it is for them,
// answers in a conversation of theirs, or follows from a message that they wrote.
func (v *revocation) caused(e *busv1.Event) bool {
	in := session.InputOf(e)
	if v.sessions[journal.ParseSessionID(e.GetKey())] || v.conversations[in.ReplyTo] != nil || in.Person == v.account.ID {
		return true
	}
	root, err := v.tx.Event(journal.ParseEventID(e.GetCorrelationId()))
	return err == nil && root.GetTopic() == contract.TopicUserMessage && root.GetSource() == v.account.Channel &&
		payloadOf[contract.UserMessage](root).UserID == v.account.UserID
}

func payloadOf[T any](e *busv1.Event) (v T) {
	_ = json.Unmarshal(e.GetPayload(), &v) // the kernel has routed it
	return v
}

func (v *revocation) endQuestions() error {
	open, over, err := v.questions.Open(v.tx, v.tx.Now)
	for _, q := range slices.Concat(open, over) {
		if err == nil && v.conversations[q.Handle] != nil {
			v.ended.Questions++
			_, _, err = v.questions.End(v.tx, q.ID, contract.AskWithdrawn, "", "")
		}
	}
	return err
}

// close gives the conversations new handles, and their sessions no outbound: what is
// queued in such a session, or in one made within it, ends at once.
func (v *revocation) close() error {
	for _, old := range slices.Sorted(maps.Keys(v.conversations)) {
		c := v.conversations[old]
		c.Handle, c.Agent, c.Model = newHandle(), "", ""
		c.Epoch++
		if err := errors.Join(v.tx.PutConversation(c), save(v.tx, revokedKey(old), v.account)); err != nil {
			return err
		}
	}
	for id := range v.sessions {
		s, err := v.tx.Session(id)
		if err != nil {
			return err
		}
		if s.Conversation != 0 {
			s.OutboundKind, s.OutboundTarget = directory.OutboundNowhere, ""
			err = v.tx.PutSession(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *revocation) event(removed bool) contract.PersonRevoked {
	e := contract.PersonRevoked{
		Person: v.account.ID, Removed: removed, Conversations: slices.Sorted(maps.Keys(v.conversations)),
	}
	for _, id := range slices.Sorted(maps.Keys(v.sessions)) {
		e.Sessions = append(e.Sessions, journal.SessionID(id))
	}
	return e
}

// errRevoked is why an event does not reach the conversation that it names.
var errRevoked = errors.New("the person it is for was revoked")

func revokedKey(handle string) string { return "revoked/" + handle }

// gone returns errRevoked for a handle that a revocation has replaced.
func gone(tx journal.Reader, handle string) error {
	known, err := tx.KVGet(contract.KernelSource, revokedKey(handle))
	if err == nil && known.Version != 0 {
		err = errRevoked
	}
	return err
}
