// Package grammar parses the sentences that Switchboard understands without a
// language model: reminders, messages to a channel, listing and cancelling
// reminders, listing channels, remembering, recalling and forgetting, greetings
// and help, in English and Russian.
//
// It understands a sentence entirely or not at all. A time is accepted only if
// every word of it was used and only one moment fits; anything else (a second
// time, an hour that may be morning or evening, a time that has passed, a word
// left over) becomes a Question, whose text asks the person about it. The
// package does not guess, correct spelling, or know which channels exist: it
// returns the name of a channel as the person wrote it, and SameChannel compares
// that name with an existing channel. Text in quotes, or after a colon once the
// time is known, is never interpreted.
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
	Intent   Intent
	Question *Question
}

// Intent is what a person asked for: one of Remind, Send, ListReminders,
// Cancel, ListChannels, Remember, Recall, ListMemories, Forget, Greeting, Thanks
// or Help.
type Intent interface{ intent() }

// Remind asks for a message later, once or repeatedly.
type Remind struct {
	// Text is the text of the reminder, in the person's own words.
	Text string
	// When is an After, At, Every or Cron.
	When When
	// Channel is the name of the channel as the person wrote it, or "".
	Channel string
	// Here is set when the person named this conversation.
	Here bool
	// Verbatim is set when the text is a message to send ("in 5 minutes send
	// 'hi' to Telegram") and not a reminder.
	Verbatim bool
	// MayNameChannel is set when the text ends in words that would name a
	// channel if it existed ("put the milk in the fridge").
	MayNameChannel bool
}

// Send asks for a message now.
type Send struct {
	Text string
	// Channel is the name of the channel as the person wrote it; "" only if All
	// is set.
	Channel string
	// All asks for every channel.
	All bool
}

// ListReminders asks for the reminders.
type ListReminders struct{}

// Cancel asks to cancel reminders. Without any field set it means "the
// reminder", which is unambiguous only if there is exactly one.
type Cancel struct {
	All bool
	// Name identifies the reminder: an id, a number, or words of its text.
	Name string
}

// ListChannels asks for the channels.
type ListChannels struct{}

// Greeting is only a greeting.
type Greeting struct{}

// Thanks is only a thank-you or a goodbye.
type Thanks struct{}

// Help asks who the assistant is or what it can do.
type Help struct{}

func (Remind) intent()        {}
func (Send) intent()          {}
func (ListReminders) intent() {}
func (Cancel) intent()        {}
func (ListChannels) intent()  {}
func (Greeting) intent()      {}
func (Thanks) intent()        {}
func (Help) intent()          {}

// When is the time of a reminder: After, At, Every or Cron.
type When interface{ when() }

// After is a delay from now.
type After struct{ Delay time.Duration }

// At is a moment, in the time zone of the now passed to Parse.
type At struct{ Time time.Time }

// Every is an interval of at least one minute.
type Every struct{ Interval time.Duration }

// Cron is a standard five-field cron expression in the time zone of now.
type Cron struct{ Expr string }

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
	if len(text) > maxLength {
		lang := scriptOf(text[:1024])
		return Reading{Language: lang, Question: &Question{Reason: TooLong, Language: lang}}
	}
	s := newScan(text, now, names)
	for _, read := range []func() (Reading, bool){s.memory, s.manage, s.remind, s.send} {
		if r, ok := read(); ok {
			if r.Language == "" {
				r.Language = s.lang
			}
			if r.Question != nil {
				r.Question.Language = r.Language
			}
			return r
		}
	}
	return Reading{Language: s.lang, Question: &Question{Reason: Unknown, Language: s.lang}}
}

// scriptOf tells Russian from English by the letters of a text.
func scriptOf(text string) Language {
	cyrillic, latin := 0, 0
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Cyrillic, r):
			cyrillic++
		case unicode.Is(unicode.Latin, r):
			latin++
		}
	}
	if cyrillic > 0 && cyrillic*3 >= latin {
		return Russian
	}
	return English
}
