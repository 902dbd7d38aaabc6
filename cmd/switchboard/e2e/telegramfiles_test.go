package e2e

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// sentPhoto is a photo that Anna sends, and how it stands in the conversation.
func sentPhoto(caption, content string) (in telegramtest.Incoming, reference string) {
	data := []byte("\xff\xd8\xff\xe0" + content)
	return telegramtest.Incoming{
		From: telegramtest.User{ID: anna, FirstName: "Anna"}, Text: caption, Media: "photo",
		File: &telegramtest.File{Data: data},
	}, fmt.Sprintf("[image %.3x]", sha256.Sum256(data))
}

// storedFiles counts the files in the home.
func (w *world) storedFiles() (n int) {
	_ = filepath.WalkDir(w.file("blobs"), func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return nil
	})
	return n
}

func TestPhotoStandsInTheConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(echo)
	w.start()
	w.telegramReady()
	in, reference := sentPhoto("look: <one>", "a cat")
	w.telegram.Inject(in)
	w.told(anna, 1)
	contains(t, "the request", transcript(w.model.Requests()[0]), "look: <one>\n"+reference)
	if n := w.storedFiles(); n != 1 {
		t.Errorf("%d files are stored, want 1", n)
	}
}

// The kernel or the channel is killed during a download: the message arrives once, before
// what was said after it.
func TestDownloadSurvivesAKill(t *testing.T) {
	t.Parallel()
	kernelDies := func(w *world) { w.restart() }
	channelDies := func(w *world) {
		p := w.extensionProcess("telegram_channel")
		kill(p, syscall.SIGKILL)
		w.gone([]process{p})
	}
	for name, tc := range map[string]struct {
		die   func(*world)
		album string // whose parts wait in the store, not at Telegram
	}{
		"kernel, before the cursor":  {kernelDies, ""},
		"kernel, after the cursor":   {kernelDies, "7"},
		"channel, before the cursor": {channelDies, ""},
		"channel, after the cursor":  {channelDies, "7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withTelegram(), withModel)
			w.model.Handle(echo)
			w.start()
			w.telegramReady()
			w.telegram.Fail("file", 1, telegramtest.Fault{Break: telegramtest.PauseInsideAnswer})
			in, reference := sentPhoto("<one>", strings.Repeat("a cat ", 100_000))
			in.Album = tc.album
			sent := w.telegram.Inject(in)
			if err := w.telegram.WaitCalls(w.ctx(), "file", 1); err != nil {
				t.Fatal(err)
			}
			if tc.album != "" {
				if err := w.telegram.WaitConfirmed(w.ctx(), sent.Update); err != nil {
					t.Fatal(err)
				}
			}
			tc.die(w)
			w.telegram.Heal()
			w.telegram.Say(anna, "<two>")
			w.eventually("both messages", func() bool { return w.count("user.message") == 2 })
			w.eventually("the answer", func() bool {
				texts := w.texts(anna)
				return len(texts) > 0 && strings.Contains(texts[len(texts)-1], "<two>")
			})
			w.settled()
			last := transcript(w.model.Requests()[w.model.Total()-1])
			contains(t, "the request", last, "<one>\n"+reference)
			if strings.Count(last, "<one>\n"+reference) != 1 || strings.Index(last, reference) > strings.Index(last, "<two>") {
				t.Errorf("the photo is not there once, before what followed:\n%s", last)
			}
			if n := w.count("user.message"); n != 2 {
				t.Errorf("%d messages were accepted, want 2", n)
			}
		})
	}
}

func TestAlbumIsOneMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(echo)
	w.start()
	w.telegramReady()
	first, one := sentPhoto("<one>", "a cat")
	second, two := sentPhoto("", "a dog")
	first.Album, second.Album = "7", "7"
	w.telegram.InjectBatch(false, first, second)
	w.told(anna, 1)
	contains(t, "the request", transcript(w.model.Requests()[0]), "<one>\n"+one+"\n"+two)
	if n := w.count("user.message"); n != 1 {
		t.Errorf("%d messages were accepted, want 1", n)
	}
}

// What cannot be downloaded is told to the person, in their language, and the rest of the
// message is answered.
func TestFileThatCannotBeDownloadedIsToldSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(echo)
	large := telegramtest.Incoming{
		From: telegramtest.User{ID: anna, FirstName: "Anna"}, Media: "video", Text: "<one>",
		File: &telegramtest.File{Name: "film.mp4", Size: 21 << 20},
	}
	w.telegram.Inject(large)
	large.From, large.Text = telegramtest.User{ID: boris, FirstName: "Boris", Language: "ru"}, ""
	w.telegram.Inject(large)
	deleted, _ := sentPhoto("<two>", "a cat")
	w.telegram.DeleteFile(w.telegram.Inject(deleted).File)
	w.start()
	w.telegramReady()
	w.eventually("the answers", func() bool {
		return strings.Contains(strings.Join(w.texts(anna), "|"), "You said <two>") ||
			strings.Contains(strings.Join(w.texts(anna), "|"), "You said <one> <two>")
	})
	contains(t, "what Anna is told", strings.Join(w.texts(anna), "|"),
		"I couldn't read this: file over 20 MB, which Telegram doesn't pass on to bots.",
		"I couldn't read this: file that Telegram no longer has.")
	contains(t, "what Boris is told", w.told(boris, 1).Text,
		"Не получилось прочитать: файл больше 20 МБ, такие Telegram не передаёт ботам.")
	contains(t, "the last request", transcript(w.model.Requests()[w.model.Total()-1]),
		"[file over 20 MB, which Telegram doesn't pass on to bots: film.mp4]")
}

