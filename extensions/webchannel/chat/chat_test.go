package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

var anna = door.Visitor{User: "anna", Name: "Anna", Role: "owner", Language: "en"}

// bed is a chat on a kernel.
type bed struct {
	*sdktest.Kernel
	*Chat
	t *testing.T
}

func extension(c *Chat) sdk.Extension {
	return sdk.Extension{
		ID: "web_channel", Channel: c,
		Start: func(_ context.Context, k *sdk.Kernel) error { c.Start(k); return nil },
		Stop:  func(context.Context) error { c.Stop(); return nil },
	}
}

var options = sdktest.Options{Manifest: "testdata/web_channel.yaml"}

func start(t *testing.T) *bed {
	t.Helper()
	c := New(time.Now)
	return &bed{sdktest.Start(t, extension(c), options), c, t}
}

// again restarts the extension.
func (b *bed) again() {
	b.t.Helper()
	b.Chat = New(time.Now)
	b.Restart(extension(b.Chat))
}

func (b *bed) say(m Message) Line {
	b.t.Helper()
	l, err := b.Say(b.t.Context(), anna, m)
	if err != nil {
		b.t.Fatalf("say %+v: %v", m, err)
	}
	return l
}

func (b *bed) answer(conversation, text string) *busv1.Receipt {
	b.t.Helper()
	return b.Kernel.Send(contract.ChannelSend{Kind: contract.SendReply, Text: text, Conversation: anna.User,
		Thread: conversation}).MustAck(b.t).Receipt()
}

func (b *bed) lines(conversation string, after, before int64, limit int) (texts []string) {
	b.t.Helper()
	lines, err := b.Lines(b.t.Context(), anna, conversation, after, before, limit)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, l := range lines {
		texts = append(texts, l.Text)
	}
	return texts
}

func (b *bed) list() map[string]Conversation {
	b.t.Helper()
	all, err := b.List(b.t.Context(), anna)
	if err != nil {
		b.t.Fatal(err)
	}
	byName := map[string]Conversation{}
	for _, c := range all {
		byName[c.Name] = c
	}
	return byName
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestConformance(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	sdktest.Conformance(t, func() sdk.Extension { return extension(New(time.Now)) }, options)
}

func TestAMessageAndItsAnswerAreLines(t *testing.T) {
	t.Parallel()
	b := start(t)
	l := b.say(Message{ID: "m1", Text: "hi"})
	if l.Seq != 1 || !l.Mine || l.Event == "" {
		t.Errorf("line %+v", l)
	}
	heard := b.AwaitReceived(1)[0]
	if heard.UserID != "anna" || heard.ConversationID != "anna" || heard.MessageID != "m1" || heard.Aside ||
		heard.UserName != "Anna" {
		t.Errorf("received %+v", heard)
	}
	r := b.answer("", "hello")
	if r.GetProviderId() == "" || r.GetConversation() != "anna" {
		t.Errorf("receipt %v", r)
	}
	work := b.say(Message{ID: "m1", Conversation: "work", Text: "the same id, elsewhere", ReplyTo: r.GetProviderId()})
	if heard := b.AwaitReceived(2)[1]; !heard.Aside || heard.ThreadID != "work" || heard.Quote != nil {
		t.Errorf("received %+v", heard)
	}
	reply := b.say(Message{ID: "m2", Text: "and?", ReplyTo: r.GetProviderId()})
	if heard := b.AwaitReceived(3)[2]; heard.Quote == nil || heard.Quote.Text != "hello" || heard.Quote.Sender != "" {
		t.Errorf("received %+v", heard)
	}
	if work.Seq != 1 || reply.Seq != 3 {
		t.Errorf("numbers %d, %d", work.Seq, reply.Seq)
	}
	b.again()
	equal(t, b.lines("", 0, 0, 0), "hi", "hello", "and?")
	equal(t, b.lines("work", 0, 0, 0), "the same id, elsewhere")
	lines, err := b.Lines(t.Context(), anna, "", 0, 0, 0)
	if err != nil || lines[0].Event != l.Event {
		t.Errorf("the event of the first line: %+v, %v", lines[0], err)
	}
}

func TestAnIDIsOneMessage(t *testing.T) {
	t.Parallel()
	b := start(t)
	first := b.say(Message{ID: "m1", Text: "hi"})
	if again := b.say(Message{ID: "m1", Text: "hi"}); again.Seq != first.Seq || again.Event != first.Event {
		t.Errorf("said again %+v", again)
	}
	b.again()
	if again := b.say(Message{ID: "m1", Text: "hi"}); again.Seq != first.Seq {
		t.Errorf("said again %+v", again)
	}
	if heard := b.Received(); len(heard) != 1 {
		t.Errorf("received %+v", heard)
	}
}

// The process ends between the commit of a line and the acknowledgement of its message.
func TestARepeatedSendIsOneLine(t *testing.T) {
	t.Parallel()
	b := start(t)
	m := sdk.Message{ID: "e77", Text: "(possibly sent before) done", Unmarked: "done", Conversation: "anna", Repeat: true}
	for range 2 {
		r, err := b.Chat.Send(t.Context(), m)
		if err != nil || r.ProviderID != "e77" {
			t.Fatalf("receipt %+v, %v", r, err)
		}
		b.again()
	}
	equal(t, b.lines("", 0, 0, 0), "done")
	if got := b.list()[""]; got.Unread != 1 {
		t.Errorf("conversation %+v", got)
	}
}

// A person cannot take the id of what the assistant is about to send.
func TestIDsOfAPersonAndTheAssistantAreApart(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.say(Message{ID: "e77", Text: "mine"})
	if _, err := b.Chat.Send(t.Context(), sdk.Message{ID: "e77", Unmarked: "yours", Conversation: "anna"}); err != nil {
		t.Fatal(err)
	}
	equal(t, b.lines("", 0, 0, 0), "mine", "yours")
}

func TestALineThatIsNotStoredIsNotShown(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.say(Message{ID: "m1", Text: "one"})
	b.FailCommits(1, fmt.Errorf("no space left: %w", contract.ErrFull))
	if _, err := b.Say(t.Context(), anna, Message{ID: "m2", Text: "two"}); !errors.Is(err, contract.ErrFull) {
		t.Errorf("error %v", err)
	}
	equal(t, b.lines("", 0, 0, 0), "one")
	if l := b.say(Message{ID: "m2", Text: "two"}); l.Seq != 2 {
		t.Errorf("line %+v", l)
	}
	if heard := b.Received(); len(heard) != 2 {
		t.Errorf("received %+v", heard)
	}
}

func TestBadMessagesAreRefused(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, tc := range []struct {
		v    door.Visitor
		m    Message
		want error
	}{
		{door.Visitor{}, Message{ID: "m", Text: "hi"}, contract.ErrDenied},
		{anna, Message{Text: "hi"}, contract.ErrInvalid},
		{anna, Message{ID: "m", Text: " "}, contract.ErrInvalid},
		{anna, Message{ID: "m\n", Text: "hi"}, contract.ErrInvalid},
		{anna, Message{ID: "m", Text: "hi", Conversation: "a\x00b"}, contract.ErrInvalid},
		{anna, Message{ID: "m", Text: strings.Repeat("x", maxText+1)}, contract.ErrTooLarge},
		{anna, Message{ID: "m", Attachments: []contract.Attachment{{Blob: strings.Repeat("0", 64)}}}, contract.ErrNotFound},
		{anna, Message{ID: "m", Attachments: []contract.Attachment{{Blob: "../x"}}}, contract.ErrNotFound},
	} {
		if _, err := b.Say(t.Context(), tc.v, tc.m); !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v, want %v", tc.m.ID, err, tc.want)
		}
	}
	if heard := b.Received(); len(heard) != 0 {
		t.Errorf("received %+v", heard)
	}
}

