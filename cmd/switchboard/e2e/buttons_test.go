package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// buttons is a lab whose tools ask Anna on Telegram.
func buttons(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, withTelegram(), withModel)
	w.config(fmt.Sprintf("agents: {default: chief}\napprove: [lab/*]\nchannels: {telegram_channel: {allow_from: "+
		"[\"%d\"]}}", anna))
	w.dropIn("chief", "", chief)
	w.probe("lab", "tools", "provides: {tools: true}")
	w.start()
	w.telegramReady()
	w.state(w.control(), "lab", "active")
	w.release()
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if m := r.Messages[len(r.Messages)-1]; m.Role == "user" {
			return openaitest.CallTool("lab__slow", `{"n": 1}`)
		}
		return openaitest.Say("It is done.")
	})
	return w
}

// press presses a button below the newest message with that button.
func (w *world) press(label string) {
	w.t.Helper()
	by := telegramtest.User{ID: anna, FirstName: "Anna"}
	w.eventually("the button "+label, func() bool {
		all := w.telegram.Messages(anna)
		_, found := w.telegram.Press(anna, all[len(all)-1].ID, label, by)
		return found
	})
}

func (w *world) buttonsGone() {
	w.t.Helper()
	w.eventually("the buttons to go", func() bool {
		for _, m := range w.telegram.Messages(anna) {
			if len(m.Buttons) > 0 {
				return false
			}
		}
		return true
	})
}

func TestApprovalsByButton(t *testing.T) {
	t.Parallel()
	w := buttons(t)
	w.telegram.Say(anna, "do it")
	if got := w.told(anna, 1).Text; !strings.Contains(got, "Chief wants to run lab/slow") {
		t.Fatalf("the question is %q", got)
	}
	w.press("Yes")
	w.told(anna, 3) // that it is approved, and the answer
	w.buttonsGone()
	w.telegram.Say(anna, "do it again")
	w.told(anna, 4)
	w.press("Always here")
	w.told(anna, 6)
	w.telegram.Say(anna, "and again")
	if got := w.told(anna, 7).Text; got != "It is done." {
		t.Errorf("after \"always here\" the chat shows %q", got)
	}
	if got := w.must("approvals", "list"); !strings.Contains(got, "chief") || !strings.Contains(got, "lab/slow") ||
		!strings.Contains(got, "telegram_channel") {
		t.Errorf("the list of approvals is\n%s", got)
	}
	w.restart()
	w.telegramReady()
	w.state(w.control(), "lab", "active")
	w.telegram.Say(anna, "still?")
	if got := w.told(anna, 8).Text; got != "It is done." {
		t.Errorf("after a restart the chat shows %q", got)
	}
	if got := w.must("approvals", "revoke", "lab/slow"); !strings.Contains(got, "ask again") {
		t.Errorf("revoking says %q", got)
	}
	if _, stderr, code := w.cli("approvals", "revoke", "lab/slow"); code == 0 || !strings.Contains(stderr, "approvals list") {
		t.Errorf("revoking again says %q, with code %d", stderr, code)
	}
	w.telegram.Say(anna, "once more")
	if got := w.told(anna, 9).Text; !strings.Contains(got, "Chief wants to run lab/slow") {
		t.Errorf("after the approval was revoked the chat shows %q", got)
	}
	w.press("No")
	w.told(anna, 11)
	if got := w.lines("lab", "calls"); len(got) != 4 {
		t.Errorf("the tool ran %d times", len(got))
	}
}

// A press is applied once, wherever the kernel dies, and also if it is pressed twice.
func TestAPressIsAppliedOnce(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before 1", "after 1", "after 2", "after 3"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := buttons(t)
			w.telegram.Say(anna, "do it")
			w.told(anna, 1)
			w.settledBut("agent.input.chief")
			w.crash()
			w.env["SWITCHBOARD_CRASH"], w.env["SWITCHBOARD_CRASH_FROM"] = point, "user.message"
			w.start()
			w.telegramReady()
			w.press("Yes")
			w.telegram.Press(anna, w.telegram.Messages(anna)[0].ID, "Yes", telegramtest.User{ID: anna})
			w.eventually("the death of the kernel", func() bool {
				select {
				case <-w.kernel.ended:
					return true
				default:
					return false
				}
			})
			delete(w.env, "SWITCHBOARD_CRASH")
			w.start()
			w.telegramReady()
			w.eventually("the answer", func() bool {
				return strings.Contains(strings.Join(w.texts(anna), "\n"), "It is done.")
			})
			w.settled()
			w.buttonsGone()
			approved, marked := 0, 0
			for _, text := range w.texts(anna) {
				switch text {
				case "Question q1: approved.":
					approved++
				case contract.RepeatMark + "Question q1: approved.":
					marked++
				}
			}
			runs := strings.Count(w.text("data", "lab", "calls"), "slow")
			if known := strings.Contains(w.results(w.model.Total()), "the result of slow"); runs > 1 || known && runs != 1 ||
				approved > 1 || approved+marked == 0 {
				t.Errorf("the tool ran %d times; the chat shows %q", runs, w.texts(anna))
			}
		})
	}
}

