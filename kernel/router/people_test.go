package router_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/people"
)

// homeOf is a world with people on two channels, where anna is the owner on the first.
type homeOf struct {
	principals
	slack *kerneltest.Channel
}

func withHome(w *kerneltest.World) homeOf {
	h := homeOf{withPrincipals(w), w.Channel("slack")}
	h.telegram.Admits("anna", "boris")
	h.slack.Admits("carl", "anna.s", "boris.s")
	return h
}

// says has a person write, and returns the answer that isn't an agent's.
func (h homeOf) says(c *kerneltest.Channel, person, text string) string {
	h.T.Helper()
	c.Says(person, text)
	return c.ShowsOne("").Text
}

// private has a person write, and returns for whom the turn is.
func (h homeOf) private(c *kerneltest.Channel, person string) contract.Principal {
	h.T.Helper()
	c.Says(person, "it's me, "+person)
	turn := h.agent.Hears("it's me, " + person)
	of := h.of(turn)
	turn.Answers("")
	return of
}

func (h homeOf) person(name string) *people.Person {
	h.T.Helper()
	var found *people.Person
	h.Read(func(r journal.Reader) error {
		all, accounts, err := people.All(r)
		for _, p := range all {
			if slices.ContainsFunc(accounts[p.ID], func(a people.Account) bool { return a.UserID == name }) {
				found = p
			}
		}
		return err
	})
	if found == nil {
		h.T.Fatalf("nobody has the account %s", name)
	}
	return found
}

func code8(t *testing.T, text string) string {
	t.Helper()
	_, after, found := strings.Cut(text, "/link ")
	if !found || len(after) < 8 {
		t.Fatalf("no code in %q", text)
	}
	return after[:8]
}

// links has a person link an account to the one that gets the code.
func (h homeOf) links(with *kerneltest.Channel, account string, on *kerneltest.Channel, other string) {
	h.T.Helper()
	code := code8(h.T, h.says(with, account, "/link"))
	h.says(on, other, "/link "+code+" yes")
	with.ShowsOne("is linked to this one")
}

func TestLinking(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		boris, other := h.private(h.telegram, "boris"), h.private(h.slack, "boris.s")
		if boris.Sees(other) || other.Sees(boris) {
			t.Fatalf("two people see each other's things: %+v, %+v", boris, other)
		}
		code := code8(t, h.says(h.telegram, "boris", "/link"))
		if text := h.says(h.slack, "boris.s", "/link WRONGONE"); !strings.Contains(text, "unknown or has expired") {
			t.Errorf("a wrong code: %q", text)
		}
		if text := h.says(h.slack, "boris.s", "/link "+code); !strings.Contains(text, "/link "+code+" yes") {
			t.Errorf("before it links, it says %q", text)
		}
		if p := h.person("boris.s"); len(p.Accounts) != 1 {
			t.Errorf("linked without a yes: %+v", p)
		}
		if text := h.says(h.slack, "boris.s", "/link "+strings.ToLower(code)+" yes"); !strings.Contains(text, "is linked to yours") {
			t.Errorf("linking says %q", text)
		}
		h.telegram.ShowsOne("is linked to this one")
		boris, other = h.private(h.telegram, "boris"), h.private(h.slack, "boris.s")
		if !boris.Sees(other) || !other.Sees(boris) || boris.Person == other.Person {
			t.Errorf("linked: %+v, %+v", boris, other)
		}
		if text := h.says(h.slack, "boris.s", "/link "+code+" yes"); !strings.Contains(text, "unknown or has expired") {
			t.Errorf("a code was good twice: %q", text)
		}
		again := code8(t, h.says(h.slack, "boris.s", "/link"))
		if text := h.says(h.telegram, "boris", "/link "+again); !strings.Contains(text, "linked already") {
			t.Errorf("a circle: %q", text)
		}
		w.Restart()
		if text := h.says(h.telegram, "boris", "/link off"); !strings.Contains(text, "no longer linked") {
			t.Errorf("unlinking says %q", text)
		}
		boris, other = h.private(h.telegram, "boris"), h.private(h.slack, "boris.s")
		if boris.Sees(other) || other.Sees(boris) {
			t.Errorf("unlinked: %+v, %+v", boris, other)
		}
		if text := h.says(h.telegram, "boris", "/link off"); !strings.Contains(text, "isn't linked") {
			t.Errorf("unlinking again says %q", text)
		}
	})
}

