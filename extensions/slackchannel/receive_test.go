package slackchannel

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	st "github.com/switchboard-run/switchboard/extensions/slackchannel/slacktest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func TestInChannelsOnlyWhatIsForTheAssistant(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.slack.Inject(st.Incoming{User: anna, Channel: office, Text: "lunch?"})
	first := w.slack.Inject(st.Incoming{User: anna, Channel: office, Text: "@switchboard, remind us"})
	m := w.hears(1)
	if m.Text != "remind us" || !m.Group || m.GroupName != "#office" || m.ThreadID != first || m.MessageID != first ||
		m.ConversationID != office || m.UserName != "Anna" || m.SentAt == 0 || m.Quote != nil {
		t.Errorf("a mention: %+v", m)
	}
	w.slack.Inject(st.Incoming{User: boris, Channel: office, Text: "at noon", Thread: first})
	if m := w.hears(2); m.Text != "at noon" || m.ThreadID != first || m.UserName != "Boris" || m.Quote != nil {
		t.Errorf("in its thread: %+v", m)
	}
	other := w.slack.Inject(st.Incoming{User: boris, Channel: office, Text: "the budget is 5 < 6"})
	w.slack.Inject(st.Incoming{User: anna, Channel: office, Text: "no idea", Thread: other})
	w.slack.Inject(st.Incoming{User: anna, Channel: office, Text: "what do you think @switchboard ?", Thread: other})
	m = w.hears(3)
	if m.Text != "what do you think ?" || m.ThreadID != other || m.Quote == nil ||
		*m.Quote != (contract.Quote{MessageID: other, Sender: "Boris", Text: "the budget is 5 < 6"}) {
		t.Errorf("in another thread: %+v, quote %+v", m, m.Quote)
	}
	w.slack.Inject(st.Incoming{User: anna, Channel: office, Text: "thanks", Thread: other})
	if m := w.hears(4); m.Text != "thanks" || m.Quote != nil {
		t.Errorf("later in that thread: %+v", m)
	}
	// It still listens after a restart.
	w.Restart(quick())
	w.AwaitReadiness(sdk.Ready)
	w.slack.Inject(st.Incoming{User: anna, Channel: office, Text: "bye", Thread: first})
	if m := w.hears(5); m.Text != "bye" {
		t.Errorf("after a restart: %+v", m)
	}
	w.only(5)
}

// A thread below a message of the assistant belongs to the conversation of that message,
// and the answer goes to the thread.
func TestReplyToTheAssistant(t *testing.T) {
	t.Parallel()
	w := running(t)
	id := w.Send(text("Shall I?")).MustAck(t).Receipt().GetProviderId()
	asked := w.slack.Messages(direct)[0]
	w.slack.Inject(st.Incoming{User: anna, Text: "yes", Thread: asked.TS})
	m := w.hears(1)
	if m.ThreadID != "" || m.Quote == nil || *m.Quote != (contract.Quote{MessageID: id, Text: "Shall I?"}) {
		t.Errorf("reported %+v, quote %+v", m, m.Quote)
	}
	answer := text("Done.")
	answer.ReplyTo = m.MessageID
	if r := w.Send(answer).MustAck(t).Receipt(); r.GetThread() != "" || r.GetConversation() != direct {
		t.Errorf("receipt %v", r)
	}
	if got := w.slack.Messages(direct)[1]; got.Thread != asked.TS || got.Said != "Done." {
		t.Errorf("Slack has %+v", got)
	}
}

func TestEditsReactionsAndForwards(t *testing.T) {
	t.Parallel()
	w := running(t)
	ts := w.slack.Say(anna, "at five")
	w.hears(1)
	w.slack.Edit(direct, ts, "at six &amp;")
	if m := w.hears(2); !m.Edited || m.Text != "at six &amp;" || m.MessageID != ts {
		t.Errorf("an edit: %+v", m)
	}
	w.slack.Unfurl(direct, ts)
	id := w.Send(text("OK.")).MustAck(t).Receipt().GetProviderId()
	w.slack.React(anna, direct, ts, "eyes") // on her own message
	w.slack.React(anna, direct, w.slack.Messages(direct)[0].TS, "+1::skin-tone-2")
	if m := w.hears(3); !m.Reaction || m.Text != "👍" || m.Quote == nil || m.Quote.MessageID != id ||
		m.Quote.Text != "OK." || m.Quote.Sender != "" || m.ThreadID != "" {
		t.Errorf("a reaction: %+v, %+v", m, m.Quote)
	}
	w.slack.React(anna, direct, w.slack.Messages(direct)[0].TS, "our_logo")
	if m := w.hears(4); m.Text != ":our_logo:" {
		t.Errorf("a reaction of the workspace: %+v", m)
	}
	w.slack.Inject(st.Incoming{User: anna, Forward: &st.Forward{Author: "Eve", Text: "/stop"}})
	if m := w.hears(5); m.Text != "/stop" || m.ForwardedFrom != "Eve" {
		t.Errorf("a forward: %+v", m)
	}
	w.slack.Inject(st.Incoming{User: anna, Text: "look", Forward: &st.Forward{Author: "Eve", Text: "one\ntwo"}})
	if m := w.hears(6); m.Text != "look\n\nEve:\n> one\n> two" || m.ForwardedFrom != "" {
		t.Errorf("a forward with a word: %+v", m)
	}
	w.only(6)
}