// A reply and a reaction reach the model with what they are about.
func TestRepliesAndReactionsReachTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.config(fmt.Sprintf("channels: {telegram_channel: {allow_from: [\"%d\"]}}", anna))
	w.start()
	w.telegramReady()
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("The train leaves at nine.") })
	w.telegram.Say(anna, "when?")
	w.told(anna, 1)
	w.settled() // it is no draft any more
	said := w.telegram.Messages(anna)[0].ID
	update := w.telegram.React(anna, said, "👍", telegramtest.User{ID: anna, FirstName: "Anna"})
	if err := w.telegram.WaitConfirmed(w.ctx(), update); err != nil {
		t.Fatal(err)
	}
	w.telegram.Inject(telegramtest.Incoming{From: telegramtest.User{ID: anna, FirstName: "Anna"}, Text: "which one?",
		ReplyTo: said})
	w.told(anna, 2)
	all := w.model.Requests()
	var got strings.Builder
	for _, m := range all[len(all)-1].Messages {
		got.WriteString(m.Content.Text + "\n")
	}
	for _, want := range []string{
		"[quoted from you]\n~~~\nThe train leaves at nine.\n~~~\n[reaction from Anna]\n~~~\n👍\n~~~",
		"[quoted from you]\n~~~\nThe train leaves at nine.\n~~~\nwhich one?",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("the request lacks %q:\n%s", want, got.String())
		}
	}
}

// In a group a stranger's press doesn't take the buttons away, nor one for what only the
// owner may do: the others still have them.
func TestButtonsStayForThoseWhoMayPress(t *testing.T) {
	t.Parallel()
	w := buttons(t)
	w.config(fmt.Sprintf("agents: {default: chief}\napprove: [lab/*]\nchannels: {telegram_channel: {allow_from: "+
		"[\"%d\", \"%d\"]}}", anna, boris))
	w.restart()
	w.telegramReady()
	w.state(w.control(), "lab", "active")
	w.telegram.Inject(telegramtest.Incoming{
		Chat: telegramtest.Chat{ID: group, Type: telegramtest.Supergroup}, From: telegramtest.User{ID: anna, FirstName: "Anna"},
		Text: "@switchboard_test_bot do it",
	})
	// newest waits for a message that contains a text.
	newest := func(text string) (found telegramtest.Message) {
		w.eventually(text, func() bool {
			for _, m := range w.telegram.Messages(group) {
				if strings.Contains(m.Text, text) {
					found = m
				}
			}
			return found.ID != 0
		})
		return found
	}
	question := newest("Chief wants to run lab/slow")
	w.telegram.Press(group, question.ID, "Yes", telegramtest.User{ID: clara, FirstName: "Clara"})
	w.eventually("the answer to the stranger", func() bool { return w.telegram.Presses()[0].Answered })
	if got := w.telegram.Presses()[0].Text; !strings.Contains(got, "I don't know you yet") {
		t.Errorf("the stranger is shown %q", got)
	}
	if !w.pressIn(group, question.ID, "Always", boris) {
		t.Fatal("the buttons are gone")
	}
	again := newest("Only the owner can approve for good.")
	if !w.pressIn(group, again.ID, "Yes", boris) {
		t.Fatalf("the refusal has no buttons: %+v", again)
	}
	newest("It is done.")
	w.settled()
	if n := w.count(contract.TopicUserMessage); n != 3 {
		t.Errorf("%d messages are stored", n)
	}
	if got := w.lines("lab", "calls"); len(got) != 1 {
		t.Errorf("the tool ran %d times", len(got))
	}
}

func (w *world) pressIn(chat int64, message int, label string, by int64) bool {
	_, found := w.telegram.Press(chat, message, label, telegramtest.User{ID: by, FirstName: fmt.Sprint(by)})
	return found
}
