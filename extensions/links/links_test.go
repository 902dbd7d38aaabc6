package links

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

const (
	message = contract.InputMessage
	result  = contract.InputResult
)

// chain is chief - lead - community, and chief - other.
func chain(t *testing.T, change ...func(*link)) *played {
	t.Helper()
	all := []link{
		{From: "chief", To: "lead", Mode: conversation}, {From: "lead", To: "community", Mode: conversation},
		{From: "chief", To: "other", Mode: conversation},
	}
	for i := range all {
		for _, f := range change {
			f(&all[i])
		}
	}
	return play(t, all...)
}

func want(t *testing.T, what, got string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(got, word) {
			t.Errorf("%s is\n%s\nwant %q in it", what, got, word)
		}
	}
}

func TestBothSessionsExistFromTheStart(t *testing.T) {
	t.Parallel()
	p := chain(t)
	for _, pair := range [][2]string{{"chief", "lead"}, {"lead", "chief"}, {"lead", "community"}, {"community", "lead"}} {
		p.side(pair[0], pair[1])
	}
	n := len(p.sessions)
	p.starts()
	if len(p.sessions) != n {
		t.Errorf("%d sessions after a restart, %d before", len(p.sessions), n)
	}
}

// The example of three hops: the word comes back to the portal, once.
func TestNebula(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	portal.sends("lead", "forward this to the community manager: pick a random word and send it back")
	portal.says("I have asked, and let you know.")
	lead := p.hears(p.side("lead", "chief"), message, "pick a random word")
	lead.sends("community", "pick a random word and reply with it")
	lead.says(silence)
	community := p.hears(p.side("community", "lead"), message, "pick a random word")
	community.concludes("nebula")
	community.says("")
	lead = p.hears(p.side("lead", "chief"), result, "nebula")
	if lead.in.Sender != "community" {
		t.Errorf("the result is from %q", lead.in.Sender)
	}
	lead.concludes("The word was nebula")
	lead.says("Got the word back.")
	chief := p.hears(portal.s, result, "The word was nebula")
	chief.says("Community picked nebula.")
	for _, s := range p.sessions {
		p.hearsNothing(s)
	}
	if n := len(portal.s.results); n != 1 {
		t.Errorf("the portal has %d results", n)
	}
	// Both sides have the whole conversation.
	want(t, "the side of the chief", strings.Join(p.side("chief", "lead").heard, "\n"), "record from chief", "forward this", "record from links", "The word was nebula", "Got the word back.")
	want(t, "the side of the lead", strings.Join(p.side("lead", "chief").heard, "\n"), "message from chief", "forward this", "The word was nebula")
}

func TestReplyRunsTheOtherSide(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	x := portal.sends("lead", "hello")
	p.hearsNothing(p.side("chief", "lead")) // what was sent is a record
	p.hears(p.side("lead", "chief"), message, "hello").says("hey, what's up?")
	chief := p.hears(p.side("chief", "lead"), message, "hey")
	if chief.in.Sender != "lead" || chief.in.Thread != x {
		t.Errorf("it is from %q on %q", chief.in.Sender, chief.in.Thread)
	}
	chief.says("the word?")
	p.hears(p.side("lead", "chief"), message, "the word?").concludes("nebula")
	p.hears(portal.s, result, "nebula")
	if got := p.exchange(x); got.Messages != 3 || got.Outcome != concluded || got.EndedBy != "lead" {
		t.Errorf("it ended as %+v", got)
	}
}

func TestTwoAgentsThankEachOtherUntilTheCap(t *testing.T) {
	t.Parallel()
	p := chain(t, func(l *link) { l.MaxMessages = 20 })
	portal := p.portal("chief", "anna")
	x := portal.sends("lead", "thank you")
	sides := []*playedSession{p.side("lead", "chief"), p.side("chief", "lead")}
	turns := 0
	for ; turns < 100; turns++ {
		u := p.next(sides[turns%2])
		if u == nil {
			break
		}
		u.says(fmt.Sprintf("No, thank you! (%d)", turns))
	}
	if turns != 20 {
		t.Errorf("%d turns, want one for each of 20 messages", turns)
	}
	p.hears(portal.s, result, "its 20 messages are used up")
	want(t, "the end", p.exchange(x).Outcome, cappedEnd)
	for _, s := range sides {
		p.hearsNothing(s)
		want(t, "the records", strings.Join(s.records, "\n"), "ended without a conclusion")
	}
}

