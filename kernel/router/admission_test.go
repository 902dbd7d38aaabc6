package router_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/kernel/router"
)

var codeForm = regexp.MustCompile("approve the code ([A-Z2-7]{8}) within an hour")

// code is the pairing code in a text.
func code(t *testing.T, text string) string {
	t.Helper()
	m := codeForm.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no code in %q", text)
	}
	return m[1]
}

// asksIn has a stranger write and returns the code that they are given.
func asksIn(w *kerneltest.World, c *kerneltest.Channel, person string) string {
	w.T.Helper()
	c.Says(person, "hello?")
	shown := c.ShowsOne("I don't know you yet")
	if shown.Conversation != person {
		w.T.Fatalf("the code for %s goes to %q", person, shown.Conversation)
	}
	return code(w.T, shown.Text)
}

func approve(w *kerneltest.World, code string) (p *people.Account, err error) {
	err = w.Bus.Do(func(tx *bus.Tx) (err error) {
		p, err = w.Router.Approve(tx, code, "")
		return err
	})
	w.Settle()
	return p, err
}

func waiting(w *kerneltest.World) (all []router.Pairing) {
	w.T.Helper()
	w.Read(func(r journal.Reader) (err error) {
		all, err = router.Waiting(r, time.Now())
		return err
	})
	return all
}

func TestAStrangerIsGivenACodeAndHeardByNobody(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		first := asksIn(w, telegram, "carl")
		orchestrator.HearsNothing()
		if again := asksIn(w, telegram, "carl"); again != first {
			t.Errorf("while a code is valid, another one is given: %s, %s", first, again)
		}
		if other := asksIn(w, telegram, "dora"); other == first {
			t.Error("two strangers have one code")
		}
		w.Read(func(r journal.Reader) error {
			if stored, err := people.Accounts(r); len(stored) != 0 || err != nil {
				t.Errorf("stored of strangers: %v, %v", stored, err)
			}
			return nil
		})
		if all := waiting(w); len(all) != 2 {
			t.Errorf("waiting: %v", all)
		}
	})
}

func TestTheCommandThatApprovesIsNamed(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram := w.Channel("telegram")
		w.Know(func(s *directory.Snapshot) { s.Program.Approve = "kernel approve" })
		telegram.Says("carl", "hello?")
		waiting := waiting(w)
		telegram.ShowsOne("run this command on its machine within an hour:\n\n`kernel approve " + waiting[0].Code + "`")
	})
}

func TestAdmissionComesBeforeCommands(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "work")
		running := orchestrator.Hears("work")
		for _, text := range []string{"/status", "/stop", "/sethome"} {
			telegram.Says("carl", text)
			telegram.ShowsOne("I don't know you yet")
		}
		telegram.Reports(contract.UserMessage{UserID: "carl", ConversationID: "anna", Group: true, Text: "/stop"})
		telegram.IsSilent()
		running.Answers("done")
		telegram.Shows("anna: done")
	})
}

func TestStrangersInAGroupMeetSilence(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Reports(contract.UserMessage{UserID: "carl", ConversationID: "family", Group: true, Text: "hello"})
		telegram.Reports(contract.UserMessage{UserID: "", ConversationID: "feed", Text: "nobody wrote this"})
		telegram.IsSilent()
		orchestrator.HearsNothing()
		if waiting := waiting(w); len(waiting) != 0 {
			t.Errorf("codes were made: %v", waiting)
		}
	})
}

func TestCodesAreLimitedForAPerson(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram := w.Channel("telegram")
		for range 3 {
			asksIn(w, telegram, "carl")
		}
		telegram.Says("carl", "and now?")
		telegram.IsSilent()
		w.Wait(time.Hour + time.Second)
		asksIn(w, telegram, "carl")
	})
}

