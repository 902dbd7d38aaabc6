package telegramchannel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/contract"
	tg "github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/sdk"
)

var approval = []contract.Action{
	{Label: "Yes", Command: "/approve q1"}, {Label: "No", Command: "/deny q1"},
	{Label: "Always here", Command: "/approve q1 always here"}, {Label: "Always", Command: "/approve q1 always"},
}

// asks sends a question with buttons and returns its message.
func asks(t *testing.T, c *channel, s *tg.Server, chat int64) tg.Message {
	t.Helper()
	s.AddChat(tg.Chat{ID: chat})
	m := text(chat, "May I?")
	m.Actions = approval
	if _, err := c.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	all := s.Messages(chat)
	return all[len(all)-1]
}

// noButtons waits until a message has none.
func noButtons(t *testing.T, s *tg.Server, chat int64, message int) {
	t.Helper()
	if err := s.Wait(t.Context(), "the buttons to go", func() bool {
		i := slices.IndexFunc(s.History(chat), func(m tg.Message) bool { return m.ID == message })
		return len(s.History(chat)[i].Buttons) == 0
	}); err != nil {
		t.Fatal(err)
	}
}

func TestAPressIsTheCommandOfItsButton(t *testing.T) {
	t.Parallel()
	c, s, k := running(t)
	for _, chat := range []int64{7, -5} {
		m := asks(t, c, s, chat)
		want := [][]tg.Button{
			{{Text: "Yes", Data: "/approve q1"}, {Text: "No", Data: "/deny q1"}},
			{{Text: "Always here", Data: "/approve q1 always here"}, {Text: "Always", Data: "/approve q1 always"}},
		}
		if diff := cmp.Diff(want, m.Buttons); diff != "" {
			t.Error(diff)
		}
		before := len(k.messages(t, 0))
		p, found := s.Press(chat, m.ID, "Always here", tg.User{ID: 7, FirstName: "Ann"})
		if !found {
			t.Fatal("the button is not there")
		}
		got := k.messages(t, before+1)[before]
		if diff := cmp.Diff(contract.UserMessage{
			Text: "/approve q1 always here", UserID: "7", UserName: "Ann", ConversationID: fmt.Sprint(chat), Group: chat < 0,
			MessageID: fmt.Sprint(m.ID),
		}, got); diff != "" {
			t.Error(diff)
		}
		noButtons(t, s, chat, m.ID)
		if err := s.Wait(t.Context(), "the answer", func() bool {
			return slices.ContainsFunc(s.Presses(), func(x tg.Press) bool { return x.Query == p.Query && x.Answered })
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// hasPress reports whether a press is in the store. The caller holds mu.
func (k *memory) hasPress() bool {
	for key := range k.values {
		if strings.HasPrefix(key, "pressed/") {
			return true
		}
	}
	return false
}

// The buttons are for those who are admitted: a stranger's press doesn't take them away.
func TestAStrangerCannotPress(t *testing.T) {
	t.Parallel()
	c, s, k := running(t)
	k.mu.Lock()
	k.stranger = "8"
	k.mu.Unlock()
	m := asks(t, c, s, -5)
	s.Press(-5, m.ID, "Yes", tg.User{ID: 8, FirstName: "Eve"})
	if err := s.Wait(t.Context(), "the answer", func() bool { return s.Presses()[0].Answered }); err != nil {
		t.Fatal(err)
	}
	if got := s.Presses()[0].Text; got != "You can't use these buttons, because I don't know you yet." {
		t.Errorf("the stranger is shown %q", got)
	}
	k.await(t, "the press to be forgotten", func() bool { return !k.hasPress() })
	if all := s.Messages(-5); len(all[0].Buttons) == 0 {
		t.Error("the buttons are gone")
	}
	s.Press(-5, m.ID, "Yes", tg.User{ID: 7, FirstName: "Ann"})
	if got := k.messages(t, 1); got[0].UserID != "7" {
		t.Errorf("stored is %+v", got)
	}
	noButtons(t, s, -5, m.ID)
	if got := s.Presses()[1].Text; got != "" {
		t.Errorf("the answer shows %q", got)
	}
}

// A press in a chat that waits for a file removes the buttons when it is published, also by
// the next process.
func TestAPressWaitsForFiles(t *testing.T) {
	t.Parallel()
	s, k := tg.Start(t), newMemory()
	slow := func(set *settings) { impatient(&set.files) }
	c, end := begin(t, k, s, s.Token(), slow)
	k.ready(t, "ready")
	m := asks(t, c, s, 7)
	s.Fail("file", 1, tg.Fault{Break: tg.PauseInsideAnswer})
	s.Inject(photo(7, "look", "a cat"))
	p, _ := s.Press(7, m.ID, "Yes", tg.User{ID: 7, FirstName: "Ann"})
	if err := s.WaitConfirmed(t.Context(), p.Update); err != nil {
		t.Fatal(err)
	}
	end()
	if all := s.Messages(7); len(all[0].Buttons) == 0 {
		t.Error("the buttons are gone before the press is published")
	}
	s.Heal()
	begin(t, k, s, s.Token(), slow)
	if got := k.messages(t, 2); got[1].Text != "/approve q1" {
		t.Errorf("reported are %+v", got)
	}
	noButtons(t, s, 7, m.ID)
}

// The buttons stay until the press is stored.
func TestAPressIsStoredFirst(t *testing.T) {
	t.Parallel()
	c, s, k := running(t)
	m := asks(t, c, s, 7)
	refused := make(chan struct{}, 100)
	down := true
	k.mu.Lock()
	k.refuse = func(messages []contract.UserMessage) error {
		if len(messages) == 0 || !down {
			return nil
		}
		refused <- struct{}{}
		return errors.New("the disk is full")
	}
	k.mu.Unlock()
	if _, found := s.Press(7, m.ID, "Yes", tg.User{ID: 7}); !found {
		t.Fatal("the button is not there")
	}
	<-refused
	<-refused
	if all := s.Messages(7); len(all[0].Buttons) == 0 || s.Presses()[0].Answered {
		t.Error("it is answered before it is stored")
	}
	k.mu.Lock()
	down = false
	k.mu.Unlock()
	if got := k.messages(t, 1); got[0].Text != "/approve q1" {
		t.Errorf("stored is %+v", got)
	}
	noButtons(t, s, 7, m.ID)
}

// Buttons of another program, or of a message that is gone, do no harm.
func TestStrangeButtons(t *testing.T) {
	t.Parallel()
	c, s, k := running(t)
	m := asks(t, c, s, 7)
	chat := map[string]any{"id": 7, "type": "private"}
	old := map[string]any{"message_id": m.ID, "date": 0, "chat": chat}
	for _, data := range []string{"page:2", "", "approve q1"} {
		s.PressData(old, data, tg.User{ID: 7, FirstName: "Ann"})
	}
	s.PressData(nil, "/approve q1", tg.User{ID: 7, FirstName: "Ann"})
	s.PressData(map[string]any{"message_id": 999, "date": 0, "chat": chat}, "/deny q1", tg.User{ID: 7, FirstName: "Ann"})
	s.PressData(old, "/approve q1", tg.User{ID: 7, FirstName: "Ann"})
	s.Say(7, "hello")
	var got []string
	for _, m := range k.messages(t, 3) {
		got = append(got, m.Text)
	}
	if want := []string{"/deny q1", "/approve q1", "hello"}; !slices.Equal(got, want) {
		t.Errorf("reported are %q, want %q", got, want)
	}
	noButtons(t, s, 7, m.ID)
}

func TestButtonsOfADraft(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.AddChat(tg.Chat{ID: 7})
		b.streams(sdk.Draft{ID: "d1", Conversation: "7"}, story, -1)
		b.delivers(sdk.Message{ID: "e2", Text: story, Conversation: "7", DraftID: "d1", Actions: approval[:2]})
		if got := b.only(7); got.Edits == 0 || len(got.Buttons) != 1 {
			t.Errorf("the draft became %+v", got)
		}
	})
}

// The buttons are below the photo, if it is the only one and its text fits below it; else
// they are below the text.
func TestButtonsOfFiles(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 300)
	for name, tc := range map[string]struct {
		text  string
		files func(t *testing.T, k *memory) []contract.Attachment
		want  []string
	}{
		"one": {"Which **one**?", func(t *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.picture(t, 20, 10)}
		}, []string{"photo Which one? with buttons"}},
		"one without a text": {"", func(t *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.picture(t, 20, 10)}
		}, []string{"photo  with buttons"}},
		"refused as a photo": {"Which one?", func(t *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.picture(t, 2100, 100)}
		}, []string{"document Which one? with buttons"}},
		"gone": {"Which one?", func(_ *testing.T, k *memory) []contract.Attachment {
			a := k.keeps("document", "a.txt", "text/plain", "x")
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.files, a.Blob)
			return []contract.Attachment{a}
		}, []string{" Which one?\n[document 2d7116: a.txt] with buttons"}},
		"a long text": {long, func(t *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.picture(t, 20, 10)}
		}, []string{"photo ", " " + strings.TrimSpace(long) + " with buttons"}},
		"an album": {"Which one?", func(t *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.picture(t, 20, 10), k.picture(t, 20, 10)}
		}, []string{"photo ", "photo ", " Which one? with buttons"}},
		"two documents": {"Which one?", func(_ *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.keeps("document", "a.txt", "text/plain", "x"), k.keeps("document", "b.txt", "text/plain", "y")}
		}, []string{"document ", "document ", " Which one? with buttons"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s, k := running(t)
			s.AddChat(tg.Chat{ID: 7})
			m := text(7, tc.text)
			m.ID, m.Unmarked, m.Actions, m.Attachments = "e2", m.Text, approval[:1], tc.files(t, k)
			r, err := c.Send(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			all := s.Messages(7)
			for _, m := range all {
				said := m.Media + " " + m.Text
				if len(m.Buttons) > 0 {
					said += " with buttons"
				}
				got = append(got, said)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || r.ProviderID != fmt.Sprintf("7/%d", all[len(all)-1].ID) {
				t.Errorf("the receipt is %+v\n%s", r, diff)
			}
		})
	}
}

