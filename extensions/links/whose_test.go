package links

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// as makes a call of a tool for people.
func (p *fakeKernel) as(principal contract.Principal, tool string, arguments map[string]any) sdk.ToolResult {
	p.t.Helper()
	return (&fakeTurn{p: p, s: &fakeSession{principal: principal}}).call(tool, arguments)
}

// TestWhoseExchanges has people and groups begin exchanges on the same link, and look at
// each other's.
func TestWhoseExchanges(t *testing.T) {
	t.Parallel()
	p := chain(t)
	people := map[string]contract.Principal{
		"anna":  {Person: "anna", Accounts: []string{"anna2"}, Own: true},
		"anna2": {Person: "anna2", Accounts: []string{"anna"}, Own: true},
		"boris": {Person: "boris", Own: true},
		"guest": {Person: "guest", Confined: true, Own: true},
		"home":  {Person: "anna", Group: "home"},
		"work":  {Person: "anna", Accounts: []string{"anna2"}, Group: "work", Confined: true, Own: true},
		"job":   {Person: "owner", Accounts: []string{"anna", "anna2"}, Own: true},
		"all":   {}, // of an earlier version
	}
	sees := map[string][]string{
		"anna": {"anna", "anna2", "home", "work", "all"}, "anna2": {"anna", "anna2", "home", "work", "all"},
		"boris": {"boris", "home", "all"}, "guest": {"guest"}, "home": {"home", "all"}, "work": {"work"},
		"job": {"job", "anna", "anna2", "home", "work", "all"},
	}
	ids := map[string]string{}
	for name, principal := range people {
		from := p.portal("chief", name)
		from.s.principal = principal
		ids[name] = from.send("lead", "the secret of "+name)
		within := ""
		if name != "all" {
			within = from.s.id
		}
		lead := p.sessions[p.keys["lead "+sessionKey("lead", "chief", within)]]
		if lead == nil || !slices.Equal(lead.principal.Accounts, principal.Accounts) || lead.principal.Person != principal.Person {
			t.Fatalf("the side of %s is %+v", name, lead)
		}
		p.turnWith(lead, message, "secret of "+name).conclude("the answer for " + name)
		p.turnWith(from.s, result, "answer for "+name)
	}
	for _, s := range p.sessions { // no side has what was said for another
		heard := strings.Join(s.heard, "\n")
		of := 0
		for name := range people {
			if strings.Contains(heard+"\n", "secret of "+name+"\n") || strings.Contains(heard+"\n", "answer for "+name+"\n") {
				of++
			}
		}
		if of > 1 {
			t.Errorf("%s has heard\n%s", s.key, heard)
		}
	}
	for name, can := range sees {
		listed := p.as(people[name], "list_links", map[string]any{"all": true}).Content
		for other, id := range ids {
			want := slices.Contains(can, other)
			if strings.Contains(listed, `"`+id+`"`) != want {
				t.Errorf("%s lists the exchange of %s: %v", name, other, !want)
			}
			hidden := p.as(people[name], "show_exchange", map[string]any{"id": id})
			missing := p.as(people[name], "show_exchange", map[string]any{"id": "x999"})
			switch {
			case want && hidden.IsError:
				t.Errorf("%s is not shown the exchange of %s: %s", name, other, hidden.Content)
			case !want && strings.ReplaceAll(hidden.Content, id, "x999") != missing.Content:
				t.Errorf("%s is shown for the exchange of %s: %s", name, other, hidden.Content)
			}
		}
	}
}

func TestRemovedPersonsExchangesAreDeleted(t *testing.T) {
	t.Parallel()
	p := chain(t)
	anna, boris := p.portal("chief", "anna"), p.portal("chief", "boris")
	anna.s.principal = contract.Principal{Person: "anna", Own: true}
	boris.s.principal = contract.Principal{Person: "boris", Own: true}
	anna.send("other", "a secret that is told")
	other := p.sessions[p.keys["other "+sessionKey("other", "chief", anna.s.id)]]
	p.turnWith(other, message, "is told").conclude("a secret")
	p.turnWith(anna.s, result, "a secret")
	anna.send("lead", "a secret")
	lead := p.turnWith(p.sessions[p.keys["lead "+sessionKey("lead", "chief", anna.s.id)]], message, "a secret")
	lead.send("community", "a secret, too")
	his := boris.send("lead", "his own")

	remove := func(payload string) {
		t.Helper()
		effects, err := p.l.handle(t.Context(), sdk.Event{
			ID: "e9", Topic: contract.TopicPersonRevoked, Payload: json.RawMessage(payload), CreatedAt: p.now,
		})
		if err == nil {
			_, err = p.commit(effects)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	secrets := func() (n int) {
		for _, v := range p.kv {
			if strings.Contains(string(v.Value), "secret") || strings.Contains(string(v.Value), `"anna"`) {
				n++
			}
		}
		return n
	}
	before := secrets()
	remove(`{"person":"anna"}`)
	if n := secrets(); n != before || n == 0 {
		t.Errorf("a person who is revoked and stays has %d of %d rows", n, before)
	}
	for range 2 { // an event may come again
		remove(`{"person":"anna","removed":true}`)
		if n := secrets(); n > 0 {
			t.Errorf("%d rows are left: %v", n, p.kv)
		}
	}
	p.noTurn(anna.s)
	lead.reply("too late")
	p.settle()
	if n := secrets(); n > 0 {
		t.Errorf("a late text stored %d rows: %v", n, p.kv)
	}
	if p.exchange(his).Over {
		t.Error("another's exchange has ended")
	}
}
