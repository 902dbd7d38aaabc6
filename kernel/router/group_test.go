package router_test

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// principals is a world whose agents have a tool that reports for whom it was called.
type principals struct {
	*kerneltest.World
	telegram *kerneltest.Channel
	agent    *kerneltest.Agent
}

func withPrincipals(w *kerneltest.World) principals {
	p := principals{w, w.Channel("telegram"), w.Agent("orchestrator")}
	w.Extension(bus.Actor{ID: "lab"})
	w.Tool("lab", &extensionv1.Tool{Name: "whose", ReadOnly: true},
		func(_ context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
			content, err := protojson.Marshal(r.GetPrincipal())
			return &extensionv1.CallResult{Content: string(content)}, err
		})
	return p
}

// in reports a message in a group and returns its turn.
func (p principals) in(user, group, thread, text string) *kerneltest.Turn {
	p.T.Helper()
	p.telegram.Reports(contract.UserMessage{
		UserID: user, ConversationID: group, ThreadID: thread, Group: true, GroupName: "Club", Text: text,
	})
	return p.agent.Hears(text)
}

// of returns whose things a turn may use.
func (p principals) of(turn *kerneltest.Turn) contract.Principal {
	p.T.Helper()
	of := &extensionv1.Principal{}
	if err := protojson.Unmarshal([]byte(turn.Uses("lab/whose", struct{}{}).GetContent()), of); err != nil {
		p.T.Fatal(err)
	}
	return contract.PrincipalOf(of)
}

func (p principals) group(address string) *session.Group {
	p.T.Helper()
	var g *session.Group
	p.Read(func(r journal.Reader) (err error) {
		g, err = journal.Load[session.Group](r, contract.KernelSource, session.GroupKey("telegram", address))
		return err
	})
	return g
}

func TestAGroupUsesOnlyWhatIsItsOwn(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		p := withPrincipals(w)
		p.telegram.Admits("anna", "boris")
		p.telegram.Says("anna", "in private")
		private := p.agent.Hears("in private")
		anna := p.of(private)
		if anna.Person == "" || anna.Conversation != private.Input.ReplyTo || anna.Group != "" || anna.Confined {
			t.Errorf("in private: %+v", anna)
		}
		private.Answers("")

		turn := p.in("boris", "club", "", "hello")
		boris := p.of(turn)
		if boris.Person == "" || boris.Person == anna.Person || boris.Group == "" || !boris.Confined ||
			boris.Conversation != turn.Input.ReplyTo {
			t.Errorf("in a group: %+v", boris)
		}
		if !boris.Sees(contract.Principal{Group: boris.Group}) || boris.Sees(anna) || anna.Sees(boris) {
			t.Error("the group sees what is private, or another person sees what was said in the group")
		}
		turn.Answers("")
		p.telegram.IsSilent() // the offer is for the owner

		topic := p.in("anna", "club", "7", "in a topic")
		p.telegram.ShowsOne("Others can read this group", "/household")
		if of := p.of(topic); of.Group != boris.Group || of.Person != anna.Person {
			t.Errorf("in another topic of the group: %+v, not of %s", of, boris.Group)
		}
		topic.Answers("")
		again := p.in("anna", "club", "7", "again")
		p.telegram.IsSilent() // offered once
		again.Answers("")
		other := p.in("anna", "team", "", "hello, team")
		p.telegram.ShowsOne("Others can read this group")
		if of := p.of(other); of.Group == boris.Group || boris.Sees(of) || of.Sees(boris) {
			t.Errorf("two groups share what is theirs: %+v", of)
		}
		other.Answers("")
		w.Restart()
		again = p.in("boris", "club", "", "after a restart")
		if of := p.of(again); !reflect.DeepEqual(of, boris) {
			t.Errorf("after a restart: %+v, before %+v", of, boris)
		}
		again.Answers("")
		if g := p.group("club"); g == nil || g.Name != "Club" {
			t.Errorf("the group is stored as %+v", g)
		}
	})
}

