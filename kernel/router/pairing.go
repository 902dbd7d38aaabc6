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
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
)

// Limits of pairing. A code has 40 bits, so it can't be guessed within these limits,
// and only the owner can approve it.
const (
	codeLife       = time.Hour
	timesShown     = 3   // a code, to its person
	pendingPerChan = 200 // for one channel
	codeLength     = 8   // letters and digits of base32
	// codeKept is how long no newer code replaces one: time to approve it.
	codeKept    = 10 * time.Minute
	longestName = 100 // characters of a stranger's name
)

// Pairing is a person whose code waits for approval.
type Pairing struct {
	people.Account
	Code      string `json:"code"`
	ExpiresAt int64  `json:"expires_at"` // Unix microseconds
	Shown     int    `json:"shown"`      // how often the person got the code
}

func pairingKey(channel, user string) string { return "pairing/" + channel + "/" + user }

func load[T any](tx journal.Reader, key string) (*T, error) {
	return journal.Load[T](tx, contract.KernelSource, key)
}

func save(tx journal.Tx, key string, v any) error {
	return journal.Save(tx, contract.KernelSource, key, v)
}

// account returns the account that a message comes from, which it stores the first time.
func (r *MessageRouter) account(tx *bus.Tx, known *people.Account, m contract.UserMessage, channel string, owns bool,
) (*people.Account, error) {
	a := people.Account{Channel: channel, UserID: m.UserID}
	if known != nil {
		a = *known
	}
	a.Name, a.Language = cmp.Or(cut(m.UserName, longestName), a.Name), m.Language
	if !m.Group && !m.Aside {
		a.Conversation, a.Thread = m.ConversationID, m.ThreadID
	}
	switch {
	case known == nil:
		return r.people.Meet(tx, a, owns)
	case a == *known:
		return known, nil
	}
	return &a, people.Put(tx, &a)
}

// noteOwner stores an owner's language and, of an owner whom the configuration admits
// by name, the private conversation: notices go there. On a local channel everyone is the
// owner.
func noteOwner(tx *bus.Tx, o people.Account, c *directory.Channel, m contract.UserMessage) error {
	if c.Local && o.Language != m.Language {
		return people.SetOwner(tx, people.Account{Channel: c.ID, Language: m.Language})
	}
	if m.Group || m.Aside || o.UserID == "" || o.UserID != m.UserID || o.Conversation != "" && o.Language == m.Language {
		return nil
	}
	if o.Language = m.Language; o.Conversation == "" {
		o.Name, o.Conversation, o.Thread, o.ApprovedAt = m.UserName, m.ConversationID, m.ThreadID, tx.Now
	}
	return people.SetOwner(tx, o)
}

// greetStranger offers a pairing code in a private chat, within limits, and doesn't
// answer otherwise. Of the message it keeps only who wrote it, and where.
func (r *MessageRouter) greetStranger(tx *bus.Tx, c *directory.Channel, m contract.UserMessage) error {
	if m.Group || m.UserID == "" || m.ConversationID == "" {
		return nil
	}
	key := pairingKey(c.ID, m.UserID)
	p, err := load[Pairing](tx, key)
	if err != nil {
		return err
	}
	if p == nil || p.ExpiresAt < tx.Now {
		if room, err := makeRoom(tx, c.ID); err != nil || !room {
			return err
		}
		p = &Pairing{Code: rand.Text()[:codeLength], ExpiresAt: tx.Now + codeLife.Microseconds()}
	}
	if p.Shown >= timesShown {
		return nil
	}
	p.Shown++
	p.Account = people.Account{
		Channel: c.ID, UserID: m.UserID, Name: cut(m.UserName, longestName), Conversation: m.ConversationID,
		Thread: m.ThreadID, Language: m.Language,
	}
	if err := save(tx, key, p); err != nil {
		return err
	}
	text := words.Say(m.Language, "I don't know you yet. If this is your assistant, approve the code %s within an hour.",
		p.Code)
	if command := directory.Hint("%s", r.directory.Current().Program.Approve, p.Code); command != "" {
		text = words.Say(m.Language, "I don't know you yet. If this is your assistant, run this command on its machine "+
			"within an hour:\n\n%s", command)
	}
	to := &place{channel: c, address: m.ConversationID, thread: m.ThreadID, language: m.Language}
	return r.send(tx, to, contract.ChannelSend{Text: text, Kind: contract.SendReply})
}

