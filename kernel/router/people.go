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

// Person is a person on a channel.
type Person struct {
	Channel      string `json:"channel"`
	UserID       string `json:"user_id"`
	Name         string `json:"name,omitempty"`
	Owner        bool   `json:"owner,omitempty"`
	Conversation string `json:"conversation,omitempty"` // where notices to the owner go
	Thread       string `json:"thread,omitempty"`
	Language     string `json:"language,omitempty"`    // an IETF tag; empty: English
	ApprovedAt   int64  `json:"approved_at,omitempty"` // Unix microseconds
}

// Pairing is a person whose code waits for approval.
type Pairing struct {
	Person
	Code      string `json:"code"`
	ExpiresAt int64  `json:"expires_at"` // Unix microseconds
	Shown     int    `json:"shown"`      // how often the person got the code
}

func personKey(channel, user string) string  { return "person/" + channel + "/" + user }
func pairingKey(channel, user string) string { return "pairing/" + channel + "/" + user }
func ownerKey(channel string) string         { return "owner/" + channel }

func load[T any](tx journal.Reader, key string) (*T, error) {
	return journal.Load[T](tx, contract.KernelSource, key)
}

func save(tx journal.Tx, key string, v any) error {
	return journal.Save(tx, contract.KernelSource, key, v)
}

// ownerOn is the owner on a channel: the first person approved there, or the first
// that the configuration admits by name, while they are admitted. Without one, the
// user is empty.
func ownerOn(tx journal.Reader, c *directory.Channel) (Person, error) {
	o, err := load[Person](tx, ownerKey(c.ID))
	if err != nil {
		return Person{}, err
	}
	if o != nil {
		if ok, err := admitted(tx, c, o.UserID); ok || err != nil || c.Local {
			return *o, err
		}
	}
	for _, id := range c.AllowFrom {
		if id != "*" {
			return Person{Channel: c.ID, UserID: id, Owner: true}, nil
		}
	}
	return Person{Channel: c.ID}, nil
}

// admitted reports whether a person may talk to the assistant.
func admitted(tx journal.Reader, c *directory.Channel, user string) (bool, error) {
	if slices.Contains(c.AllowFrom, user) || slices.Contains(c.AllowFrom, "*") {
		return true, nil
	}
	p, err := load[Person](tx, personKey(c.ID, user))
	return p != nil, err
}

// noteOwner stores an owner's language and, of an owner whom the configuration admits
// by name, the private conversation: notices go there. Whoever writes on a local channel
// is the owner there.
func noteOwner(tx *bus.Tx, o Person, c *directory.Channel, m contract.UserMessage) error {
	if c.Local && o.Language != m.Language {
		return save(tx, ownerKey(c.ID), Person{Channel: c.ID, Language: m.Language})
	}
	if m.Group || o.UserID == "" || o.UserID != m.UserID || o.Conversation != "" && o.Language == m.Language {
		return nil
	}
	if o.Language = m.Language; o.Conversation == "" {
		o.Name, o.Conversation, o.Thread, o.ApprovedAt = m.UserName, m.ConversationID, m.ThreadID, tx.Now
	}
	return save(tx, ownerKey(c.ID), o)
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
	p.Person = Person{
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
	_, waiting, err := People(tx, time.UnixMicro(tx.Now))
	for _, p := range waiting {
		if channel == "" || channel == p.Channel {
			cleared++
			err = errors.Join(err, tx.KVDelete(contract.KernelSource, pairingKey(p.Channel, p.UserID)))
		}
	}
	return cleared, err
}

// Approve admits the person who got the code. The first one on a channel is its
// owner, unless the configuration admits a person there by name.
func (r *MessageRouter) Approve(tx *bus.Tx, code string) (*Person, error) {
	_, waiting, err := People(tx, time.UnixMicro(tx.Now))
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
	owner, err := ownerOn(tx, c)
	if err != nil {
		return nil, err
	}
	person := p.Person
	person.Owner, person.ApprovedAt = owner.UserID == "" || owner.UserID == p.UserID, tx.Now
	if person.Owner {
		err = save(tx, ownerKey(p.Channel), person)
	}
	greeting := contract.ChannelSend{
		Text: words.Say(p.Language, "You are connected. Write to me whenever you like."), Kind: contract.SendReply,
	}
	return &person, errors.Join(err, save(tx, personKey(p.Channel, p.UserID), person),
		tx.KVDelete(contract.KernelSource, pairingKey(p.Channel, p.UserID)),
		r.send(tx, &place{channel: c, address: p.Conversation, thread: p.Thread, language: p.Language}, greeting))
}

// PersonNamed returns the admitted person of a name, whose private conversation is
// known, on a channel or, without one, on any. The error says who there is.
func (r *MessageRouter) PersonNamed(tx journal.Reader, name, channel string) (*Person, error) {
	all, _, err := People(tx, time.Time{})
	owners, errOwners := journal.All[Person](tx, contract.KernelSource, ownerKey(""))
	for _, o := range owners { // those of config.yaml are stored nowhere else
		same := func(p Person) bool { return p.Channel == o.Channel && p.UserID == o.UserID }
		if !slices.ContainsFunc(all, same) {
			all = append(all, o)
		}
	}
	var found []Person
	var known []string
	for _, p := range all {
		if c := r.directory.Current().Channel(p.Channel); c == nil || p.Conversation == "" || p.Name == "" {
			continue
		}
		known = append(known, fmt.Sprintf("%s (%s)", p.Name, p.Channel))
		first, _, _ := strings.Cut(p.Name, " ")
		if (strings.EqualFold(p.Name, name) || strings.EqualFold(first, name)) && cmp.Or(channel, p.Channel) == p.Channel {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		err = errors.Join(err, fmt.Errorf("%w: %d people are named %q; there are: %s", contract.ErrNotFound,
			len(found), name, strings.Join(known, ", ")))
	}
	return &append(found, Person{})[0], errors.Join(err, errOwners)
}

// People lists the people who are approved, and the codes that wait for approval.
func People(tx journal.Reader, now time.Time) (approved []Person, waiting []Pairing, err error) {
	approved, err = journal.All[Person](tx, contract.KernelSource, "person/")
	if err == nil {
		waiting, err = journal.All[Pairing](tx, contract.KernelSource, "pairing/")
	}
	return approved, slices.DeleteFunc(waiting, func(p Pairing) bool { return p.ExpiresAt < now.UnixMicro() }), err
}
