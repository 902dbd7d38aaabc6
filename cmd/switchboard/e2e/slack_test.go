package e2e

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/slackchannel/slacktest"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// slackAnna is the owner on Slack, and slackDirect her direct messages.
const (
	slackAnna   = "UANNA"
	slackDirect = "DANNA"
	slackOffice = "COFFICE"
)

// slackWorld is a home with a Slack app and a model, where Anna is admitted.
type slackWorld struct {
	*world
	slack *slacktest.Server
}

// inSlack makes a world whose tokens are in secrets.env, and starts it; more is added to its
// configuration.
func inSlack(t *testing.T, more string, opts ...option) slackWorld {
	t.Helper()
	w := slackWorld{newWorld(t, append([]option{withModel}, opts...)...), slacktest.Start(t)}
	w.env["SLACK_API_URL"] = w.slack.URL()
	w.tokens(w.slack.BotToken(), w.slack.AppToken())
	w.config("channels: {slack_channel: {allow_from: [" + slackAnna + "]}}\n" +
		"extensions: {slack_channel: {enabled: true}}\n" + more)
	w.slack.AddUser(slacktest.User{ID: slackAnna, Name: "Anna"})
	w.slack.AddConversation(slackOffice, slacktest.Channel, "office")
	w.model.Handle(echo)
	return w
}

func (w slackWorld) tokens(bot, app string) {
	w.t.Helper()
	w.write("SLACK_BOT_TOKEN="+bot+"\nSLACK_APP_TOKEN="+app+"\n", 0o600, "secrets.env")
}

// channelIs waits until a channel has a state, and returns its detail.
func (w *world) channelIs(id, state string) (detail string) {
	w.t.Helper()
	ctx := w.ctx()
	w.eventually(id+" "+state, func() bool {
		c, err := admin.Dial(ctx, w.file("run", contract.ControlSocket), w.file(contract.ControlToken))
		if err != nil {
			return false
		}
		defer c.Close()
		known, err := c.Directory(ctx, &adminv1.DirectoryRequest{})
		return err == nil && slices.ContainsFunc(admin.Channels(known), func(ch admin.Channel) bool {
			detail = ch.Detail
			return ch.ID == id && ch.Status == state
		})
	})
	return detail
}

func (w slackWorld) run() {
	w.t.Helper()
	w.start()
	w.channelIs("slack_channel", "ready")
}

// hears waits for the nth message of the assistant in a conversation.
func (w slackWorld) hears(channel string, n int) slacktest.Message {
	w.t.Helper()
	all, err := w.slack.WaitMessages(w.ctx(), channel, n)
	if err != nil {
		w.t.Fatal(err)
	}
	return all[n-1]
}

// said is what the assistant has said in a conversation.
func (w slackWorld) said(channel string) (all []string) {
	for _, m := range w.slack.Messages(channel) {
		all = append(all, m.Said)
	}
	return all
}

func (w slackWorld) acknowledged() {
	w.t.Helper()
	if err := w.slack.WaitAcknowledged(w.ctx()); err != nil {
		w.t.Fatal(err)
	}
}

// The kernel dies on either side of the commit that stores a message: Slack sends the
// envelope again, which is answered once.
func TestSlackEnvelopeSurvivesTheDeathOfTheKernel(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before 1", "after 1"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := inSlack(t, "")
			w.env["SWITCHBOARD_CRASH"], w.env["SWITCHBOARD_CRASH_FROM"] = point, "user.message"
			w.run()
			w.slack.Say(slackAnna, "<one>")
			w.eventually("the death of the kernel", func() bool {
				select {
				case <-w.kernel.ended:
					return true
				default:
					return false
				}
			})
			if w.slack.Unacknowledged() != 1 {
				t.Error("the envelope was acknowledged")
			}
			delete(w.env, "SWITCHBOARD_CRASH")
			w.run()
			w.hears(slackDirect, 1)
			w.slack.Say(slackAnna, "<two>")
			w.hears(slackDirect, 2)
			w.acknowledged()
			w.settled()
			if got := w.said(slackDirect); !slices.Equal(got, []string{"You said <one>", "You said <two>"}) {
				t.Errorf("Slack has %q", got)
			}
			if n := w.count(contract.TopicUserMessage); n != 2 {
				t.Errorf("%d messages are stored", n)
			}
		})
	}
}