func TestFilesAreOfTheirPerson(t *testing.T) {
	t.Parallel()
	b := start(t)
	ben := door.Visitor{User: "ben", Name: "Ben", Role: "member"}
	a, err := b.Upload(t.Context(), anna, contract.Attachment{Kind: contract.KindDocument, Name: "../cat.png"},
		strings.NewReader("\x89PNG\r\n\x1a\nmeow"))
	if err != nil || a.Kind != contract.KindImage || a.Name != "cat.png" || a.MIME != "image/png" {
		t.Fatalf("uploaded %+v, %v", a, err)
	}
	if _, err := b.Say(t.Context(), ben, Message{ID: "m1", Attachments: []contract.Attachment{a}}); !errors.Is(err,
		contract.ErrNotFound) {
		t.Errorf("another's upload: %v", err)
	}
	b.again() // an upload outlives the process
	forged := contract.Attachment{Blob: a.Blob, Kind: contract.KindVoice, Name: "x.html", MIME: "text/html"}
	l := b.say(Message{ID: "m1", Conversation: "pets", Attachments: []contract.Attachment{forged}})
	if len(l.Attachments) != 1 || l.Attachments[0] != a {
		t.Errorf("line %+v", l)
	}
	if !b.Keeps(lineKey("anna", "pets", 1), a.Blob) {
		t.Error("the line doesn't keep the file")
	}
	var out bytes.Buffer
	if err := b.WriteFile(t.Context(), anna, a.Blob, &out); err != nil || !strings.HasSuffix(out.String(), "meow") {
		t.Errorf("read %q, %v", out.String(), err)
	}
	if err := b.WriteFile(t.Context(), ben, a.Blob, &out); !errors.Is(err, contract.ErrNotFound) {
		t.Errorf("another's file: %v", err)
	}
	if err := b.Delete(t.Context(), anna, "pets"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.File(t.Context(), anna, a.Blob); !errors.Is(err, contract.ErrNotFound) {
		t.Errorf("the file of a deleted line: %v", err)
	}
}

func TestAFileThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := (&limited{strings.NewReader("12345"), 4}).Read(make([]byte, 10)); !errors.Is(err, contract.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestUnreadLinesAreCounted(t *testing.T) {
	t.Parallel()
	b := start(t)
	for i := range 3 {
		b.answer("", fmt.Sprint(i))
	}
	read := func(seq int64, want int) {
		t.Helper()
		if err := b.Read(t.Context(), anna, "", seq); err != nil {
			t.Fatal(err)
		}
		if got := b.list()[""].Unread; got != want {
			t.Errorf("%d unread, want %d", got, want)
		}
	}
	read(0, 3)
	read(1, 2)
	read(99, 0)
	read(1, 0)
	b.answer("", "more")
	b.again()
	read(0, 1)
	b.say(Message{ID: "m1", Text: "thanks"})
	read(0, 0)
}

func TestADeletedConversationIsGone(t *testing.T) {
	t.Parallel()
	b := start(t)
	for i := range 3 {
		b.say(Message{ID: fmt.Sprint(i), Conversation: "trip", Text: "Plan it, please"})
	}
	if got := b.list()["trip"]; got.Title != "Plan it, please" {
		t.Errorf("conversation %+v", got)
	}
	if err := b.Delete(t.Context(), anna, "trip"); err != nil {
		t.Fatal(err)
	}
	if _, ok := b.list()["trip"]; ok {
		t.Error("it is listed")
	}
	b.WaitFor("the lines are out of the store", func() bool {
		return len(b.Keys(linePrefix("anna", "trip"))) == 0 && len(b.Keys("i/")) == 0
	})
	b.again()
	if l := b.say(Message{ID: "0", Conversation: "trip", Text: "again"}); l.Seq != 4 {
		t.Errorf("line %+v, want a number that no follower has seen", l)
	}
	equal(t, b.lines("trip", 0, 0, 0), "again")
}

func TestManyLinesAreReadInPages(t *testing.T) {
	t.Parallel()
	b := start(t)
	for i := 1; i <= 250; i++ {
		b.say(Message{ID: fmt.Sprint(i), Text: fmt.Sprint(i)})
	}
	b.again()
	equal(t, b.lines("", 0, 4, 2), "2", "3")
	equal(t, b.lines("", 0, 3, 10), "1", "2")
	equal(t, b.lines("", 247, 0, 2), "248", "249")
	equal(t, b.lines("", 250, 0, 2))
	if got := b.lines("", 0, 0, 0); len(got) != 250 {
		t.Errorf("%d lines", len(got))
	}
}

// counting counts what is read of the store.
type counting struct {
	*sdk.Kernel
	read atomic.Int64
}

func (k *counting) Page(ctx context.Context, prefix, after string, limit int) ([]sdk.Value, bool, error) {
	page, more, err := k.Kernel.Page(ctx, prefix, after, limit)
	k.read.Add(int64(len(page)))
	return page, more, err
}

// With 100,000 lines and 1,000 conversations, opening one reads the list and what is shown.
func TestALargeLogOpensWithoutReadingIt(t *testing.T) {
	t.Parallel()
	const lines, conversations = 100_000, 1_000
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	counted := &counting{}
	c := New(time.Now)
	b := &bed{sdktest.Start(t, sdk.Extension{
		ID: "web_channel", Channel: c,
		Start: func(_ context.Context, k *sdk.Kernel) error { counted.Kernel = k; return nil },
		Stop:  func(context.Context) error { c.Stop(); return nil },
	}, options), c, t}
	var effects sdk.Effects
	add := func(e ...sdk.Effect) {
		effects = append(effects, e...)
		if len(effects) > contract.MaxEffects-len(e) || len(e) == 0 {
			if _, err := counted.Commit(t.Context(), effects...); err != nil {
				t.Fatal(err)
			}
			effects = nil
		}
	}
	for i := int64(1); i <= lines; i++ {
		l := Line{Seq: i, ID: fmt.Sprint(i), Mine: i%2 == 1, Text: fmt.Sprint("line ", i), At: at}
		add(sdk.Put(lineKey("anna", "", i), l), sdk.Put(idKey("anna", "", l.Mine, l.ID), i))
	}
	for i := range conversations - 1 {
		h := head{First: 1, Last: 1, Purged: 1, Title: fmt.Sprint("talk ", i), Updated: at}
		add(sdk.Put(headKey("anna", fmt.Sprint(i)), h))
	}
	add(sdk.Put(headKey("anna", ""), head{First: 1, Last: lines, Purged: 1, Updated: at}))
	add()
	c.Start(counted)
	if got := b.list(); len(got) != conversations {
		t.Errorf("%d conversations", len(got))
	}
	equal(t, b.lines("", 0, lines+1, 2), "line 99999", "line 100000")
	if l := b.say(Message{ID: "new", Text: "one more"}); l.Seq != lines+1 {
		t.Errorf("line %+v", l)
	}
	if again := b.say(Message{ID: "51", Text: "line 51"}); again.Seq != 51 {
		t.Errorf("line %+v", again)
	}
	if n := counted.read.Load(); n > conversations+10 {
		t.Errorf("%d values were read", n)
	}
}
