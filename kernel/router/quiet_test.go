package router_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// at lets time pass until a time of day, in UTC.
func (h homeOf) at(clock string) {
	h.T.Helper()
	then, err := time.Parse("15:04", clock)
	if err != nil {
		h.T.Fatal(err)
	}
	now := time.Now().UTC()
	wait := time.Date(now.Year(), now.Month(), now.Day(), then.Hour(), then.Minute(), 0, 0, time.UTC).Sub(now)
	if wait <= 0 {
		wait += 24 * time.Hour
	}
	h.Wait(wait)
	h.Detours()
}

// shown takes what a channel shows, and returns the texts.
func shown(c *kerneltest.Channel) (texts []string) {
	for _, m := range c.Sends() {
		texts = append(texts, m.Text)
	}
	return texts
}

// notifies publishes a notice to the private conversation of a person.
func (h homeOf) notifies(person, text string) {
	h.T.Helper()
	h.Emits(contract.TopicUserNotify, contract.UserNotify{Text: text, ReplyTo: h.handle(person)})
}

func (h homeOf) handle(person string) (handle string) {
	h.T.Helper()
	h.Read(func(r journal.Reader) error {
		c, err := r.ConversationByAddress("telegram", person, "")
		if err == nil && c != nil {
			handle = c.Handle
		}
		return err
	})
	return handle
}

func wantTexts(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, not %q", what, got, want)
	}
}

// In quiet hours a person gets what they ask for at once, and the rest after them: in
// order, once, also if the kernel is killed meanwhile.
func TestQuietHours(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		h.private(h.telegram, "anna")
		h.private(h.telegram, "boris")
		h.at("21:00")
		if text := h.says(h.telegram, "boris", "/quiet"); !strings.Contains(text, "no quiet hours") {
			t.Errorf("without quiet hours, /quiet says %q", text)
		}
		if text := h.says(h.telegram, "boris", "/quiet 25:00-07:00"); !strings.Contains(text, "/quiet 22:00-07:00") {
			t.Errorf("wrong hours get %q", text)
		}
		if text := h.says(h.telegram, "boris", "/quiet 22-7"); !strings.Contains(text, "22:00-07:00 (UTC)") {
			t.Errorf("setting quiet hours says %q", text)
		}
		h.at("21:59")
		h.notifies("boris", "before")
		wantTexts(t, "before the quiet hours", shown(h.telegram), "before")

		h.at("22:00")
		h.notifies("boris", "one")
		h.notifies("anna", "for anna")
		h.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "asked for", ReplyTo: h.handle("boris"), Asked: true})
		wantTexts(t, "in the quiet hours", shown(h.telegram), "for anna", "asked for")
		w.Restart()
		h.at("06:59")
		h.telegram.Says("boris", "are you awake?")
		h.agent.Hears("are you awake?").Answers("I am.")
		h.notifies("boris", "two")
		wantTexts(t, "a reply", shown(h.telegram), "I am.")
		if text := h.says(h.telegram, "boris", "/quiet"); !strings.Contains(text, "22:00-07:00") {
			t.Errorf("in quiet hours, /quiet says %q", text)
		}

		h.telegram.GoesOffline()
		w.Restart()
		w.Wait(time.Minute)
		h.notifies("boris", "three") // before the kernel looks
		h.Detours()
		w.Restart()
		h.Detours()
		h.telegram.IsBack()
		wantTexts(t, "afterwards", shown(h.telegram), "one", "two", "three")
		w.Restart()
		h.Detours()
		wantTexts(t, "again", shown(h.telegram))
	})
}

// What is held goes when the person ends the quiet hours or moves to another time zone.
func TestQuietHoursThatChange(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		h.private(h.telegram, "boris")
		h.says(h.telegram, "boris", "/quiet 22:00-07:00")
		h.at("23:00")
		h.notifies("boris", "one")
		h.notifies("boris", "two")
		h.says(h.telegram, "boris", "/quiet 22:00-06:00")
		h.at("05:59")
		wantTexts(t, "in the new hours", shown(h.telegram))
		h.at("06:00")
		wantTexts(t, "after the new hours", shown(h.telegram), "one", "two")

		h.at("23:00")
		h.notifies("boris", "three")
		h.telegram.Says("boris", "/quiet off")
		texts := shown(h.telegram)
		if len(texts) != 2 || texts[0] != "three" || !strings.Contains(texts[1], "no quiet hours now") {
			t.Errorf("without quiet hours: %q", texts)
		}

		h.says(h.telegram, "boris", "/quiet 22:00-07:00")
		h.at("23:30")
		h.notifies("boris", "four")
		h.telegram.Says("boris", "/timezone asia/tokyo") // 08:30
		texts = shown(h.telegram)
		if len(texts) != 2 || texts[0] != "four" || !strings.Contains(texts[1], "Asia/Tokyo now: it's 08:30") {
			t.Errorf("in Tokyo: %q", texts)
		}
		h.at("13:00") // 22:00
		h.notifies("boris", "five")
		wantTexts(t, "at night in Tokyo", shown(h.telegram))
	})
}