// makeRoom deletes the expired codes of a channel and, if it has as many as it may, the
// oldest one. It returns false while that is too new: a flood of strangers takes no
// code away that its person is about to have approved.
func makeRoom(tx *bus.Tx, channel string) (room bool, err error) {
	known, err := journal.All[Pairing](tx, contract.KernelSource, pairingKey(channel, ""))
	if err != nil {
		return false, err
	}
	slices.SortFunc(known, func(a, b Pairing) int { return cmp.Compare(a.ExpiresAt, b.ExpiresAt) })
	for i, p := range known {
		left := time.Duration(p.ExpiresAt-tx.Now) * time.Microsecond
		if left >= 0 && len(known)-i < pendingPerChan {
			break
		}
		if left > codeLife-codeKept {
			return false, nil
		}
		if err := tx.KVDelete(contract.KernelSource, pairingKey(channel, p.UserID)); err != nil {
			return false, err
		}
	}
	return true, nil
}

// ClearPairings deletes the codes that wait for approval on a channel, or on all of
// them without one, and returns their number.
func ClearPairings(tx *bus.Tx, channel string) (cleared int, err error) {
	waiting, err := Waiting(tx, time.UnixMicro(tx.Now))
	for _, p := range waiting {
		if channel == "" || channel == p.Channel {
			cleared++
			err = errors.Join(err, tx.KVDelete(contract.KernelSource, pairingKey(p.Channel, p.UserID)))
		}
	}
	return cleared, err
}

// Approve admits the account that got the code. With a role it is a person of its own.
// Otherwise the first one on a channel is the owner's, unless the configuration admits a
// person there by name.
func (r *MessageRouter) Approve(tx *bus.Tx, code, role string) (*people.Account, error) {
	waiting, err := Waiting(tx, time.UnixMicro(tx.Now))
	if err != nil {
		return nil, err
	}
	code = strings.ToUpper(strings.TrimSpace(code))
	i := slices.IndexFunc(waiting, func(p Pairing) bool { return p.Code == code })
	if i < 0 {
		return nil, fmt.Errorf("%w: the code %q is unknown or expired: codes are valid for an hour",
			contract.ErrNotFound, code)
	}
	p := waiting[i]
	c := r.directory.Current().Channel(p.Channel)
	if c == nil {
		return nil, fmt.Errorf("%w: the channel %q no longer exists", contract.ErrNotFound, p.Channel)
	}
	owner, err := r.people.OwnerOn(tx, c)
	if err != nil {
		return nil, err
	}
	p.ApprovedAt = tx.Now
	owns := role == "" && (owner.UserID == "" || owner.UserID == p.UserID)
	if owns {
		err = people.SetOwner(tx, p.Account)
	}
	a, errMet := r.people.Meet(tx, p.Account, owns)
	if role != "" && errMet == nil {
		_, errMet = r.SetRole(tx, a.ID, role)
	}
	_, errOf := r.conversation(tx, c.ID, p.Conversation, p.Thread, false)
	greeting := contract.ChannelSend{
		Text: words.Say(p.Language, "You are connected. Write to me whenever you like."), Kind: contract.SendReply,
	}
	return a, errors.Join(err, errMet, errOf, tx.KVDelete(contract.KernelSource, pairingKey(p.Channel, p.UserID)),
		r.send(tx, &place{channel: c, address: p.Conversation, thread: p.Thread, language: p.Language}, greeting))
}

