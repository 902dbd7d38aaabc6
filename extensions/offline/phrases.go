package offline

import (
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
)

// phrases are the model's texts in one language.
type phrases struct{ language grammar.Language }

// phrasesFor returns the phrases in the language of a text.
func phrasesFor(text string) phrases {
	return phrases{grammar.Parse(text, time.Unix(0, 0).UTC()).Language}
}

// text returns a text with its arguments filled in.
func (w phrases) text(name string, arguments ...any) string {
	text := grammar.Text(w.language, name)
	if len(arguments) == 0 {
		return text
	}
	return fmt.Sprintf(text, arguments...)
}

// item is one of the words that a text enumerates.
func (w phrases) item(name string, i int) string { return strings.Split(w.text(name), ", ")[i] }

func (w phrases) failed(reason string) string { return w.text("failed", strings.TrimSpace(reason)) }

func (w phrases) done(result string) string { return w.text("done", strings.TrimSpace(result)) }

// note is a note about a result.
func (w phrases) note(text string) string { return w.text("note", grammar.Note(w.language, text)) }

// help describes the model and what it understands.
func (w phrases) help() string { return w.text("what_i_am") + "\n\n" + w.text("help") }

// marked is a text after the word for a reminder, timer or alarm.
func (w phrases) marked(kind, text string) string { return w.text(kind) + ": " + text }

// plainText is the message of a reminder without the word that marked it when it was
// set by an older version.
func plainText(message string) string {
	for _, w := range []phrases{{grammar.English}, {grammar.Russian}} {
		message = strings.TrimPrefix(message, w.marked("reminder", ""))
	}
	return message
}

func (w phrases) channelList(list []channel) string {
	if len(list) == 0 {
		return w.text("no_channels")
	}
	lines := []string{w.text("channels")}
	for _, c := range list {
		line := "- " + c.title() + " (" + c.ID + ")"
		if r := c.Readiness; r != "" {
			if state := w.text(r); state != "" {
				r = state
			}
			line += ": " + r
		}
		if c.Detail != "" {
			line += ", " + c.Detail
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (w phrases) sent(name string, one delivery) string {
	where := w.text("to_channel", name)
	if name == "" {
		where = w.text("to_all")
	}
	switch one.Status {
	case "failed":
		return w.text("not_sent", where, one.Detail)
	case "queued", "delivered":
		return w.text(one.Status, where)
	}
	return w.text("sent", where)
}

// day formats the day of a time for people.
func (w phrases) day(t, now time.Time) string {
	switch daysBetween(now, t) {
	case 0:
		return w.text("today")
	case 1:
		return w.text("tomorrow")
	}
	day := w.date(t)
	if t.Year() == now.Year() {
		day = strings.TrimSuffix(day, t.Format(" 2006"))
	}
	return day
}

// date formats a date, such as Fri 1 Jan 2027.
func (w phrases) date(t time.Time) string {
	return fmt.Sprintf("%s %d %s %d", w.item("weekdays", int(t.Weekday())), t.Day(),
		w.item("months", int(t.Month())-1), t.Year())
}

// at formats a time for people, with its day and zone.
func (w phrases) at(t, now time.Time, zone string) string {
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "" {
		loc = now.Location()
	}
	t, now = t.In(loc), now.In(loc)
	clock := t.Format("15:04")
	if t.Second() != 0 {
		clock = t.Format("15:04:05")
	}
	return w.text("at_time", w.day(t, now), clock, loc)
}

func daysBetween(a, b time.Time) int {
	day := func(t time.Time) time.Time {
		return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	}
	return int(day(b).Sub(day(a)) / (24 * time.Hour))
}

// scheduled confirms a reminder, or a message to send later.
func (w phrases) scheduled(made schedule, verbatim bool, when, channel string) string {
	promise, where, preposition := "will_remind", "", "in_channel"
	if verbatim {
		promise, preposition = "will_send", "to_channel"
	}
	if channel != "" {
		where = " " + w.text(preposition, channel)
	}
	if made.Kind == "recurring" {
		promise += "_often"
		if made.Timing != "" {
			where += " " + w.recurrence(made.Timing)
		}
		where += ","
		when = w.text("first", when)
	}
	return w.text(promise, where+" "+when, plainText(made.Message)) + tag(made.ID)
}

// tag is the id of a reminder or memory as it follows its text.
func tag(id string) string {
	if id == "" {
		return ""
	}
	return " [" + id + "]"
}

// line describes a reminder.
func (w phrases) line(sc schedule, now time.Time) string {
	parts := []string{plainText(sc.Message)}
	if sc.Kind == "recurring" && sc.Timing != "" {
		parts = append(parts, w.recurrence(sc.Timing))
	}
	if sc.Next != nil {
		next := w.at(*sc.Next, now, sc.Timezone)
		if sc.Kind == "recurring" && sc.Timing != "" {
			next = w.text("next", next)
		}
		parts = append(parts, next)
	}
	if sc.State == "paused" {
		parts = append(parts, w.text("paused"))
	}
	if sc.ChannelID != "" {
		parts = append(parts, sc.ChannelID)
	}
	return strings.Join(parts, ", ") + tag(sc.ID)
}

// lines numbers reminders after a heading.
func (w phrases) lines(heading string, list []schedule, now time.Time) string {
	out := []string{heading}
	for i, sc := range list {
		out = append(out, fmt.Sprintf("%d. %s", i+1, w.line(sc, now)))
	}
	return strings.Join(out, "\n")
}
