package telegramchannel

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/contract"
	tg "github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

func TestPrivateMessage(t *testing.T) {
	t.Parallel()
	_, s, k := running(t)
	sent := s.Inject(tg.Incoming{From: tg.User{ID: 7, FirstName: "Ann", LastName: "Lee"}, Text: "привет 😀"})
	got := k.messages(t, 1)
	want := contract.UserMessage{
		Text: "привет 😀", UserID: "7", UserName: "Ann Lee", ConversationID: "7",
		MessageID: fmt.Sprint(sent.Message), SentAt: s.History(7)[0].At.Unix(),
	}
	if diff := cmp.Diff([]contract.UserMessage{want}, got); diff != "" {
		t.Error(diff)
	}
	if err := s.WaitConfirmed(t.Context(), sent.Update); err != nil {
		t.Fatal(err)
	}
	if c := k.cursor(s.Bot().ID); c.Next != sent.Update+1 {
		t.Errorf("cursor %+v, want %d", c, sent.Update+1)
	}
}

func TestForwardedMessageNamesItsAuthor(t *testing.T) {
	t.Parallel()
	_, s, k := running(t)
	ann := tg.User{ID: 7, FirstName: "Ann"}
	for _, in := range []tg.Incoming{
		{Forward: map[string]any{"type": "user", "date": 1,
			"sender_user": tg.User{ID: 8, FirstName: "Bob", LastName: "Lee"}}},
		{Forward: map[string]any{"type": "hidden_user", "date": 1, "sender_user_name": "Somebody else"}},
		{Forward: map[string]any{"type": "chat", "date": 1,
			"sender_chat": map[string]any{"id": -5, "type": "group", "title": "Family"}}},
		{Forward: map[string]any{"type": "channel", "date": 1, "message_id": 1,
			"chat": map[string]any{"id": -6, "type": "channel", "title": "News"}}},
		{Forward: map[string]any{"type": "of the future", "date": 1}},
		{Via: &tg.User{ID: 9, IsBot: true, FirstName: "Gif bot"}},
		{},
	} {
		in.From, in.Text = ann, "yes"
		s.Inject(in)
	}
	var got []string
	for _, m := range k.messages(t, 7) {
		got = append(got, m.ForwardedFrom)
	}
	if want := []string{"Bob Lee", "Somebody else", "Family", "News", "unknown", "Gif bot", ""}; !slices.Equal(got, want) {
		t.Errorf("forwarded from %q, want %q", got, want)
	}
}