func TestSlashCommands(t *testing.T) {
	t.Parallel()
	w := running(t)
	for i, tt := range []struct{ channel, command, text, want string }{
		{"", "/switchboard", "stop", "/stop"},
		{"", "/switchboard", "", "/help"},
		{office, "/switchboard", " /today  all ", "/today  all"},
		{"", "/today", "", "/today"},
		{"", "/jot", "call &lt;mum&gt;", "/jot call <mum>"},
	} {
		w.slack.Slash(anna, tt.channel, tt.command, tt.text)
		if m := w.hears(i + 1); m.Text != tt.want || m.UserID != anna || m.Group != (tt.channel != "") {
			t.Errorf("%s %s: %+v", tt.command, tt.text, m)
		}
	}
	w.slack.Inject(st.Incoming{User: anna, Channel: office, Text: "@switchboard /stop"})
	if m := w.hears(6); m.Text != "/stop" {
		t.Errorf("a mention: %+v", m)
	}
	w.acknowledged()
}

// Envelopes that are repeated, also after a restart, are acknowledged and reported once.
func TestRepeatedEnvelopes(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.FailCommits(1, contract.ErrUnavailable)
	w.slack.Say(anna, "one")
	w.slack.RepeatUnacknowledged()
	w.hears(1)
	w.acknowledged()
	w.FailCommits(3, contract.ErrUnavailable)
	w.slack.Say(anna, "two")
	w.hears(2)
	w.acknowledged()
	w.AwaitReadiness(sdk.Ready)
	w.slack.Say(anna, "three")
	w.slack.Break()
	if m := w.hears(3); m.Text != "three" {
		t.Errorf("after a broken connection: %+v", m)
	}
	w.only(3)
}

// Before a connection ends the next one is open.
func TestConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	w := running(t)
	for i := range 3 {
		_, before := w.slack.Connections()
		w.slack.Disconnect([]string{"warning", "refresh_requested", "warning"}[i])
		w.slack.Say(anna, fmt.Sprint("m", i))
		w.hears(i + 1)
		w.awaits("another connection", func() bool { _, ever := w.slack.Connections(); return ever > before })
	}
	w.slack.Down()
	w.slack.Up()
	w.slack.Say(anna, "again")
	w.hears(4)
	w.only(4)
	if n := w.slack.GivenUp(); n != 0 {
		t.Errorf("%d envelopes were given up", n)
	}
}

// What cannot be understood is skipped, and a text is not lost for what is beside it.
func TestOddEnvelopes(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.slack.InjectFrame("{")
	w.slack.InjectFrame(`{"type":"news"}`)
	for _, odd := range []struct{ kind, payload string }{
		{"events_api", `{}`}, {"events_api", `[]`}, {"events_api", `"x"`}, {"events_api", `{"event":{"type":"message"}}`},
		{"events_api", `{"event":{"type":"message","text":7}}`}, {"events_api", `{"event":{"type":"channel_rename"}}`},
		{"events_api", `{"event":{"type":"message","subtype":"message_changed"}}`},
		{"events_api", `{"event":{"type":"message","subtype":"channel_join","user":"UANNA","channel":"DANNA","ts":"1.2"}}`},
		{"events_api", `{"event":{"type":"message","bot_id":"B2","user":"U2","channel":"DANNA","ts":"1.3","text":"x"}}`},
		{"events_api", `{"event":{"type":"reaction_added","item":5}}`}, {"interactive", `{}`}, {"interactive", `[` + `]`},
		{"interactive", `{"type":"view_submission"}`}, {"slash_commands", `{}`}, {"function_executed", `{}`},
	} {
		w.slack.InjectRaw(odd.kind, odd.payload)
	}
	w.slack.InjectRaw("events_api", `{"event":{"type":"message","user":"UANNA","channel":"DANNA","channel_type":"im",
		"ts":"1700000000.000100","text":"hello","blocks":[{"type":"rich_text","elements":7}],
		"files":[{"id":"F1","size":"big"},7],"attachments":{"x":1}}}`)
	if m := w.hears(1); m.Text != "hello" || len(m.Attachments) != 0 {
		t.Errorf("reported %+v", m)
	}
	long := strings.Repeat("longer ", 40_000) + "."
	w.slack.Say(anna, long)
	if m := w.hears(2); len(m.Text) > maxInput+100 || !strings.HasSuffix(m.Text, "[truncated: the message has 280001 bytes]") {
		t.Errorf("a text of %d bytes is reported with %d", len(long), len(m.Text))
	}
	w.only(2)
}

