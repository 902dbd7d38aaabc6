package telegramchannel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/contract"
	tg "github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// receiving is a channel with changed times for files.
func receiving(t *testing.T, change func(*fileTimes)) (*tg.Server, *memory, func()) {
	t.Helper()
	s, k := tg.Start(t), newMemory()
	_, end := begin(t, k, s, s.Token(), func(set *settings) { change(&set.files) })
	k.ready(t, "ready")
	return s, k, end
}

// impatient never waits for a download in a poll, nor publishes an album before something
// else is said.
func impatient(f *fileTimes) { f.budget, f.albumQuiet = time.Nanosecond, time.Hour }

// shown is what a message says, and its files with their contents.
func (k *memory) shown(m contract.UserMessage) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	parts := []string{m.Text}
	for _, a := range m.Attachments {
		text := a.Kind
		if a.Name != "" {
			text += " " + a.Name
		}
		if a.Blob != "" {
			text += "=" + k.files[a.Blob]
		}
		parts = append(parts, text)
	}
	return strings.TrimSpace(strings.Join(parts, "|"))
}

// gets waits for all messages and compares them.
func (k *memory) gets(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, m := range k.messages(t, len(want)) {
		got = append(got, k.shown(m))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages: %s", diff)
	}
}

func photo(chat int64, text, content string) tg.Incoming {
	return tg.Incoming{From: tg.User{ID: chat}, Text: text, Media: "photo", File: &tg.File{Data: []byte(jpeg + content)}}
}

const jpeg = "\xff\xd8\xff\xe0"

