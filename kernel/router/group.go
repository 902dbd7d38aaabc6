package router

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// Others read a group. In a group, its jobs, tasks and links, only what was said or set
// there is used, unless the owner has made it a household group.

const (
	offerText = "Others can read this group. So here I use only what is said in it, and not your memories and " +
		"reminders. To share them with everyone in this group: /household"
	keptText = "You're the only one I know on this channel, so this is now a household group: I go on using your " +
		"memories and reminders here, and everyone in this group can read them. To stop that: /household off"
	householdText = "This is a household group now: I use the household's memories and reminders here, and everyone in " +
		"this group can read them. To undo that: /household off"
	confinedText = "OK. From now on I use only what is said in this group, and I've started a new conversation here. " +
		"To undo that: /household"
)

// group returns the group of a conversation, and stores it first if it is new, or known
// from an earlier version.
func (r *MessageRouter) group(tx *bus.Tx, c *journal.Conversation, known bool) (*session.Group, error) {
	g, err := session.GroupOf(tx, c)
	if g != nil || err != nil {
		return g, err
	}
	g = &session.Group{ID: newHandle(), Channel: c.Channel, Address: c.Address, Since: tx.Now}
	if known {
		if g.Household, err = r.isHousehold(tx, c); err != nil {
			return nil, err
		}
	}
	if !g.Household {
		return g, saveGroup(tx, g)
	}
	g.Since, g.Offered = 0, true
	to, err := r.resolve(tx, c.Handle)
	if err == nil && to != nil {
		err = r.send(tx, to, contract.ChannelSend{Text: words.Say(to.language, keptText), Kind: contract.SendReply})
	}
	return g, errors.Join(err, saveGroup(tx, g))
}

func saveGroup(tx journal.Tx, g *session.Group) error {
	return save(tx, session.GroupKey(g.Channel, g.Address), g)
}

// isHousehold reports whether the group of a conversation is a household group: as it is
// stored or, in one that an earlier version knew, if only the owner is admitted on its
// channel.
func (r *MessageRouter) isHousehold(tx journal.Reader, in *journal.Conversation) (bool, error) {
	g, err := session.GroupOf(tx, in)
	if g != nil || err != nil {
		return g != nil && g.Household, err
	}
	c := r.directory.Current().Channel(in.Channel)
	if c == nil {
		return false, nil
	}
	owner, err := r.people.OwnerOn(tx, c)
	if err != nil || owner.UserID == "" {
		return false, err
	}
	approved, err := people.Accounts(tx)
	another := func(a people.Account) bool { return a.Channel == c.ID && a.UserID != owner.UserID && a.ApprovedAt != 0 }
	isOther := func(id string) bool { return id != owner.UserID }
	return !slices.ContainsFunc(approved, another) && !slices.ContainsFunc(c.AllowFrom, isOther), err
}

// meetGroup notes the name of the group in which a message was written. The first time,
// it tells the owner what is used there.
func (r *MessageRouter) meetGroup(tx *bus.Tx, q request, offer bool) error {
	g, err := r.group(tx, q.conversation, true)
	if err != nil {
		return err
	}
	offer = offer && q.owner && !g.Offered
	if !offer && (q.GroupName == "" || q.GroupName == g.Name) {
		return nil
	}
	g.Offered, g.Name = g.Offered || offer, cmp.Or(q.GroupName, g.Name)
	if err := saveGroup(tx, g); err != nil || !offer {
		return err
	}
	return r.reply(tx, q, q.say(offerText))
}

// household answers /household.
func (r *MessageRouter) household(tx *bus.Tx, q request, rest string) (string, error) {
	switch {
	case !q.conversation.Group:
		return q.say("Use /household in a group: there, I then use the household's memories and reminders."), nil
	case !q.owner:
		return q.say("Only the owner can use /household."), nil
	case rest != "" && rest != "off":
		return q.say("Usage: /household, or /household off"), nil
	}
	g, err := r.group(tx, q.conversation, true)
	if err != nil {
		return "", err
	}
	switch {
	case rest == "":
		return q.say(householdText), setHousehold(tx, g, true)
	case !g.Household:
		return q.say("I already use only what is said in this group."), nil
	}
	if _, err := r.stop(tx, q, false); err != nil {
		return "", err
	}
	return q.say(confinedText), setHousehold(tx, g, false)
}

func setHousehold(tx *bus.Tx, g *session.Group, household bool) error {
	if g.Household && !household {
		g.Since = tx.Now
	}
	g.Household, g.Offered = household, true
	return saveGroup(tx, g)
}

// SetHousehold makes a group a household group, or ends that.
func (r *MessageRouter) SetHousehold(tx *bus.Tx, id string, household bool) (*session.Group, error) {
	all, err := journal.All[session.Group](tx, contract.KernelSource, session.GroupPrefix)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(g session.Group) bool { return g.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%w: there is no group %q", contract.ErrNotFound, id)
	}
	return &all[i], setHousehold(tx, &all[i], household)
}

// principal returns whose things may be used in a conversation, for a person.
func (r *MessageRouter) principal(
	tx *bus.Tx, c *journal.Conversation, of *people.Person, account string,
) (contract.Principal, error) {
	if c.Group {
		if _, err := r.group(tx, c, true); err != nil {
			return contract.Principal{}, err
		}
	}
	return session.PrincipalIn(tx, c, of.Principal(account))
}
