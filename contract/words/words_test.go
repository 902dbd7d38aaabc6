package words_test

import (
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/contract/words"
)

func TestSay(t *testing.T) {
	t.Parallel()
	for language, want := range map[string]string{
		"": "Question q1: approved.", "en": "Question q1: approved.", "de-AT": "Question q1: approved.",
		"ru": "Вопрос q1: разрешено.", "ru-RU": "Вопрос q1: разрешено.", "ru_RU": "Вопрос q1: разрешено.",
		"RU": "Вопрос q1: разрешено.", "../ru": "Question q1: approved.", "C": "Question q1: approved.",
	} {
		if got := words.Say(language, "Question %s: approved.", "q1"); got != want {
			t.Errorf("in %q: %q, want %q", language, got, want)
		}
	}
	if got := words.Say("ru", "100% unknown"); got != "100% unknown" {
		t.Errorf("a text that is unknown and has no arguments: %q", got)
	}
	if got := words.Say("ru", ""); got != "" {
		t.Errorf("no text: %q", got)
	}
	if !slices.Contains(words.Languages(), "ru") {
		t.Error(words.Languages())
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][2]string{
		1:  {"Anna is working on 1 message", "Anna занят 1 сообщением"},
		2:  {"Anna is working on 2 messages", "Anna занят 2 сообщениями"},
		21: {"Anna is working on 21 messages", "Anna занят 21 сообщением"},
	} {
		for i, language := range []string{"en", "ru"} {
			got := words.Count(language, "%s is working on %d message", "%s is working on %d messages", n, "Anna", n)
			if got != want[i] {
				t.Errorf("in %s: %q, want %q", language, got, want[i])
			}
		}
	}
}
