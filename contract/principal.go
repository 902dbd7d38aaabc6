package contract

import "github.com/switchboard-run/switchboard/contract/extensionv1"

// Principal is for whom something is done, and where it was asked for. The kernel
// gives it with each call. An extension stores it with what people set up.
type Principal struct {
	Person       string `json:"person,omitempty"`       // opaque id; empty: no person
	Conversation string `json:"conversation,omitempty"` // opaque handle; empty: none
	Group        string `json:"group,omitempty"`        // opaque id of the group that reads it; empty: it is private
	// Confined: only what was said or set in the group may be used and changed. The
	// owner has not declared it a household group.
	Confined bool `json:"confined,omitempty"`
}

// Sees reports whether a call for p may use and change what was set up by setBy. The
// zero Principal is that of the household.
func (p Principal) Sees(setBy Principal) bool {
	return !p.Confined || p.Group != "" && p.Group == setBy.Group
}

// Proto returns p as a message of the contract.
func (p Principal) Proto() *extensionv1.Principal {
	return &extensionv1.Principal{
		Person: p.Person, Conversation: p.Conversation, Group: p.Group, Confined: p.Confined,
	}
}

// PrincipalOf returns the Principal in a message of the contract; nil is that of the
// household.
func PrincipalOf(p *extensionv1.Principal) Principal {
	return Principal{
		Person: p.GetPerson(), Conversation: p.GetConversation(), Group: p.GetGroup(), Confined: p.GetConfined(),
	}
}