// A flood of accounts neither keeps a real person from a code, nor takes theirs away
// before there was time to approve it.
func TestAFloodOfStrangersLeavesRoomForAPerson(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, matrix := w.Channel("telegram"), w.Channel("matrix")
		for i := range 100 {
			asksIn(w, telegram, fmt.Sprintf("early%d", i))
		}
		w.Wait(5 * time.Minute)
		anna := asksIn(w, telegram, "anna")
		for i := range 99 {
			asksIn(w, telegram, fmt.Sprintf("late%d", i))
		}
		telegram.Says("one too many", "hello?")
		telegram.IsSilent()
		asksIn(w, matrix, "somebody") // one channel does not use up another's
		asksIn(w, telegram, "early7")

		w.Wait(5*time.Minute + time.Second) // the early codes can give way, the others are too new
		for i := range 100 {
			asksIn(w, telegram, fmt.Sprintf("later%d", i))
		}
		telegram.Says("two too many", "hello?")
		telegram.IsSilent()
		if waiting := waiting(w); len(waiting) != 200+1 {
			t.Errorf("%d codes wait, want 200 and that of the other channel", len(waiting))
		}
		if _, err := approve(w, anna); err != nil {
			t.Errorf("the code of a person was taken away after five minutes: %v", err)
		}
		telegram.ShowsOne("You are connected")

		w.Wait(2 * time.Hour)
		asksIn(w, telegram, "one too many")
		w.Read(func(r journal.Reader) error {
			kept, err := r.KVScan(contract.KernelSource, "pairing/telegram/", "", 1000)
			if len(kept) != 1 {
				t.Errorf("%d pairings are kept, want the one that is valid", len(kept))
			}
			return err
		})
	})
}

func TestClearingCodes(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, matrix := w.Channel("telegram"), w.Channel("matrix")
		old := asksIn(w, telegram, "carl")
		asksIn(w, telegram, "dora")
		kept := asksIn(w, matrix, "somebody")
		for _, tc := range []struct {
			channel string
			want    int
		}{{"telegram", 2}, {"telegram", 0}, {"nosuch", 0}} {
			w.Do(func(tx *bus.Tx) error {
				n, err := router.ClearPairings(tx, tc.channel)
				if n != tc.want {
					t.Errorf("clearing %s deletes %d codes, want %d", tc.channel, n, tc.want)
				}
				return err
			})
		}
		if waiting := waiting(w); len(waiting) != 1 || waiting[0].Code != kept {
			t.Errorf("waiting: %v", waiting)
		}
		if _, err := approve(w, old); err == nil {
			t.Error("a code that was cleared is good")
		}
		asksIn(w, telegram, "carl")
		w.Do(func(tx *bus.Tx) error {
			n, err := router.ClearPairings(tx, "")
			if n != 2 {
				t.Errorf("clearing deletes %d codes, want 2", n)
			}
			return err
		})
	})
}

// Of a stranger's message only what a pairing needs is stored.
func TestTextsOfStrangersAreNotStored(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram := w.Channel("telegram")
		telegram.Says("carl", "a secret text")
		telegram.Reports(contract.UserMessage{UserID: "carl", ConversationID: "family", Group: true, Text: "a secret text"})
		telegram.Reports(contract.UserMessage{UserID: "carl", Text: "a secret text"})
		telegram.Reports(contract.UserMessage{
			UserID: "dora", UserName: strings.Repeat("d", 5000), ConversationID: "dora", Text: "a secret text",
		})
		if stored := w.Events(contract.TopicUserMessage); len(stored) != 0 {
			t.Errorf("stored: %v", stored)
		}
		if dead := w.Dead(contract.TopicUserMessage); len(dead) != 0 {
			t.Errorf("dead letters: %q", dead)
		}
		if shown := telegram.Sends(); len(shown) != 2 {
			t.Errorf("strangers read %+v, want a code each", shown)
		}
		w.Read(func(r journal.Reader) error {
			kept, err := r.KVScan(contract.KernelSource, "", "", 1000)
			for _, kv := range kept {
				if len(kv.Value) > 500 || strings.Contains(string(kv.Value), "secret") {
					t.Errorf("%s: %s is stored", kv.Key, kv.Value)
				}
			}
			return err
		})
	})
}

func TestApproving(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		anna := asksIn(w, telegram, "anna")
		boris := asksIn(w, telegram, "boris")
		if _, err := approve(w, "WRONGONE"); err == nil || !strings.Contains(err.Error(), "WRONGONE") {
			t.Errorf("a wrong code: %v", err)
		}
		p, err := approve(w, " "+strings.ToLower(boris)+"\n")
		if err != nil || p.Person != people.Owner || p.UserID != "boris" {
			t.Fatalf("the first one approved: %+v, %v", p, err)
		}
		telegram.ShowsOne("You are connected")
		if p, err = approve(w, anna); err != nil || p.Person == people.Owner {
			t.Fatalf("the second one approved: %+v, %v", p, err)
		}
		telegram.ShowsOne("You are connected")
		if _, err := approve(w, anna); err == nil {
			t.Error("a code was good twice")
		}
		telegram.Says("anna", "hello")
		orchestrator.Hears("hello").Answers("hi")
		telegram.Shows("anna: hi")
		w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "for the owner"})
		telegram.Shows("boris: for the owner")
		orchestrator.HearsRecord("for the owner")
	})
}