// The owner can't be made to give what is theirs to another person.
func TestNobodyIsLinkedToLess(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		h.private(h.telegram, "anna")
		h.private(h.slack, "boris.s")
		code := code8(t, h.says(h.slack, "boris.s", "/link"))
		if text := h.says(h.telegram, "anna", "/link "+code+" yes"); !strings.Contains(text, "You may do more here") {
			t.Errorf("the owner, with the code of a member: %q", text)
		}
		h.telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "club", Group: true, Text: "/link"})
		h.telegram.ShowsOne("private chat")
		code = code8(t, h.says(h.telegram, "anna", "/link"))
		w.Wait(10*time.Minute + time.Second)
		if text := h.says(h.slack, "boris.s", "/link "+code); !strings.Contains(text, "has expired") {
			t.Errorf("an old code: %q", text)
		}
		h.links(h.telegram, "anna", h.slack, "boris.s")
		if p := h.person("boris.s"); p.ID != people.Owner || !p.May(people.RoleOwner) {
			t.Errorf("linked to the owner: %+v", p)
		}
	})
}

// The owners of channels are one person; what the kernel does by itself is for them.
func TestTheOwnerIsOnePerson(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		h.private(h.slack, "carl")
		anna, boris, carl := h.private(h.telegram, "anna"), h.private(h.telegram, "boris"), h.private(h.slack, "carl")
		if !anna.Sees(carl) || !carl.Sees(anna) || anna.Sees(boris) || carl.Sees(boris) || boris.Sees(anna) {
			t.Errorf("the owner is %+v and %+v, another one %+v", anna, carl, boris)
		}
		w.Emits(contract.TopicAgentBackground, contract.AgentBackground{Prompt: "look around"})
		turn := h.agent.Hears("look around")
		job := h.of(turn)
		turn.Answers("")
		if !job.Sees(anna) || !job.Sees(carl) || job.Sees(boris) || !anna.Sees(job) || boris.Sees(job) {
			t.Errorf("a job of no one is for %+v", job)
		}
		w.Emits(contract.TopicAgentBackground, contract.AgentBackground{Prompt: "for boris", Principal: boris})
		turn = h.agent.Hears("for boris")
		job = h.of(turn)
		turn.Answers("")
		if job.Sees(anna) || !job.Sees(boris) {
			t.Errorf("a job of his is for %+v", job)
		}
		var split *people.Person
		w.Do(func(tx *bus.Tx) (err error) {
			split, err = w.Router.Unlink(tx, carl.Person)
			return err
		})
		if carl = h.private(h.slack, "carl"); carl.Sees(anna) || split.ID != carl.Person {
			t.Errorf("unlinked from the owner: %+v", carl)
		}
		err := w.Bus.Do(func(tx *bus.Tx) error {
			_, err := w.Router.Unlink(tx, anna.Person)
			return err
		})
		if !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("the owner's last account is unlinked: %v", err)
		}
	})
}

