// Package people knows who may talk to the assistant. A person has accounts on channels:
// pairing admits an account, and /link joins it to the person of another one, which can
// be undone, because an account keeps its id and what was set up from it.
//
// All of it is in the kernel's key-value store, and changes in the commit that it
// belongs to.
package people

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Roles of people.
const (
	RoleOwner   = "owner"   // may also change what concerns everyone
	RoleMember  = "member"  // uses what is the household's
	RoleGuest   = "guest"   // may only chat: no tools with effects, nothing of the household's
	RoleBlocked = "blocked" // is not answered
)

// Roles lists the roles, the highest one first.
var Roles = []string{RoleOwner, RoleMember, RoleGuest, RoleBlocked}

// Owner is the id of the person whose accounts are the owners of channels. It is also
// the account of what the kernel does for no one else.
const Owner = contract.Owner

// Account is a user of a channel.
type Account struct {
	ID           string `json:"id"` // opaque; it never changes
	Channel      string `json:"channel"`
	UserID       string `json:"user_id"`
	Name         string `json:"name,omitempty"`
	Conversation string `json:"conversation,omitempty"` // the private one; of an owner: where notices go
	Thread       string `json:"thread,omitempty"`
	Language     string `json:"language,omitempty"`    // an IETF tag; empty: English
	ApprovedAt   int64  `json:"approved_at,omitempty"` // Unix microseconds; 0: the configuration admits it
	Timezone     string `json:"timezone,omitempty"`    // of the person
	// Person is the id of the stored person. Empty: a member with this account alone, for
	// whom nothing is set.
	Person string `json:"person,omitempty"`
}

// Person is someone who talks to the assistant.
type Person struct {
	ID       string   `json:"id"` // that of the first account, or Owner
	Name     string   `json:"name,omitempty"`
	Role     string   `json:"role,omitempty"` // empty: a member
	Accounts []string `json:"accounts,omitempty"`
	Timezone string   `json:"timezone,omitempty"` // an IANA name; empty: the configured one
	Quiet    string   `json:"quiet,omitempty"`    // HH:MM-HH:MM; empty: none
	Home     string   `json:"home,omitempty"`     // the account that gets what names no conversation
}

// May reports whether the person's role is the given one or a higher one.
func (p *Person) May(role string) bool {
	return slices.Index(Roles, cmp.Or(p.Role, RoleMember)) <= slices.Index(Roles, role)
}

// Principal returns for whom something is done in a private conversation of an account.
func (p *Person) Principal(account string) contract.Principal {
	of := contract.Principal{
		Person: cmp.Or(account, p.ID), Own: true, Accounts: slices.Clone(p.Accounts), Confined: !p.May(RoleMember),
	}
	if p.ID == Owner {
		of.Accounts = append(of.Accounts, Owner)
	}
	return of
}

// IsAlone reports whether all accounts are the owner's.
func IsAlone(r journal.Reader) (bool, error) {
	p, err := owner(r)
	if err != nil {
		return false, err
	}
	known, err := r.KVScan(contract.KernelSource, accountKey(""), "", len(p.Accounts)+1)
	return len(known) <= len(p.Accounts), err
}

func accountKey(id string) string    { return "account/" + id }
func personKey(id string) string     { return "people/" + id }
func ownerKey(channel string) string { return "owner/" + channel }
func load[T any](r journal.Reader, key string) (*T, error) {
	return journal.Load[T](r, contract.KernelSource, key)
}

func save(tx journal.Tx, key string, v any) error {
	return journal.Save(tx, contract.KernelSource, key, v)
}

// Store finds the accounts of users. It is safe for concurrent use.
type Store struct {
	salt atomic.Value // of a string; see saltKey
}

// saltKey holds what keeps the ids of accounts from being computed from their users.
const saltKey = "salt"

// ID returns the opaque id of an account, which never changes.
func (s *Store) ID(tx journal.Tx, channel, user string) (string, error) {
	id, err := s.id(tx, channel, user)
	if id != "" || err != nil {
		return id, err
	}
	salt := rand.Text() // not cached: the commit may fail
	return hash(salt, channel, user), save(tx, saltKey, salt)
}

// id is ID; empty: there are no accounts yet.
func (s *Store) id(r journal.Reader, channel, user string) (string, error) {
	salt, cached := s.salt.Load().(string)
	if !cached {
		stored, err := load[string](r, saltKey)
		if stored == nil || err != nil {
			return "", err
		}
		salt = *stored
		s.salt.Store(salt)
	}
	return hash(salt, channel, user), nil
}

