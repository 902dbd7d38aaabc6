package grammar

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Reason says why a sentence was not understood.
type Reason string

// The reasons; the texts have the same names.
const (
	Unknown       Reason = "unknown"         // not a known command
	NotUnderstood Reason = "not_understood"  // some words are left over
	NoTime        Reason = "no_time"         // a reminder without a time
	NoClock       Reason = "no_clock"        // a day without a time of day: tomorrow
	NoText        Reason = "no_text"         // a reminder without a text
	NoMessage     Reason = "no_message"      // a message without a text
	NoFact        Reason = "no_fact"         // nothing to remember
	NoChannel     Reason = "no_channel"      // a message without a channel
	NoMonth       Reason = "no_month"        // a day without a month: the 25th
	NoRule        Reason = "no_rule"         // an unsupported repetition: every other day
	TwoTimes      Reason = "two_times"       // more than one time
	TwoChannels   Reason = "two_channels"    // more than one channel
	TwoCommands   Reason = "two_commands"    // more than one command
	InnerTime     Reason = "inner_time"      // a time in the middle of the text
	InnerChannel  Reason = "inner_channel"   // a channel that may be part of the text
	Unquoted      Reason = "unquoted"        // unclear where the message begins and ends
	Recipient     Reason = "recipient"       // a message to another person
	Vague         Reason = "vague"           // in a few minutes
	AmPm          Reason = "am_pm"           // at 5
	Midnight      Reason = "midnight"        // midnight between two days
	AmbiguousDay  Reason = "ambiguous_day"   // next Friday, or Friday on a Friday
	AmbiguousDate Reason = "ambiguous_date"  // 03/04
	Past          Reason = "past"            // a time that has passed
	NoSuchTime    Reason = "no_such_time"    // 25:00, 30 February, inside a clock change
	Twice         Reason = "twice"           // repeated by a clock change
	NotEveryMonth Reason = "not_every_month" // the 31st of every month
	TooOften      Reason = "too_often"       // less than a minute apart
	TooFar        Reason = "too_far"         // more than ten years ahead
	TooLong       Reason = "too_long"        // the whole message
	Repeats       Reason = "repeats"         // a day for a reminder that repeats
)

// Question says why a sentence was not acted on, and asks for what is missing.
type Question struct {
	Reason   Reason
	Language Language
	// Said and Other quote the words in question.
	Said, Other string
	// Hour and Minute are the time that may be morning or evening.
	Hour, Minute int
	// Time is the moment that does not fit.
	Time time.Time
}

// Text is the question in the person's language.
func (q *Question) Text() string {
	return strings.NewReplacer(
		"{said}", q.Said,
		"{other}", q.Other,
		"{phrase}", withinSentence(q.Said),
		"{am}", fmt.Sprintf("%02d:%02d", q.Hour%12, q.Minute),
		"{pm}", fmt.Sprintf("%02d:%02d", q.Hour%12+12, q.Minute),
	).Replace(Text(q.Language, string(q.Reason)))
}

// Text is a text of the model in a language.
func Text(l Language, name string) string { return languages().texts[l][name] }

// withinSentence lowers the first letter of words that began a sentence, unless
// it is that of an English day or month.
func withinSentence(said string) string {
	first, _, _ := strings.Cut(strings.ToLower(said), " ")
	first = strings.TrimRight(first, ",.")
	if scriptOf(said) == English && (languages().values["weekday"][first] > 0 || languages().values["month"][first] > 0) {
		return said
	}
	r, n := utf8.DecodeRuneInString(said)
	if r == utf8.RuneError {
		return said
	}
	return string(unicode.ToLower(r)) + said[n:]
}
