package e2e

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// withTranscription has the model's server write down recordings, at a price.
func withTranscription(w *world) {
	withModel(w)
	w.config(w.text("config.yaml") + "\nmodels:\n  transcribe: openai/whisper-1\n  concurrency: 1\n" +
		"  providers: {openai: {kind: openai, models: [test-model, {name: whisper-1, price: {minute: 0.6}}]}}\n")
}

// voiceMessage is a voice message of a person, and how it stands in the conversation.
func voiceMessage(from int64, content string) (in telegramtest.Incoming, reference string) {
	data := []byte("OggS\x00" + content)
	return telegramtest.Incoming{
		From: telegramtest.User{ID: from, FirstName: "User"}, Media: "voice",
		File: &telegramtest.File{Data: data, MIME: "audio/ogg"},
	}, fmt.Sprintf("[voice %.3x: 0:03]", sha256.Sum256(data))
}

func TestVoiceMessageIsReadByTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withTranscription)
	w.model.Handle(echo)
	w.model.QueueHeard(openaitest.Hear("remind me to buy <milk>", 3))
	w.start()
	w.telegramReady()
	in, reference := voiceMessage(anna, "milk")
	w.telegram.Inject(in)
	contains(t, "the answer", w.told(anna, 1).Text, "<milk>")
	contains(t, "the request", transcript(w.model.Requests()[0]), reference+" transcript: remind me to buy <milk>")
	w.telegram.Say(anna, "<thanks>")
	contains(t, "the answer", w.told(anna, 2).Text, "<thanks>")
	contains(t, "the next request", transcript(w.model.Requests()[1]), reference+" transcript: remind me to buy <milk>")
	all := w.model.Recordings()
	if len(all) != 1 || all[0].Model != "whisper-1" || all[0].Name != "audio.ogg" || string(all[0].Data) != "OggS\x00milk" {
		t.Errorf("the server got the recordings %+v", all)
	}
	w.settled()
	contains(t, "the usage", w.must("usage", "--by", "model"), "whisper-1", "0.03")
}

// The kernel is killed while a voice message is written down, and after that, before the
// model has answered: it is answered once, and written down again only if it has to be.
func TestVoiceMessageSurvivesAKill(t *testing.T) {
	t.Parallel()
	for name, transcribed := range map[string]bool{"during the transcription": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withTelegram(), withTranscription)
			gate := make(chan struct{}) // of what is under way at the kill
			held := openaitest.Hear("<milk>", 3)
			want := 1
			if transcribed {
				w.model.Queue(openaitest.Answer{Text: "lost", Gate: gate})
			} else {
				held.Gate, want = gate, 2
			}
			w.model.QueueHeard(held, openaitest.Hear("<milk>", 3))
			w.model.Handle(echo)
			w.start()
			w.telegramReady()
			in, reference := voiceMessage(anna, "milk")
			w.telegram.Inject(in)
			w.eventually("what is interrupted", func() bool {
				return len(w.model.Recordings()) == 1 && (!transcribed || w.model.Total() == 1)
			})
			w.crash()
			close(gate)
			w.start()
			w.telegramReady()
			w.eventually("the answer", func() bool { return strings.Contains(strings.Join(w.texts(anna), ""), "<milk>") })
			w.settled()
			if n := len(w.model.Recordings()); n != want {
				t.Errorf("it was written down %d times, want %d", n, want)
			}
			if n := len(w.texts(anna)); n != 1 {
				t.Errorf("%d answers: %q", n, w.texts(anna))
			}
			last := w.model.Requests()[w.model.Total()-1]
			if n := strings.Count(transcript(last), reference); n != 1 {
				t.Errorf("the voice message is there %d times:\n%s", n, transcript(last))
			}
		})
	}
}