func hash(salt, channel, user string) string {
	sum := sha256.Sum256([]byte(salt + channel + "\x00" + user))
	return "p" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// Account returns the account of a user; nil: none is stored.
func (s *Store) Account(r journal.Reader, channel, user string) (*Account, error) {
	id, err := s.id(r, channel, user)
	if id == "" || err != nil {
		return nil, err
	}
	return ByID(r, id)
}

// Find returns the account of a user, and its person; nil: none is stored.
func (s *Store) Find(r journal.Reader, channel, user string) (*Account, *Person, error) {
	a, err := s.Account(r, channel, user)
	if a == nil || err != nil {
		return nil, nil, err
	}
	p, err := a.Of(r)
	return a, p, err
}

// ByID returns the account of an id; nil: none is stored.
func ByID(r journal.Reader, id string) (*Account, error) { return load[Account](r, accountKey(id)) }

// Put stores an account.
func Put(tx journal.Tx, a *Account) error { return save(tx, accountKey(a.ID), a) }

// Accounts returns all accounts, by their channels and users.
func Accounts(r journal.Reader) ([]Account, error) {
	all, err := journal.All[Account](r, contract.KernelSource, accountKey(""))
	slices.SortFunc(all, func(a, b Account) int {
		return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.UserID, b.UserID))
	})
	return all, err
}

// Of returns the person of an account, or the owner for an empty id. One of an account
// that is not stored, because it was revoked, may only chat.
func Of(r journal.Reader, account string) (*Person, error) {
	if account == "" || account == Owner {
		return owner(r)
	}
	a, err := ByID(r, account)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return &Person{ID: account, Role: RoleGuest, Accounts: []string{account}}, nil
	}
	return a.Of(r)
}

func owner(r journal.Reader) (*Person, error) {
	p, err := load[Person](r, personKey(Owner))
	if p == nil {
		p = &Person{ID: Owner, Role: RoleOwner}
	}
	return p, err
}

// Of returns the person of the account.
func (a *Account) Of(r journal.Reader) (p *Person, err error) {
	switch a.Person {
	case "":
	case Owner:
		return owner(r)
	default:
		p, err = load[Person](r, personKey(a.Person))
	}
	if p == nil {
		p = &Person{ID: a.ID, Name: a.Name, Accounts: []string{a.ID}}
	}
	return p, err
}

// Timezone returns the time zone that the person of an account has set, or that of the
// owner for an empty id, or else the usual one.
func Timezone(r journal.Reader, account string, usual *time.Location) (string, error) {
	if account == "" || account == Owner {
		p, err := owner(r)
		return cmp.Or(p.Timezone, usual.String()), err
	}
	a, err := ByID(r, account)
	if a == nil {
		return usual.String(), err
	}
	return cmp.Or(a.Timezone, usual.String()), err
}

// At returns the person of a private conversation, which is the owner's without an
// address; nil: it is no person's.
func At(r journal.Reader, channel, address string) (*Person, error) {
	if address == "" {
		return owner(r)
	}
	all, err := Accounts(r)
	i := slices.IndexFunc(all, func(a Account) bool {
		return a.Channel == channel && (a.Conversation == address || a.UserID == address)
	})
	if i < 0 || err != nil {
		return nil, err
	}
	return all[i].Of(r)
}

