package links

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
)

func TestASideThatIsDeletedEndsItsExchanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		self, peer string
		heard      bool // the message was read before
	}{
		"of who was asked, before it has read it": {"lead", "chief", false},
		"of who was asked, while it is at it":     {"lead", "chief", true},
		"of who asked":                            {"chief", "lead", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := chain(t)
			anna, bert := p.portal("chief", "anna"), p.portal("chief", "bert")
			x, y := anna.sends("lead", "for anna"), bert.sends("lead", "for bert")
			other := anna.sends("other", "for anna")
			side := p.side(c.self, c.peer)
			if c.heard {
				p.hears(p.side("lead", "chief"), message, "for anna")
				p.hears(p.side("lead", "chief"), message, "for bert")
			}
			p.deletes(side)
			p.settle()
			for _, id := range []string{x, y} {
				if got := p.exchange(id); !got.Over || got.Outcome != unavailable {
					t.Errorf("%s ended as %+v", id, got)
				}
			}
			if p.exchange(other).Over {
				t.Error("an exchange of another link has ended")
			}
			p.hears(anna.s, result, "The side of "+c.self+" was deleted")
			p.hears(bert.s, result, "The side of "+c.self+" was deleted")
			p.hearsNothing(anna.s)
			p.hearsNothing(p.side("lead", "chief"))
			// The side is there again, and everything works.
			if anew := p.side(c.self, c.peer); anew.id == side.id {
				t.Errorf("the side is still %s", anew.id)
			}
			z := anna.sends("lead", "once more")
			p.hears(p.side("lead", "chief"), message, "once more").says("which?")
			p.hears(p.side("chief", "lead"), message, "which?").concludes("done")
			p.hears(anna.s, result, "done")
			if got := p.exchange(z); got.Outcome != concluded {
				t.Errorf("it ended as %+v", got)
			}
			sessions := anna.uses("list_links", map[string]any{}).Content
			want(t, "the list", sessions, p.side(c.self, c.peer).id)
		})
	}
}

// Between the deletion and the moment when the extension hears of it, a message
// makes the side anew, and is not lost with what was open.
func TestAMessageToASideThatWasJustDeleted(t *testing.T) {
	t.Parallel()
	p := chain(t)
	anna, bert := p.portal("chief", "anna"), p.portal("chief", "bert")
	x := anna.sends("lead", "for anna")
	p.deletes(p.side("lead", "chief"))
	p.now = p.now.Add(1)
	y := bert.sends("lead", "for bert")
	p.settle()
	if p.exchange(y).Over || !p.exchange(x).Over {
		t.Errorf("%+v, %+v", p.exchange(x), p.exchange(y))
	}
	p.hears(p.side("lead", "chief"), message, "for bert").concludes("nebula")
	p.hears(bert.s, result, "nebula")
	p.hears(anna.s, result, "was deleted")
}

// What an intermediary had asked for goes on to where that was asked for.
func TestTheSideOfAnIntermediaryIsDeleted(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	portal.sends("lead", "a word")
	lead := p.hears(p.side("lead", "chief"), message, "a word")
	lead.sends("community", "a word")
	lead.says(silence)
	p.deletes(p.side("lead", "chief"))
	p.settle()
	p.hears(portal.s, result, "was deleted")
	p.hears(p.side("community", "lead"), message, "a word").concludes("nebula")
	p.hears(portal.s, result, "nebula")
	p.hearsNothing(p.side("lead", "chief"))
}

func TestTheConversationThatAskedIsDeleted(t *testing.T) {
	t.Parallel()
	t.Run("and a reply comes", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		x := portal.sends("lead", "a word")
		p.deletes(portal.s)
		p.hears(p.side("lead", "chief"), message, "a word").says("which language?")
		if got := p.exchange(x); got.Outcome != unavailable || got.Result != "" {
			t.Errorf("it ended as %+v", got)
		}
		p.hearsNothing(p.side("chief", "lead")) // nobody talks for nobody
	})
	t.Run("and it is concluded", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		x := portal.sends("lead", "a word")
		p.deletes(portal.s)
		p.hears(p.side("lead", "chief"), message, "a word").concludes("nebula")
		if got := p.exchange(x); got.Outcome != concluded || got.Result != "" {
			t.Errorf("it ended as %+v", got)
		}
	})
	t.Run("and its time is over", func(t *testing.T) {
		t.Parallel()
		p := chain(t, func(l *link) { l.IdleSeconds = 60 })
		portal := p.portal("chief", "anna")
		x := portal.sends("lead", "a word")
		p.deletes(portal.s)
		p.passes(61e9)
		if got := p.exchange(x); got.Outcome != idleEnd || got.Result != "" {
			t.Errorf("it ended as %+v", got)
		}
	})
}

// A turn that was stopped is no deletion.
func TestATurnOnALinkIsStopped(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	x, y := portal.sends("lead", "a word"), portal.sends("other", "a number")
	p.hears(p.side("lead", "chief"), message, "a word").ends(contract.OutcomeCancelled, "")
	p.hears(portal.s, result, "was stopped")
	if p.exchange(x).Outcome != contract.OutcomeCancelled || p.exchange(y).Over {
		t.Errorf("%+v, %+v", p.exchange(x), p.exchange(y))
	}
}

// Where the turns that may follow from one event are used up, who began the
// exchange takes note of it: a turn would be refused, too.
func TestTheTurnsOfOneEventAreUsedUp(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	x := portal.sends("lead", "a word")
	in := p.hears(p.side("lead", "chief"), message, "a word").in
	p.say(p.side("lead", "chief"), contract.OutcomeCapped, "I have stopped here", in)
	p.outputs[0].hop = 1 // it never ran
	p.settle()
	if got := p.exchange(x); !got.Over || got.Outcome != contract.OutcomeCapped {
		t.Errorf("it ended as %+v", got)
	}
	records := p.read(portal.s)
	if len(records) != 1 {
		t.Fatalf("the portal notes %q", records)
	}
	want(t, "the record", records[0], x, "too many turns", "I have stopped here")
}

// However long what is said is, no commit is refused for it.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	portal.sends("lead", strings.Repeat("<", maxText))
	lead := p.hears(p.side("lead", "chief"), message, "<")
	for range 3 { // each result is as long as one can be
		lead.sends("community", strings.Repeat(">", maxText))
		p.hears(p.side("community", "lead"), message, ">").ends(contract.OutcomeError, strings.Repeat("&", 128<<10))
	}
	lead.ends(contract.OutcomeError, strings.Repeat("&", 128<<10))
	p.hears(portal.s, result, "&")
	want(t, "the result", portal.s.results[0].Text, "[cut: it was longer]")
}
