package offline

import (
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// quote is the message that an input replies to.
type quote struct {
	own  bool // the assistant's
	text string
}

// quoteLabel matches the first lines of a quote.
var quoteLabel = pattern.New(`^\[quoted from ([^\]\n]*)\]\n(~{3,})\n`)

// splitQuote splits the quote off a message; nil if it has none.
func splitQuote(content string) (q *quote, rest string) {
	m := quoteLabel.FindStringSubmatch(content)
	if m == nil {
		return nil, content
	}
	text, rest, ok := strings.Cut(content[len(m[0]):], "\n"+m[2]+"\n")
	if !ok {
		return nil, content
	}
	return &quote{own: m[1] == "you", text: text}, rest
}

// elsewhere reports whether the input replies to something else than the last answer.
func (d dialog) elsewhere() bool {
	return d.quote != nil && (!d.quote.own || strings.TrimSpace(d.quote.text) != strings.TrimSpace(d.lastPast().answer))
}

// means reports whether the input says of a reminder no more than that it is the quoted one.
func (d dialog) means(which grammar.Which) bool {
	return d.quote != nil && which.Name == "" && which.Nth == 0
}

// undoQuoted undoes the last change of the quoted reminder. In Russian the word also
// cancels it.
func (d dialog) undoQuoted(w phrases, i grammar.Intent) reply {
	switch {
	case !d.elsewhere():
		return d.undo(w)
	case w.language == grammar.Russian:
		return d.cancel(w, grammar.Intent{Do: "cancel", Which: grammar.Which{It: "it"}})
	}
	sc, instead, done := d.quoted(w)
	if done {
		return instead
	}
	return d.update(w, sc, map[string]any{"action": i.Do})
}

var (
	// answerCommand matches a command below a reminder, which names it.
	answerCommand = pattern.New(`/(?:done|snooze) (r\d+)\.\d+`)
	// lateNote matches what a late reminder ends with.
	lateNote = pattern.New(` \((?:late|с опозданием)[^()]*\)$`)
)

// reminderMark begins a reminder that was delivered.
const reminderMark = "⏰ "

// movable is how long after it came a reminder can be moved.
const movable = 24 * time.Hour

// fired reports whether a reminder has come and will not come again by itself.
func (sc schedule) fired() bool { return sc.State == "done" }

// all returns the reminders, with those that came in the last day. If done is set, it
// returns the reply to give first.
func (d dialog) all(w phrases) (own []schedule, instead reply, done bool) {
	s, instead, done := d.ask(w, listSchedules, map[string]any{"limit": 500, "all": true})
	if done {
		return nil, instead, true
	}
	own, readable := d.everySchedule(s)
	if !readable {
		return nil, say(w.failed(w.text("empty_answer"))), true
	}
	return slices.DeleteFunc(own, func(sc schedule) bool {
		return sc.State == "cancelled" ||
			sc.fired() && (sc.Kind != "once" || sc.LastFired == nil || d.now.Sub(*sc.LastFired) >= movable)
	}), reply{}, false
}

// quoted returns the one reminder that the quoted message is about. If done is set, it
// returns the reply to give first, which asks which one is meant if that is not sure.
func (d dialog) quoted(w phrases) (one schedule, instead reply, done bool) {
	own, instead, done := d.all(w)
	if done {
		return one, instead, true
	}
	matches := d.quote.matches(own)
	if len(matches) == 1 {
		return matches[0], reply{}, false
	}
	if len(matches) == 0 {
		matches = slices.DeleteFunc(own, schedule.fired)
	}
	if len(matches) == 0 {
		return one, say(w.text("no_reminders")), true
	}
	return one, say(w.lines(w.text("which_reminder"), matches, d.now)), true
}

// matches returns the reminders that the message may be about: what an answer names by its
// id, or a delivered reminder by its commands or else its text.
func (q quote) matches(own []schedule) []schedule {
	if !q.own {
		return nil
	}
	named := slices.Compact(slices.Sorted(slices.Values(append(found(ids, q.text), found(answerCommand, q.text)...))))
	if len(named) > 0 {
		return slices.DeleteFunc(slices.Clone(own), func(sc schedule) bool { return !slices.Contains(named, sc.ID) })
	}
	text, isReminder := strings.CutPrefix(q.text, reminderMark)
	if !isReminder {
		return nil
	}
	text = plainText(lateNote.ReplaceAllString(strings.TrimSpace(text), ""))
	same := slices.DeleteFunc(slices.Clone(own), func(sc schedule) bool {
		return !strings.EqualFold(strings.TrimSpace(plainText(sc.Message)), strings.TrimSpace(text))
	})
	// Of several with this text, it is one that has come.
	came := slices.DeleteFunc(slices.Clone(same), func(sc schedule) bool { return sc.LastFired == nil })
	if len(came) > 0 {
		return came
	}
	return same
}

// replyTo reads a reply to a reminder that is no sentence by itself, such as "at six", as
// a new time for it.
func (d dialog) replyTo(w phrases) (grammar.Intent, string, bool) {
	text := strings.TrimRight(strings.TrimSpace(d.text), ".!? ")
	for _, begin := range map[grammar.Language][]string{
		grammar.English: {"move it to ", "move it "}, grammar.Russian: {"перенеси это на ", "перенеси это "},
	}[w.language] {
		for _, rest := range []string{text, strings.TrimPrefix(strings.TrimPrefix(text, "at "), "в ")} {
			if r := grammar.Parse(begin+rest, d.now); r.Intent != nil && r.Intent.Do == "move" && r.Intent.Which.It != "" {
				if timed := grammar.ParseFor(begin+rest, d.now, &grammar.Timing{Next: d.now}); timed.Intent != nil &&
					timed.Intent.When != nil {
					return *r.Intent, begin + rest, true
				}
			}
		}
	}
	return grammar.Intent{}, "", false
}
