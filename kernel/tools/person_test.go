package tools_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/kernel/router"
)

// pairs has a person write to a channel for the first time, and approves them.
func (w *world) pairs(c *kerneltest.Channel, id, name, language string) {
	w.T.Helper()
	c.Reports(contract.UserMessage{
		UserID: id, UserName: name, ConversationID: "chat of " + id, Text: "hello", Language: language,
	})
	var code string
	w.Read(func(r journal.Reader) error {
		waiting, err := router.Waiting(r, time.Now())
		for _, p := range waiting {
			if p.UserID == id {
				code = p.Code
			}
		}
		return err
	})
	w.Do(func(tx *bus.Tx) error {
		_, err := w.Router.Approve(tx, code, "member")
		return err
	})
	c.Sends()
}

// tells asks the tool to send a text to a person.
func (w *world) tells(turn *kerneltest.Turn, arguments string) string {
	w.T.Helper()
	result := turn.Calls(turn.Asks([2]string{"core/send_to_person", arguments})[0])
	w.Settle()
	w.Wait(11 * time.Second)
	r, err := result()
	if err != nil {
		w.T.Fatal(err)
	}
	return fmt.Sprint(r.GetIsError(), " ", r.GetContent())
}

func TestSendToAPerson(t *testing.T) {
	play(t, func(w *world) {
		slack := w.Channel("slack")
		w.pairs(w.telegram, "8", "Boris Lee", "ru")
		w.pairs(slack, "9", "Clara", "")
		w.pairs(slack, "10", "Boris Smith", "")
		turn := w.hears()
		for name, tt := range map[string]struct{ arguments, want string }{
			"nobody": {`{"person": "Dora", "text": "dinner"}`, "0 people are named"},
			"two":    {`{"person": "boris", "text": "dinner"}`, "2 people are named"},
			"empty":  {`{"person": "Clara", "text": " "}`, "the text is empty"},
			"elsewhere": {`{"person": "Clara", "text": "dinner", "channel_id": "telegram"}`,
				"Clara (slack)"},
			"nothing": {`{"text": "dinner"}`, "do not fit"},
		} {
			if got := w.tells(turn, tt.arguments); !strings.HasPrefix(got, "true ") || !strings.Contains(got, tt.want) {
				t.Errorf("%s: the result is %s, want %q in it", name, got, tt.want)
			}
		}
		w.telegram.IsSilent()
		slack.IsSilent()

		if got := w.tells(turn, `{"person": "clara", "text": "dinner is ready"}`); !strings.Contains(got, "queued") {
			t.Errorf("the result is %s", got)
		}
		slack.Shows("chat of 9: From anna: dinner is ready")
		if got := w.tells(turn, `{"person": "Boris Lee", "text": "ужин"}`); !strings.Contains(got, "queued") {
			t.Errorf("the result is %s", got)
		}
		w.telegram.Shows("chat of 8: Передаёт anna: ужин")
		turn.Answers("Done.")
		w.telegram.Shows("anna: Done.")
		// An answer is understood: the assistant knows what it has sent there.
		slack.Reports(contract.UserMessage{UserID: "9", UserName: "Clara", ConversationID: "chat of 9", Text: "coming"})
		var heard bool
		for range 3 {
			in := w.orchestrator.HearsRecord()
			heard = heard || strings.Contains(in.Text, "From anna: dinner is ready")
			if heard {
				break
			}
		}
		if !heard {
			t.Error("the conversation does not know what was sent to it")
		}
	})
}

func TestNoMessagesToPeopleFromAGroupThatOthersRead(t *testing.T) {
	play(t, func(w *world) {
		w.pairs(w.telegram, "8", "Boris", "")
		w.telegram.Reports(contract.UserMessage{
			UserID: "anna", UserName: "anna", ConversationID: "team", Group: true, Text: "go",
		})
		w.telegram.Sends()
		if got := w.tells(w.orchestrator.Hears("go"), `{"person": "Dora", "text": "hi"}`); strings.Contains(got, "Boris") ||
			!strings.HasPrefix(got, "true others read this group") {
			t.Errorf("the result is %s", got)
		}
		w.telegram.IsSilent()
	})
}

func TestSendToAPersonOnAChannel(t *testing.T) {
	play(t, func(w *world) {
		slack := w.Channel("slack")
		w.pairs(w.telegram, "8", "Boris", "")
		w.pairs(slack, "9", "Clara", "")
		w.telegram.Reports(contract.UserMessage{UserID: "8", UserName: "Boris", ConversationID: "chat of 8", Text: "go"})
		turn := w.orchestrator.Hears("go")
		sends := func(arguments string) string {
			result := turn.Calls(turn.Asks([2]string{"core/send_to_channel", arguments})[0])
			w.Settle()
			w.Wait(11 * time.Second)
			r, err := result()
			if err != nil {
				w.T.Fatal(err)
			}
			return r.GetContent()
		}
		got := sends(`{"channel_id": "slack", "person": "Clara", "text": "dinner"}`)
		if !strings.Contains(got, `"to":"Clara on Slack (private)"`) {
			t.Errorf("the result is %s", got)
		}
		slack.Shows("chat of 9: From Boris: dinner")
		// Without a name nothing of Boris's reaches the owner of a channel.
		if got := sends(`{"channel_id": "slack", "text": "my diary"}`); !strings.Contains(got, `0 people are named ""`) {
			t.Errorf("the result is %s", got)
		}
		slack.IsSilent()
	})
}

// A person who named no home gets messages on the account that was approved last.
func TestWhereAPersonIsReached(t *testing.T) {
	play(t, func(w *world) {
		slack := w.Channel("slack")
		w.pairs(w.telegram, "8", "Boris", "")
		w.Wait(time.Second)
		w.pairs(slack, "9", "Boris", "")
		w.Do(func(tx *bus.Tx) error {
			all, accounts, err := people.All(tx)
			var boris []*people.Person
			for _, p := range all {
				if accounts[p.ID][0].Name == "Boris" {
					boris = append(boris, p)
				}
			}
			if err != nil || len(boris) != 2 {
				return fmt.Errorf("the people are %v: %w", all, err)
			}
			return people.Join(tx, boris[0], boris[1])
		})
		turn := w.hears()
		if got := w.tells(turn, `{"person": "Boris", "text": "dinner"}`); !strings.Contains(got, "Boris on Slack (private)") {
			t.Errorf("the result is %s", got)
		}
		slack.Shows("chat of 9: From anna: dinner")
		w.Do(func(tx *bus.Tx) error {
			p, err := people.Of(tx, accountOf(tx, w, "telegram", "8"))
			if err != nil {
				return err
			}
			p.Home = accountOf(tx, w, "telegram", "8")
			return people.Change(tx, p)
		})
		w.tells(turn, `{"person": "Boris", "text": "dessert"}`)
		w.telegram.Shows("chat of 8: From anna: dessert")
	})
}

// accountOf returns the id of an account.
func accountOf(tx journal.Reader, w *world, channel, user string) string {
	w.T.Helper()
	all, err := people.Accounts(tx)
	if err != nil {
		w.T.Fatal(err)
	}
	for _, a := range all {
		if a.Channel == channel && a.UserID == user {
			return a.ID
		}
	}
	w.T.Fatalf("there is no account %s of %s", user, channel)
	return ""
}