func TestFilesOfEachKind(t *testing.T) {
	t.Parallel()
	const mp4 = "\x00\x00\x00\x18ftypmp42"
	for name, tc := range map[string]struct {
		media string
		file  *tg.File
		want  contract.Attachment
	}{
		"photo":      {"photo", &tg.File{Data: []byte(jpeg + "cat")}, contract.Attachment{Kind: "image", MIME: "image/jpeg"}},
		"voice":      {"voice", nil, contract.Attachment{Kind: "voice", Name: "0:03", MIME: "audio/ogg"}},
		"audio":      {"audio", nil, contract.Attachment{Kind: "audio", MIME: "audio/mpeg"}},
		"video":      {"video", nil, contract.Attachment{Kind: "video", MIME: "video/mp4"}},
		"video note": {"video_note", nil, contract.Attachment{Kind: "video", MIME: "video/mp4"}},
		"animation":  {"animation", nil, contract.Attachment{Kind: "video", MIME: "video/mp4"}},
		"sticker":    {"sticker", nil, contract.Attachment{Kind: "image", Name: "sticker", MIME: "image/webp"}},
		"document":   {"document", nil, contract.Attachment{Kind: "document", Name: "notes.txt", MIME: "text/plain"}},
		"a hostile name": {"document", &tg.File{Name: "../../\u202etxt.sh\x07", MIME: "text/plain", Data: []byte("#!/bin/sh\n")},
			contract.Attachment{Kind: "document", Name: "txt.sh", MIME: "text/x-shellscript"}},
		"a program as a photo": {"photo", &tg.File{Data: []byte("MZ\x90")},
			contract.Attachment{Kind: "document", MIME: "application/vnd.microsoft.portable-executable"}},
		"a video above 20 MB": {"video", &tg.File{Name: "film.mp4", Data: []byte(mp4), Size: 21 << 20},
			contract.Attachment{Kind: tooLarge, Name: "film.mp4"}},
		"location": {"location", nil, contract.Attachment{Kind: "location", Name: "52.52, 13.4"}},
		"contact":  {"contact", nil, contract.Attachment{Kind: "contact", Name: "Someone, +491"}},
		"poll":     {"poll", nil, contract.Attachment{Kind: "poll"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s, k := running(t)
			s.Inject(tg.Incoming{From: tg.User{ID: 7}, Media: tc.media, File: tc.file})
			m := k.messages(t, 1)[0]
			if len(m.Attachments) != 1 {
				t.Fatalf("message %+v", m)
			}
			a := m.Attachments[0]
			if stored := a.Blob != ""; stored != (tc.want.MIME != "") || stored && a.Size != int64(len(k.files[a.Blob])) {
				t.Errorf("stored: %+v", a)
			}
			a.Blob, a.Size = "", 0
			if diff := cmp.Diff(tc.want, a); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOtherAttachments(t *testing.T) {
	t.Parallel()
	_, s, k := running(t)
	for i, content := range []string{
		`"sticker":{"file_id":"x","is_animated":true,"emoji":"😀"}`,
		`"sticker":{"file_id":"x","is_video":true,"emoji":"😀","thumbnail":{"file_id":"y","width":1,"height":1}}`,
		`"venue":{"title":"Café","address":"Main St 1","location":{"latitude":-1.234567,"longitude":100}},
			"location":{"latitude":-1.234567,"longitude":100}`,
		`"contact":{"phone_number":"+49 1","first_name":"Anna","last_name":"Lee"}`,
		`"photo":[{"file_id":"gone","width":1,"height":1}],"forward_origin":{"type":"of the future"}`,
	} {
		s.InjectRaw(int64(1000+i), "message", json.RawMessage(
			`{"message_id":1,"date":1,"chat":{"id":7,"type":"private"},"from":{"id":7,"first_name":"A"},`+content+`}`))
	}
	k.gets(t, "|animated sticker 😀", "|"+gone+" sticker 😀 (animated: one frame of it)",
		"|location Café, Main St 1 (-1.23457, 100)", "|contact Anna Lee, +49 1", "|"+gone)
}

// Whatever happens to a download, the message is reported once, in order and with the
// whole file.
func TestDownloadsAreRetried(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(s *tg.Server){
		"no problem":             func(*tg.Server) {},
		"getFile fails":          func(s *tg.Server) { s.FailStatus("getFile", 2, http.StatusBadGateway) },
		"getFile is limited":     func(s *tg.Server) { s.Fail("getFile", 1, tg.Fault{Status: 429, RetryAfter: 1}) },
		"getFile gets no answer": func(s *tg.Server) { s.Fail("getFile", 2, tg.Fault{Break: tg.BreakAfter}) },
		"unavailable for a moment": func(s *tg.Server) {
			s.Fail("getFile", 2, tg.Fault{Status: 400, Description: "Bad Request: wrong file_id or the file is temporarily unavailable"})
		},
		"the download fails":      func(s *tg.Server) { s.FailStatus("file", 2, http.StatusServiceUnavailable) },
		"the download is limited": func(s *tg.Server) { s.Fail("file", 1, tg.Fault{Status: 429, Body: "slow down"}) },
		"the connection breaks":   func(s *tg.Server) { s.Fail("file", 2, tg.Fault{Break: tg.BreakBefore}) },
		"the download is cut off": func(s *tg.Server) { s.Fail("file", 2, tg.Fault{Break: tg.BreakInsideAnswer}) },
		"the download stalls":     func(s *tg.Server) { s.Fail("file", 1, tg.Fault{Break: tg.PauseInsideAnswer}) },
		"nothing comes":           func(s *tg.Server) { s.Fail("file", 1, tg.Fault{Hang: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k, _ := receiving(t, func(f *fileTimes) { f.stall = time.Second })
			fail(s)
			s.Inject(photo(7, "look", "a cat"))
			s.Say(7, "and now?")
			s.Say(7, "the end")
			k.gets(t, "look|image="+jpeg+"a cat", "and now?", "the end")
		})
	}
}

// A slow download delays its own conversation and no other one.
func TestSlowDownloadDelaysOnlyItsConversation(t *testing.T) {
	t.Parallel()
	s, k, _ := receiving(t, impatient)
	s.Fail("file", 1, tg.Fault{Break: tg.PauseInsideAnswer})
	s.Inject(photo(7, "look", "a cat"))
	last := s.Say(7, "later")
	s.Say(8, "hi")
	if err := s.WaitConfirmed(t.Context(), last.Update); err != nil {
		t.Fatal(err)
	}
	k.gets(t, "hi")
	if err := s.WaitCalls(t.Context(), "file", 1); err != nil {
		t.Fatal(err)
	}
	s.Say(7, "still later")
	s.Say(8, "bye")
	k.gets(t, "hi", "bye")
	s.Release()
	k.gets(t, "hi", "bye", "look|image="+jpeg+"a cat", "later", "still later")
}

// What waits for its files is stored: the next process goes on.
func TestRestartDuringADownload(t *testing.T) {
	t.Parallel()
	s, k, end := receiving(t, impatient)
	s.Fail("file", 1, tg.Fault{Break: tg.PauseInsideAnswer})
	s.Inject(photo(7, "look", "a cat"))
	last := s.Say(7, "later")
	if err := s.WaitConfirmed(t.Context(), last.Update); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitCalls(t.Context(), "file", 1); err != nil {
		t.Fatal(err)
	}
	end()
	if got := k.messages(t, 0); len(got) != 0 {
		t.Fatalf("reported before the download ended: %+v", got)
	}
	s.Heal()
	begin(t, k, s, s.Token())
	k.gets(t, "look|image="+jpeg+"a cat", "later")
	k.await(t, "an empty backlog", func() bool { return !k.waits() })
	s.Say(7, "the end")
	k.gets(t, "look|image="+jpeg+"a cat", "later", "the end")
}

// waits reports whether messages wait in the store. The caller holds mu.
func (k *memory) waits() bool {
	for key := range k.values {
		if strings.HasPrefix(key, "waiting/") {
			return true
		}
	}
	return false
}

// A file that cannot be had is an attachment without one, and the message arrives.
func TestFilesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	unavailable := func(s *tg.Server, id string) { s.FailStatus("file", 1000, http.StatusServiceUnavailable) }
	for name, tc := range map[string]struct {
		happens func(s *tg.Server, id string)
		keep    error
		want    string
	}{
		"deleted":         {(*tg.Server).DeleteFile, nil, gone},
		"gone at the end": {func(s *tg.Server, _ string) { s.FailStatus("file", 1, http.StatusNotFound) }, nil, gone},
		"never available": {unavailable, nil, notReceived},
		"above the limit": {func(s *tg.Server, _ string) {
			s.Fail("getFile", 1, tg.Fault{Status: 400, Description: "Bad Request: file is too big"})
		}, nil, tooLarge},
		"no room in the home": {func(*tg.Server, string) {}, contract.ErrTooLarge, tooLargeFor},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := tg.Start(t), newMemory()
			if tc.keep != nil {
				k.keep = func(string) error { return fmt.Errorf("store a file: %w", tc.keep) }
			}
			sent := s.Inject(photo(7, "look", "a cat"))
			s.Say(7, "the end")
			tc.happens(s, sent.File)
			begin(t, k, s, s.Token(), func(set *settings) { set.files.giveUp = time.Nanosecond })
			k.gets(t, "look|"+tc.want, "the end")
		})
	}
}

// While the home cannot store a file, the message waits, however long it takes.
func TestFilesWaitForRoom(t *testing.T) {
	t.Parallel()
	s, k := tg.Start(t), newMemory()
	tries := 0
	k.keep = func(string) error {
		if tries++; tries <= 3 {
			return fmt.Errorf("store a file: %w", contract.ErrFull)
		}
		return nil
	}
	s.Inject(photo(7, "look", "a cat"))
	begin(t, k, s, s.Token(), func(set *settings) { set.files.giveUp = time.Nanosecond })
	k.gets(t, "look|image="+jpeg+"a cat")
}

// A file that was swept while its message could not be stored is downloaded again.
func TestFilesAreDownloadedAgain(t *testing.T) {
	t.Parallel()
	s, k := tg.Start(t), newMemory()
	swept := false
	k.refuse = func(m []contract.UserMessage) error {
		if len(m) > 0 && !swept {
			swept = true
			clear(k.files)
			return fmt.Errorf("publish: %w", contract.ErrNotFound)
		}
		return nil
	}
	s.Inject(photo(7, "look", "a cat"))
	begin(t, k, s, s.Token())
	k.gets(t, "look|image="+jpeg+"a cat")
}

func album(chat tg.Chat, texts ...string) (parts []tg.Incoming) {
	for i, text := range texts {
		p := photo(7, text, fmt.Sprint(i+1))
		p.Chat, p.Album = chat, "55"
		parts = append(parts, p)
	}
	return parts
}

func TestAlbumIsOneMessage(t *testing.T) {
	t.Parallel()
	image := func(n int) string { return fmt.Sprintf("|image=%s%d", jpeg, n) }
	home := tg.Chat{ID: -1_000_000_000_001, Title: "Home"}
	for name, tc := range map[string]struct {
		chat  tg.Chat
		texts []string
		polls []int // sizes of the batches
		want  []string
	}{
		"in one poll":            {tg.Chat{}, []string{"look", "", ""}, []int{3}, []string{"look" + image(1) + image(2) + image(3)}},
		"in several polls":       {tg.Chat{}, []string{"", "look", ""}, []int{1, 1, 1}, []string{"look" + image(1) + image(2) + image(3)}},
		"two texts":              {tg.Chat{}, []string{"a", "b"}, []int{2}, []string{"a\nb" + image(1) + image(2)}},
		"in a group":             {home, []string{"", "@switchboard_test_bot look"}, []int{2}, []string{"look" + image(1) + image(2)}},
		"in a group, for others": {home, []string{"", "look"}, []int{2}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k, _ := receiving(t, impatient)
			parts := album(tc.chat, tc.texts...)
			for _, n := range tc.polls {
				sent := s.InjectBatch(false, parts[:n]...)
				parts = parts[n:]
				if err := s.WaitConfirmed(t.Context(), sent[n-1].Update); err != nil {
					t.Fatal(err)
				}
			}
			s.Inject(tg.Incoming{Chat: tc.chat, From: tg.User{ID: 7}, Text: "@switchboard_test_bot the end"})
			k.gets(t, append(tc.want, "the end")...)
		})
	}
}

// The end of an album is that no more of it comes.
func TestAlbumEnds(t *testing.T) {
	t.Parallel()
	s, k, _ := receiving(t, func(f *fileTimes) { f.albumQuiet = time.Millisecond })
	s.InjectBatch(false, album(tg.Chat{}, "look", "")...)
	k.await(t, "the album", func() bool {
		files := 0
		for _, m := range k.got {
			files += len(m.Attachments)
		}
		return files == 2
	})
}

// A restart in the middle of an album, and updates that Telegram repeats, change nothing.
func TestAlbumOverARestart(t *testing.T) {
	t.Parallel()
	s, k, end := receiving(t, impatient)
	parts := album(tg.Chat{}, "look", "", "")
	sent := s.InjectBatch(false, parts[:2]...)
	if err := s.WaitConfirmed(t.Context(), sent[1].Update); err != nil {
		t.Fatal(err)
	}
	end()
	begin(t, k, s, s.Token(), func(set *settings) { impatient(&set.files) })
	s.InjectTwice(parts[2])
	repeat := json.RawMessage(fmt.Sprintf(`{"message_id":%d,"date":1,"media_group_id":"55","photo":[{"file_id":"x"}],
		"chat":{"id":7,"type":"private"},"from":{"id":7,"first_name":"A"}}`, sent[1].Message))
	s.InjectRaw(sent[1].Update, "message", repeat)
	s.Say(7, "the end")
	want := []string{fmt.Sprintf("look|image=%s1|image=%s2|image=%s3", jpeg, jpeg, jpeg), "the end"}
	k.gets(t, want...)
	s.InjectRaw(sent[1].Update, "message", repeat)
	s.Say(7, "really")
	k.gets(t, append(want, "really")...)
}

// Many photos at once are downloaded a few at a time, and reported in order.
func TestFloodOfPhotos(t *testing.T) {
	t.Parallel()
	s, k := tg.Start(t), newMemory()
	var batch []tg.Incoming
	var want []string
	for i := range 50 {
		batch = append(batch, photo(7, fmt.Sprint(i), fmt.Sprint(i)))
		want = append(want, fmt.Sprintf("%d|image=%s%d", i, jpeg, i))
	}
	s.InjectBatch(false, batch...)
	s.FailStatus("file", 10, http.StatusBadGateway)
	begin(t, k, s, s.Token())
	k.gets(t, want...)
	if n := s.Calls("file"); n < 50 || n > 120 {
		t.Errorf("%d downloads of 50 files, of which 10 failed", n)
	}
}

// After an outage messages are held until the last poll. Those with files keep their place.
func TestFilesAfterAnOutage(t *testing.T) {
	t.Parallel()
	s, k := tg.Start(t, tg.WithClock(func() time.Time { return time.Now().Add(-48 * time.Hour) })), newMemory()
	var want []string
	for i := range 150 {
		if i%30 == 3 {
			s.Inject(photo(7, fmt.Sprint(i), "x"))
			want = append(want, fmt.Sprintf("%d|image=%sx", i, jpeg))
			continue
		}
		s.Say(7, fmt.Sprint(i))
		want = append(want, fmt.Sprint(i))
	}
	begin(t, k, s, s.Token())
	k.gets(t, want...)
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Index(k.batches, 3) != 0 {
		t.Errorf("commits of %v messages: the first three were not held", k.batches)
	}
}