func TestTheModelNeverConcludes(t *testing.T) {
	t.Parallel()
	p := chain(t, func(l *link) { l.IdleSeconds = 1800 })
	portal := p.portal("chief", "anna")
	x := portal.sends("lead", "find out")
	p.hears(p.side("lead", "chief"), message, "find out").says(silence)
	p.passes(29 * time.Minute)
	if p.exchange(x).Over {
		t.Fatal("it ended too early")
	}
	p.starts() // the timer is that of what is stored
	p.passes(2 * time.Minute)
	p.hears(portal.s, result, "nothing was said for too long")
	p.passes(2 * time.Hour)
	p.hearsNothing(portal.s)
}

func TestACapIsNotResetByTheNextMessage(t *testing.T) {
	t.Parallel()
	p := chain(t, func(l *link) { l.MaxMessages = 3 })
	portal := p.portal("chief", "anna")
	x := portal.sends("lead", "one")
	if y := portal.sends("lead", "two"); y != x {
		t.Fatalf("a further message begins %s, and %s is open", y, x)
	}
	p.starts()
	portal.sends("lead", "three")
	r := portal.uses("send_agent_message", map[string]any{"target": "lead", "message": "four"})
	if !r.IsError {
		t.Errorf("the fourth of three messages is sent: %s", r.Content)
	}
	want(t, "the refusal", r.Content, x, "used up", "not delivered")
	p.hears(portal.s, result, "its 3 messages are used up")
	p.hearsNothing(p.side("lead", "chief")) // what it had not read is withdrawn, and noted
	want(t, "the records of the lead", strings.Join(p.side("lead", "chief").records, "\n"), "not answered any more", "one", "two", "three")
	if y := portal.sends("lead", "five"); y == x {
		t.Error("a message after the end goes on with what is over")
	}
}

func TestASecondDelegationDoesNotOverwriteWhereTheFirstWasBegun(t *testing.T) {
	t.Parallel()
	t.Run("two agents from one portal", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		portal.sends("lead", "a word")
		portal.sends("other", "a number")
		p.hears(p.side("other", "chief"), message, "a number").concludes("seven")
		p.hears(p.side("lead", "chief"), message, "a word").concludes("nebula")
		p.hears(portal.s, result, "seven")
		p.hears(portal.s, result, "nebula")
	})
	t.Run("one agent from two portals", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		anna, bert := p.portal("chief", "anna"), p.portal("chief", "bert")
		x, y := anna.sends("lead", "a word for anna"), bert.sends("lead", "a word for bert")
		if x == y {
			t.Fatal("both are one exchange")
		}
		lead := p.side("lead", "chief")
		one, two := p.hears(lead, message, "for anna"), p.hears(lead, message, "for bert")
		// Each is handed on, and the results come back the other way round.
		one.sends("community", "a word for anna, please")
		one.says(silence)
		two.sends("community", "a word for bert, please")
		two.says(silence)
		community := p.side("community", "lead")
		one, two = p.hears(community, message, "for anna"), p.hears(community, message, "for bert")
		two.concludes("bear")
		two.says("")
		one.concludes("apple")
		one.says("")
		two, one = p.hears(lead, result, "bear"), p.hears(lead, result, "apple")
		if two.in.Thread != y || one.in.Thread != x {
			t.Errorf("bear came to %s and apple to %s, want %s and %s", two.in.Thread, one.in.Thread, y, x)
		}
		one.concludes("apple it is")
		two.concludes("bear it is")
		p.hears(anna.s, result, "apple it is")
		p.hears(bert.s, result, "bear it is")
		p.hearsNothing(anna.s)
		p.hearsNothing(bert.s)
	})
}

