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