// What another person sends is held, and the one who sends it is told; what the person
// has sent to themselves is not. A group has no quiet hours.
func TestQuietHoursAndWhatPeopleSend(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		h.private(h.telegram, "anna")
		h.private(h.telegram, "boris")
		h.says(h.telegram, "boris", "/quiet 22:00-07:00")
		h.in("boris", "club", "", "hello all").Answers("")
		h.at("23:00")
		h.telegram.Says("anna", "tell boris")
		turn := h.agent.Hears("tell boris")
		result := turn.Uses("core/send_to_person", map[string]string{"person": "boris", "text": "dinner is ready"}).GetContent()
		if !strings.Contains(result, "quiet hours") || !strings.Contains(result, "queued") {
			t.Errorf("the sender is told %q", result)
		}
		turn.Answers("")
		wantTexts(t, "another person's message", shown(h.telegram))

		h.telegram.Says("boris", "send me a test")
		turn = h.agent.Hears("send me a test")
		sent := turn.Calls(turn.Asks([2]string{"core/send_to_person", `{"person":"boris","text":"a test"}`})[0])
		wantTexts(t, "the person's own message", shown(h.telegram), "From boris: a test")
		if r, err := sent(); err != nil || !strings.Contains(r.GetContent(), "delivered") {
			t.Errorf("sending to oneself returns %v, %v", r, err)
		}
		turn.Answers("")
		h.notifies("club", "for all")
		wantTexts(t, "the group", shown(h.telegram), "for all")

		h.at("07:00")
		wantTexts(t, "in the morning", shown(h.telegram), "From anna: dinner is ready")
	})
}

// A question of a job is held as well: nothing that its person says at night answers it.
func TestQuietHoursAndQuestions(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		h.private(h.telegram, "boris")
		h.says(h.telegram, "boris", "/quiet 22:00-07:00")
		lab := w.Extension(bus.Actor{ID: "lab", Publish: []string{contract.TopicUserAsk}})
		h.at("23:00")
		for text, hours := range map[string]int64{"Paint it?": 12, "Sell it?": 1} {
			lab.Must("", kerneltest.Publish(contract.TopicUserAsk, contract.UserAsk{
				Text: text, Kind: contract.AskApprove, Topic: "lab.answer", ReplyTo: h.handle("boris"), ExpiresSeconds: hours * 3600,
			}))
		}
		wantTexts(t, "at night", shown(h.telegram))
		h.telegram.Says("boris", "yes")
		h.agent.Hears("yes").Answers("What do you mean?")
		wantTexts(t, "what isn't an answer", shown(h.telegram), "What do you mean?")
		w.Wait(2 * time.Hour)
		if err := w.Router.EndQuestions(w.T.Context(), w.Bus, time.Now()); err != nil {
			t.Fatal(err)
		}
		wantTexts(t, "a question that expired unseen", shown(h.telegram))
		h.at("07:00")
		texts := shown(h.telegram)
		if all := strings.Join(texts, "|"); len(texts) != 2 || !strings.Contains(all, "Paint it?") ||
			!strings.Contains(texts[1], "Sell it?") || !strings.Contains(texts[1], "wasn't answered in time") {
			t.Errorf("in the morning: %q", texts)
		}
		if text := h.says(h.telegram, "boris", "yes"); !strings.Contains(text, "approved") {
			t.Errorf("the answer gets %q", text)
		}
	})
}

// What is held for someone who is removed is dropped.
func TestQuietHoursOfSomeoneWhoIsRemoved(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		h.private(h.telegram, "anna")
		h.private(h.telegram, "boris")
		h.says(h.telegram, "boris", "/quiet 22:00-07:00")
		h.says(h.telegram, "anna", "/quiet 22:00-07:00")
		h.at("23:00")
		h.notifies("boris", "one")
		h.notifies("anna", "for anna")
		boris := h.person("boris").ID
		w.Do(func(tx *bus.Tx) error {
			ended, err := w.Router.RemovePerson(tx, boris)
			if ended.GetSends() != 1 {
				t.Errorf("removing says that it ended %v", ended)
			}
			return err
		})
		h.at("07:00")
		wantTexts(t, "in the morning", shown(h.telegram), "for anna")
	})
}

