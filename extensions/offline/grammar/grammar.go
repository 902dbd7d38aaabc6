// Package grammar parses the sentences that Switchboard understands without a
// language model: reminders, timers and alarms, messages to a channel, memories,
// lists, the time, sums, and references to what was said before, in English and
// Russian.
//
// What it understands is data: the files in languages have the words, the forms of
// sentences and the texts of each language, and a further language is one file.
//
// It understands a sentence entirely or not at all. A time is accepted only if
// every word of it was used and only one moment fits; anything else (a second
// time, an hour that may be morning or evening, a time that has passed, a word
// left over) becomes a Question, whose text asks the person about it. A word of a
// command may have a slip of one letter. The package does not know which channels
// exist: it returns the name of a channel as the person wrote it, and SameChannel
// compares that name with an existing channel. Text in quotes, or after a colon once
// the time is known, is never interpreted.
//
// Parse is a pure function and safe for concurrent use.
package grammar

import (
	"time"
	"unicode"
)

// Language is the language of a sentence, and of the answer to it.
type Language string

// The supported languages.
const (
	English Language = "en"
	Russian Language = "ru"
)

// Reading is the result of parsing a sentence: either Intent or Question is set.
type Reading struct {
	Language Language
	Intent   *Intent
	Question *Question
}

// Do is that of the intent, "" without one.
func (r Reading) Do() string {
	if r.Intent == nil {
		return ""
	}
	return r.Intent.Do
}

// Intent is what a person asked for. Do names it, as the rows of the languages do:
// remind, send, cancel, move, list, remember, recall, undo, yes and so on.
type Intent struct {
	Do string
	// Flag is a variant of it, such as all, or the topic of a question.
	Flag string
	// Text is a text in the person's own words, List the list that it belongs to.
	Text, List string
	// Which is the reminder or memory that is meant.
	Which Which
	// When is the time; nil if the reminder that is meant decides it.
	When When
	// By is how much later or earlier.
	By Span
	// Household is set when what to remember is for everyone.
	Household bool
	// Channel is the name of the channel as the person wrote it, or "".
	Channel string
	// Here is set when the person named this conversation, All for every channel.
	Here, All bool
	// Verbatim is set when the text is a message to send ("in 5 minutes send
	// 'hi' to Telegram") and not a reminder.
	Verbatim bool
	// MayNameChannel is set when the text ends in words that would name a
	// channel if it existed ("put the milk in the fridge").
	MayNameChannel bool
}

// Which says which reminder or memory is meant. Without any field set it is the
// only one.
type Which struct {
	Name string // an id, a number, or words of its text
	It   string // a pronoun
	Nth  int    // a place in the last list, from 1; -1 is the last
}

// When is the time of a reminder: After, At, Every or Cron.
type When interface{ when() }

// After is a delay from now.
type After struct{ Delay time.Duration }

// At is a moment, in the time zone of the now passed to Parse.
type At struct{ Time time.Time }

// Every is an interval of at least one minute.
type Every struct{ Interval time.Duration }

// Cron is a standard five-field cron expression in the time zone of now, which counts
// only on every Days-th day, if Days is set.
type Cron struct {
	Expr string
	Days int
}

func (After) when() {}
func (At) when()    {}
func (Every) when() {}
func (Cron) when()  {}

// maxLength is the number of bytes above which a text is not parsed.
const maxLength = 8 << 10

// Parse parses one message of a person, whose time zone is that of now. Names
// are the names and ids of the existing channels, if known: Parse recognizes
// them in places where an unknown name would be part of the text.
func Parse(text string, now time.Time, names ...string) Reading {
	return ParseFor(text, now, nil, names...)
}

// ParseFor parses a message that may give a reminder another time: what it leaves
// out, such as the day, is that of the reminder.
func ParseFor(text string, now time.Time, old *Timing, names ...string) Reading {
	if len(text) > maxLength {
		lang := scriptOf(text[:1024])
		return Reading{Language: lang, Question: &Question{Reason: TooLong, Language: lang}}
	}
	s := newScan(text, now, names)
	s.old = old
	r := s.read()
	if better := s.corrected(r); better.Intent != nil || better.Question != nil {
		r = better
	}
	if r.Intent == nil && r.Question == nil {
		r = Reading{Language: s.lang, Question: &Question{Reason: Unknown}}
	}
	if r.Question != nil {
		r.Question.Language = r.Language
	}
	return r
}

// read returns the first reading of the forms that the sentence has.
func (s *scan) read() Reading {
	var out Reading
	s.matches(s.sentence(), func(m match) bool {
		intent, q := m.intend()
		if intent == nil && q == nil {
			return false
		}
		if q != nil {
			intent = nil
		}
		out = Reading{Language: m.lang, Intent: intent, Question: q}
		return true
	})
	return out
}

// scriptOf tells Russian from English by the letters of a text.
func scriptOf(text string) Language {
	latin, cyrillic := letters(text)
	if cyrillic > 0 && cyrillic*3 >= latin {
		return Russian
	}
	return English
}

// letters counts the letters of a text by script.
func letters(text string) (latin, cyrillic int) {
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Cyrillic, r):
			cyrillic++
		case unicode.Is(unicode.Latin, r):
			latin++
		}
	}
	return latin, cyrillic
}