// A reply whose outcome nobody knows is looked up: it comes once, and without a mark.
func TestSlackReplyOfUnknownOutcomeComesOnce(t *testing.T) {
	t.Parallel()
	w := inSlack(t, "")
	w.run()
	for i, fault := range []slacktest.Fault{{Break: slacktest.BreakAfter}, {Break: slacktest.BreakBefore}} {
		w.slack.Fail("chat.postMessage", 1, fault)
		w.slack.Say(slackAnna, fmt.Sprintf("<m%d>", i))
		w.hears(slackDirect, i+1)
		w.settled()
	}
	if got := w.said(slackDirect); !slices.Equal(got, []string{"You said <m0>", "You said <m1>"}) {
		t.Errorf("Slack has %q", got)
	}
}

func TestSlackTokensAreRevokedAndReplaced(t *testing.T) {
	t.Parallel()
	w := inSlack(t, "")
	w.run()
	bot, app := w.slack.Revoke()
	if detail := w.channelIs("slack_channel", "degraded"); !strings.Contains(detail, "SLACK_") ||
		strings.Contains(detail, "xoxb-1") {
		t.Errorf("the channel says %q", detail)
	}
	w.tokens(bot, app)
	w.channelIs("slack_channel", "ready")
	w.slack.Say(slackAnna, "<one>")
	if got := w.hears(slackDirect, 1); got.Said != "You said <one>" {
		t.Errorf("Slack has %q", got.Said)
	}
}

// A question has buttons. A press answers it once, and removes them.
func TestSlackButtonAnswersAQuestion(t *testing.T) {
	t.Parallel()
	w := inSlack(t, "approve: [core/send_to_channel]")
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if len(r.Results()) == 0 {
			return openaitest.CallTool("core__send_to_channel", map[string]any{
				"channel_id": "slack_channel", "text": "Dinner is ready",
			})
		}
		return openaitest.Say("It is done.")
	})
	w.run()
	w.slack.Say(slackAnna, "tell everybody")
	question := w.hears(slackDirect, 1)
	if len(question.Buttons) < 2 {
		t.Fatalf("the question is %+v", question)
	}
	yes := question.Buttons[0]
	if !w.slack.Press(slackAnna, slackDirect, question.TS, yes.Label) {
		t.Fatalf("there is no button %q", yes.Label)
	}
	w.slack.PressAgain(slackAnna, question, yes)
	if err := w.slack.Wait(w.ctx(), "the buttons to be removed", func() bool {
		m := w.slack.Messages(slackDirect)[0]
		return m.Edits > 0 && len(m.Buttons) == 0 && m.Said == question.Said
	}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the answer", func() bool { return slices.Contains(w.said(slackDirect), "It is done.") })
	w.acknowledged()
	w.settled()
	if all := strings.Join(w.said(slackDirect), "\n"); strings.Count(all, "Dinner is ready") != 2 { // asked, and sent
		t.Errorf("Slack has %q", all)
	}
}

// A file arrives in the conversation, and the agent sends it back.
func TestSlackFilesBothWays(t *testing.T) {
	t.Parallel()
	w := inSlack(t, "")
	data := []byte("\xff\xd8\xff\xe0 a cat")
	reference := fmt.Sprintf("[image %.3x: cat.jpg]", sha256.Sum256(data))
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if strings.Contains(r.Last("user"), "back") && len(r.Results()) == 0 {
			return openaitest.CallTool("core__send_to_channel", map[string]any{
				"channel_id": "slack_channel", "text": "here", "attachments": []string{reference},
			})
		}
		return openaitest.Say("seen " + r.Last("user"))
	})
	w.run()
	w.slack.Inject(slacktest.Incoming{
		User: slackAnna, Text: "look", Files: []slacktest.File{{Name: "cat.jpg", MIME: "image/jpeg", Data: data}},
	})
	if got := w.hears(slackDirect, 1); !strings.Contains(got.Said, reference) {
		t.Errorf("the model read %q", got.Said)
	}
	w.slack.Say(slackAnna, "send it back")
	w.eventually("the file", func() bool {
		return slices.ContainsFunc(w.slack.Messages(slackDirect), func(m slacktest.Message) bool {
			return len(m.Files) == 1 && m.Files[0].Name == "cat.jpg" && string(m.Files[0].Data) == string(data)
		})
	})
	w.settled()
}

