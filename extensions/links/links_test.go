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

// chain links chief - lead - community, and chief - other.
func chain(t *testing.T, change ...func(*link)) *fakeKernel {
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

func TestSessionsAtStart(t *testing.T) {
	t.Parallel()
	p := chain(t)
	for _, pair := range [][2]string{{"chief", "lead"}, {"lead", "chief"}, {"lead", "community"}, {"community", "lead"}} {
		p.side(pair[0], pair[1])
	}
	n := len(p.sessions)
	p.restart()
	if len(p.sessions) != n {
		t.Errorf("%d sessions after a restart, %d before", len(p.sessions), n)
	}
}

// Over three hops the word arrives at the portal once.
func TestChainOfThree(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	portal.send("lead", "forward this to the community manager: pick a random word and send it back")
	portal.reply("I have asked, and let you know.")
	lead := p.turnWith(p.side("lead", "chief"), message, "pick a random word")
	lead.send("community", "pick a random word and reply with it")
	lead.reply(noReply)
	community := p.turnWith(p.side("community", "lead"), message, "pick a random word")
	community.conclude("nebula")
	community.reply("")
	lead = p.turnWith(p.side("lead", "chief"), result, "nebula")
	if lead.in.Sender != "community" {
		t.Errorf("the result is from %q", lead.in.Sender)
	}
	lead.conclude("The word was nebula")
	lead.reply("Got the word back.")
	chief := p.turnWith(portal.s, result, "The word was nebula")
	chief.reply("Community picked nebula.")
	for _, s := range p.sessions {
		p.noTurn(s)
	}
	if n := len(portal.s.results); n != 1 {
		t.Errorf("the portal has %d results", n)
	}
	// Both sessions have the whole conversation.
	want(t, "the side of the chief", strings.Join(p.side("chief", "lead").heard, "\n"), "record from chief",
		"forward this", "record from links", "The word was nebula", "Got the word back.")
	want(t, "the side of the lead", strings.Join(p.side("lead", "chief").heard, "\n"), "message from chief",
		"forward this", "The word was nebula")
}

func TestReplyStartsTurn(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	x := portal.send("lead", "hello")
	p.noTurn(p.side("chief", "lead")) // the sender only gets a record
	p.turnWith(p.side("lead", "chief"), message, "hello").reply("hey, what's up?")
	chief := p.turnWith(p.side("chief", "lead"), message, "hey")
	if chief.in.Sender != "lead" || chief.in.Thread != x {
		t.Errorf("it is from %q on %q", chief.in.Sender, chief.in.Thread)
	}
	chief.reply("the word?")
	p.turnWith(p.side("lead", "chief"), message, "the word?").conclude("nebula")
	p.turnWith(portal.s, result, "nebula")
	if got := p.exchange(x); got.Messages != 3 || got.Outcome != concluded || got.EndedBy != "lead" {
		t.Errorf("it ended as %+v", got)
	}
}

func TestThanksUntilTheCap(t *testing.T) {
	t.Parallel()
	p := chain(t, func(l *link) { l.MaxMessages = 20 })
	portal := p.portal("chief", "anna")
	x := portal.send("lead", "thank you")
	sides := []*fakeSession{p.side("lead", "chief"), p.side("chief", "lead")}
	turns := 0
	for ; turns < 100; turns++ {
		u := p.next(sides[turns%2])
		if u == nil {
			break
		}
		u.reply(fmt.Sprintf("No, thank you! (%d)", turns))
	}
	if turns != 20 {
		t.Errorf("%d turns, want one for each of 20 messages", turns)
	}
	p.turnWith(portal.s, result, "its 20 messages are used up")
	want(t, "the end", p.exchange(x).Outcome, capped)
	for _, s := range sides {
		p.noTurn(s)
		want(t, "the records", strings.Join(s.records, "\n"), "ended without a conclusion")
	}
}

func TestNoConclusion(t *testing.T) {
	t.Parallel()
	p := chain(t, func(l *link) { l.IdleSeconds = 1800 })
	portal := p.portal("chief", "anna")
	x := portal.send("lead", "find out")
	p.turnWith(p.side("lead", "chief"), message, "find out").reply(noReply)
	p.advance(29 * time.Minute)
	if p.exchange(x).Over {
		t.Fatal("it ended too early")
	}
	p.restart() // the timer comes from the store
	p.advance(2 * time.Minute)
	p.turnWith(portal.s, result, "no message arrived for too long")
	p.advance(2 * time.Hour)
	p.noTurn(portal.s)
}

func TestCapIsNotReset(t *testing.T) {
	t.Parallel()
	p := chain(t, func(l *link) { l.MaxMessages = 3 })
	portal := p.portal("chief", "anna")
	x := portal.send("lead", "one")
	if y := portal.send("lead", "two"); y != x {
		t.Fatalf("a further message begins %s, and %s is open", y, x)
	}
	p.restart()
	portal.send("lead", "three")
	r := portal.call("send_agent_message", map[string]any{"target": "lead", "message": "four"})
	if !r.IsError {
		t.Errorf("the fourth of three messages is sent: %s", r.Content)
	}
	want(t, "the refusal", r.Content, x, "used up", "not delivered")
	p.turnWith(portal.s, result, "its 3 messages are used up")
	p.noTurn(p.side("lead", "chief")) // the unread message is withdrawn and recorded
	want(t, "the records of the lead", strings.Join(p.side("lead", "chief").records, "\n"), "was not answered", "one",
		"two", "three")
	if y := portal.send("lead", "five"); y == x {
		t.Error("a message after the end continues the ended exchange")
	}
}

func TestConcurrentOrigins(t *testing.T) {
	t.Parallel()
	t.Run("two agents from one portal", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		portal.send("lead", "a word")
		portal.send("other", "a number")
		p.turnWith(p.side("other", "chief"), message, "a number").conclude("seven")
		p.turnWith(p.side("lead", "chief"), message, "a word").conclude("nebula")
		p.turnWith(portal.s, result, "seven")
		p.turnWith(portal.s, result, "nebula")
	})
	t.Run("one agent from two portals", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		anna, bert := p.portal("chief", "anna"), p.portal("chief", "bert")
		x, y := anna.send("lead", "a word for anna"), bert.send("lead", "a word for bert")
		if x == y {
			t.Fatal("both are one exchange")
		}
		lead := p.side("lead", "chief")
		one, two := p.turnWith(lead, message, "for anna"), p.turnWith(lead, message, "for bert")
		// Each request is passed on, and the results arrive in reverse order.
		one.send("community", "a word for anna, please")
		one.reply(noReply)
		two.send("community", "a word for bert, please")
		two.reply(noReply)
		community := p.side("community", "lead")
		one, two = p.turnWith(community, message, "for anna"), p.turnWith(community, message, "for bert")
		two.conclude("bear")
		two.reply("")
		one.conclude("apple")
		one.reply("")
		two, one = p.turnWith(lead, result, "bear"), p.turnWith(lead, result, "apple")
		if two.in.Thread != y || one.in.Thread != x {
			t.Errorf("bear came to %s and apple to %s, want %s and %s", two.in.Thread, one.in.Thread, y, x)
		}
		one.conclude("apple it is")
		two.conclude("bear it is")
		p.turnWith(anna.s, result, "apple it is")
		p.turnWith(bert.s, result, "bear it is")
		p.noTurn(anna.s)
		p.noTurn(bert.s)
	})
}

