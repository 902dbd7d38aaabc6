package telegramchannel

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/contract"
	tg "github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/sdk"
)

// keeps stores a file and returns its attachment.
func (k *memory) keeps(kind, name, mime, content string) contract.Attachment {
	k.mu.Lock()
	defer k.mu.Unlock()
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	k.files[hash] = content
	return contract.Attachment{Kind: kind, Name: name, MIME: mime, Blob: hash, Size: int64(len(content))}
}

// picture is a PNG.
func (k *memory) picture(t *testing.T, width, height int) contract.Attachment {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return k.keeps(contract.KindImage, "cat.png", "image/png", b.String())
}

// A place that may have been sent already is repeated in words, which say so.
func TestAPlaceOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	c, s, _ := running(t)
	s.AddChat(tg.Chat{ID: 7})
	m := text(7, "here")
	m.Unmarked, m.Attachments = m.Text, []contract.Attachment{{Kind: contract.KindLocation, Name: "52.52, 13.4"}}
	s.Fail("sendLocation", 1, tg.Fault{Break: tg.BreakAfter})
	if _, err := c.Send(t.Context(), m); err == nil {
		t.Fatal("the outcome is known")
	}
	m.Repeat, m.Text = true, contract.RepeatMark+m.Text
	if _, err := c.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range s.Messages(7) {
		got = append(got, m.Media+" "+m.Text)
	}
	want := []string{" here", "location 52.52|13.4", " (possibly sent before)\n52.52, 13.4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What people send can be sent back in the same form.
func TestAPlaceComesBack(t *testing.T) {
	t.Parallel()
	c, s, k := running(t)
	s.Inject(tg.Incoming{From: tg.User{ID: 7}, Media: "location"})
	s.Inject(tg.Incoming{From: tg.User{ID: 7}, Media: "contact"})
	for i, got := range k.messages(t, 2) {
		m := text(7, "")
		m.ID, m.Attachments = fmt.Sprint("e", i), got.Attachments
		if _, err := c.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, m := range s.Messages(7) {
		got = append(got, m.Media+" "+m.Text)
	}
	if diff := cmp.Diff([]string{"location 52.52|13.4", "contact +491|Someone"}, got); diff != "" {
		t.Error(diff)
	}
}

// sentMedia is what the bot sent to a chat.
func sentMedia(s *tg.Server, k *memory, chat int64) (all []string) {
	for _, m := range s.Messages(chat) {
		text := m.Text
		switch m.Media {
		case "":
		case "location", "venue", "contact":
			text = m.Media + ": " + m.Text
		default:
			text = m.Media + " " + m.File.Name + ": " + m.Text
			hash := fmt.Sprintf("%x", sha256.Sum256(m.File.Data))
			if _, ok := k.files[hash]; !ok {
				text += " (with other bytes)"
			}
		}
		all = append(all, text)
	}
	return all
}

func TestFilesAreSent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 300)
	for name, tc := range map[string]struct {
		text  string
		files func(t *testing.T, k *memory) []contract.Attachment
		fail  func(s *tg.Server)
		want  []string
	}{
		"photo": {"**look**", func(t *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.picture(t, 20, 10)}
		}, nil, []string{"photo cat.png: look"}},
		"without a text": {"", func(t *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.picture(t, 20, 10)}
		}, nil, []string{"photo cat.png: "}},
		"formatting that is refused": {"**look**", func(t *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.picture(t, 20, 10)}
		}, func(s *tg.Server) {
			s.Fail("sendPhoto", 1, tg.Fault{Status: 400, Description: "Bad Request: can't parse entities"})
		}, []string{"photo cat.png: **look**"}},
		"a photo that is too long": {"look", func(t *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.picture(t, 2100, 100)}
		}, nil, []string{"document cat.png: look"}},
		"a photo above 10 MB": {"look", func(_ *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.keeps("image", "a.jpg", "image/jpeg", strings.Repeat("x", 10<<20+1))}
		}, nil, []string{"document a.jpg: look"}},
		"album": {"look", func(t *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.picture(t, 20, 10), k.picture(t, 30, 10), k.picture(t, 40, 10)}
		}, nil, []string{"photo cat.png: look", "photo cat.png: ", "photo cat.png: "}},
		"album with a refused photo": {"look", func(t *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.picture(t, 20, 10), k.picture(t, 2100, 10)}
		}, nil, []string{"document cat.png: look", "document cat.png: "}},
		"each kind": {"", func(_ *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{
				k.keeps("voice", "", "audio/ogg", "v"), k.keeps("audio", "s.mp3", "audio/mpeg", "a"),
				k.keeps("video", "f.mp4", "video/mp4", "f"), k.keeps("document", "../a\nb.txt", "text/plain", "d"),
				k.keeps("image", "m.gif", "image/gif", "g"), k.keeps("video", "f.mkv", "video/x-matroska", "m"),
			}
		}, nil, []string{"voice voice.oga: ", "audio s.mp3: ", "video f.mp4: ", "document a b.txt: ", "animation m.gif: ",
			"document f.mkv: "}},
		"a long text": {long, func(t *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.picture(t, 20, 10)}
		}, nil, []string{strings.TrimSpace(long), "photo cat.png: "}},
		"a place": {"here", func(*testing.T, *memory) []contract.Attachment {
			return []contract.Attachment{{Kind: contract.KindLocation, Name: "52.52, -13.4"}}
		}, nil, []string{"here", "location: 52.52|-13.4"}},
		"a venue": {"", func(*testing.T, *memory) []contract.Attachment {
			return []contract.Attachment{{Kind: contract.KindLocation, Name: "Zoo (West), Budapester Str. 1, Berlin (52.5, 13.3)"}}
		}, nil, []string{"venue: 52.5|13.3|Zoo (West)|Budapester Str. 1, Berlin"}},
		"a contact and a photo": {"look", func(t *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{{Kind: contract.KindContact, Name: "Anna Lee, +49 30 12"}, k.picture(t, 20, 10)}
		}, nil, []string{"photo cat.png: look", "contact: +49 30 12|Anna Lee"}},
		"places that can't be read": {"here", func(*testing.T, *memory) []contract.Attachment {
			return []contract.Attachment{
				{Kind: contract.KindLocation, Name: "the zoo"}, {Kind: contract.KindLocation, Name: "91, 13"},
				{Kind: contract.KindContact, Name: "Anna Lee"},
			}
		}, nil, []string{"here\nthe zoo\n91, 13\nAnna Lee"}},
		"a contact that is refused": {"", func(*testing.T, *memory) []contract.Attachment {
			return []contract.Attachment{{Kind: contract.KindContact, Name: "Anna Lee, 000"}}
		}, func(s *tg.Server) {
			s.Fail("sendContact", 1, tg.Fault{Status: 400, Description: "Bad Request: PHONE_NUMBER_INVALID"})
		}, []string{"Anna Lee, 000"}},
		"a file that is gone": {"look", func(_ *testing.T, k *memory) []contract.Attachment {
			a := k.keeps("document", "a.txt", "text/plain", "x")
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.files, a.Blob)
			return []contract.Attachment{a}
		}, nil, []string{"look\n[document 2d7116: a.txt]"}},
		"a file that is refused": {"look", func(_ *testing.T, k *memory) []contract.Attachment {
			return []contract.Attachment{k.keeps("document", "a.txt", "text/plain", "x")}
		}, func(s *tg.Server) { s.FailStatus("sendDocument", 1, http.StatusRequestEntityTooLarge) },
			[]string{"look\n[document 2d7116: a.txt]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s, k := running(t)
			s.AddChat(tg.Chat{ID: 7})
			if tc.fail != nil {
				tc.fail(s)
			}
			m := text(7, tc.text)
			m.Unmarked, m.Attachments = m.Text, tc.files(t, k)
			r, err := c.Send(t.Context(), m)
			if err != nil || r.ProviderID == "" {
				t.Fatalf("receipt %+v, %v", r, err)
			}
			if diff := cmp.Diff(tc.want, sentMedia(s, k, 7)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A message of several requests goes on where it stopped, and marks only what may have
// been sent before.
func TestFilesAreNotSentTwice(t *testing.T) {
	t.Parallel()
	c, s, k := running(t)
	s.AddChat(tg.Chat{ID: 7})
	m := text(7, "two files")
	m.Unmarked = m.Text
	m.Attachments = []contract.Attachment{
		k.keeps("document", "a.txt", "text/plain", "a"), k.keeps("document", "b.txt", "text/plain", "b"),
		k.keeps("document", "c.txt", "text/plain", "c"),
	}
	s.FailStatus("sendDocument", 1, http.StatusBadGateway)
	if _, err := c.Send(t.Context(), m); err == nil || strings.Contains(err.Error(), "unknown") {
		t.Fatalf("Telegram is down: %v", err)
	}
	k.mu.Lock()
	k.refuse = func([]contract.UserMessage) error { // called for the progress after the first file
		s.Fail("sendDocument", 1, tg.Fault{Break: tg.BreakAfter})
		return nil
	}
	k.mu.Unlock()
	if _, err := c.Send(t.Context(), m); err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Fatalf("the answer of the second file is lost: %v", err)
	}
	k.mu.Lock()
	k.refuse = nil
	k.mu.Unlock()
	m.Repeat, m.Text = true, contract.RepeatMark+m.Text
	r, err := c.Send(t.Context(), m)
	if err != nil || len(r.Effects) != 1 {
		t.Fatalf("receipt %+v, %v", r, err)
	}
	want := []string{
		"document a.txt: two files", "document b.txt: ", "document b.txt: (possibly sent before)", "document c.txt: ",
	}
	if diff := cmp.Diff(want, sentMedia(s, k, 7)); diff != "" {
		t.Error(diff)
	}
}

// The final text replaces the draft, and the file follows.
func TestFileAfterADraft(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.AddChat(tg.Chat{ID: 7})
		b.streams(sdk.Draft{ID: "d1", Conversation: "7"}, story, -1)
		m := sdk.Message{ID: "e1", Text: "**done**", Unmarked: "**done**", Conversation: "7", DraftID: "d1"}
		m.Attachments = []contract.Attachment{b.kernel.keeps("document", "a.txt", "text/plain", "x")}
		r, err := b.c.Send(b.t.Context(), m)   // the receipt is lost
		if err != nil || len(r.Effects) != 2 { // of the draft and of the progress
			t.Errorf("receipt %+v, %v", r, err)
		}
		again := repeated(m)
		again.Unmarked = m.Text
		b.delivers(again)
		want := []string{"done", "document a.txt: ", "document a.txt: (possibly sent before)"}
		if diff := cmp.Diff(want, sentMedia(b.Server, b.kernel, 7)); diff != "" {
			t.Error(diff)
		}
	})
}
