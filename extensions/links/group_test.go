package links

import (
	"strings"
	"testing"
)

// An exchange that is begun in a shared session has its own shared sessions, which
// show nothing of other exchanges.
func TestGroupSeesNothingPrivate(t *testing.T) {
	t.Parallel()
	p := chain(t)
	private, family := p.portal("chief", "anna"), p.portal("chief", "family")
	family.s.group = true

	private.send("lead", "what is anna's salary?")
	p.turnWith(p.side("lead", "chief"), message, "salary").conclude("the salary is 1000")
	p.turnWith(private.s, result, "1000")

	x := family.send("lead", "what is for dinner?")
	within := func(self, peer string) *fakeSession {
		t.Helper()
		s := p.sessions[p.keys[self+" link:"+self+":"+peer+":"+family.s.id]]
		if s == nil || !s.group {
			t.Fatalf("no side of %s towards %s within the group: %+v", self, peer, s)
		}
		return s
	}
	lead := p.turnWith(within("lead", "chief"), message, "dinner")
	lead.send("community", "what is for dinner?")
	lead.reply("I have asked.")
	p.turnWith(within("chief", "lead"), message, "I have asked").reply(noReply)
	p.turnWith(within("community", "lead"), message, "dinner").conclude("bread")
	p.turnWith(within("lead", "chief"), result, "bread").conclude("bread, says community")
	p.turnWith(family.s, result, "bread")

	for _, s := range p.sessions {
		p.noTurn(s)
		heard := strings.Join(s.heard, "\n")
		if s.group && strings.Contains(heard, "salary") {
			t.Errorf("%s, which the group can read, has\n%s", s.key, heard)
		}
		if !s.group && strings.Contains(heard, "dinner") {
			t.Errorf("%s has the group's text\n%s", s.key, heard)
		}
	}
	if got := p.exchange(x); got.Messages != 2 || got.Outcome != concluded {
		t.Errorf("it ended as %+v", got)
	}
}

// Deleting a side in a group ends its exchanges, and nothing else.
func TestDeletedSideInGroup(t *testing.T) {
	t.Parallel()
	p := chain(t)
	private, family := p.portal("chief", "anna"), p.portal("chief", "family")
	family.s.group = true
	kept, ended := private.send("lead", "hello"), family.send("lead", "hello")
	p.deleteSession(p.sessions[p.keys["lead link:lead:chief:"+family.s.id]])
	p.settle()
	p.turnWith(family.s, result, "was deleted")
	if x := p.exchange(kept); x.Over {
		t.Errorf("the exchange of another conversation ended: %+v", x)
	}
	if x := p.exchange(ended); x.Outcome != unavailable {
		t.Errorf("it is %+v", x)
	}
	family.send("lead", "once more") // creates the session again
	p.turnWith(p.sessions[p.keys["lead link:lead:chief:"+family.s.id]], message, "once more")
}
