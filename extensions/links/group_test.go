package links

import (
	"strings"
	"testing"
)

// What is begun where others read along is said where others read along, and
// nothing of it stands beside what was said for somebody else.
func TestALinkKeepsWhatIsPrivateFromAGroup(t *testing.T) {
	t.Parallel()
	p := chain(t)
	private, family := p.portal("chief", "anna"), p.portal("chief", "family")
	family.s.group = true

	private.sends("lead", "what is anna's salary?")
	p.hears(p.side("lead", "chief"), message, "salary").concludes("the salary is 1000")
	p.hears(private.s, result, "1000")

	x := family.sends("lead", "what is for dinner?")
	within := func(self, peer string) *playedSession {
		t.Helper()
		s := p.sessions[p.keys[self+" link:"+self+":"+peer+":"+family.s.id]]
		if s == nil || !s.group {
			t.Fatalf("there is no side of %s towards %s where the family reads along: %+v", self, peer, s)
		}
		return s
	}
	lead := p.hears(within("lead", "chief"), message, "dinner")
	lead.sends("community", "what is for dinner?")
	lead.says("I have asked.")
	p.hears(within("chief", "lead"), message, "I have asked").says(silence)
	p.hears(within("community", "lead"), message, "dinner").concludes("bread")
	p.hears(within("lead", "chief"), result, "bread").concludes("bread, says community")
	p.hears(family.s, result, "bread")

	for _, s := range p.sessions {
		p.hearsNothing(s)
		heard := strings.Join(s.heard, "\n")
		if s.group && strings.Contains(heard, "salary") {
			t.Errorf("%s, where the family reads along, has\n%s", s.key, heard)
		}
		if !s.group && strings.Contains(heard, "dinner") {
			t.Errorf("%s has what the family was told\n%s", s.key, heard)
		}
	}
	if got := p.exchange(x); got.Messages != 2 || got.Outcome != concluded {
		t.Errorf("it ended as %+v", got)
	}
}

// A side within a group that is deleted ends what was open there, and nothing else.
func TestADeletedSideWithinAGroup(t *testing.T) {
	t.Parallel()
	p := chain(t)
	private, family := p.portal("chief", "anna"), p.portal("chief", "family")
	family.s.group = true
	kept, ended := private.sends("lead", "hello"), family.sends("lead", "hello")
	p.deletes(p.sessions[p.keys["lead link:lead:chief:"+family.s.id]])
	p.settle()
	p.hears(family.s, result, "was deleted")
	if x := p.exchange(kept); x.Over {
		t.Errorf("the exchange of another conversation ended: %+v", x)
	}
	if x := p.exchange(ended); x.Outcome != unavailable {
		t.Errorf("it is %+v", x)
	}
	family.sends("lead", "once more") // makes the side anew
	p.hears(p.sessions[p.keys["lead link:lead:chief:"+family.s.id]], message, "once more")
}