func TestNamesInATextAreReadable(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.slack.InjectRaw("events_api", `{"event":{"type":"message","user":"UANNA","channel":"DANNA","channel_type":"im",
		"ts":"1700000000.000100","text":"<@UBOT00001> ask <@UBORIS> or <@UNOBODY> in <#COFFICE> or <#C9|hall>: <!here> <!subteam^S1|@team> <https://x.org/a?b=1&amp;c=2|a page> <https://y.org> <mailto:a@b.c|a@b.c> 1 &lt; 2"}}`)
	want := "ask @Boris or @UNOBODY in #office or #hall: @here @team a page (https://x.org/a?b=1&c=2) https://y.org a@b.c 1 < 2"
	if m := w.hears(1); m.Text != want {
		t.Errorf("reported %q\nwant     %q", m.Text, want)
	}
}

func TestPresses(t *testing.T) {
	t.Parallel()
	w := running(t)
	question := text("Shall I **go**?")
	question.Actions = []contract.Action{{Label: "Yes", Command: "/approve q1"}, {Label: "No", Command: "/deny q1"}}
	w.Send(question).MustAck(t)
	m := w.slack.Messages(direct)[0]
	if len(m.Buttons) != 2 {
		t.Fatalf("Slack has %+v", m)
	}
	w.slack.Press(anna, direct, m.TS, "No")
	w.slack.PressAgain(anna, m, m.Buttons[1]) // a double press
	w.slack.PressAgain(anna, m, m.Buttons[0]) // in a window that is old
	if got := w.hears(1); got.Text != "/deny q1" || got.UserID != anna || got.ConversationID != direct || got.Group {
		t.Errorf("pressed: %+v", got)
	}
	if got := w.hears(2); got.Text != "/approve q1" {
		t.Errorf("pressed again: %+v", got)
	}
	w.awaits("the buttons to go away", func() bool {
		m := w.slack.Messages(direct)[0]
		return len(m.Buttons) == 0 && m.Said == "Shall I go?" && len(m.Blocks) > 0
	})
	w.only(2)
}

// asks sends a question with buttons to a conversation, and returns its message.
func (w *world) asks(channel string) st.Message {
	w.t.Helper()
	question := text("Shall I **go**?")
	question.Conversation = channel
	question.Actions = []contract.Action{{Label: "Yes", Command: "/approve q1"}, {Label: "No", Command: "/deny q1"}}
	w.Send(question).MustAck(w.t)
	all := w.slack.Messages(channel)
	return all[len(all)-1]
}

// buttonsGo waits until no message of a conversation has buttons, and no press is stored.
func (w *world) buttonsGo(channel string) {
	w.t.Helper()
	w.awaits("the buttons to go", func() bool {
		return !slices.ContainsFunc(w.slack.Messages(channel), func(m st.Message) bool { return len(m.Buttons) > 0 })
	})
	w.WaitUntil("the press to be forgotten", func() bool { return len(w.Keys("pressed/")) == 0 })
}

// The buttons are for those who are admitted: a stranger's press doesn't take them away.
func TestAStrangerCannotPress(t *testing.T) {
	t.Parallel()
	w := runningWith(t, func(o *sdktest.Options) { o.AllowFrom = []string{anna} })
	m := w.asks(office)
	w.slack.Press(boris, office, m.TS, "Yes")
	w.awaits("the answer", func() bool { return len(w.slack.Ephemeral()) > 0 })
	want := st.Ephemeral{Channel: office, User: boris, Text: "You can't use these buttons, because I don't know you yet."}
	if got := w.slack.Ephemeral()[0]; got != want {
		t.Errorf("the stranger is shown %+v", got)
	}
	w.WaitUntil("the press to be forgotten", func() bool { return len(w.Keys("pressed/")) == 0 })
	if m := w.slack.Messages(office)[0]; len(m.Buttons) != 2 || m.Edits != 0 {
		t.Errorf("Slack has %+v", m)
	}
	w.slack.Press(anna, office, m.TS, "Yes")
	if got := w.hears(1); got.UserID != anna {
		t.Errorf("pressed: %+v", got)
	}
	w.buttonsGo(office)
	w.only(1)
}

