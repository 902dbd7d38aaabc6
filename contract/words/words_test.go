package words_test

import (
	"slices"
	"testing"
	"time"

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

func TestTimes(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 23, 8, 5, 0, 0, zone)
	for english, russian := range map[string]string{
		words.Span(0):                                    "меньше секунды",
		words.Span(90 * time.Minute):                     "1 ч 30 мин",
		words.Span(26*time.Hour + 3*time.Second):         "1 д 2 ч 3 с",
		words.Span(45 * time.Second):                     "45 с",
		words.LocalTime(at, zone):                        "пн 23.11.2026 08:05 (Europe/Berlin)",
		words.LocalTime(at.Add(7*time.Second), time.UTC): "пн 23.11.2026 07:05:07 (UTC)",
		words.Sprintf("every %v", words.Span(time.Hour)): "раз в 1 ч",
		"Mon someday (UTC)":                              "Mon someday (UTC)",
	} {
		if got := words.Translate("ru", english); got != russian {
			t.Errorf("%q is %q, want %q", english, got, russian)
		}
	}
	if got := words.Time("", at) + ", " + words.Day("", at); got != "Mon 23 Nov 2026 08:05, 23 Nov 2026" {
		t.Errorf("in English: %q", got)
	}
}
