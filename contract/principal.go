package contract

import (
	"slices"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// Principal is for whom something is done, and where it was asked for. The kernel
// gives it with each call. An extension stores it with what people set up.
type Principal struct {
	Person       string `json:"person,omitempty"`       // opaque id of the person's account; empty: no person
	Conversation string `json:"conversation,omitempty"` // opaque handle; empty: none
	Group        string `json:"group,omitempty"`        // opaque id of the group that reads it; empty: it is private
	// Confined: only what was said or set in the group may be used and changed, because
	// the owner has not declared it a household group; without a group, as for a guest,
	// only what is the person's own.
	Confined bool `json:"confined,omitempty"`
	// Own: what is set up belongs to the person, not to the household.
	Own bool `json:"own,omitempty"`
	// Extension is the extension that calls for itself, by the effect call: it uses and
	// changes what is the household's, and no person's own things. Empty: none.
	Extension string `json:"extension,omitempty"`
	// Accounts are those whose own things may be used and changed, too: the person's others.
	// They are given with a call, and not stored: people link and unlink accounts.
	Accounts []string `json:"-"`
}

// Sees reports whether a call for p may use and change what was set up by setBy: in a
// group that is not the household's, what was set there; otherwise what is of the
// Accounts, and the household's. The zero Principal is that of the owner's command line,
// which sees everything.
func (p Principal) Sees(setBy Principal) bool {
	switch {
	case p.isZero(), p.Group != "" && p.Group == setBy.Group:
		return true
	case p.Confined && p.Group != "":
		return false
	case p.Confined, setBy.Own:
		return setBy.Person != "" && p.Own && p.Person == setBy.Person || slices.Contains(p.Accounts, setBy.Person)
	}
	return true
}

// Owner is the account of what belongs to the owner on all channels.
const Owner = "owner"

// SeesOwners reports whether a call for p may use and change what is the owner's own.
func (p Principal) SeesOwners() bool { return p.Sees(Principal{Person: Owner, Own: true}) }

func (p Principal) isZero() bool {
	return p.Person == "" && p.Group == "" && !p.Confined && !p.Own && p.Extension == "" && len(p.Accounts) == 0
}

// Proto returns p as a message of the contract.
func (p Principal) Proto() *extensionv1.Principal {
	return &extensionv1.Principal{
		Person: p.Person, Conversation: p.Conversation, Group: p.Group, Confined: p.Confined,
		Own: p.Own, Extension: p.Extension, Accounts: p.Accounts,
	}
}

// PrincipalOf returns the Principal in a message of the contract; nil is the zero one.
func PrincipalOf(p *extensionv1.Principal) Principal {
	return Principal{
		Person: p.GetPerson(), Conversation: p.GetConversation(), Group: p.GetGroup(), Confined: p.GetConfined(),
		Own: p.GetOwn(), Extension: p.GetExtension(), Accounts: p.GetAccounts(),
	}
}
