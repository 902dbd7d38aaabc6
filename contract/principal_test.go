package contract_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
)

// TestWhoSeesWhat has each caller look at each thing.
func TestWhoSeesWhat(t *testing.T) {
	t.Parallel()
	type principal = contract.Principal
	things := map[string]principal{
		"earlier":           {Person: "anna"},
		"household":         {Person: "anna", Group: "home"},
		"anna's":            {Person: "anna", Own: true},
		"anna's on Slack":   {Person: "anna2", Own: true},
		"boris'":            {Person: "boris", Own: true},
		"anna's at work":    {Person: "anna", Group: "work", Confined: true, Own: true},
		"boris' at work":    {Person: "boris", Group: "work", Confined: true, Own: true},
		"work's, earlier":   {Person: "boris", Group: "work", Confined: true},
		"the guest's":       {Person: "guest", Own: true},
		"the guest's, once": {Person: "guest"},
	}
	tests := []struct {
		name string
		p    principal
		sees []string
	}{
		{"the command line", principal{}, []string{
			"earlier", "household", "anna's", "anna's on Slack", "boris'", "anna's at work", "boris' at work",
			"work's, earlier", "the guest's", "the guest's, once",
		}},
		{"anna", principal{Person: "anna", Accounts: []string{"anna", "anna2"}, Own: true}, []string{
			"earlier", "household", "anna's", "anna's on Slack", "anna's at work", "work's, earlier", "the guest's, once",
		}},
		{"boris", principal{Person: "boris", Accounts: []string{"boris"}, Own: true}, []string{
			"earlier", "household", "boris'", "boris' at work", "work's, earlier", "the guest's, once",
		}},
		{"anna in the household group", principal{Person: "anna", Group: "home"}, []string{
			"earlier", "household", "work's, earlier", "the guest's, once",
		}},
		{"anna, alone, in the household group", principal{Person: "anna", Group: "home", Accounts: []string{"anna"}}, []string{
			"earlier", "household", "anna's", "anna's at work", "work's, earlier", "the guest's, once",
		}},
		{"anna at work", principal{Person: "anna", Group: "work", Confined: true, Own: true}, []string{
			"anna's at work", "boris' at work", "work's, earlier",
		}},
		{"nobody at work", principal{Group: "work", Confined: true}, []string{
			"anna's at work", "boris' at work", "work's, earlier",
		}},
		{"a group that is gone", principal{Confined: true}, nil},
		{"the guest", principal{Person: "guest", Accounts: []string{"guest"}, Confined: true, Own: true}, []string{"the guest's", "the guest's, once"}},
	}
	for name, want := range map[string]bool{
		"the command line": true, "anna": false, "nobody at work": false,
	} {
		for _, test := range tests {
			if test.name == name && test.p.SeesOwners() != want {
				t.Errorf("%s sees what is the owner's: %v", name, !want)
			}
		}
	}
	if owner := (principal{Person: "o1", Accounts: []string{"o1", contract.Owner}, Own: true}); !owner.SeesOwners() {
		t.Error("the owner doesn't see what is the owner's")
	}
	for _, test := range tests {
		want := map[string]bool{}
		for _, name := range test.sees {
			want[name] = true
		}
		for name, thing := range things {
			if got := test.p.Sees(thing); got != want[name] {
				t.Errorf("%s sees what is %s: %v", test.name, name, got)
			}
			back := contract.PrincipalOf(test.p.Proto())
			if back.Sees(thing) != want[name] {
				t.Errorf("%s, over the wire, sees what is %s: %v", test.name, name, !want[name])
			}
		}
	}
}
