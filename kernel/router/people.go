package router

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Limits of pairing. A code has 40 bits, so it can't be guessed within these limits,
// and approving needs the command line.
const (
	codeLife       = time.Hour
	codesPerHour   = 3  // for one person
	pendingPerChan = 50 // for one channel
	codeLetters    = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	codeLength     = 8
)

// Person is a person who was approved on a channel.
type Person struct {
	Channel      string `json:"channel"`
	UserID       string `json:"user_id"`
	Name         string `json:"name,omitempty"`
	Owner        bool   `json:"owner,omitempty"`
	Conversation string `json:"conversation,omitempty"` // where notices to the owner go
	Thread       string `json:"thread,omitempty"`
	ApprovedAt   int64  `json:"approved_at"` // Unix microseconds
}

// Pairing is a code that waits for approval.
type Pairing struct {
	Code         string  `json:"code"`
	Channel      string  `json:"channel"`
	UserID       string  `json:"user_id"`
	Name         string  `json:"name,omitempty"`
	Conversation string  `json:"conversation"`
	Thread       string  `json:"thread,omitempty"`
	ExpiresAt    int64   `json:"expires_at"`      // Unix microseconds
	Asked        []int64 `json:"asked,omitempty"` // when codes were given in the last hour
}

func personKey(channel, user string) string  { return "person/" + channel + "/" + user }
func pairingKey(channel, user string) string { return "pairing/" + channel + "/" + user }
func ownerKey(channel string) string         { return "owner/" + channel }

func load[T any](tx journal.Reader, key string) (v *T, err error) {
	stored, err := tx.KVGet(contract.KernelSource, key)
	if err != nil || stored.Version == 0 {
		return nil, err
	}
	v = new(T)
	return v, json.Unmarshal(stored.Value, v)
}

func save(tx journal.Tx, key string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = tx.KVPut(contract.KernelSource, key, b)
	return err
}