func TestTheOwnerDeclaresAHouseholdGroup(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		p := withPrincipals(w)
		p.telegram.Admits("anna", "boris")
		tell := func(user, text, want string) {
			t.Helper()
			p.telegram.Reports(contract.UserMessage{UserID: user, ConversationID: "club", Group: true, Text: text})
			p.telegram.ShowsOne(want)
		}
		p.telegram.Says("anna", "/household")
		p.telegram.ShowsOne("in a group")
		tell("boris", "/household", "Only the owner")
		tell("boris", "/model openai/large", "Only the owner can choose a model")
		tell("anna", "/household yes", "Usage: /household")
		tell("anna", "/sethome", "send /household first")
		tell("anna", "/household off", "already use only what is said")
		tell("anna", "/household", "household group now")
		turn := p.in("boris", "club", "", "one")
		if of := p.of(turn); of.Confined || of.Group == "" {
			t.Errorf("in the household's group: %+v", of)
		}
		before := turn.Session()
		tell("anna", "/sethome", "notices here")

		// The turn that runs has read what the group may not read any more.
		w.Wait(time.Second)
		tell("anna", "/household off", "only what is said in this group")
		if turn = p.in("boris", "club", "", "two"); turn.Session() == before || !p.of(turn).Confined {
			t.Errorf("it goes on in session %d with %+v", turn.Session(), p.of(turn))
		}
		turn.Answers("")
		p.in("anna", "club", "7", "elsewhere in it").Answers("")
		if turn = p.in("anna", "club", "", "three"); turn.Session() == before {
			t.Error("the old conversation is back")
		}
		turn.Answers("")

		// Notices for the owner no longer go there.
		w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "dinner"})
		if m := p.telegram.ShowsOne("dinner"); m.Conversation == "club" || m.Owner != "anna" {
			t.Errorf("the notice goes to %q of %q", m.Conversation, m.Owner)
		}
	})
}

// What is begun for a group may use no more than the group may, wherever its answer goes.
func TestJobsAndSessionsOfAGroup(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		p := withPrincipals(w)
		p.telegram.Admits("anna", "boris")
		maker := w.Extension(bus.Actor{ID: "maker", Effects: []string{"session.ensure", "input"}})
		turn := p.in("boris", "club", "", "hello")
		of := p.of(turn)
		same := func(what string, turn *kerneltest.Turn) {
			t.Helper()
			if got := p.of(turn); got.Group != of.Group || !got.Confined {
				t.Errorf("%s: %+v, not of %s", what, got, of.Group)
			}
			turn.Answers("")
		}
		maker.Must("", &busv1.Effect{Kind: &busv1.Effect_SessionEnsure{SessionEnsure: &busv1.SessionEnsure{
			Agent: "orchestrator", Key: "task:1", Within: journal.SessionID(turn.Session()),
		}}}, kerneltest.Input("orchestrator", "task:1", contract.InputTask, "work"))
		same("a session within", p.agent.Hears("work"))
		turn.Answers("")

		job := contract.AgentTask{Prompt: "look", Name: "nightly"}
		w.Emits(contract.TopicAgentTask, job)
		mine := p.agent.Hears("look")
		if p.of(mine).Confined {
			t.Error("a job of the household is confined")
		}
		mine.Answers("")
		job.Principal = of
		w.Emits(contract.TopicAgentTask, job)
		theirs := p.agent.Hears("look")
		if theirs.Session() == mine.Session() {
			t.Error("the group's job has the history of the household's")
		}
		same("a job", theirs)
		job.Principal, job.ReplyTo = contract.Principal{}, of.Conversation
		w.Emits(contract.TopicAgentTask, job)
		same("a job that only answers there", p.agent.Hears("look"))
		w.Do(func(tx *bus.Tx) error { return w.Sessions.Delete(tx, journal.SessionID(turn.Session())) })
		w.Emits(contract.TopicAgentTask, job)
		same("a job after the group's conversation was deleted", p.agent.Hears("look"))
		w.Emits(contract.TopicAgentBackground, contract.AgentBackground{Prompt: "silently", Principal: of})
		same("a job in the background", p.agent.Hears("silently"))
		job.Principal = contract.Principal{Group: of.Group, Conversation: "gone"}
		w.Emits(contract.TopicAgentTask, job)
		p.agent.HearsNothing()
		if dead := w.Dead(contract.TopicAgentTask); !slices.Equal(dead, []string{"the group that asked for the job no longer exists"}) {
			t.Errorf("dead letters: %q", dead)
		}
	})
}