func TestAConclusionIsNotAnsweredWithAConclusion(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	x := portal.sends("lead", "a word")
	lead := p.hears(p.side("lead", "chief"), message, "a word")
	lead.says("which language?")
	chief := p.hears(p.side("chief", "lead"), message, "which language?")
	chief.concludes("never mind") // while nobody else does anything
	chief.says("bye")
	p.hearsNothing(p.side("lead", "chief"))
	p.hears(portal.s, result, "never mind")
	// A turn that is still about it cannot conclude, or say, anything any more.
	lead.in.Thread = x
	for tool, arguments := range map[string]map[string]any{
		"conclude_link":      {"summary": "agreed"},
		"send_agent_message": {"target": "chief", "message": "agreed"},
	} {
		r := lead.uses(tool, arguments)
		if !r.IsError {
			t.Errorf("%s works on an exchange that is over: %s", tool, r.Content)
		}
		want(t, "the refusal", r.Content, x, "is over", "Nothing was sent")
	}
	p.hearsNothing(portal.s)
	p.hearsNothing(p.side("chief", "lead"))
}

func TestALateTextIsNotDeliveredAndBothSidesReadThat(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	portal.sends("lead", "a word")
	portal.sends("lead", "a short one")
	side := p.side("lead", "chief")
	first, second := p.hears(side, message, "a word"), p.hears(side, message, "a short one")
	first.concludes("nebula")
	first.says("There it is.")
	second.says("nebula is short")
	p.hearsNothing(p.side("chief", "lead"))
	p.hearsNothing(side)
	want(t, "the records of the chief", strings.Join(p.side("chief", "lead").records, "\n"), "There it is.", "Too late", "nebula is short")
	want(t, "the records of the lead", strings.Join(side.records, "\n"), "Error: your last text was not delivered")
	if n := strings.Count(strings.Join(side.records, "\n"), "Error"); n != 1 {
		t.Errorf("%d errors", n)
	}
	p.hears(portal.s, result, "nebula")
	p.hearsNothing(portal.s)
}

func TestAnIntermediaryThatConcludesEarlyLosesNothing(t *testing.T) {
	t.Parallel()
	t.Run("before the result is there", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		portal.sends("lead", "a word")
		lead := p.hears(p.side("lead", "chief"), message, "a word")
		lead.sends("community", "a word")
		lead.concludes("I have asked community")
		lead.says("")
		p.hears(portal.s, result, "I have asked community")
		p.hears(p.side("community", "lead"), message, "a word").concludes("nebula")
		p.hears(portal.s, result, "nebula")
		p.hearsNothing(p.side("lead", "chief"))
		p.hearsNothing(portal.s)
	})
	t.Run("while the result waits for its turn", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		portal.sends("lead", "a word")
		lead := p.hears(p.side("lead", "chief"), message, "a word")
		lead.sends("community", "a word")
		p.hears(p.side("community", "lead"), message, "a word").concludes("nebula")
		lead.concludes("I have asked community")
		lead.says("Done.")
		p.hears(portal.s, result, "I have asked community")
		want(t, "the result", portal.s.results[0].Text, "lead had received this from community", "nebula")
		p.hearsNothing(p.side("lead", "chief"))
		p.hearsNothing(portal.s)
	})
	t.Run("while the result is being read", func(t *testing.T) {
		t.Parallel()
		p := chain(t, func(l *link) { l.MaxMessages = 2 })
		portal := p.portal("chief", "anna")
		portal.sends("lead", "a word")
		lead := p.hears(p.side("lead", "chief"), message, "a word")
		lead.sends("community", "a word")
		lead.says("I have asked community")
		p.hears(p.side("community", "lead"), message, "a word").concludes("nebula")
		lead = p.hears(p.side("lead", "chief"), result, "nebula")
		p.hears(p.side("chief", "lead"), message, "I have asked").says("And?") // one too many: it ends
		p.hears(portal.s, result, "messages are used up")
		want(t, "the result", portal.s.results[0].Text, "lead had received this from community", "nebula")
		r := lead.uses("conclude_link", map[string]any{"summary": "nebula"})
		want(t, "the refusal", r.Content, "is over", "was passed on")
		lead.says("They picked it with care.")
		want(t, "the records of the chief", strings.Join(p.read(p.side("chief", "lead")), "\n"), "Too late", "with care")
		p.hearsNothing(portal.s)
	})
	t.Run("in the turn about the result", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		portal.sends("lead", "a word")
		lead := p.hears(p.side("lead", "chief"), message, "a word")
		lead.sends("community", "a word")
		lead.ended(contract.OutcomeOK, silence) // and this is handled after what follows
		p.hears(p.side("community", "lead"), message, "a word").concludes("nebula")
		p.hears(p.side("lead", "chief"), result, "nebula").concludes("It is nebula")
		p.settle()
		p.hears(portal.s, result, "It is nebula")
		if text := portal.s.results[0].Text; strings.Contains(text, "had received") {
			t.Errorf("what was concluded is passed on as if nobody had read it: %s", text)
		}
		p.hearsNothing(portal.s)
	})
	t.Run("and fails over it", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		portal.sends("lead", "a word")
		lead := p.hears(p.side("lead", "chief"), message, "a word")
		lead.sends("community", "a word")
		lead.says(silence)
		p.hears(p.side("community", "lead"), message, "a word").concludes("nebula")
		p.hears(p.side("lead", "chief"), result, "nebula").ends(contract.OutcomeError, "the model is gone")
		p.hears(portal.s, result, "nebula")
		want(t, "the result", portal.s.results[0].Text, "lead failed (error)", "the model is gone")
	})
}