// Known returns the person of an id: a stored one, that of an account, or the owner.
func Known(r journal.Reader, id string) (*Person, error) {
	if id == Owner {
		return owner(r)
	}
	if p, err := load[Person](r, personKey(id)); p != nil || err != nil {
		return p, err
	}
	a, err := ByID(r, id)
	if err == nil && (a == nil || a.Person != "") {
		err = fmt.Errorf("%w: there is no person %q", contract.ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	return a.Of(r)
}

// Stored returns the stored accounts of the person.
func (p *Person) Stored(r journal.Reader) (all []*Account, err error) {
	for _, id := range p.Accounts {
		a, errOf := ByID(r, id)
		if err = errors.Join(err, errOf); a != nil {
			all = append(all, a)
		}
	}
	return all, err
}

// All returns all people with their accounts, in the order of these.
func All(r journal.Reader) (all []*Person, accounts map[string][]Account, err error) {
	stored, err := Accounts(r)
	accounts = map[string][]Account{}
	for _, a := range stored {
		p, errOf := a.Of(r)
		if err = errors.Join(err, errOf); err != nil {
			break
		}
		if accounts[p.ID] == nil {
			all = append(all, p)
		}
		accounts[p.ID] = append(accounts[p.ID], a)
	}
	return all, accounts, err
}

// Named returns the ids of the accounts of the only one of all people with a name, in any
// case; none: there is no such person, or there are several.
func Named(all []*Person, accounts map[string][]Account, name string) (ids []string) {
	for _, p := range all {
		if !strings.EqualFold(cmp.Or(p.Name, accounts[p.ID][0].Name), name) {
			continue
		}
		if ids != nil {
			return nil
		}
		ids = p.Principal("").Accounts
	}
	return ids
}

// Change changes what is stored of a person, all of whose accounts then name it.
func Change(tx journal.Tx, p *Person) error {
	all, err := p.Stored(tx)
	for _, a := range all {
		if err == nil && (a.Person != p.ID || a.Timezone != p.Timezone) {
			a.Person, a.Timezone = p.ID, p.Timezone
			err = Put(tx, a)
		}
	}
	return errors.Join(err, save(tx, personKey(p.ID), p))
}

// Join moves all accounts of a person to another one, whose role and settings hold.
func Join(tx journal.Tx, from, to *Person) error {
	to.Accounts = append(to.Accounts, from.Accounts...)
	if err := tx.KVDelete(contract.KernelSource, personKey(from.ID)); err != nil {
		return err
	}
	return Change(tx, to)
}

// Split makes an account of several a person of its own: a member, or what it was if that
// is less. If it is the owner's on its channel, that has none until the next approval.
func Split(tx journal.Tx, a *Account) error {
	p, err := a.Of(tx)
	if err != nil {
		return err
	}
	if o, err := load[Account](tx, ownerKey(a.Channel)); err != nil {
		return err
	} else if o != nil && o.UserID == a.UserID {
		if err := tx.KVDelete(contract.KernelSource, ownerKey(a.Channel)); err != nil {
			return err
		}
	}
	own := &Person{ID: a.ID, Role: p.Role, Accounts: []string{a.ID}}
	p.Accounts = slices.DeleteFunc(p.Accounts, func(id string) bool { return id == a.ID })
	if p.Home == a.ID {
		p.Home = ""
	}
	a.Person, a.Timezone = "", ""
	if err := errors.Join(Put(tx, a), tx.KVDelete(contract.KernelSource, personKey(a.ID))); err != nil {
		return err
	}
	if p.ID == a.ID && len(p.Accounts) > 0 {
		p.ID = p.Accounts[0]
	}
	if p.ID != a.ID { // the others stay one person
		err = Change(tx, p)
	}
	if err == nil && !own.May(RoleMember) {
		err = Change(tx, own)
	}
	return err
}

// Delete deletes an account.
func Delete(tx journal.Tx, a *Account) error {
	if err := Split(tx, a); err != nil {
		return err
	}
	return errors.Join(tx.KVDelete(contract.KernelSource, accountKey(a.ID)),
		tx.KVDelete(contract.KernelSource, personKey(a.ID)))
}

// Admitted reports whether a user may talk to the assistant, whose account and person, if
// any, are stored: the configuration admits the user, or the owner has approved the
// account, and the person is not blocked.
func Admitted(c *directory.Channel, user string, a *Account, p *Person) bool {
	if p != nil && p.Role == RoleBlocked {
		return false
	}
	return a != nil && a.ApprovedAt != 0 || slices.Contains(c.AllowFrom, user) || slices.Contains(c.AllowFrom, "*")
}

// OwnerOn returns the owner's account on a channel, with where notices go: that of the
// first person approved there, or the first user that the configuration admits by name,
// while they are admitted. Without one, the user is empty.
func (s *Store) OwnerOn(r journal.Reader, c *directory.Channel) (Account, error) {
	o, err := load[Account](r, ownerKey(c.ID))
	if err != nil {
		return Account{}, err
	}
	if o != nil {
		if c.Local {
			return *o, nil
		}
		a, p, err := s.Find(r, c.ID, o.UserID)
		if err != nil || Admitted(c, o.UserID, a, p) {
			return *o, err
		}
	}
	for _, id := range c.AllowFrom {
		if id != "*" {
			return Account{Channel: c.ID, UserID: id}, nil
		}
	}
	return Account{Channel: c.ID}, nil
}

// SetOwner makes an account that of the owner on its channel.
func SetOwner(tx journal.Tx, a Account) error { return save(tx, ownerKey(a.Channel), a) }

// Meet stores an account, which keeps its person if it is stored already; owns makes it
// one of the owner's.
func (s *Store) Meet(tx journal.Tx, a Account, owns bool) (_ *Account, err error) {
	if a.ID, err = s.ID(tx, a.Channel, a.UserID); err != nil {
		return nil, err
	}
	known, err := ByID(tx, a.ID)
	if known != nil {
		a.Person, a.Timezone = known.Person, known.Timezone
	}
	if err == nil {
		err = Put(tx, &a)
	}
	if err != nil || !owns || a.Person == Owner {
		return &a, err
	}
	from, err := a.Of(tx)
	if err != nil {
		return nil, err
	}
	to, err := owner(tx)
	if err != nil {
		return nil, err
	}
	a.Person = Owner
	return &a, Join(tx, from, to)
}