func TestACodeExpires(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram := w.Channel("telegram")
		old := asksIn(w, telegram, "anna")
		w.Wait(time.Hour + time.Second)
		if _, err := approve(w, old); err == nil {
			t.Error("an expired code was good")
		}
		if waiting := waiting(w); len(waiting) != 0 {
			t.Errorf("it is listed as waiting: %v", waiting)
		}
		if fresh := asksIn(w, telegram, "anna"); fresh == old {
			t.Error("the expired code is given again")
		} else if _, err := approve(w, fresh); err != nil {
			t.Error(err)
		}
	})
}

func TestRevoking(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		if _, err := approve(w, asksIn(w, telegram, "anna")); err != nil {
			t.Fatal(err)
		}
		telegram.ShowsOne("You are connected")
		if _, err := revoke(w, "anna"); err != nil {
			t.Fatal(err)
		}
		if _, err := revoke(w, "anna"); err == nil {
			t.Error("somebody who is not approved was revoked")
		}
		asksIn(w, telegram, "anna")
		orchestrator.HearsNothing()
		if p, err := approve(w, asksIn(w, telegram, "boris")); err != nil || p.Person != people.Owner {
			t.Errorf("the next one approved is not the owner: %+v, %v", p, err)
		}
	})
}

func TestTheConfigurationAdmits(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna", "boris")
		telegram.Says("boris", "hello")
		orchestrator.Hears("hello").Answers("hi")
		telegram.Shows("boris: hi")

		// The first one named is the owner, at first without a conversation.
		w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "one"})
		if m := telegram.ShowsOne("one"); m.Conversation != "" || m.Owner != "anna" {
			t.Errorf("the notice goes to %q of %q", m.Conversation, m.Owner)
		}
		orchestrator.HearsRecord("one")
		telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "family", Group: true, Text: "in a group"})
		orchestrator.Hears("in a group").Answers("")
		telegram.ShowsOne("Others can read this group")
		telegram.Says("anna", "in private")
		orchestrator.Hears("in private").Answers("")
		w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "two"})
		telegram.Shows("anna: two")
		orchestrator.HearsRecord("two")

		// Approving somebody else does not change that, taking her name away does.
		if p, err := approve(w, asksIn(w, telegram, "carl")); err != nil || p.Person == people.Owner {
			t.Errorf("approved beside an owner: %+v, %v", p, err)
		}
		telegram.ShowsOne("You are connected")
		telegram.Admits("boris")
		w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "three"})
		if m := telegram.ShowsOne("three"); m.Owner != "boris" {
			t.Errorf("the notice goes to %q of %q", m.Conversation, m.Owner)
		}
	})
}

func TestEveryoneIsAdmittedAndNobodyOwns(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("*")
		telegram.Says("carl", "/sethome")
		telegram.ShowsOne("has no owner yet")
		telegram.Says("carl", "hello")
		orchestrator.Hears("hello").Answers("hi")
		telegram.Shows("carl: hi")
		w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "for whom?"})
		if m := telegram.ShowsOne("for whom?"); m.Conversation != "" || m.Owner != "" {
			t.Errorf("a notice goes to %q of %q, who is nobody's owner", m.Conversation, m.Owner)
		}
	})
}

func TestHomeNeedsNoneInATerminal(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		cli := w.Channel("cli")
		w.Agent("orchestrator")
		cli.Admits("local")
		cli.Change(func(c *directory.Channel) { c.Local = true })
		cli.Says("local", "/sethome")
		cli.ShowsOne("always come here")
	})
}

func TestHome(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna", "boris")
		telegram.Says("boris", "/sethome")
		telegram.ShowsOne("What people send you comes here")
		telegram.Reports(contract.UserMessage{UserID: "boris", ConversationID: "club", Group: true, Text: "/sethome"})
		telegram.ShowsOne("Only the owner")
		for _, try := range [][2]string{
			{"/sethome", "send /household first"}, {"/household", "household group now"}, {"/sethome", "reminders and notices here"},
		} {
			telegram.Reports(
				contract.UserMessage{UserID: "anna", ConversationID: "family", ThreadID: "7", Group: true, Text: try[0]},
			)
			telegram.ShowsOne(try[1])
		}
		telegram.Says("anna", "in private") // does not move it back
		orchestrator.Hears("in private").Answers("")
		w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "dinner"})
		telegram.Shows("family/7: dinner")
	})
}