func TestConcludeOnce(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	x := portal.send("lead", "a word")
	lead := p.turnWith(p.side("lead", "chief"), message, "a word")
	lead.reply("which language?")
	chief := p.turnWith(p.side("chief", "lead"), message, "which language?")
	chief.conclude("never mind") // before any other turn
	chief.reply("bye")
	p.noTurn(p.side("lead", "chief"))
	p.turnWith(portal.s, result, "never mind")
	// A turn that is still running on it can no longer conclude or send.
	lead.in.Thread = x
	for tool, arguments := range map[string]map[string]any{
		"conclude_link":      {"summary": "agreed"},
		"send_agent_message": {"target": "chief", "message": "agreed"},
	} {
		r := lead.call(tool, arguments)
		if !r.IsError {
			t.Errorf("%s works on an exchange that is over: %s", tool, r.Content)
		}
		want(t, "the refusal", r.Content, x, "is over", "Nothing was sent")
	}
	p.noTurn(portal.s)
	p.noTurn(p.side("chief", "lead"))
}

func TestLateText(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	portal.send("lead", "a word")
	portal.send("lead", "a short one")
	side := p.side("lead", "chief")
	first, second := p.turnWith(side, message, "a word"), p.turnWith(side, message, "a short one")
	first.conclude("nebula")
	first.reply("There it is.")
	second.reply("nebula is short")
	p.noTurn(p.side("chief", "lead"))
	p.noTurn(side)
	want(t, "the records of the chief", strings.Join(p.side("chief", "lead").records, "\n"), "There it is.", "Too late",
		"nebula is short")
	want(t, "the records of the lead", strings.Join(side.records, "\n"), "Error: your last text was not delivered")
	if n := strings.Count(strings.Join(side.records, "\n"), "Error"); n != 1 {
		t.Errorf("%d errors", n)
	}
	p.turnWith(portal.s, result, "nebula")
	p.noTurn(portal.s)
}