// Which messages are reported, and with which text, in private chats and groups.
func TestMessagesForTheBotInGroups(t *testing.T) {
	t.Parallel()
	home := tg.Chat{ID: -1_000_000_000_001, Title: "Home"}
	forum := tg.Chat{ID: -1_000_000_000_002, Title: "Forum", Forum: true}
	ann := tg.User{ID: 9, FirstName: "Ann"}
	me := tg.Start(t).Bot()
	const mine, hers = 1, 2 // messages in the group
	type out struct {
		Text, Conversation, Thread string
		Group, Edited              bool
		Attachments                string
	}
	for name, tc := range map[string]struct {
		in   tg.Incoming
		want *out
	}{
		"private":         {tg.Incoming{From: ann, Text: "hi"}, &out{Text: "hi", Conversation: "9"}},
		"private command": {tg.Incoming{From: ann, Text: "/stop"}, &out{Text: "/stop", Conversation: "9"}},
		"named command": {tg.Incoming{From: ann, Text: "/stop@Switchboard_Test_Bot now"},
			&out{Text: "/stop now", Conversation: "9"}},
		"start":                  {tg.Incoming{From: ann, Text: "/start ref_1"}, &out{Text: "/help", Conversation: "9"}},
		"from a bot":             {tg.Incoming{Chat: tg.Chat{ID: 9}, From: tg.User{ID: 77, IsBot: true}, Text: "hi"}, nil},
		"group, not mentioned":   {tg.Incoming{Chat: home, From: ann, Text: "hi all"}, nil},
		"group, other bot":       {tg.Incoming{Chat: home, From: ann, Text: "@other_bot hi"}, nil},
		"group, longer name":     {tg.Incoming{Chat: home, From: ann, Text: "@switchboard_test_bot2 hi"}, nil},
		"group, bare command":    {tg.Incoming{Chat: home, From: ann, Text: "/stop"}, nil},
		"group, other's command": {tg.Incoming{Chat: home, From: ann, Text: "/stop@other_bot", ReplyTo: mine}, nil},
		"group, mentioned": {tg.Incoming{Chat: home, From: ann, Text: "@switchboard_test_bot, what's up?"},
			&out{Text: "what's up?", Conversation: "-1000000000001", Group: true}},
		"group, in the middle": {tg.Incoming{Chat: home, From: ann, Text: "😀 hey @switchboard_test_bot what's up?"},
			&out{Text: "😀 hey what's up?", Conversation: "-1000000000001", Group: true}},
		"group, only the name": {tg.Incoming{Chat: home, From: ann, Text: "@switchboard_test_bot"},
			&out{Text: "@switchboard_test_bot", Conversation: "-1000000000001", Group: true}},
		"group, by its contact": {tg.Incoming{Chat: home, From: ann, Text: "Бот, привет",
			Entities: []tg.Entity{{Type: "text_mention", Length: 3, User: &me}}},
			&out{Text: "привет", Conversation: "-1000000000001", Group: true}},
		"group, another's contact": {tg.Incoming{Chat: home, From: ann, Text: "Ann hi",
			Entities: []tg.Entity{{Type: "text_mention", Length: 3, User: &ann}}}, nil},
		"group, command": {tg.Incoming{Chat: home, From: ann, Text: "/stop@switchboard_test_bot"},
			&out{Text: "/stop", Conversation: "-1000000000001", Group: true}},
		"group, reply to the bot": {tg.Incoming{Chat: home, From: ann, Text: "why?", ReplyTo: mine},
			&out{Text: "why?", Conversation: "-1000000000001", Group: true}},
		"group, reply to another": {tg.Incoming{Chat: home, From: ann, Text: "why?", ReplyTo: hers}, nil},
		"reply chain, no forum": {tg.Incoming{Chat: home, From: ann, Text: "@switchboard_test_bot x", Thread: 44},
			&out{Text: "x", Conversation: "-1000000000001", Group: true}},
		"topic": {tg.Incoming{Chat: forum, From: ann, Text: "@switchboard_test_bot x", Thread: 44},
			&out{Text: "x", Conversation: "-1000000000002", Thread: "44", Group: true}},
		"photo": {tg.Incoming{From: ann, Media: "photo"}, &out{Conversation: "9", Attachments: "image"}},
		"photo with a caption": {tg.Incoming{From: ann, Media: "photo", Text: "what is it?"},
			&out{Text: "what is it?", Conversation: "9", Attachments: "image"}},
		"group photo with mention": {tg.Incoming{Chat: home, From: ann, Media: "photo", Text: "@switchboard_test_bot see"},
			&out{Text: "see", Conversation: "-1000000000001", Group: true, Attachments: "image"}},
		"group photo": {tg.Incoming{Chat: home, From: ann, Media: "photo", Text: "see"}, nil},
		"voice": {tg.Incoming{From: ann, Media: "voice"},
			&out{Conversation: "9", Attachments: "voice"}},
		"document": {tg.Incoming{From: ann, Media: "document"},
			&out{Conversation: "9", Attachments: "document"}},
		"sticker": {tg.Incoming{From: ann, Media: "sticker"},
			&out{Conversation: "9", Attachments: "image"}},
		"location": {tg.Incoming{From: ann, Media: "location"},
			&out{Conversation: "9", Attachments: "location"}},
		"service message": {tg.Incoming{From: ann, Media: "new_chat_members"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s, k := running(t)
			s.Inject(tg.Incoming{Chat: home, From: me, Text: "from the bot itself"})
			s.Inject(tg.Incoming{Chat: home, From: ann, Text: "unrelated"})
			s.Inject(tc.in)
			s.Inject(tg.Incoming{From: ann, Text: "the end"})
			k.await(t, "the end", func() bool { return len(k.got) > 0 && k.got[len(k.got)-1].Text == "the end" })
			got := k.messages(t, 1)
			got = got[:len(got)-1]
			if tc.want == nil {
				if len(got) != 0 {
					t.Errorf("reported: %+v", got)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("reported %+v, want one", got)
			}
			m := got[0]
			have := out{Text: m.Text, Conversation: m.ConversationID, Thread: m.ThreadID, Group: m.Group, Edited: m.Edited}
			for _, a := range m.Attachments {
				have.Attachments += a.Kind
			}
			if diff := cmp.Diff(*tc.want, have); diff != "" {
				t.Error(diff)
			}
			if m.UserID != "9" || m.UserName != "Ann" {
				t.Errorf("sender %q %q", m.UserID, m.UserName)
			}
		})
	}
}

func TestEdits(t *testing.T) {
	t.Parallel()
	_, s, k := running(t)
	first := s.Say(7, "by trane at 5")
	s.Inject(tg.Incoming{From: tg.User{ID: 7}, Text: "by train at 5", Edits: first.Message})
	got := k.messages(t, 2)
	if !got[1].Edited || got[1].MessageID != got[0].MessageID || got[1].Text != "by train at 5" || got[0].Edited {
		t.Errorf("messages: %+v", got)
	}
}

// A message in a topic that the bot made formally replies to the bot.
func TestTopicMadeByTheBot(t *testing.T) {
	t.Parallel()
	_, s, k := running(t)
	s.InjectRaw(1000, "message", json.RawMessage(fmt.Sprintf(
		`{"message_id":5,"date":1,"text":"between people","is_topic_message":true,"message_thread_id":4,
		"chat":{"id":-1001,"type":"supergroup","is_forum":true},"from":{"id":9,"first_name":"A"},
		"reply_to_message":{"message_id":4,"date":1,"chat":{"id":-1001,"type":"supergroup"},
		"from":{"id":%d,"is_bot":true,"first_name":"B"},"forum_topic_created":{"name":"x","icon_color":1}}}`, s.Bot().ID)))
	s.Say(7, "the end")
	if got := k.messages(t, 1); got[0].Text != "the end" {
		t.Errorf("messages: %+v", got)
	}
}

func TestDuplicatesAndOrder(t *testing.T) {
	t.Parallel()
	_, s, k := running(t)
	s.InjectTwice(tg.Incoming{Text: "twice"})
	batch := s.InjectBatch(true, tg.Incoming{Text: "earlier"}, tg.Incoming{Text: "later"})
	s.InjectRaw(batch[0].Update, "message",
		json.RawMessage(`{"message_id":99,"date":1,"text":"repeat",`+
			`"chat":{"id":7,"type":"private"},"from":{"id":7,"first_name":"A"}}`))
	s.Say(7, "the end")
	var texts []string
	k.await(t, "the end", func() bool { return len(k.got) > 0 && k.got[len(k.got)-1].Text == "the end" })
	for _, m := range k.messages(t, 1) {
		texts = append(texts, m.Text)
	}
	if got := strings.Join(texts, " "); got != "twice later earlier the end" {
		t.Errorf("reported %q", got)
	}
	if err := s.WaitConfirmed(t.Context(), batch[1].Update); err != nil {
		t.Error(err)
	}
}

func TestBrokenUpdateIsSkipped(t *testing.T) {
	t.Parallel()
	_, s, k := running(t)
	s.InjectRaw(1000, "message", json.RawMessage(`"not a message"`))
	s.Say(7, "next")
	if got := k.messages(t, 1); got[0].Text != "next" {
		t.Errorf("messages: %+v", got)
	}
}

// A message is confirmed to Telegram only once it is stored, with its cursor, and
// nothing is lost or doubled when the process ends in between.
func TestConfirmedOnlyAfterCommit(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := newMemory()
	tries := 0
	k.refuse = func(m []contract.UserMessage) error {
		if len(m) > 0 {
			if tries++; tries <= 2 {
				return fmt.Errorf("commit: %w", contract.ErrFull)
			}
		}
		return nil
	}
	begin(t, k, s, s.Token())
	sent := s.Say(7, "keep me")
	k.await(t, "the second refusal", func() bool { return tries == 2 })
	if got := s.Confirmed(); got > sent.Update {
		t.Errorf("confirmed up to %d before %d was stored", got, sent.Update)
	}
	k.ready(t, "degraded: new messages cannot be stored")
	if got := k.messages(t, 1); got[0].Text != "keep me" {
		t.Errorf("messages: %+v", got)
	}
	k.ready(t, "ready")
	if err := s.WaitConfirmed(t.Context(), sent.Update); err != nil {
		t.Error(err)
	}
}

func TestStoppedBeforeConfirming(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := newMemory()
	_, end := begin(t, k, s, s.Token())
	if err := s.WaitCalls(t.Context(), "getUpdates", 1); err != nil {
		t.Fatal(err)
	}
	s.Fail("getUpdates", 1_000_000, tg.Fault{Hang: true}) // all polls but the one under way
	sent := s.Say(7, "once")
	k.messages(t, 1)
	end()
	if got := s.PendingUpdates(); !slices.Equal(got, []int64{sent.Update}) {
		t.Fatalf("Telegram still has %v, want the unconfirmed %d", got, sent.Update)
	}
	s.Heal()
	begin(t, k, s, s.Token())
	if err := s.WaitConfirmed(t.Context(), sent.Update); err != nil {
		t.Fatal(err)
	}
	s.Say(7, "twice")
	if got := k.messages(t, 2); len(got) != 2 || got[1].Text != "twice" {
		t.Errorf("messages: %+v", got)
	}
}

// Messages that can never be stored do not stop the others.
func TestRefusedMessageIsSkipped(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := newMemory()
	k.refuse = func(m []contract.UserMessage) error {
		if slices.ContainsFunc(m, func(m contract.UserMessage) bool { return m.Text == "poison" }) {
			return fmt.Errorf("publish: %w", contract.ErrInvalid)
		}
		return nil
	}
	batch := s.InjectBatch(false, tg.Incoming{Text: "a"}, tg.Incoming{Text: "poison"}, tg.Incoming{Text: "b"})
	begin(t, k, s, s.Token())
	got := k.messages(t, 2)
	if got[0].Text != "a" || got[1].Text != "b" {
		t.Errorf("messages: %+v", got)
	}
	if err := s.WaitConfirmed(t.Context(), batch[2].Update); err != nil {
		t.Error(err)
	}
}

func TestBatchIsOneCommit(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := newMemory()
	for i := range 150 {
		s.Say(int64(10+i), "hi")
	}
	begin(t, k, s, s.Token())
	k.messages(t, 150)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Equal(k.batches, []int{100, 50}) {
		t.Errorf("commits of %v messages, want 100 and 50", k.batches)
	}
}

// Another token is another bot: it has its own cursor, and the first one's stays.
func TestChangeOfToken(t *testing.T) {
	t.Parallel()
	s := tg.Start(t, tg.WithToken("900009:AAhigh-update-ids"))
	k := newMemory()
	_, end := begin(t, k, s, s.Token())
	first := s.Say(7, "to the first bot")
	k.messages(t, 1)
	end()
	firstBot := s.Bot().ID

	s.SwitchBot("200000:AAlow-update-ids", "second_bot")
	second := s.Say(7, "to the second bot")
	if second.Update >= first.Update {
		t.Fatalf("the second bot's ids (%d) are not below the first one's (%d)", second.Update, first.Update)
	}
	begin(t, k, s, s.Token())
	if got := k.messages(t, 2); got[1].Text != "to the second bot" {
		t.Errorf("messages: %+v", got)
	}
	if a, b := k.cursor(firstBot), k.cursor(s.Bot().ID); a.Next != first.Update+1 || b.Next != second.Update+1 {
		t.Errorf("cursors %+v and %+v", a, b)
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	now := time.Unix(2_000_000_000, 0)
	at := func(age time.Duration) int64 { return now.Add(-age).Unix() }
	if got := (cursor{Next: 50, At: at(time.Hour)}).offset(now); got != 50 {
		t.Errorf("a fresh cursor asks for %d", got)
	}
	// After a week of silence Telegram may count from a lower number.
	if got := (cursor{Next: 50, At: at(7 * 24 * time.Hour)}).offset(now); got != 0 {
		t.Errorf("an old cursor asks for %d and would confirm updates that were not reported", got)
	}
	if got := (cursor{Next: 50}).after(0, 10, now); got.Next != 11 || got.At != now.Unix() {
		t.Errorf("with new ids: %+v", got)
	}
	if got := (cursor{Next: 50}).after(50, 10, now); got.Next != 50 {
		t.Errorf("a straggler moved the cursor back: %+v", got)
	}
}

func TestConflictingCommitIsRepeated(t *testing.T) {
	t.Parallel()
	_, s, k := running(t)
	refusals := 0
	k.mu.Lock()
	k.refuse = func(m []contract.UserMessage) error {
		if refusals++; refusals == 1 {
			return errors.Join(errors.New("put"), contract.ErrConflict)
		}
		return nil
	}
	k.mu.Unlock()
	s.Say(7, "hi")
	k.messages(t, 1)
}
