package router

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
)

// linkLife is how long a code of /link is valid.
const linkLife = 10 * time.Minute

// link is a code of /link. A key with the account holds it: each has one at most.
type link struct {
	Account   string `json:"account"`
	Code      string `json:"code"`
	ExpiresAt int64  `json:"expires_at"` // Unix microseconds
}

func linkKey(account string) string { return "link/" + account }

// link answers /link. Without a code it gives one; with one it asks, and then joins the
// account in which the code is typed to the person who got it.
func (r *MessageRouter) link(tx *bus.Tx, q request, rest string) (string, error) {
	if q.conversation.Group {
		return q.say("Others can read this group. Write /link to me in a private chat."), nil
	}
	code, sure, _ := strings.Cut(strings.ToUpper(rest), " ")
	switch code {
	case "":
		l := link{Account: q.account.ID, Code: rand.Text()[:codeLength], ExpiresAt: tx.Now + linkLife.Microseconds()}
		return q.say("To use one more account as yourself, write this to me there within ten minutes:\n\n/link %s", l.Code),
			save(tx, linkKey(l.Account), l)
	case "OFF":
		if len(q.person.Accounts) < 2 || q.here.channel.Local {
			return q.say("This account isn't linked to another one."), nil
		}
		return q.say("This account is no longer linked to your other ones."), r.unlink(tx, q.account)
	}
	all, err := journal.All[link](tx, contract.KernelSource, linkKey(""))
	i := slices.IndexFunc(all, func(l link) bool { return l.Code == code && l.ExpiresAt >= tx.Now })
	if i < 0 {
		return q.say("The code %s is unknown or has expired. To get a new one, write /link to me in your other account.",
			code), err
	}
	with, err := people.ByID(tx, all[i].Account)
	if err != nil || with == nil {
		return q.say("The account that this code was for is no longer connected."), err
	}
	to, err := with.Of(tx)
	channel := r.channelName(with.Channel)
	switch {
	case err != nil:
		return "", err
	case to.ID == q.person.ID:
		return q.say("These accounts are linked already."), nil
	case !to.May(cmp.Or(q.person.Role, people.RoleMember)):
		return q.say("You may do more here than there. Write /link here, and the code there."), nil
	case sure != "YES":
		return q.say("Is the account %s on %s yours, too? Then both see your private memories and reminders. "+
			"To link them: /link %s yes", cmp.Or(with.Name, with.UserID), channel, code), nil
	}
	err = errors.Join(people.Join(tx, q.person, to), tx.KVDelete(contract.KernelSource, linkKey(with.ID)),
		r.noteChange(tx, q.account, "linked"))
	if err != nil {
		return "", err
	}
	told := contract.ChannelSend{Kind: contract.SendReply, Text: words.Say(with.Language,
		"Your account %s on %s is linked to this one. To undo that: /link off",
		cmp.Or(q.account.Name, q.account.UserID), q.here.channel.Name)}
	if c := r.directory.Current().Channel(with.Channel); c != nil {
		at := &place{channel: c, address: with.Conversation, thread: with.Thread, language: with.Language}
		err = r.send(tx, at, told)
	}
	return q.say("This account is linked to yours on %s. To undo that: /link off", channel), err
}

func (r *MessageRouter) channelName(id string) string {
	if c := r.directory.Current().Channel(id); c != nil {
		return c.Name
	}
	return id
}

// noteChange publishes what has become of an account, so that it can be looked up later.
func (r *MessageRouter) noteChange(tx *bus.Tx, a *people.Account, change string) error {
	a, err := people.ByID(tx, a.ID)
	if err == nil && a != nil {
		_, err = tx.Emit(contract.TopicPersonChanged, "",
			contract.PersonChanged{Account: a.ID, Person: cmp.Or(a.Person, a.ID), Change: change})
	}
	return err
}

func (r *MessageRouter) unlink(tx *bus.Tx, a *people.Account) error {
	return errors.Join(people.Split(tx, a), r.noteChange(tx, a, "unlinked"))
}

// Unlink makes an account of a person one of its own, and returns the new person.
func (r *MessageRouter) Unlink(tx *bus.Tx, account string) (*people.Person, error) {
	a, err := people.ByID(tx, account)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return nil, fmt.Errorf("%w: there is no account %q", contract.ErrNotFound, account)
	}
	p, err := a.Of(tx)
	if err != nil || len(p.Accounts) < 2 && p.ID != people.Owner {
		return p, err
	}
	if p.ID == people.Owner && len(p.Accounts) == 1 {
		return nil, fmt.Errorf("%w: it is the owner's only account", contract.ErrInvalid)
	}
	if err := r.unlink(tx, a); err != nil {
		return nil, err
	}
	return a.Of(tx)
}

// SetRole gives a person a role. It ends what runs and waits for one who is blocked.
func (r *MessageRouter) SetRole(tx *bus.Tx, person, role string) (*people.Person, error) {
	p, err := people.Known(tx, person)
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(people.Roles, role):
		return nil, fmt.Errorf("%w: there is no role %q; there are: %s", contract.ErrInvalid, role,
			strings.Join(people.Roles, ", "))
	case p.ID == people.Owner:
		return nil, fmt.Errorf("%w: the owner stays the owner; unlink accounts that are another person's",
			contract.ErrInvalid)
	}
	p.Role = role
	err = people.Change(tx, p)
	all, errOf := p.Stored(tx)
	for _, a := range all {
		if role == people.RoleBlocked && err == nil {
			err = r.endAccount(tx, a, false, &adminv1.RevokeResponse{})
		}
		err = errors.Join(err, r.noteChange(tx, a, role))
	}
	return p, errors.Join(err, errOf)
}

// RemovePerson revokes all accounts of a person, and has what is the person's own
// deleted.
func (r *MessageRouter) RemovePerson(tx *bus.Tx, person string) (*adminv1.RevokeResponse, error) {
	p, err := people.Known(tx, person)
	if err != nil {
		return nil, err
	}
	if p.ID == people.Owner {
		return nil, fmt.Errorf("%w: the owner can't be removed; unlink accounts that are another person's",
			contract.ErrInvalid)
	}
	ended := &adminv1.RevokeResponse{}
	all, err := p.Stored(tx)
	for _, a := range all {
		err = errors.Join(err, r.endAccount(tx, a, true, ended), people.Delete(tx, a))
		ended.Events = append(ended.Events, ended.GetEvent())
	}
	return ended, err
}

// forGuests reports whether a guest may use a command.
func forGuests(dir *directory.Snapshot, name string) bool {
	if c := dir.Command(name); c != nil {
		t := dir.CommandTool(c)
		return t != nil && t.Tool.GetReadOnly()
	}
	return !slices.Contains([]string{"agent", "approve", "deny"}, name)
}