// A press below a photo removes its buttons and nothing else.
func TestAPressBelowAPhoto(t *testing.T) {
	t.Parallel()
	c, s, k := running(t)
	s.AddChat(tg.Chat{ID: 7})
	m := text(7, "Which one?")
	m.Unmarked, m.Actions, m.Attachments = m.Text, approval[:1], []contract.Attachment{k.picture(t, 20, 10)}
	if _, err := c.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	id := s.Messages(7)[0].ID
	if _, found := s.Press(7, id, "Yes", tg.User{ID: 7}); !found {
		t.Fatal("the button is not there")
	}
	k.messages(t, 1)
	noButtons(t, s, 7, id)
	if got := s.Messages(7)[0]; got.Media != "photo" || got.Text != "Which one?" {
		t.Errorf("the message became %+v", got)
	}
}

func TestKeyboardsFitAPhone(t *testing.T) {
	t.Parallel()
	rows := func(labels ...string) (got []int) {
		var actions []contract.Action
		for _, l := range labels {
			actions = append(actions, contract.Action{Label: l, Command: "/x"})
		}
		s := tg.Start(t)
		k := newMemory()
		c, end := begin(t, k, s, s.Token())
		defer end()
		k.ready(t, "ready:")
		s.AddChat(tg.Chat{ID: 7})
		m := text(7, "?")
		m.Actions = actions
		if _, err := c.Send(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		for _, row := range s.Messages(7)[0].Buttons {
			got = append(got, len(row))
		}
		return got
	}
	for want, labels := range map[string][]string{
		"[3]":     {"Done", "+10 min", "Tomorrow"},
		"[1 1 2]": {"Ja, natürlich", "Nein, lieber nicht", "Immer hier", "Immer"},
		"[1 1]":   {strings.Repeat("a long label ", 2), strings.Repeat("x", 200)},
		"[1 1 1]": {strings.Repeat("ж", 20), strings.Repeat("ж", 20), strings.Repeat("ж", 20)},
	} {
		if got := fmt.Sprint(rows(labels...)); got != want {
			t.Errorf("the rows of %q are %s, want %s", labels, got, want)
		}
	}
}

func TestRepliesQuoteWhatTheyAnswer(t *testing.T) {
	t.Parallel()
	c, s, k := running(t)
	s.AddChat(tg.Chat{ID: 7})
	r, err := c.Send(t.Context(), text(7, "Call **Bob**"))
	if err != nil {
		t.Fatal(err)
	}
	own := s.Messages(7)[0].ID
	mine := s.Inject(tg.Incoming{From: tg.User{ID: 7}, Text: "What is it?"}).Message
	long := s.Say(7, strings.Repeat("я", 4000)).Message
	for _, id := range []int{own, mine, long} {
		s.Inject(tg.Incoming{From: tg.User{ID: 7}, Text: "answer", ReplyTo: id})
	}
	got := k.messages(t, 5)[2:]
	if q := got[0].Quote; q == nil || *q != (contract.Quote{MessageID: r.ProviderID, Text: "Call Bob"}) {
		t.Errorf("a reply to the assistant quotes %+v", q)
	}
	if q := got[1].Quote; q == nil || *q != (contract.Quote{MessageID: fmt.Sprint(mine), Sender: "User", Text: "What is it?"}) {
		t.Errorf("a reply to a person quotes %+v", q)
	}
	if q := got[2].Quote; q == nil || len(q.Text) > contract.MaxQuote || !strings.HasSuffix(q.Text, "я…") {
		t.Errorf("a reply to a long text quotes %d bytes", len(q.Text))
	}
}

func TestAReactionToOwnMessages(t *testing.T) {
	t.Parallel()
	c, s, k := running(t)
	s.AddChat(tg.Chat{ID: 7})
	r, err := c.Send(t.Context(), text(7, "Done."))
	if err != nil {
		t.Fatal(err)
	}
	own := s.Messages(7)[0].ID
	ann := tg.User{ID: 7, FirstName: "Ann"}
	said := s.Say(7, "hello").Message
	s.React(7, said, "👎", ann) // their own
	s.React(7, own, "", ann)   // taken off
	s.React(7, own, "👍", ann)
	got := k.messages(t, 2)
	want := contract.UserMessage{
		Text: "👍", UserID: "7", UserName: "Ann", ConversationID: "7", Reaction: true, SentAt: got[1].SentAt,
		Quote: &contract.Quote{MessageID: r.ProviderID, Text: "Done."},
	}
	if diff := cmp.Diff(want, got[1]); diff != "" {
		t.Error(diff)
	}
}