// The buttons go although the process ends before it removed them, and although Slack
// refuses that for a while.
func TestButtonsGoAfterARestart(t *testing.T) {
	t.Parallel()
	w := running(t)
	m := w.asks(direct)
	w.slack.Fail("chat.update", 1, st.Fault{Hang: true})
	w.slack.Press(anna, direct, m.TS, "Yes")
	w.awaits("the removal", func() bool { return w.slack.Calls("chat.update") == 1 })
	w.acknowledged()
	w.Lose()
	w.slack.Heal()
	w.slack.Fail("chat.update", 1, st.Fault{Status: 503})
	w.Restart(quick())
	w.buttonsGo(direct)
	if m := w.slack.Messages(direct)[0]; m.Said != "Shall I go?" || len(m.Blocks) == 0 {
		t.Errorf("Slack has %+v", m)
	}
	w.only(1)
}

// A press in a conversation that waits for a file removes the buttons when it is published.
func TestAPressWaitsForFiles(t *testing.T) {
	t.Parallel()
	w := running(t)
	m := w.asks(direct)
	w.slack.Fail("download", 1, st.Fault{Break: st.PauseInsideAnswer})
	w.slack.Inject(st.Incoming{User: anna, Text: "look", Files: []st.File{
		{Name: "cat.jpg", MIME: "image/png", Data: []byte("\xff\xd8\xff\xe0" + strings.Repeat("cat", 1000))},
	}})
	w.slack.Press(anna, direct, m.TS, "Yes")
	w.acknowledged()
	if m := w.slack.Messages(direct)[0]; len(m.Buttons) != 2 {
		t.Errorf("before the press is published Slack has %+v", m)
	}
	w.slack.Release()
	if got := w.hears(2); got.Text != "/approve q1" {
		t.Errorf("reported %+v", got)
	}
	w.buttonsGo(direct)
}

// What people write while a message waits for its file comes after it.
func TestFilesComeInOrder(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.slack.Fail("download", 1, st.Fault{Break: st.PauseInsideAnswer})
	w.slack.Inject(st.Incoming{User: anna, Text: "look", Files: []st.File{
		{Name: "../cat.jpg", MIME: "image/png", Data: []byte("\xff\xd8\xff\xe0" + strings.Repeat("cat", 1000))},
	}})
	w.slack.Say(anna, "and?")
	w.slack.Say(boris, "hello")
	if m := w.hears(1); m.Text != "hello" {
		t.Errorf("another conversation waited: %+v", m)
	}
	w.acknowledged()
	w.Restart(quick()) // during the download
	w.slack.Release()
	w.AwaitReadiness(sdk.Ready)
	m := w.hears(2)
	if m.Text != "look" || len(m.Attachments) != 1 || m.Attachments[0].Name != "cat.jpg" || m.Attachments[0].Blob == "" ||
		m.Attachments[0].Kind != contract.KindImage || m.Attachments[0].MIME != "image/jpeg" {
		t.Errorf("reported %+v", m)
	}
	if m := w.hears(3); m.Text != "and?" {
		t.Errorf("reported %+v", m)
	}
	w.WaitUntil("an empty backlog", func() bool { return len(w.Keys("waiting/")) == 0 })
	w.only(3)
}

func TestFilesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.slack.Fail("download", 1, st.Fault{Status: 404})
	w.slack.Fail("download", 2, st.Fault{Status: 500})
	w.slack.Inject(st.Incoming{User: anna, Files: []st.File{
		{Name: "gone.txt", MIME: "text/plain", Data: []byte("x"), Deleted: true},
		{Name: "far.txt", MIME: "text/plain", Data: []byte("x"), External: true},
		{Name: "lost.txt", MIME: "text/plain", Data: []byte("x")},
	}})
	var kinds []string
	for _, a := range w.hears(1).Attachments {
		kinds = append(kinds, a.Kind)
	}
	if want := []string{gone, elsewhere, gone}; !slices.Equal(kinds, want) {
		t.Errorf("kinds %q, want %q", kinds, want)
	}
	w.slack.Inject(st.Incoming{User: anna, Files: []st.File{
		{Name: "clip.m4a", MIME: "audio/mp4", Data: []byte("\x00\x00\x00\x18ftypM4A "), Voice: true},
		{Name: "notes.csv", MIME: "text/csv", Data: []byte("a,b")},
	}})
	if m := w.hears(2); len(m.Attachments) != 2 || m.Attachments[0].Kind != contract.KindVoice ||
		m.Attachments[1].MIME != "text/csv" || m.Attachments[1].Blob == "" {
		t.Errorf("reported %+v", m.Attachments)
	}
}
