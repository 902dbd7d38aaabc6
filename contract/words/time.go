package words

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Span returns a duration for people, exact to the second or, below one, to the
// millisecond, which Translate can translate: an hour and a half is "1 h 30 min".
func Span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return Sprintf("less than a second")
	case d < time.Second:
		return Sprintf("%d ms", d.Milliseconds())
	}
	d = d.Round(time.Second)
	var parts []string
	for _, unit := range []struct {
		size  time.Duration
		count string
	}{
		{24 * time.Hour, "%d d"}, {time.Hour, "%d h"}, {time.Minute, "%d min"}, {time.Second, "%d s"},
	} {
		if n := int64(d / unit.size); n > 0 {
			parts = append(parts, strings.Replace(unit.count, "%d", strconv.FormatInt(n, 10), 1))
			d -= time.Duration(n) * unit.size
		}
	}
	return strings.Join(parts, " ")
}

// spanForm is a Span of several units.
var spanForm = regexp.MustCompile(`^\d+ (?:d|h|min|s)(?: \d+ (?:d|h|min|s))+$`)

// spanParts returns the parts of a Span that has several.
func spanParts(text string) (parts []string) {
	if !spanForm.MatchString(text) {
		return nil
	}
	fields := strings.Fields(text)
	for i := 0; i < len(fields); i += 2 {
		parts = append(parts, fields[i]+" "+fields[i+1])
	}
	return parts
}

// Day returns a date for people.
func Day(language string, t time.Time) string { return t.Format(Say(language, "2 Jan 2006")) }

// Time returns a weekday, date and time for people, in the zone of t.
func Time(language string, t time.Time) string {
	return Say(language, t.Format("Mon")) + " " + t.Format(Say(language, "2 Jan 2006 15:04"))
}

// localForm is a time with its zone, as LocalTime writes it.
const localForm = "Mon 2 Jan 2006 15:04"

// LocalTime returns a time in a zone, with both, which Translate can translate.
func LocalTime(t time.Time, zone *time.Location) string {
	form := localForm
	if t.Second() != 0 {
		form += ":05"
	}
	return t.In(zone).Format(form) + " (" + zone.String() + ")"
}

// translateTime translates what LocalTime returned.
func translateTime(language, text string) (translated string, ok bool) {
	at, zone, ok := strings.Cut(text, " (")
	if !ok {
		return "", false
	}
	t, err := time.Parse(localForm, at)
	seconds := ""
	if err != nil {
		if t, err = time.Parse(localForm+":05", at); err != nil {
			return "", false
		}
		seconds = t.Format(":05")
	}
	return Time(language, t) + seconds + " (" + zone, true
}
