package session

import (
	"cmp"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
)

// Group is a group of people on a channel, whose members read its conversations.
type Group struct {
	ID        string `json:"id"` // opaque
	Channel   string `json:"channel"`
	Address   string `json:"address"`
	Name      string `json:"name,omitempty"`
	Household bool   `json:"household,omitempty"` // it may use what is the household's
	Offered   bool   `json:"offered,omitempty"`   // the owner was told about /household
	// Since is the time from which it may use only what is its own, in Unix
	// microseconds. Older sessions of the group are not continued: their histories may
	// hold more.
	Since int64 `json:"since,omitempty"`
}

// GroupPrefix is the prefix of the kernel's keys that hold groups.
const GroupPrefix = "group/"

// GroupKey returns the kernel's key of a group.
func GroupKey(channel, address string) string { return GroupPrefix + channel + "/" + address }

// GroupOf returns the group of a conversation; nil: none is stored.
func GroupOf(r journal.Reader, c *journal.Conversation) (*Group, error) {
	return journal.Load[Group](r, contract.KernelSource, GroupKey(c.Channel, c.Address))
}

// Principal returns whose things a session may use for a person. A session whose group
// is unknown may use nothing.
func Principal(r journal.Reader, s *journal.Session, p contract.Principal) (contract.Principal, error) {
	if !s.Group {
		return p, nil
	}
	unknown := contract.Principal{Person: p.Person, Confined: true}
	s, err := outermost(r, s)
	if err != nil || s == nil {
		return unknown, err
	}
	c, err := r.Conversation(s.Conversation)
	if err != nil || c == nil {
		return unknown, err
	}
	return PrincipalIn(r, c, p)
}

// For returns whose things a session may use for the person of an account, and that person.
func For(r journal.Reader, s *journal.Session, account string) (contract.Principal, *people.Person, error) {
	person, err := people.Of(r, account)
	if err != nil {
		return contract.Principal{}, nil, err
	}
	p, err := Principal(r, s, person.Principal(account))
	return p, person, err
}

// recentRows is how many rows of a history may follow those of its newest turn.
const recentRows = 20

// WhoseIs returns whose a session is: of the person to whom its newest turn is due, and of
// its group. One without a turn is no one's.
func WhoseIs(r journal.Reader, s *journal.Session) (contract.Principal, error) {
	of := contract.Principal{Own: true}
	rows, err := r.HistoryBefore(s.ID, 0, recentRows)
	if i := slices.IndexFunc(rows, func(row *busv1.Entry) bool { return row.GetTurn() != 0 }); i >= 0 && err == nil {
		var turn *journal.Turn
		if turn, err = r.Turn(rows[i].GetTurn()); turn != nil {
			of.Person = cmp.Or(turn.Person, people.Owner)
		}
	}
	if err != nil {
		return of, err
	}
	return Principal(r, s, of)
}

// PrincipalIn returns whose things may be used in a conversation for a person. In a
// group that is no household group, what is set up is both the person's and the group's. A
// household group uses no one's own things, unless there is only one person.
func PrincipalIn(r journal.Reader, c *journal.Conversation, p contract.Principal) (contract.Principal, error) {
	p.Conversation = c.Handle
	if !c.Group {
		return p, nil
	}
	g, err := GroupOf(r, c)
	if err != nil || g == nil {
		return contract.Principal{Person: p.Person, Conversation: c.Handle, Confined: true}, err
	}
	p.Group, p.Confined, p.Own = g.ID, p.Confined || !g.Household, !g.Household
	if alone, err := people.IsAlone(r); !alone || p.Confined || err != nil {
		p.Accounts = nil
	}
	return p, nil
}

// maxNesting is how deep sessions may be made within others.
const maxNesting = 100

// outermost returns the session within which another was made, over all levels, up to
// that of a conversation; nil: it is gone.
func outermost(r journal.Reader, s *journal.Session) (_ *journal.Session, err error) {
	for range maxNesting {
		if s == nil || s.Conversation != 0 || s.Within == 0 {
			break
		}
		if s, err = r.Session(s.Within); err != nil {
			return nil, err
		}
	}
	return s, nil
}
