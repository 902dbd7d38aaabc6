package slackchannel

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	st "github.com/switchboard-run/switchboard/extensions/slackchannel/slacktest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// settles sends a message as often as it takes, and after it another one, "end".
func (w *world) settles(m contract.ChannelSend) {
	w.t.Helper()
	w.BeginSend(m)
	w.Send(text("end")).MustAck(w.t) // in the same lane
}

func TestSendOutcomes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault st.Fault
		want  busv1.Outcome_Kind
		says  string
	}{
		"limited":           {st.Fault{Status: 429, RetryAfter: 7}, busv1.Outcome_KIND_RETRY, "limited by Slack"},
		"limited in JSON":   {st.Fault{Error: "ratelimited"}, busv1.Outcome_KIND_RETRY, "limited by Slack"},
		"not in channel":    {st.Fault{Error: "not_in_channel"}, busv1.Outcome_KIND_DROP, "/invite"},
		"archived":          {st.Fault{Error: "is_archived"}, busv1.Outcome_KIND_DROP, "archived"},
		"unknown refusal":   {st.Fault{Error: "restricted_action"}, busv1.Outcome_KIND_DROP, "restricted_action"},
		"token revoked":     {st.Fault{Error: "token_revoked"}, busv1.Outcome_KIND_RETRY, "SLACK_BOT_TOKEN"},
		"unavailable":       {st.Fault{Status: 503}, busv1.Outcome_KIND_RETRY, "problem at Slack"},
		"fatal error":       {st.Fault{Error: "fatal_error"}, busv1.Outcome_KIND_UNKNOWN, "unknown whether"},
		"a proxy's page":    {st.Fault{Status: 502, Body: "<html>"}, busv1.Outcome_KIND_UNKNOWN, "502"},
		"an answer is lost": {st.Fault{Break: st.BreakAfter}, busv1.Outcome_KIND_UNKNOWN, "unknown whether"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := running(t)
			w.slack.Fail("chat.postMessage", 1, tc.fault)
			payload := text("hello")
			o := w.Hand(contract.TopicChannelSend+ID, payload)
			if o.Kind != tc.want || !strings.Contains(o.Reason, tc.says) || strings.Contains(o.Reason, w.slack.BotToken()) {
				t.Errorf("outcome %v", o)
			}
		})
	}
}

// A message that may have been sent is looked up: it comes once, and a mark precedes it only
// if the look-up failed.
func TestRepeatedSends(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first  st.Fault // of the first attempt
		lookUp st.Fault
		thread bool
		want   []string
	}{
		"it arrived":             {first: st.Fault{Break: st.BreakAfter}, want: []string{"hello"}},
		"it arrived in a thread": {first: st.Fault{Break: st.BreakAfter}, thread: true, want: []string{"hello"}},
		"it did not arrive":      {first: st.Fault{Break: st.BreakBefore}, want: []string{"hello"}},
		"it arrived, nobody knows": {
			first: st.Fault{Break: st.BreakAfter}, lookUp: st.Fault{Error: "internal_error"},
			want: []string{"hello", contract.RepeatMark + "hello"},
		},
		"nobody knows": {
			first: st.Fault{Break: st.BreakBefore}, lookUp: st.Fault{Status: 500},
			want: []string{contract.RepeatMark + "hello"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := running(t)
			m := text("hello")
			if tc.thread {
				m.Thread = w.slack.Say(anna, "a thread")
			}
			w.slack.Fail("chat.postMessage", 1, tc.first)
			if tc.lookUp != (st.Fault{}) {
				w.slack.Fail("conversations.history", 10, tc.lookUp)
			}
			w.settles(m)
			w.saysOnly(direct, append(tc.want, "end")...)
			if got := w.slack.Messages(direct)[0]; got.Thread != m.Thread {
				t.Errorf("Slack has %+v", got)
			}
		})
	}
}