func TestIntermediaryConcludesEarly(t *testing.T) {
	t.Parallel()
	t.Run("before the result is there", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		portal.send("lead", "a word")
		lead := p.turnWith(p.side("lead", "chief"), message, "a word")
		lead.send("community", "a word")
		lead.conclude("I have asked community")
		lead.reply("")
		p.turnWith(portal.s, result, "I have asked community")
		p.turnWith(p.side("community", "lead"), message, "a word").conclude("nebula")
		p.turnWith(portal.s, result, "nebula")
		p.noTurn(p.side("lead", "chief"))
		p.noTurn(portal.s)
	})
	t.Run("while the result waits for its turn", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		portal.send("lead", "a word")
		lead := p.turnWith(p.side("lead", "chief"), message, "a word")
		lead.send("community", "a word")
		p.turnWith(p.side("community", "lead"), message, "a word").conclude("nebula")
		lead.conclude("I have asked community")
		lead.reply("Done.")
		p.turnWith(portal.s, result, "I have asked community")
		want(t, "the result", portal.s.results[0].Text, "lead had received this from community", "nebula")
		p.noTurn(p.side("lead", "chief"))
		p.noTurn(portal.s)
	})
	t.Run("while the result is being read", func(t *testing.T) {
		t.Parallel()
		p := chain(t, func(l *link) { l.MaxMessages = 2 })
		portal := p.portal("chief", "anna")
		portal.send("lead", "a word")
		lead := p.turnWith(p.side("lead", "chief"), message, "a word")
		lead.send("community", "a word")
		lead.reply("I have asked community")
		p.turnWith(p.side("community", "lead"), message, "a word").conclude("nebula")
		lead = p.turnWith(p.side("lead", "chief"), result, "nebula")
		p.turnWith(p.side("chief", "lead"), message, "I have asked").reply("And?") // over the limit: the exchange ends
		p.turnWith(portal.s, result, "messages are used up")
		want(t, "the result", portal.s.results[0].Text, "lead had received this from community", "nebula")
		r := lead.call("conclude_link", map[string]any{"summary": "nebula"})
		want(t, "the refusal", r.Content, "is over", "was passed on already")
		lead.reply("They picked it with care.")
		want(t, "the records of the chief", strings.Join(p.read(p.side("chief", "lead")), "\n"), "Too late", "with care")
		p.noTurn(portal.s)
	})
	t.Run("in the turn about the result", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		portal.send("lead", "a word")
		lead := p.turnWith(p.side("lead", "chief"), message, "a word")
		lead.send("community", "a word")
		lead.endWith(contract.OutcomeOK, noReply) // handled after the following
		p.turnWith(p.side("community", "lead"), message, "a word").conclude("nebula")
		p.turnWith(p.side("lead", "chief"), result, "nebula").conclude("It is nebula")
		p.settle()
		p.turnWith(portal.s, result, "It is nebula")
		if text := portal.s.results[0].Text; strings.Contains(text, "had received") {
			t.Errorf("a concluded result is passed on as unread: %s", text)
		}
		p.noTurn(portal.s)
	})
	t.Run("and fails over it", func(t *testing.T) {
		t.Parallel()
		p := chain(t)
		portal := p.portal("chief", "anna")
		portal.send("lead", "a word")
		lead := p.turnWith(p.side("lead", "chief"), message, "a word")
		lead.send("community", "a word")
		lead.reply(noReply)
		p.turnWith(p.side("community", "lead"), message, "a word").conclude("nebula")
		p.turnWith(p.side("lead", "chief"), result, "nebula").end(contract.OutcomeError, "the model is gone")
		p.turnWith(portal.s, result, "nebula")
		want(t, "the result", portal.s.results[0].Text, "lead failed (error)", "the model is gone")
	})
}