// Admit approves an account of a person without a code. It counts as approved before the
// person's other accounts, so it doesn't become where the person is reached.
func (r *MessageRouter) Admit(tx *bus.Tx, a people.Account, person string) (*people.Account, error) {
	to, err := people.Known(tx, person)
	if err != nil {
		return nil, err
	}
	if r.directory.Current().Channel(a.Channel) == nil {
		return nil, fmt.Errorf("%w: there is no channel %q", contract.ErrNotFound, a.Channel)
	}
	known, of, err := r.people.Find(tx, a.Channel, a.UserID)
	if err != nil || known != nil && of.ID == to.ID {
		return known, err
	}
	others, err := to.Stored(tx)
	a.ApprovedAt = tx.Now
	for _, other := range others {
		if other.ApprovedAt != 0 {
			a.ApprovedAt = min(a.ApprovedAt, other.ApprovedAt-1)
		}
	}
	owns := to.ID == people.Owner
	if owns && err == nil {
		err = people.SetOwner(tx, a)
	}
	met, errMet := r.people.Meet(tx, a, owns)
	if err := errors.Join(err, errMet); err != nil {
		return nil, err
	}
	if !owns {
		from, err := met.Of(tx)
		if err = errors.Join(err, people.Join(tx, from, to)); err != nil {
			return nil, err
		}
	}
	_, err = r.conversation(tx, a.Channel, a.Conversation, "", false)
	met, errNow := people.ByID(tx, met.ID)
	return met, errors.Join(err, errNow, r.noteChange(tx, met, "admitted"))
}

// Named returns where a private message for the person of a name goes: on a channel or,
// without one, where they chose, else on the account that was approved last. Without a name
// it is the person for whom something is done, or the channel as such if no person is on
// it; @ is before an account's id. The error says who there is, but not in a group that
// others read.
func (r *MessageRouter) Named(tx journal.Reader, of contract.Principal, name, channel string,
) (to contract.Recipient, err error) {
	if of.Confined {
		return to, errors.New("others read this group, so no messages to people are sent from here")
	}
	to.From = of.Extension
	all, err := people.Accounts(tx)
	found := map[string]people.Account{} // by person
	var known []string
	c := r.directory.Current().Channel(channel)
	private := name != "" || c != nil && c.Local // else the channel may have no persons
	for _, a := range all {
		p, errOf := a.Of(tx)
		err = errors.Join(err, errOf)
		if a.ID == of.Person {
			to.From = a.Name
		}
		private = private || a.Channel == channel
		called := cmp.Or(p.Name, a.Name, a.UserID)
		first, _, _ := strings.Cut(called, " ")
		if c := r.directory.Current().Channel(a.Channel); c == nil || a.Conversation == "" || p.Role == people.RoleBlocked {
			continue
		}
		known = append(known, fmt.Sprintf("%s (%s)", called, a.Channel))
		best := found[p.ID]
		better := best.ID == "" || a.ID == p.Home || best.ID != p.Home && a.ApprovedAt > best.ApprovedAt
		id, isID := strings.CutPrefix(name, "@")
		meant := strings.EqualFold(called, name) || strings.EqualFold(first, name) ||
			name == "" && slices.Contains(of.Accounts, a.ID) || isID && slices.Contains(p.Principal("").Accounts, id)
		if better && meant && cmp.Or(channel, a.Channel) == a.Channel {
			found[p.ID], to.Name, to.Accounts, to.Quiet = a, called, p.Principal("").Accounts, p.Quiet
		}
	}
	if !private {
		return contract.Recipient{ChannelID: channel}, err
	}
	if len(found) != 1 {
		return to, errors.Join(err, fmt.Errorf("%w: %d people are named %q; there are: %s", contract.ErrNotFound,
			len(found), name, strings.Join(known, ", ")))
	}
	for _, a := range found {
		to.ChannelID, to.Language, to.Timezone = a.Channel, a.Language, a.Timezone
		to.From = cmp.Or(to.From, words.Say(a.Language, "the owner"))
		to.Text = words.Sprintf("%s on %s (private)", to.Name, r.channelName(a.Channel))
		c, errOf := tx.ConversationByAddress(a.Channel, a.Conversation, a.Thread)
		if err = errors.Join(err, errOf); c != nil {
			to.ReplyTo = c.Handle
		} else if err == nil {
			err = fmt.Errorf("%w: %s has not written to me yet", contract.ErrUnavailable, to.Name)
		}
	}
	return to, err
}

// Waiting lists the codes that wait for approval.
func Waiting(tx journal.Reader, now time.Time) ([]Pairing, error) {
	all, err := journal.All[Pairing](tx, contract.KernelSource, "pairing/")
	return slices.DeleteFunc(all, func(p Pairing) bool { return p.ExpiresAt < now.UnixMicro() }), err
}