// Other messages of the conversation, however many, don't hide the one that is looked for.
func TestLookUpReadsAllPages(t *testing.T) {
	t.Parallel()
	w := running(t)
	for i := range 450 {
		w.slack.Say(anna, fmt.Sprint(i))
	}
	w.slack.Fail("chat.postMessage", 1, st.Fault{Break: st.BreakBefore})
	w.settles(text("hello"))
	w.saysOnly(direct, "hello", "end")
	if n := w.slack.Calls("conversations.history"); n != 6 { // three pages, twice
		t.Errorf("%d pages were read", n)
	}
}

func TestDefaultRecipientIsTheOwner(t *testing.T) {
	t.Parallel()
	w := running(t)
	m := text("hello")
	m.Conversation = ""
	if o := w.Hand(contract.TopicChannelSend+ID, m); o.Kind != busv1.Outcome_KIND_DROP ||
		!strings.Contains(o.Reason, "no one is approved on Slack") {
		t.Errorf("without an owner: %v", o)
	}
	m.Owner = anna
	if r := w.Send(m).MustAck(t).Receipt(); r.GetConversation() != direct {
		t.Errorf("receipt %v", r)
	}
	w.saysOnly(direct, "hello")
}

// Blocks that Slack refuses are replaced by the plain text.
func TestRefusedBlocksBecomePlainText(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.slack.Fail("chat.postMessage", 1, st.Fault{Error: "invalid_blocks"})
	w.Send(text("**hello** <@U1> & co")).MustAck(t)
	if m := w.slack.Messages(direct)[0]; m.Said != "**hello** <@U1> & co" || m.Text != "**hello** &lt;@U1&gt; &amp; co" {
		t.Errorf("Slack has %+v", m)
	}
}

func TestManyButtonsWithOddLabels(t *testing.T) {
	t.Parallel()
	w := running(t)
	m := text("Which one?")
	for i := range 60 {
		m.Actions = append(m.Actions, contract.Action{Label: strings.Repeat("ы", i*3), Command: fmt.Sprintf("/answer q1 %d", i)})
	}
	w.Send(m).MustAck(t)
	if got := w.slack.Messages(direct)[0]; len(got.Buttons) != 60 || got.Buttons[0].Label != "/answer q1 0" ||
		got.Buttons[59].Value != "/answer q1 59" {
		t.Errorf("Slack has %d buttons", len(got.Buttons))
	}
}

// A conversation that Slack slows down, and one that does not answer, hold no other.
func TestConversationsDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.slack.Fail("chat.postMessage", 1, st.Fault{Channel: office, Hang: true})
	hanging := text("slow")
	hanging.Conversation = office
	w.BeginSend(hanging)
	w.awaits("a request that hangs", func() bool { return w.slack.Calls("chat.postMessage") == 1 })
	w.Send(text("fast")).MustAck(t)
	w.saysOnly(direct, "fast")
	w.slack.Release()
	w.awaits("the slow message", func() bool { return slices.Equal(w.said(office), []string{"slow"}) })
}

func TestTokenIsRefusedAndAcceptedAgain(t *testing.T) {
	t.Parallel()
	s := st.Start(t)
	s.AddConversation(direct, st.Direct, "")
	k := sdktest.Start(t, newExtension(func(t *times) { t.tokenRetry = 10 * time.Millisecond }), kernelOptions(s))
	k.AwaitReadiness(sdk.Ready)
	before := s.BotToken()
	s.Revoke()
	if r := k.AwaitReadiness(sdk.Degraded); !strings.Contains(r.GetDetail(), AppTokenName) {
		t.Errorf("readiness %v", r)
	}
	s.Restore(before)
	s.Restore(st.DefaultAppToken)
	k.AwaitReadiness(sdk.Ready)
	s.InjectEvent(`{"type":"tokens_revoked","tokens":{"bot":["UBOT00001"]}}`)
	k.AwaitReadiness(sdk.Ready)
}