func TestPeerFailure(t *testing.T) {
	t.Parallel()
	for outcome, words := range map[string]string{
		contract.OutcomeError: "failed", contract.OutcomeTimeout: "took too long", contract.OutcomeDead: "failed (dead)",
		contract.OutcomeCancelled: "was stopped", contract.OutcomeCapped: "too many turns",
	} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			p := chain(t)
			portal := p.portal("chief", "anna")
			x := portal.send("lead", "a word")
			p.turnWith(p.side("lead", "chief"), message, "a word").end(outcome, "that did not work")
			p.turnWith(portal.s, result, words)
			want(t, "the result", portal.s.results[0].Text, "that did not work")
			if got := p.exchange(x); !got.Over || got.Outcome != outcome {
				t.Errorf("it ended as %+v", got)
			}
			p.noTurn(p.side("chief", "lead"))
		})
	}
}

func TestRemovedLink(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fakeKernel){
		"switched off": func(p *fakeKernel) {
			p.c.Links[0].Problem = `config.yaml:3:5: links[0].to: the agent "lead" is not in agents.enabled`
		},
		"taken out": func(p *fakeKernel) { p.c.Links = p.c.Links[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := chain(t)
			portal := p.portal("chief", "anna")
			portal.send("lead", "a word")
			change(p)
			p.restart()
			p.advance(0)
			p.turnWith(portal.s, result, "no longer available")
			r := portal.call("send_agent_message", map[string]any{"target": "lead", "message": "hello?"})
			if !r.IsError {
				t.Errorf("the message is sent anyway: %s", r.Content)
			}
			portal.send("other", "everything else works")
		})
	}
}

func TestWaitingExchangeIsNotIdle(t *testing.T) {
	t.Parallel()
	p := chain(t, func(l *link) { l.IdleSeconds = 60 })
	portal := p.portal("chief", "anna")
	x := portal.send("lead", "a word")
	lead := p.turnWith(p.side("lead", "chief"), message, "a word")
	p.advance(50 * time.Second)
	y := lead.send("community", "a word")
	p.advance(50 * time.Second)
	if p.exchange(x).Over || p.exchange(y).Over {
		t.Fatal("one of them is over")
	}
	p.advance(15 * time.Second)
	if p.exchange(x).Over || !p.exchange(y).Over {
		t.Fatal("the first should wait for the second, which is idle")
	}
	lead.reply(noReply)
	p.turnWith(p.side("lead", "chief"), result, "no message arrived").reply(noReply)
	p.advance(61 * time.Second)
	p.turnWith(portal.s, result, "no message arrived")
}

func TestModeTask(t *testing.T) {
	t.Parallel()
	p := chain(t, func(l *link) { l.Mode = task })
	portal := p.portal("chief", "anna")
	portal.send("lead", "a word")
	lead := p.turnWith(p.side("lead", "chief"), message, "a word")
	lead.send("community", "a word")
	lead.reply("I have asked community.") // it waits, so this is not the result
	p.noTurn(portal.s)
	p.turnWith(p.side("community", "lead"), message, "a word").reply("nebula")
	p.turnWith(p.side("lead", "chief"), result, "nebula").reply("The word is nebula.")
	p.turnWith(portal.s, result, "The word is nebula.")
	for _, s := range p.sessions {
		p.noTurn(s)
	}
}

