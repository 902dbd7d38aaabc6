package offline

import (
	"strings"
	"testing"
)

func TestFilesAreNotLookedAt(t *testing.T) {
	t.Parallel()
	const cat = "[image 3f2a9c: cat.jpg]"
	for _, tt := range []struct{ before, text, want string }{
		{"", cat, "I can't look at pictures"},
		{"", "what is on this picture?\n" + cat, "I can't look at pictures"},
		{"", "что на картинке?\n" + cat, "Я не умею смотреть картинки"},
		{"какие есть каналы?", cat, "Я не умею смотреть картинки"},
		{"", cat + fileNote + "~~~\nYou cannot see it.\n~~~", "I can't look at pictures"},
	} {
		h := newLoop(t)
		if tt.before != "" {
			h.say(tt.before)
		}
		if got := h.say(tt.text); !strings.Contains(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
	h := newLoop(t)
	if got := h.say("remind me in 5 minutes to print it\n" + cat); !strings.Contains(got, "OK") {
		t.Errorf("a reminder with a picture: %q", got)
	}
}

// What is said in a voice message is understood as if it was typed.
func TestVoiceIsUnderstood(t *testing.T) {
	t.Parallel()
	h := newLoop(t)
	if got := h.say("[voice 3f2a9c: 0:12] transcript: remind me in 5 minutes to print it"); !strings.Contains(got, "OK") {
		t.Errorf("a spoken reminder: %q", got)
	}
}

// "This" in a message with a file, or right after one, is the file, and the reminder has it.
func TestReminderOfAFile(t *testing.T) {
	t.Parallel()
	const cat, nameless = "[image 3f2a9c: cat.jpg]", "[image 3f2a9c]"
	for _, tt := range []struct {
		said []string
		want string
	}{
		{[]string{"remind me of this tomorrow at 9am\n" + cat}, `"attachments":["[image 3f2a9c: cat.jpg]"],"message":"cat.jpg"`},
		{[]string{"remind me of this tomorrow\n" + cat, "9am"}, `"attachments":["[image 3f2a9c: cat.jpg]"],"message":"cat.jpg"`},
		{[]string{cat, "remind me of this tomorrow at 9am"}, `"attachments":["[image 3f2a9c: cat.jpg]"],"message":"cat.jpg"`},
		{[]string{"remind me of this tomorrow at 9am\n" + nameless}, `"attachments":["[image 3f2a9c]"],"message":"look at this"`},
		{[]string{"remind me tomorrow at 9am to print it\n" + cat}, `"attachments":["[image 3f2a9c: cat.jpg]"],"message":"print it"`},
		{[]string{"напомни об этом завтра в 9 утра\n" + nameless}, `"message":"посмотреть это"`},
		{[]string{"remind me tomorrow at 9am to eat"}, `{"at":"2026-03-12T09:00:00+01:00","message":"eat","timezone":"Europe/Berlin"}`},
		{[]string{cat, "remind me tomorrow at 9am to eat"}, `{"at":"2026-03-12T09:00:00+01:00","message":"eat","timezone":"Europe/Berlin"}`},
	} {
		w := newWorld(t, tt.said[0])
		answer := ""
		for _, said := range tt.said {
			answer = w.say(said)
		}
		if len(w.did) != 1 || !strings.Contains(w.did[0], tt.want) || !strings.Contains(w.did[0], `"at":"2026-03-12T09:00:00+01:00"`) {
			t.Errorf("%q: %q did %q, want %s", tt.said, answer, w.did, tt.want)
		}
	}
}