func TestStatesWithoutATokenThatWorks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		bot, app string
		state    string
		says     string
	}{
		"no tokens":        {"", "", "STATE_UNCONFIGURED", "docs/slack.md"},
		"tokens exchanged": {st.DefaultAppToken, st.DefaultBotToken, "STATE_DEGRADED", BotTokenName},
		"an app-level one": {st.DefaultBotToken, "x", "STATE_DEGRADED", AppTokenName},
		"an unknown one":   {"xoxb-9-9-secret", st.DefaultAppToken, "STATE_DEGRADED", BotTokenName},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := st.Start(t)
			o := kernelOptions(s)
			o.Secrets = map[string]string{BotTokenName: tc.bot, AppTokenName: tc.app}
			k := sdktest.Start(t, quick(), o)
			k.WaitUntil(name, func() bool { return k.Readiness().GetState().String() == tc.state })
			if detail := k.Readiness().GetDetail(); !strings.Contains(detail, tc.says) || strings.Contains(detail, "secret") &&
				strings.Contains(detail, "9-9") {
				t.Errorf("readiness %q", detail)
			}
		})
	}
}

// Requests that break off, or meet a Slack that is down, are repeated until it answers.
func TestSlackIsDown(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.slack.Down()
	w.AwaitReadiness(sdk.Offline)
	w.slack.Up()
	w.AwaitReadiness(sdk.Ready)
	w.Send(text("hello")).MustAck(t)
	w.saysOnly(direct, "hello")
}

func TestFilesAreSent(t *testing.T) {
	t.Parallel()
	w := running(t)
	var files []contract.Attachment
	w.slack.Inject(st.Incoming{User: anna, Files: []st.File{
		{Name: "a.txt", MIME: "text/plain", Data: []byte("one")}, {Name: "b.txt", MIME: "text/plain", Data: []byte("two")},
	}})
	files = w.hears(1).Attachments
	m := text("here")
	m.Attachments = files
	for i, fault := range []struct {
		method string
		fault  st.Fault
	}{
		{"none", st.Fault{}},
		{"files.completeUploadExternal", st.Fault{Break: st.BreakAfter}},
		{"files.completeUploadExternal", st.Fault{Break: st.BreakBefore}},
		{"upload", st.Fault{Status: 503}},
		{"files.getUploadURLExternal", st.Fault{Break: st.BreakAfter}},
	} {
		before := len(w.slack.Messages(direct))
		if fault.method != "none" {
			w.slack.Fail(fault.method, 1, fault.fault)
		}
		w.settles(m)
		all := w.slack.Messages(direct)[before:]
		if len(all) != 3 || all[0].Said != "here" || len(all[1].Files) != 2 || string(all[1].Files[1].Data) != "two" ||
			all[1].Files[0].Name != "a.txt" {
			t.Errorf("%d: %s %+v: Slack has %+v", i, fault.method, fault.fault, all)
		}
	}
	if keys := w.Keys("sent/"); len(keys) != 0 {
		t.Errorf("stored %q", keys)
	}
	// A file that Slack does not take is named.
	empty := text("nothing")
	empty.Attachments = []contract.Attachment{{Kind: contract.KindDocument, Name: "empty.txt", Blob: files[0].Blob}}
	w.Send(empty).MustAck(t)
	if all := w.said(direct); !strings.HasSuffix(all[len(all)-1], ": empty.txt]") {
		t.Errorf("Slack has %q", all)
	}
	before := len(w.slack.Messages(direct))
	w.slack.Fail("files.getUploadURLExternal", 1, st.Fault{Error: "file_uploads_disabled"})
	w.Send(m).MustAck(t)
	if all := w.said(direct)[before:]; !slices.Equal(all, []string{"here", files[0].Reference() + "\n" + files[1].Reference()}) {
		t.Errorf("Slack has %q", all)
	}
}