func TestAFailureOfThePeerEndsTheExchangeAndIsDelivered(t *testing.T) {
	t.Parallel()
	for outcome, words := range map[string]string{
		contract.OutcomeError: "failed", contract.OutcomeTimeout: "took too long", contract.OutcomeDead: "failed (dead)",
		contract.OutcomeCancelled: "was stopped", contract.OutcomeCapped: "too many turns",
	} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			p := chain(t)
			portal := p.portal("chief", "anna")
			x := portal.sends("lead", "a word")
			p.hears(p.side("lead", "chief"), message, "a word").ends(outcome, "that did not work")
			p.hears(portal.s, result, words)
			want(t, "the result", portal.s.results[0].Text, "that did not work")
			if got := p.exchange(x); !got.Over || got.Outcome != outcome {
				t.Errorf("it ended as %+v", got)
			}
			p.hearsNothing(p.side("chief", "lead"))
		})
	}
}

func TestALinkThatIsNotInForceAnyMoreEndsItsExchanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*played){
		"switched off": func(p *played) {
			p.c.Links[0].Problem = `config.yaml:3:5: links[0].to: the agent "lead" is not in agents.enabled`
		},
		"taken out": func(p *played) { p.c.Links = p.c.Links[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := chain(t)
			portal := p.portal("chief", "anna")
			portal.sends("lead", "a word")
			change(p)
			p.starts()
			p.passes(0)
			p.hears(portal.s, result, "is not there any more")
			r := portal.uses("send_agent_message", map[string]any{"target": "lead", "message": "hello?"})
			if !r.IsError {
				t.Errorf("it is sent all the same: %s", r.Content)
			}
			portal.sends("other", "everything else works")
		})
	}
}

func TestAnExchangeThatWaitsForAnotherIsNotIdle(t *testing.T) {
	t.Parallel()
	p := chain(t, func(l *link) { l.IdleSeconds = 60 })
	portal := p.portal("chief", "anna")
	x := portal.sends("lead", "a word")
	lead := p.hears(p.side("lead", "chief"), message, "a word")
	p.passes(50 * time.Second)
	y := lead.sends("community", "a word")
	p.passes(50 * time.Second)
	if p.exchange(x).Over || p.exchange(y).Over {
		t.Fatal("one of them is over")
	}
	p.passes(15 * time.Second)
	if p.exchange(x).Over || !p.exchange(y).Over {
		t.Fatal("the first should wait for the second, which is idle")
	}
	lead.says(silence)
	p.hears(p.side("lead", "chief"), result, "nothing was said").says(silence)
	p.passes(61 * time.Second)
	p.hears(portal.s, result, "nothing was said")
}

func TestModeTask(t *testing.T) {
	t.Parallel()
	p := chain(t, func(l *link) { l.Mode = task })
	portal := p.portal("chief", "anna")
	portal.sends("lead", "a word")
	lead := p.hears(p.side("lead", "chief"), message, "a word")
	lead.sends("community", "a word")
	lead.says("I have asked community.") // it waits: this is not the result
	p.hearsNothing(portal.s)
	p.hears(p.side("community", "lead"), message, "a word").says("nebula")
	p.hears(p.side("lead", "chief"), result, "nebula").says("The word is nebula.")
	p.hears(portal.s, result, "The word is nebula.")
	for _, s := range p.sessions {
		p.hearsNothing(s)
	}
}

