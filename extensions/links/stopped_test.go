package links

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// stopped handles a /stop in the conversation of a session, and returns what the person
// gets.
func (p *fakeKernel) stopped(s *fakeSession) []string {
	p.t.Helper()
	payload, err := json.Marshal(contract.ConversationStopped{Conversation: "the chat", Sessions: []string{"s999", s.id}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.notified = nil
	effects, err := p.l.handle(p.t.Context(), sdk.Event{
		ID: "e9", Topic: contract.TopicStopped, Payload: payload, CreatedAt: p.now,
	})
	if err == nil {
		_, err = p.commit(effects)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return p.notified
}

// A /stop ends the exchanges that were begun in the conversation, and what they led to,
// in one commit. The conversation gets records, no turns.
func TestStopEndsTheExchangesOfTheConversation(t *testing.T) {
	t.Parallel()
	p := chain(t)
	portal, boris := p.portal("chief", "anna"), p.portal("chief", "boris")
	x, y := portal.send("lead", "a word"), portal.send("other", "a number")
	z := boris.send("lead", "a color")
	lead := p.turnWith(p.side("lead", "chief"), message, "a word")
	w := lead.send("community", "which word?")

	if got := p.stopped(portal.s); len(got) != 1 || !strings.Contains(got[0], "the chat") ||
		!strings.Contains(got[0], "Ended 2 conversations with other agents: lead, other.") {
		t.Errorf("the person gets %q", got)
	}
	for _, id := range []string{w, x, y} {
		if got := p.exchange(id); !got.Over || got.Outcome != contract.OutcomeCancelled {
			t.Errorf("%s ended as %+v", id, got)
		}
	}
	if p.exchange(z).Over {
		t.Error("an exchange of another conversation has ended")
	}
	records := p.read(portal.s)
	if len(records) != 2 {
		t.Fatalf("the conversation notes %q", records)
	}
	want(t, "the record", records[0], x, "the user stopped everything")
	want(t, "the record", records[1], y, "the user stopped everything")
	p.noTurn(p.side("other", "chief"))
	p.noTurn(p.side("community", "lead"))
	lead.reply("too late")
	p.noTurn(p.side("chief", "lead"))

	if got := p.stopped(portal.s); len(got) > 0 { // a crash before the acknowledgement would repeat it
		t.Errorf("the person gets %q", got)
	}
	p.turnWith(p.side("lead", "chief"), message, "a color").reply("red")
}
