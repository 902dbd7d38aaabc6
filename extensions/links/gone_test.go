package links

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
)

func TestDeletedSideEndsExchanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		self, peer string
		heard      bool // the message was read
	}{
		"of who was asked, before it has read it": {"lead", "chief", false},
		"of who was asked, while it is at it":     {"lead", "chief", true},
		"of who asked":                            {"chief", "lead", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := chain(t)
			anna, bert := p.portal("chief", "anna"), p.portal("chief", "bert")
			x, y := anna.send("lead", "for anna"), bert.send("lead", "for bert")
			other := anna.send("other", "for anna")
			side := p.side(c.self, c.peer)
			if c.heard {
				p.turnWith(p.side("lead", "chief"), message, "for anna")
				p.turnWith(p.side("lead", "chief"), message, "for bert")
			}
			p.deleteSession(side)
			p.settle()
			for _, id := range []string{x, y} {
				if got := p.exchange(id); !got.Over || got.Outcome != unavailable {
					t.Errorf("%s ended as %+v", id, got)
				}
			}
			if p.exchange(other).Over {
				t.Error("an exchange of another link has ended")
			}
			p.turnWith(anna.s, result, "The session of "+c.self+" was deleted")
			p.turnWith(bert.s, result, "The session of "+c.self+" was deleted")
			p.noTurn(anna.s)
			p.noTurn(p.side("lead", "chief"))
			// The session exists again, and everything works.
			if again := p.side(c.self, c.peer); again.id == side.id {
				t.Errorf("the side is still %s", again.id)
			}
			z := anna.send("lead", "once more")
			p.turnWith(p.side("lead", "chief"), message, "once more").reply("which?")
			p.turnWith(p.side("chief", "lead"), message, "which?").conclude("done")
			p.turnWith(anna.s, result, "done")
			if got := p.exchange(z); got.Outcome != concluded {
				t.Errorf("it ended as %+v", got)
			}
			sessions := anna.call("list_links", map[string]any{}).Content
			want(t, "the list", sessions, p.side(c.self, c.peer).id)
		})
	}
}

// A message that is sent after the deletion, but before the extension handles it,
// creates the session again and is not lost.
func TestMessageToDeletedSide(t *testing.T) {
	t.Parallel()
	p := chain(t)
	anna, bert := p.portal("chief", "anna"), p.portal("chief", "bert")
	x := anna.send("lead", "for anna")
	p.deleteSession(p.side("lead", "chief"))
	p.now = p.now.Add(1)
	y := bert.send("lead", "for bert")
	p.settle()
	if p.exchange(y).Over || !p.exchange(x).Over {
		t.Errorf("%+v, %+v", p.exchange(x), p.exchange(y))
	}
	p.turnWith(p.side("lead", "chief"), message, "for bert").conclude("nebula")
	p.turnWith(bert.s, result, "nebula")
	p.turnWith(anna.s, result, "was deleted")
}

// The results that an intermediary asked for go to the origin.
func TestDeletedSideOfIntermediary(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	portal.send("lead", "a word")
	lead := p.turnWith(p.side("lead", "chief"), message, "a word")
	lead.send("community", "a word")
	lead.reply(noReply)
	p.deleteSession(p.side("lead", "chief"))
	p.settle()
	p.turnWith(portal.s, result, "was deleted")
	p.turnWith(p.side("community", "lead"), message, "a word").conclude("nebula")
	p.turnWith(portal.s, result, "nebula")
	p.noTurn(p.side("lead", "chief"))
}

func TestDeletedConversation(t *testing.T) {
	t.Parallel()
	t.Run("and a reply comes", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		x := portal.send("lead", "a word")
		p.deleteSession(portal.s)
		p.turnWith(p.side("lead", "chief"), message, "a word").reply("which language?")
		if got := p.exchange(x); got.Outcome != unavailable || got.Result != "" {
			t.Errorf("it ended as %+v", got)
		}
		p.noTurn(p.side("chief", "lead")) // no useless work
	})
	t.Run("and it is concluded", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		x := portal.send("lead", "a word")
		p.deleteSession(portal.s)
		p.turnWith(p.side("lead", "chief"), message, "a word").conclude("nebula")
		if got := p.exchange(x); got.Outcome != concluded || got.Result != "" {
			t.Errorf("it ended as %+v", got)
		}
	})
	t.Run("and its time is over", func(t *testing.T) {
		t.Parallel()
		p := chain(t, func(l *link) { l.IdleSeconds = 60 })
		portal := p.portal("chief", "anna")
		x := portal.send("lead", "a word")
		p.deleteSession(portal.s)
		p.advance(61e9)
		if got := p.exchange(x); got.Outcome != idle || got.Result != "" {
			t.Errorf("it ended as %+v", got)
		}
	})
}

// A stopped turn is not taken for a deletion.
func TestStoppedTurn(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	x, y := portal.send("lead", "a word"), portal.send("other", "a number")
	p.turnWith(p.side("lead", "chief"), message, "a word").end(contract.OutcomeCancelled, "")
	p.turnWith(portal.s, result, "was stopped")
	if p.exchange(x).Outcome != contract.OutcomeCancelled || p.exchange(y).Over {
		t.Errorf("%+v, %+v", p.exchange(x), p.exchange(y))
	}
}

// When no more turns may follow from the event, the initiator gets a record: a turn
// would be refused, too.
func TestTurnsExhausted(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	x := portal.send("lead", "a word")
	in := p.turnWith(p.side("lead", "chief"), message, "a word").in
	p.endTurn(p.side("lead", "chief"), contract.OutcomeCapped, "I have stopped here", in)
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

// No commit is refused because of long texts.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	portal.send("lead", strings.Repeat("<", maxText))
	lead := p.turnWith(p.side("lead", "chief"), message, "<")
	for range 3 { // each result has the maximum length
		lead.send("community", strings.Repeat(">", maxText))
		p.turnWith(p.side("community", "lead"), message, ">").end(contract.OutcomeError, strings.Repeat("&", 128<<10))
	}
	lead.end(contract.OutcomeError, strings.Repeat("&", 128<<10))
	p.turnWith(portal.s, result, "&")
	want(t, "the result", portal.s.results[0].Text, "[truncated: the text was longer]")
}