// Fifty photos at once, some downloads of which fail at first: each is accepted once, and
// what another person says is answered.
func TestFloodOfPhotos(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(echo)
	var batch []telegramtest.Incoming
	for i := range 50 {
		in, _ := sentPhoto(fmt.Sprintf("<n%d>", i), fmt.Sprint(i))
		batch = append(batch, in)
	}
	w.telegram.InjectBatch(false, batch...)
	w.telegram.Say(boris, "<hi>")
	w.telegram.FailStatus("file", 10, http.StatusBadGateway)
	w.start()
	w.telegramReady()
	contains(t, "the answer", w.told(boris, 1).Text, "<hi>")
	w.eventually("all messages", func() bool { return w.count("user.message") == 51 })
	w.settled()
	if files, messages := w.storedFiles(), w.count("user.message"); files != 50 || messages != 51 {
		t.Errorf("%d files and %d messages, want 50 and 51", files, messages)
	}
}

// An agent sends a photo of its conversation back. The channel is killed while Telegram
// takes it: the repetition says so.
func TestPhotoIsSentBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	in, reference := sentPhoto("send it back", "a cat")
	w.model.Queue(openaitest.CallTool(sendTool, map[string]any{
		"channel_id": "telegram_channel", "text": "here it is", "attachments": []string{reference},
	}), openaitest.Say("done"))
	w.start()
	w.telegramReady()
	w.telegram.Fail("sendPhoto", 1, telegramtest.Fault{Hang: true})
	w.telegram.Inject(in)
	if err := w.telegram.WaitCalls(w.ctx(), "sendPhoto", 1); err != nil {
		t.Fatal(err)
	}
	kill(w.extensionProcess("telegram_channel"), syscall.SIGKILL)
	w.eventually("the photo", func() bool {
		for _, m := range w.telegram.Messages(anna) {
			if m.Media != "" {
				return true
			}
		}
		return false
	})
	for _, m := range w.telegram.Messages(anna) {
		if m.Media != "" && (m.Text != "(possibly sent before) here it is" || string(m.File.Data) != string(in.File.Data)) {
			t.Errorf("sent %s %q with %d bytes", m.Media, m.Text, len(m.File.Data))
		}
	}
	w.settled()
}

// "Remind me of this" on a photo: the model sees it, and the reminder brings it back, also
// when the kernel is killed in between.
func TestReminderBringsThePhotoBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.config("channels: {telegram_channel: {allow_from: [\"1001\"]}}\nextensions: {openai: {config: {vision: [test-model]}}}")
	data := photo(t, 400, 300)
	in := telegramtest.Incoming{
		From: telegramtest.User{ID: anna, FirstName: "Anna"}, Text: "remind me of this", Media: "photo",
		File: &telegramtest.File{Data: data},
	}
	w.model.Queue(openaitest.CallTool("scheduler__schedule_once", map[string]any{
		"message": "frame it", "delay_seconds": 2, "attachments": []string{fmt.Sprintf("%.3x", sha256.Sum256(data))},
	}), openaitest.Say("I'll remind you."))
	w.start()
	w.telegramReady()
	w.telegram.Inject(in)
	w.eventually("the answer", func() bool { return strings.Contains(strings.Join(w.texts(anna), "\n"), "I'll remind you.") })
	if images := w.model.Requests()[0].Images(); len(images) != 1 {
		t.Errorf("the model sees %d images", len(images))
	}
	w.restart()
	reminders := func() (all []telegramtest.Message) {
		for _, m := range w.telegram.Messages(anna) {
			if m.Media != "" {
				all = append(all, m)
			}
		}
		return all
	}
	w.eventually("the reminder", func() bool { return len(reminders()) > 0 })
	w.settled()
	all := reminders()
	if len(all) != 1 || string(all[0].File.Data) != string(data) {
		t.Errorf("%d photos came with the reminder", len(all))
	}
	// Its text is the caption, and the buttons are below it.
	if last := all[0]; last.Text != "⏰ frame it" || len(last.Buttons) == 0 || strings.Count(strings.Join(w.texts(anna), "\n"), "frame it") != 1 {
		t.Errorf("the chat shows %q, and the photo has %d rows of buttons", w.texts(anna), len(last.Buttons))
	}
}