// The clock may be wrong when something is held.
func TestQuietHoursWithAClockThatIsSet(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		h.private(h.telegram, "boris")
		h.says(h.telegram, "boris", "/quiet 22:00-07:00")
		h.at("23:00")
		h.notifies("boris", "one")
		if err := w.Router.Release(w.T.Context(), w.Bus, time.Now().Add(-48*time.Hour)); err != nil {
			t.Fatal(err)
		}
		wantTexts(t, "it is looked at, and held again", shown(h.telegram))
		h.at("07:00")
		wantTexts(t, "in the morning", shown(h.telegram), "one")
	})
}

// Turns, calls and commands have the time zone of the person for whom they are.
func TestTimezones(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		h.private(h.telegram, "anna")
		h.private(h.telegram, "boris")
		w.Tool("lab", &extensionv1.Tool{Name: "zone", ReadOnly: true},
			func(_ context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				return &extensionv1.CallResult{Content: r.GetTimezone()}, nil
			})
		for _, tt := range []struct{ text, want string }{
			{"/timezone", "is UTC"},
			{"/timezone Berlin", "/timezone Europe/Berlin"},
			{"/timezone +2", "Then I also know"},
			{"/timezone ../../etc/passwd", "Then I also know"},
			{"/timezone europe/berlin", "Europe/Berlin now: it's"},
			{"/timezone", "is Europe/Berlin"},
		} {
			if text := h.says(h.telegram, "boris", tt.text); !strings.Contains(text, tt.want) {
				t.Errorf("%s gets %q", tt.text, text)
			}
		}
		h.slack.Says("boris.s", "it's me, boris.s")
		h.agent.Hears("it's me, boris.s").Answers("")
		h.links(h.telegram, "boris", h.slack, "boris.s")
		w.Restart()
		for _, tt := range []struct {
			on           *kerneltest.Channel
			person, zone string
		}{{h.telegram, "anna", "UTC"}, {h.telegram, "boris", "Europe/Berlin"}, {h.slack, "boris.s", "Europe/Berlin"}} {
			tt.on.Says(tt.person, "what time is it?")
			turn := h.agent.Hears("what time is it?")
			if zone := turn.Delivery.GetTurn().GetTimezone(); zone != tt.zone {
				t.Errorf("the turn of %s is in %s", tt.person, zone)
			}
			if zone := turn.Uses("lab/zone", struct{}{}).GetContent(); zone != tt.zone {
				t.Errorf("the call of %s is in %s", tt.person, zone)
			}
			turn.Answers("")
		}
		h.says(h.slack, "boris.s", "/link off")
		h.slack.Says("boris.s", "alone")
		turn := h.agent.Hears("alone")
		if zone := turn.Delivery.GetTurn().GetTimezone(); zone != "UTC" {
			t.Errorf("an account that is no longer linked is in %s", zone)
		}
		turn.Answers("")
	})
}

// A person with several accounts chooses the one that gets what others send.
func TestAMembersHome(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := withHome(w)
		h.private(h.telegram, "anna")
		h.private(h.telegram, "boris")
		h.private(h.slack, "boris.s")
		h.links(h.slack, "boris.s", h.telegram, "boris")
		for _, c := range []struct {
			on     *kerneltest.Channel
			person string
		}{{h.telegram, "boris"}, {h.slack, "boris.s"}} {
			h.slack.Admits("slack-owner", "boris.s")
			if text := h.says(c.on, c.person, "/sethome"); !strings.Contains(text, "comes here from now on") {
				t.Fatalf("/sethome says %q", text)
			}
			w.Restart()
			h.telegram.Says("anna", "tell boris")
			turn := h.agent.Hears("tell boris")
			sent := turn.Calls(turn.Asks([2]string{"core/send_to_person", `{"person":"boris.s","text":"dinner"}`})[0])
			wantTexts(t, "at home", shown(c.on), "From anna: dinner")
			if r, err := sent(); err != nil || r.GetIsError() {
				t.Errorf("sending returns %v, %v", r, err)
			}
			turn.Answers("")
		}
	})
}