func TestRoles(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		w.Tool("lab", &extensionv1.Tool{Name: "act"}, nil)
		is := func(name, role string) error {
			err := w.Bus.Do(func(tx *bus.Tx) error {
				_, err := w.Router.SetRole(tx, h.person(name).ID, role)
				return err
			})
			w.Settle()
			return err
		}
		boris := h.private(h.telegram, "boris")
		if err := is("boris", "king"); !errors.Is(err, contract.ErrInvalid) || !strings.Contains(err.Error(), "guest") {
			t.Errorf("a wrong role: %v", err)
		}
		if err := is("boris", people.RoleGuest); err != nil {
			t.Fatal(err)
		}
		guest := h.private(h.telegram, "boris")
		if guest.Sees(contract.Principal{}) || !guest.Sees(boris) {
			t.Errorf("a guest is %+v", guest)
		}
		h.telegram.Says("boris", "act")
		turn := h.agent.Hears("act")
		if refused := turn.Uses("lab/act", struct{}{}); !refused.GetIsError() || !strings.Contains(refused.GetContent(), "guest") {
			t.Errorf("a guest uses a tool with effects: %+v", refused)
		}
		turn.Answers("")
		if text := h.says(h.telegram, "boris", "/agent other"); !strings.Contains(text, "As a guest") {
			t.Errorf("a guest uses /agent: %q", text)
		}
		if text := h.says(h.telegram, "boris", "/help"); !strings.Contains(text, "/new") {
			t.Errorf("a guest gets %q", text)
		}
		h.private(h.slack, "boris.s")
		if err := is("boris.s", people.RoleGuest); err != nil {
			t.Fatal(err)
		}
		h.links(h.telegram, "boris", h.slack, "boris.s")
		h.says(h.telegram, "boris", "/link off")
		for _, name := range []string{"boris", "boris.s"} {
			if p := h.person(name); p.May(people.RoleMember) || len(p.Accounts) != 1 {
				t.Errorf("a guest who has linked and unlinked accounts is %+v", p)
			}
		}
		if err := is("boris", people.RoleBlocked); err != nil {
			t.Fatal(err)
		}
		h.telegram.Says("boris", "are you there?")
		h.agent.HearsNothing()
		h.telegram.IsSilent()
		if err := is("boris", people.RoleMember); err != nil {
			t.Fatal(err)
		}
		h.private(h.telegram, "boris")
		if err := is("boris", people.RoleOwner); err != nil {
			t.Fatal(err)
		}
		anna := h.private(h.telegram, "anna")
		if boris = h.private(h.telegram, "boris"); boris.Sees(anna) || anna.Sees(boris) {
			t.Errorf("two owners see each other's things: %+v, %+v", anna, boris)
		}
		if err := is("anna", people.RoleGuest); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("the owner is made a guest: %v", err)
		}
	})
}

func TestRemovingAPerson(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		remove := func(name string) error {
			err := w.Bus.Do(func(tx *bus.Tx) error {
				_, err := w.Router.RemovePerson(tx, h.person(name).ID)
				return err
			})
			w.Settle()
			return err
		}
		h.private(h.telegram, "boris")
		h.private(h.slack, "boris.s")
		h.links(h.telegram, "boris", h.slack, "boris.s")
		h.private(h.telegram, "anna")
		if err := remove("boris.s"); err != nil {
			t.Fatal(err)
		}
		w.Read(func(r journal.Reader) error {
			accounts, err := people.Accounts(r)
			if len(accounts) != 1 || accounts[0].UserID != "anna" {
				t.Errorf("after removing one person there are %+v", accounts)
			}
			sessions, errSessions := r.Sessions(journal.SessionFilter{})
			for _, s := range sessions {
				if strings.Contains(s.Key, "boris") {
					t.Errorf("the session %s is left", s.Key)
				}
			}
			return errors.Join(err, errSessions)
		})
		if err := remove("anna"); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("the owner is removed: %v", err)
		}
	})
}

// An account that the configuration no longer admits, and that is then approved, is still
// linked to the others.
func TestApprovingALinkedAccount(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		h.private(h.telegram, "anna")
		h.private(h.telegram, "boris")
		h.private(h.slack, "boris.s")
		h.links(h.telegram, "boris", h.slack, "boris.s")
		h.telegram.Admits("anna")
		if _, err := approve(w, asksIn(w, h.telegram, "boris")); err != nil {
			t.Fatal(err)
		}
		h.telegram.ShowsOne("You are connected")
		boris, other := h.private(h.telegram, "boris"), h.private(h.slack, "boris.s")
		if !boris.Sees(other) || !other.Sees(boris) || len(h.person("boris").Accounts) != 2 {
			t.Errorf("approved: %+v, %+v", boris, other)
		}
	})
}