func TestAMessageWithoutAPlaceIsADeadLetter(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Reports(contract.UserMessage{UserID: "anna", Text: "where am I?"})
		telegram.Must("", kerneltest.Publish(contract.TopicUserMessage, []string{"no", "message"}))
		w.Know(func(s *directory.Snapshot) { s.Channels = nil })
		telegram.Says("anna", "my channel is gone")
		orchestrator.HearsNothing()
		dead := w.Dead(contract.TopicUserMessage)
		for i, word := range []string{"no conversation", "payload", "no channel"} {
			if i >= len(dead) || !strings.Contains(dead[i], word) {
				t.Errorf("dead letters: %q, want %q in number %d", dead, word, i)
			}
		}
		if len(dead) != 3 {
			t.Errorf("%d dead letters, want 3", len(dead))
		}
	})
}

// With a role, an account is another person; without one, the first account on a channel
// is the owner's, until it is unlinked.
func TestWhoseAccountIsApproved(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		h.private(h.telegram, "anna")
		post := w.Channel("post")
		codes := map[string]string{}
		for _, person := range []string{"dora", "emil", "frida"} {
			codes[person] = asksIn(w, post, person)
		}
		approved := func(person, role string) (p *people.Person, err error) {
			err = w.Bus.Do(func(tx *bus.Tx) error {
				_, err := w.Router.Approve(tx, codes[person], role)
				return err
			})
			w.Settle()
			if err != nil {
				return nil, err
			}
			post.ShowsOne("You are connected")
			return h.person(person), nil
		}
		if _, err := approved("dora", "king"); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("approved as a king: %v", err)
		}
		if p, err := approved("dora", people.RoleGuest); err != nil || p.Role != people.RoleGuest || len(p.Accounts) != 1 {
			t.Errorf("the first one, as a guest: %+v, %v", p, err)
		}
		emil, err := approved("emil", "")
		if err != nil || emil.ID != people.Owner || len(emil.Accounts) != 2 {
			t.Fatalf("the first one without a role: %+v, %v", emil, err)
		}
		w.Do(func(tx *bus.Tx) error {
			_, err := w.Router.Unlink(tx, emil.Accounts[1])
			return err
		})
		if p := h.person("emil"); p.ID == people.Owner || p.May(people.RoleOwner) {
			t.Errorf("unlinked from the owner: %+v", p)
		}
		if p, err := approved("frida", ""); err != nil || p.ID != people.Owner {
			t.Errorf("the next one after the owner's account was unlinked: %+v, %v", p, err)
		}
	})
}

func TestAnAccountIsAdmittedForAPerson(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, page, agent := w.Channel("telegram"), w.Channel("page"), w.Agent("orchestrator")
		owner, err := approve(w, asksIn(w, telegram, "olga"))
		if err != nil {
			t.Fatal(err)
		}
		telegram.ShowsOne("You are connected")
		anna, err := approve(w, asksIn(w, telegram, "anna"))
		if err != nil {
			t.Fatal(err)
		}
		telegram.ShowsOne("You are connected")
		admit := func(user, person, channel string) (a *people.Account, err error) {
			err = w.Bus.Do(func(tx *bus.Tx) (err error) {
				a, err = w.Router.Admit(tx, people.Account{Channel: channel, UserID: user, Conversation: user}, person)
				return err
			})
			w.Settle()
			return a, err
		}
		for _, bad := range [][2]string{{"ghost", "page"}, {anna.ID, "nowhere"}} {
			if _, err := admit("x", bad[0], bad[1]); !errors.Is(err, contract.ErrNotFound) {
				t.Errorf("%v was admitted: %v", bad, err)
			}
		}
		first, err := admit("a", anna.ID, "page")
		if err != nil {
			t.Fatal(err)
		}
		if again, err := admit("a", anna.ID, "page"); err != nil || *again != *first {
			t.Errorf("admitted twice: %+v, %+v, %v", first, again, err)
		}
		if _, err := admit("o", people.Owner, "page"); err != nil {
			t.Fatal(err)
		}
		w.Read(func(r journal.Reader) error {
			for account, want := range map[string]string{first.ID: anna.ID, owner.ID: people.Owner} {
				if p, err := people.Of(r, account); err != nil || p.ID != want {
					t.Errorf("%s is of %+v, %v, want %s", account, p, err, want)
				}
			}
			of := contract.Principal{Person: anna.ID, Own: true}
			if at, err := w.Router.Named(r, of, "@"+anna.ID, ""); err != nil || at.ChannelID != "telegram" {
				t.Errorf("she is reached at %+v, %v: the page became where she is reached", at, err)
			}
			return nil
		})
		page.Says("a", "hello")
		agent.Hears("hello")
	})
}