func TestRefusals(t *testing.T) {
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
		if r := portal.call(c.tool, c.arguments); !r.IsError || !strings.Contains(r.Content, c.words) {
			t.Errorf("%s %v: %s, want %q", c.tool, c.arguments, r.Content, c.words)
		}
	}
}

// Each input on a link brings the context of its exchange.
func TestContext(t *testing.T) {
	t.Parallel()
	p := chain(t, func(l *link) { l.ToAbout = "Knows " + l.To })
	portal := p.portal("chief", "anna")
	want(t, "the context of the portal", portal.call("peers", nil).Content, "lead (Knows lead)", "other",
		"send_agent_message")
	x := portal.send("lead", "a word")
	want(t, "the context of the portal", portal.call("peers", nil).Content, "Open: "+x+" with lead, 1 of 20 messages")
	lead := p.turnWith(p.side("lead", "chief"), message, "a word")
	want(t, "the frame of the lead", lead.in.frame, "chat", "chief began this exchange ("+x+")", "conclude_link",
		"19 of 20 messages", noReply, "community (Knows community)")
	if strings.Contains(lead.in.frame, "- chief") {
		t.Errorf("the lead's context says to ask the chief first:\n%s", lead.in.frame)
	}
	lead.reply("which?")
	chief := p.turnWith(p.side("chief", "lead"), message, "which?")
	want(t, "the frame of the chief", chief.in.frame, "You began this exchange", `"[record from chief]"`,
		"18 of 20 messages")
	chief.reply(noReply)
	lead.send("community", "a word")
	community := p.turnWith(p.side("community", "lead"), message, "a word")
	if strings.Contains(community.in.frame, "write to") {
		t.Errorf("community has other peers:\n%s", community.in.frame)
	}
	community.conclude("nebula")
	want(t, "the frame of a result", p.turnWith(p.side("lead", "chief"), result, "nebula").in.frame,
		"chief began this exchange", "18 of 20")
	if r := p.portal("stranger", "anna").call("peers", nil); !r.Nothing || r.Content != "" {
		t.Errorf("an agent without links gets %q", r.Content)
	}
}

func TestListAndShow(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	x := portal.send("lead", "a word")
	want(t, "the list", portal.call("list_links", map[string]any{}).Content, x, `"from":"chief"`, "sessions")
	p.turnWith(p.side("lead", "chief"), message, "a word").conclude("nebula")
	if got := portal.call("list_links", map[string]any{}).Content; strings.Contains(got, `"id":"`+x) {
		t.Errorf("an ended exchange is listed: %s", got)
	}
	want(t, "the list of all", portal.call("list_links", map[string]any{"all": true}).Content, x, "concluded")
	want(t, "the exchange", portal.call("show_exchange", map[string]any{"id": x}).Content, "a word", "nebula",
		"concluded by lead")
	if r := portal.call("show_exchange", map[string]any{"id": "x999"}); !r.IsError {
		t.Error("an unknown one is shown")
	}
	p.now = p.now.Add(keep + time.Hour)
	if err := p.l.prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key := range p.kv {
		if strings.Contains(key, x) {
			t.Errorf("%s is kept forever", key)
		}
	}
}

// An idle end starts a new count of turns in the kernel, so an agent that keeps
// trying is stopped here.
func TestIdleStreak(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal := p.portal("chief", "anna")
	begun := 0
	for turn := portal; begun < 100; begun++ {
		if r := turn.call("send_agent_message", map[string]any{"target": "lead", "message": "are you there?"}); r.IsError {
			want(t, "the refusal", r.Content, "in a row")
			break
		}
		p.turnWith(p.side("lead", "chief"), message, "are you there?").reply(noReply)
		p.advance(time.Hour)
		turn = p.turnWith(portal.s, result, "no message arrived for too long")
	}
	if begun != maxIdleStreak {
		t.Errorf("%d exchanges were begun, want %d", begun, maxIdleStreak)
	}
	portal.send("lead", "a person asks again")
}