func TestWhereNothingCanBeSaid(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		words     string
	}{
		{"send_agent_message", map[string]any{"target": "community", "message": "hello"}, "You can write to: lead, other"},
		{"send_agent_message", map[string]any{"target": "chief", "message": "hello"}, "no link"},
		{"send_agent_message", map[string]any{"target": "lead", "message": "  "}, "empty"},
		{"conclude_link", map[string]any{"summary": "done"}, "nothing to conclude"},
	} {
		if r := portal.uses(c.tool, c.arguments); !r.IsError || !strings.Contains(r.Content, c.words) {
			t.Errorf("%s %v: %s, want %q", c.tool, c.arguments, r.Content, c.words)
		}
	}
}

// Each input on a link says what the exchange is about, whoever may be late.
func TestATurnKnowsWhatItIsAbout(t *testing.T) {
	t.Parallel()
	p := chain(t, func(l *link) { l.ToAbout = "Knows " + l.To })
	portal := p.portal("chief", "anna")
	want(t, "the context of the portal", portal.uses("peers", nil).Content, "lead (Knows lead)", "other", "send_agent_message")
	x := portal.sends("lead", "a word")
	want(t, "the context of the portal", portal.uses("peers", nil).Content, "Open: "+x+" with lead, 1 of 20 messages")
	lead := p.hears(p.side("lead", "chief"), message, "a word")
	want(t, "the frame of the lead", lead.in.frame, "chat", "chief began this exchange ("+x+")", "conclude_link", "19 of 20 messages", silence, "community (Knows community)")
	if strings.Contains(lead.in.frame, "- chief") {
		t.Errorf("the lead is told to ask the chief first:\n%s", lead.in.frame)
	}
	lead.says("which?")
	chief := p.hears(p.side("chief", "lead"), message, "which?")
	want(t, "the frame of the chief", chief.in.frame, "You began this exchange", `"[record from chief]"`, "18 of 20 messages")
	chief.says(silence)
	lead.sends("community", "a word")
	community := p.hears(p.side("community", "lead"), message, "a word")
	if strings.Contains(community.in.frame, "write to") {
		t.Errorf("community has nobody else to write to:\n%s", community.in.frame)
	}
	community.concludes("nebula")
	want(t, "the frame of a result", p.hears(p.side("lead", "chief"), result, "nebula").in.frame, "chief began this exchange", "18 of 20")
	if r := p.portal("stranger", "anna").uses("peers", nil); !r.Nothing || r.Content != "" {
		t.Errorf("an agent without links is told %q", r.Content)
	}
}

func TestListAndShow(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	x := portal.sends("lead", "a word")
	want(t, "the list", portal.uses("list_links", map[string]any{}).Content, x, `"from":"chief"`, "sessions")
	p.hears(p.side("lead", "chief"), message, "a word").concludes("nebula")
	if got := portal.uses("list_links", map[string]any{}).Content; strings.Contains(got, `"id":"`+x) {
		t.Errorf("what is over is listed: %s", got)
	}
	want(t, "the list of all", portal.uses("list_links", map[string]any{"all": true}).Content, x, "concluded")
	want(t, "the exchange", portal.uses("show_exchange", map[string]any{"id": x}).Content, "a word", "nebula", "concluded by lead")
	if r := portal.uses("show_exchange", map[string]any{"id": "x999"}); !r.IsError {
		t.Error("an unknown one is shown")
	}
	p.now = p.now.Add(kept + time.Hour)
	if err := p.l.prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key := range p.kv {
		if strings.Contains(key, x) {
			t.Errorf("%s is kept for ever", key)
		}
	}
}

// An end by the clock begins a new count of turns in the kernel. An agent that
// tries again and again is stopped here.
func TestWhoIsNotAnsweredDoesNotAskForEver(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	begun := 0
	for turn := portal; begun < 100; begun++ {
		if r := turn.uses("send_agent_message", map[string]any{"target": "lead", "message": "are you there?"}); r.IsError {
			want(t, "the refusal", r.Content, "in a row")
			break
		}
		p.hears(p.side("lead", "chief"), message, "are you there?").says(silence)
		p.passes(time.Hour)
		turn = p.hears(portal.s, result, "nothing was said for too long")
	}
	if begun != maxRow {
		t.Errorf("%d exchanges were begun, want %d", begun, maxRow)
	}
	portal.sends("lead", "a person asks again")
}