// A group of an earlier version becomes a household group if only its owner could use
// the assistant there.
func TestGroupsThatAreKnown(t *testing.T) {
	for name, others := range map[string][]string{"the owner alone": nil, "with another": {"boris"}, "with everyone": {"*"}} {
		t.Run(name, func(t *testing.T) {
			kerneltest.Run(t, func(w *kerneltest.World) {
				p := withPrincipals(w)
				p.telegram.Admits(append([]string{"anna"}, others...)...)
				first := p.in("anna", "club", "", "first")
				p.telegram.ShowsOne("Others can read this group")
				first.Answers("")
				for _, text := range []string{"/household", "/sethome"} {
					p.telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "club", Group: true, Text: text})
					p.telegram.ShowsOne("")
				}
				w.Do(func(tx *bus.Tx) error {
					return tx.KVDelete(contract.KernelSource, session.GroupKey("telegram", "club"))
				})
				w.Wait(time.Second)
				household := others == nil
				w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "dinner"})
				sends := p.telegram.Sends()
				turn := p.in("anna", "club", "", "second")
				sends = append(sends, p.telegram.Sends()...)
				said := "Others can read this group"
				if household {
					said = "this is now a household group"
				}
				if len(sends) != 2 || (sends[0].Conversation == "club") != household || !strings.Contains(sends[1].Text, said) {
					t.Errorf("telegram shows %+v", sends)
				}
				if of := p.of(turn); of.Confined == household || (turn.Session() == first.Session()) != household {
					t.Errorf("%+v, in session %d after %d", of, turn.Session(), first.Session())
				}
				turn.Answers("")
				p.in("anna", "club", "", "third").Answers("")
				p.telegram.IsSilent()
			})
		})
	}
}

// An extension that acts for a group asks other tools and makes sessions for the group,
// whether it says so or not.
func TestWhatAnExtensionDoesForAGroup(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		p := withPrincipals(w)
		p.telegram.Admits("anna", "boris")
		x := w.Commands("lab2", "shout")
		x.Actor.Tools = []string{"lab/whose"}
		maker := w.Extension(bus.Actor{ID: "maker", Effects: []string{"session.ensure", "input"}})
		w.Tool("maker", &extensionv1.Tool{Name: "make"},
			func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				return &extensionv1.CallResult{Content: "made", Effects: []*busv1.Effect{
					kerneltest.Ensure("orchestrator", "helper"),
					kerneltest.Input("orchestrator", "helper", contract.InputTask, "help"),
				}}, nil
			})
		if maker.Running() == nil {
			t.Fatal("the extension does not run")
		}
		turn := p.in("boris", "club", "", "hello")
		of := p.of(turn)
		turn.Uses("maker/make", struct{}{})
		turn.Answers("")
		helper := p.agent.Hears("help")
		if got := p.of(helper); got.Group != of.Group || !got.Confined {
			t.Errorf("the session that was made in the group's turn: %+v", got)
		}
		helper.Answers("")

		for address, want := range map[string]contract.Principal{"club": of, "": {Person: of.Person}} {
			p.telegram.Reports(contract.UserMessage{
				UserID: "boris", ConversationID: cmp.Or(address, "boris"), Group: address != "", Text: "/shout",
			})
			d := x.Take()
			lease, err := w.Bus.Lease(x.Actor, d.GetToken())
			if err != nil {
				t.Fatal(err)
			}
			r, err := w.Tools.Ask(t.Context(), x.Actor, lease, "lab/whose", nil)
			if err != nil {
				t.Fatal(err)
			}
			var got contract.Principal
			if err := json.Unmarshal([]byte(r.GetContent()), &got); err != nil {
				t.Fatal(err)
			}
			if got.Person != want.Person || got.Group != want.Group || got.Confined != want.Confined {
				t.Errorf("a command in %q asks for %+v, want %+v", address, got, want)
			}
			x.Acks(d)
		}
	})
}