// What is said aloud approves nothing and is no command.
func TestSpokenYesApprovesNothing(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"Yes.", "/approve q1"} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withTelegram(), withTranscription)
			w.config(w.text("config.yaml") + "\nagents: {default: chief}\napprove: [lab/*]\n")
			w.dropIn("chief", "", chief)
			w.probe("lab", "tools", "provides: {tools: true}")
			w.model.QueueHeard(openaitest.Hear(said, 1))
			w.model.Queue(openaitest.CallTool("lab__slow", `{"n": 1}`), openaitest.Say("Type it, please."),
				openaitest.Say("I left it."))
			w.start()
			w.telegramReady()
			w.state(w.control(), "lab", "active")
			w.release()
			w.telegram.Say(anna, "do it")
			contains(t, "the question", w.told(anna, 1).Text, "lab/slow")
			in, reference := voiceMessage(anna, "yes")
			w.telegram.Inject(in)
			w.told(anna, 3)
			w.settled()
			if got := w.text("data", "lab", "calls"); got != "" {
				t.Errorf("the tool ran: %s", got)
			}
			contains(t, "the request", transcript(w.model.Requests()[1]), reference+" transcript: "+said)
		})
	}
}

// A voice message that cannot be written down costs no answer of a model: the person is
// told, in their language, and the model with the next message.
func TestVoiceMessageThatCannotBeUnderstood(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		with             option
		heard            []openaitest.Heard
		english, russian string
	}{
		"the server refuses it": {withTranscription, []openaitest.Heard{
			{Answer: openaitest.Fail(http.StatusBadRequest, "Audio file might be corrupted")},
		}, "refused the request for whisper-1", "отклон"},
		"there are no words": {withTranscription, []openaitest.Heard{openaitest.Hear(" ", 1)}, "no words", "нет слов"},
		"there is no route":  {withTranscription, nil, "can't transcribe", "не умеет"},
		"nothing is set up":  {withModel, nil, "no model for voice messages", "не настроена"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withTelegram(), tc.with)
			w.model.Handle(echo)
			w.model.QueueHeard(append(tc.heard, tc.heard...)...)
			w.start()
			w.telegramReady()
			in, reference := voiceMessage(anna, "one")
			w.telegram.Inject(in)
			contains(t, "the answer", w.told(anna, 1).Text, "I couldn't understand your voice message", tc.english)
			if n := w.model.Total(); n != 0 {
				t.Errorf("the model was asked %d times", n)
			}
			in.From.Language = "ru"
			w.telegram.Inject(in)
			russian := w.told(anna, 2).Text
			contains(t, "the Russian answer", russian, "голосовое сообщение", tc.russian)
			w.telegram.Say(anna, "<next>")
			contains(t, "the next answer", w.told(anna, 3).Text, "<next>")
			contains(t, "the next request", transcript(w.model.Requests()[0]), reference, "There is no transcript of "+reference)
		})
	}
}

// While one transcription hangs, others are answered, although one model at a time may
// answer.
func TestTranscriptionThatHangsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withTranscription)
	w.model.Handle(echo)
	gate := make(chan struct{})
	held := openaitest.Hear("<slow>", 3)
	held.Gate = gate
	w.model.QueueHeard(held, openaitest.Hear("<quick>", 3))
	w.start()
	w.telegramReady()
	in, _ := voiceMessage(anna, "slow")
	w.telegram.Inject(in)
	w.eventually("the transcription", func() bool { return len(w.model.Recordings()) == 1 })
	w.telegram.Say(boris, "<text>")
	contains(t, "the answer to a text", w.told(boris, 1).Text, "<text>")
	in, _ = voiceMessage(boris, "quick")
	w.telegram.Inject(in)
	contains(t, "the answer to a voice message", w.told(boris, 2).Text, "<quick>")
	if got := w.texts(anna); len(got) > 0 {
		t.Errorf("Anna has %q", got)
	}
	close(gate)
	contains(t, "the answer", w.told(anna, 1).Text, "<slow>")
}

func TestDoctorChecksTranscription(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTranscription)
	w.model.Handle(echo)
	w.start()
	out, _, _ := w.cli("doctor")
	contains(t, "the doctor", out, "openai/whisper-1 doesn't write down voice messages", "can't transcribe")
	w.model.HandleRecordings(func(openaitest.Recording) openaitest.Heard { return openaitest.Hear("", 0.5) })
	contains(t, "the doctor", w.must("doctor"), "openai/whisper-1 writes down voice messages")
	if all := w.model.Recordings(); all[len(all)-1].Name != "audio.wav" {
		t.Errorf("the server got %q", all[len(all)-1].Name)
	}
	w.stop()
	contains(t, "the doctor without a kernel", w.must("doctor"), "openai/whisper-1 writes down voice messages")
}