// In a channel the assistant answers a mention in a thread, and listens there.
func TestSlackMentionBeginsAThread(t *testing.T) {
	t.Parallel()
	w := inSlack(t, "")
	w.run()
	w.slack.Inject(slacktest.Incoming{User: slackAnna, Channel: slackOffice, Text: "<nobody> asked"})
	ts := w.slack.Inject(slacktest.Incoming{User: slackAnna, Channel: slackOffice, Text: "@switchboard <one>"})
	w.eventually("the first answer", func() bool { return slices.Contains(w.said(slackOffice), "You said <one>") })
	w.slack.Inject(slacktest.Incoming{User: slackAnna, Channel: slackOffice, Text: "<two>", Thread: ts})
	w.eventually("the second answer", func() bool { return slices.Contains(w.said(slackOffice), "You said <two>") })
	w.slack.Inject(slacktest.Incoming{User: slackAnna, Channel: slackOffice, Text: "@switchboard <three>"})
	w.eventually("the third answer", func() bool { return slices.Contains(w.said(slackOffice), "You said <three>") })
	w.acknowledged()
	w.settled()
	all := w.slack.Messages(slackOffice) // the first tells who can read what is said there
	if len(all) != 4 || all[1].Thread != ts || all[2].Thread != ts || all[3].Thread == ts || all[3].Thread == "" {
		t.Errorf("Slack has %q: %+v", w.said(slackOffice), all)
	}
}

// The tokens are tried before they are saved, and the channel is enabled with them.
func TestSlackSetup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slack := slacktest.Start(t)
	w.env["SLACK_API_URL"] = slack.URL()
	w.write(slack.BotToken(), 0o600, "bot.txt")
	w.write("xapp-1-unknown", 0o600, "app.txt")
	args := []string{"setup", "--yes", "--slack-bot-token-file", w.file("bot.txt"), "--slack-app-token-file", w.file("app.txt")}
	if out, complaints, code := w.cli(args[:4]...); code != 1 || !strings.Contains(out+complaints, "two tokens") {
		t.Errorf("one token: exit status %d, %s%s", code, complaints, out)
	}
	if out, complaints, code := w.cli(args...); code != 1 ||
		!strings.Contains(out+complaints, "the app-level token (xapp-...) is unknown to Slack") ||
		strings.Contains(w.text("secrets.env"), "SLACK") {
		t.Errorf("a wrong token: exit status %d, %s%s", code, complaints, out)
	}
	w.write(slack.AppToken(), 0o600, "app.txt")
	contains(t, "setup", w.must(args...), "✓ The Slack app is @switchboard in Test team.", "Saved: Slack.")
	w.start()
	w.channelIs("slack_channel", "ready")
	if out := w.must("doctor"); strings.Contains(out, "SLACK_") {
		t.Errorf("doctor says %s", out)
	}
}

// The kernel is killed after the envelope of a press was acknowledged, and before the
// buttons are removed: the next one removes them.
func TestSlackButtonsGoAfterAKill(t *testing.T) {
	t.Parallel()
	w := inSlack(t, "approve: [core/send_to_channel]")
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if len(r.Results()) == 0 {
			return openaitest.CallTool("core__send_to_channel", map[string]any{
				"channel_id": "slack_channel", "text": "Dinner is ready",
			})
		}
		return openaitest.Say("It is done.")
	})
	w.run()
	w.slack.Say(slackAnna, "tell everybody")
	question := w.hears(slackDirect, 1)
	w.slack.Fail("chat.update", 1000, slacktest.Fault{Hang: true})
	if !w.slack.Press(slackAnna, slackDirect, question.TS, question.Buttons[0].Label) {
		t.Fatalf("the question is %+v", question)
	}
	w.acknowledged()
	w.crash()
	w.slack.Heal()
	w.run()
	w.eventually("the buttons to go", func() bool {
		m := w.slack.Messages(slackDirect)[0]
		return len(m.Buttons) == 0 && m.Said == question.Said
	})
	w.eventually("the answer", func() bool {
		return slices.ContainsFunc(w.said(slackDirect), func(s string) bool { return strings.Contains(s, "It is done.") })
	})
	w.settled()
}