func loadAll[T any](tx journal.Reader, prefix string) (all []T, err error) {
	stored, err := tx.KVScan(contract.KernelSource, prefix, "", 10_000)
	if err != nil {
		return nil, err
	}
	for _, s := range stored {
		var v T
		if err := json.Unmarshal(s.Value, &v); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Key, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// ownerOn is the owner on a channel: the first person approved there, or the
// first that the configuration admits by name, as long as they are admitted.
// Without one, everything in it is empty.
func ownerOn(tx journal.Reader, c *directory.Channel) (Person, error) {
	o, err := load[Person](tx, ownerKey(c.ID))
	if err != nil {
		return Person{}, err
	}
	if o != nil {
		if ok, err := admitted(tx, c, o.UserID); ok || err != nil {
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

// admitted says whether a person may talk to the assistant.
func admitted(tx journal.Reader, c *directory.Channel, user string) (bool, error) {
	if slices.Contains(c.AllowFrom, user) || slices.Contains(c.AllowFrom, "*") {
		return true, nil
	}
	p, err := load[Person](tx, personKey(c.ID, user))
	return p != nil, err
}

// noteOwner stores the private conversation of an owner whom the configuration admits
// by name: notices go there.
func noteOwner(tx *bus.Tx, c *directory.Channel, m contract.UserMessage) error {
	if m.Group {
		return nil
	}
	o, err := ownerOn(tx, c)
	if err != nil || o.UserID == "" || o.UserID != m.UserID || o.Conversation != "" {
		return err
	}
	o.Name, o.Conversation, o.Thread, o.ApprovedAt = m.UserName, m.ConversationID, m.ThreadID, tx.Now
	return save(tx, ownerKey(c.ID), o)
}

// greetStranger offers a pairing code in a private chat, within limits, and doesn't
// answer otherwise.
func (r *MessageRouter) greetStranger(tx *bus.Tx, c *directory.Channel, m contract.UserMessage) error {
	if m.Group || m.UserID == "" {
		return nil
	}
	key := pairingKey(c.ID, m.UserID)
	p, err := load[Pairing](tx, key)
	if err != nil {
		return err
	}
	hourAgo := tx.Now - time.Hour.Microseconds()
	if p == nil {
		if n, err := forgetPairings(tx, c.ID, hourAgo); err != nil || n >= pendingPerChan {
			return err
		}
		p = &Pairing{Channel: c.ID, UserID: m.UserID}
	}
	p.Asked = slices.DeleteFunc(p.Asked, func(at int64) bool { return at < hourAgo })
	if len(p.Asked) >= codesPerHour {
		return nil
	}
	p.Asked = append(p.Asked, tx.Now)
	p.Name, p.Conversation, p.Thread = m.UserName, m.ConversationID, m.ThreadID
	if p.Code == "" || p.ExpiresAt < tx.Now {
		if p.Code, err = newCode(); err != nil {
			return err
		}
		p.ExpiresAt = tx.Now + codeLife.Microseconds()
	}
	if err := save(tx, key, p); err != nil {
		return err
	}
	text := fmt.Sprintf("I don't know you yet. If this is your assistant, run this command on its machine within an hour:\n\n`switchboard pairing approve %s`", p.Code)
	return r.send(tx, &place{channel: c, address: m.ConversationID, thread: m.ThreadID}, contract.ChannelSend{Text: text, Kind: contract.SendReply})
}

// forgetPairings deletes expired codes of people who have not asked for another one.
// It returns how many codes are valid.
func forgetPairings(tx *bus.Tx, channel string, askedBefore int64) (valid int, err error) {
	known, err := loadAll[Pairing](tx, "pairing/"+channel+"/")
	if err != nil {
		return 0, err
	}
	for _, p := range known {
		switch {
		case p.ExpiresAt >= tx.Now:
			valid++
		case !slices.ContainsFunc(p.Asked, func(at int64) bool { return at >= askedBefore }):
			if err := tx.KVDelete(contract.KernelSource, pairingKey(channel, p.UserID)); err != nil {
				return 0, err
			}
		}
	}
	return valid, nil
}

func newCode() (string, error) {
	var code strings.Builder
	for range codeLength {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(codeLetters))))
		if err != nil {
			return "", fmt.Errorf("make a pairing code: %w", err)
		}
		code.WriteByte(codeLetters[n.Int64()])
	}
	return code.String(), nil
}

// Approve admits the person who got the code. The first one on a channel
// is its owner, unless the configuration admits somebody there by name.
func (r *MessageRouter) Approve(tx *bus.Tx, code string) (*Person, error) {
	code = strings.ToUpper(strings.TrimSpace(code))
	waiting, err := loadAll[Pairing](tx, "pairing/")
	if err != nil {
		return nil, err
	}
	for _, p := range waiting {
		if p.Code != code || p.ExpiresAt < tx.Now {
			continue
		}
		person := Person{
			Channel: p.Channel, UserID: p.UserID, Name: p.Name, Conversation: p.Conversation, Thread: p.Thread, ApprovedAt: tx.Now,
		}
		c := r.directory.Current().Channel(p.Channel)
		if c == nil {
			return nil, fmt.Errorf("%w: there is no channel %q any more", contract.ErrNotFound, p.Channel)
		}
		owner, err := ownerOn(tx, c)
		if err != nil {
			return nil, err
		}
		if person.Owner = owner.UserID == "" || owner.UserID == p.UserID; person.Owner {
			if err := save(tx, ownerKey(p.Channel), person); err != nil {
				return nil, err
			}
		}
		if err := save(tx, personKey(p.Channel, p.UserID), person); err != nil {
			return nil, err
		}
		if err := tx.KVDelete(contract.KernelSource, pairingKey(p.Channel, p.UserID)); err != nil {
			return nil, err
		}
		greeting := contract.ChannelSend{Text: "You are connected. Write to me whenever you like.", Kind: contract.SendReply}
		return &person, r.send(tx, &place{channel: c, address: p.Conversation, thread: p.Thread}, greeting)
	}
	return nil, fmt.Errorf("%w: no code %q is waiting: codes are valid for an hour, `switchboard pairing list` shows them", contract.ErrNotFound, code)
}

// Revoke withdraws the approval of a person. A channel whose owner is revoked has
// none until the next approval.
func (r *MessageRouter) Revoke(tx *bus.Tx, channel, user string) error {
	p, err := load[Person](tx, personKey(channel, user))
	if err != nil {
		return err
	}
	if p == nil {
		return fmt.Errorf("%w: %q is not approved on %s", contract.ErrNotFound, user, channel)
	}
	if owner, err := load[Person](tx, ownerKey(channel)); err != nil {
		return err
	} else if owner != nil && owner.UserID == user {
		if err := tx.KVDelete(contract.KernelSource, ownerKey(channel)); err != nil {
			return err
		}
	}
	return tx.KVDelete(contract.KernelSource, personKey(channel, user))
}

// People lists who is approved and who waits.
func People(tx journal.Reader, now time.Time) (approved []Person, waiting []Pairing, err error) {
	if approved, err = loadAll[Person](tx, "person/"); err != nil {
		return nil, nil, err
	}
	if waiting, err = loadAll[Pairing](tx, "pairing/"); err != nil {
		return nil, nil, err
	}
	return approved, slices.DeleteFunc(waiting, func(p Pairing) bool { return p.ExpiresAt < now.UnixMicro() }), nil
}
