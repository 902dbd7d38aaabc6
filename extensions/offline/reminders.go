package offline

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
)

// schedule is one entry of list_schedules, and the result of schedule_once and
// schedule_recurring.
type schedule struct {
	ID        string     `json:"id"`
	Kind      string     `json:"kind"`
	State     string     `json:"state"`
	Message   string     `json:"message"`
	Timing    string     `json:"timing"`
	Timezone  string     `json:"timezone"`
	Next      *time.Time `json:"next"`
	ChannelID string     `json:"channel_id"`
	Owner     string     `json:"declared_by"`
	Notes     []string   `json:"notes"`
	Status    string     `json:"status"`
}

// remind sets a reminder.
func (d dialog) remind(w phrases, i grammar.Remind) reply {
	channelID := ""
	_, listed := d.last(listChannels)
	switch {
	case i.Channel != "":
		id, instead, done := d.find(w, i.Channel)
		if done {
			return instead
		}
		channelID = id
	case i.MayNameChannel && !listed:
		// "Put the milk in the fridge" may name a channel: get the list, then
		// parse the sentence again.
		if c, ok := d.prepare(listChannels, struct{}{}); ok {
			return reply{calls: []call{c}}
		}
	}
	if channelID == "" && !i.Here {
		channelID = d.prefers
	}
	arguments := map[string]any{"message": i.Text}
	if !i.Verbatim {
		arguments["message"] = w.reminder + i.Text
	}
	if channelID != "" {
		arguments["channel_id"] = channelID
	}
	tool := scheduleOnce
	switch when := i.When.(type) {
	case grammar.After:
		arguments["delay_seconds"] = when.Delay.Seconds()
	case grammar.At:
		arguments["at"] = when.Time.Format(time.RFC3339)
		d.addZone(arguments)
	case grammar.Every:
		tool = scheduleRecurring
		arguments["every_seconds"] = when.Interval.Seconds()
	case grammar.Cron:
		tool = scheduleRecurring
		arguments["cron"] = when.Expr
		d.addZone(arguments)
	}
	return d.call(w, tool, arguments)
}

// addZone adds the zone of the times, if it has a name.
func (d dialog) addZone(arguments map[string]any) {
	if name := d.now.Location().String(); name != "" && name != "Local" && name != "UTC" {
		arguments["timezone"] = name
	}
}

// scheduled reports the result of scheduling a reminder.
func (d dialog) scheduled(w phrases, s step) string {
	if s.failed {
		return w.failed(s.result)
	}
	var made schedule
	if json.Unmarshal([]byte(s.result), &made) != nil || made.Next == nil {
		return w.done(s.result)
	}
	where := ""
	if made.ChannelID != "" {
		where = d.titleOf(made.ChannelID)
	}
	lines := []string{w.scheduled(made, w.at(*made.Next, d.now, made.Timezone), where)}
	for _, n := range made.Notes {
		lines = append(lines, w.note(n))
	}
	return strings.Join(lines, "\n")
}

// schedules reads the reminders of people from the result of list_schedules,
// without the schedules that manifests declare.
func (d dialog) schedules(s step) ([]schedule, bool) {
	var listing struct {
		Schedules []schedule `json:"schedules"`
	}
	if json.Unmarshal([]byte(s.result), &listing) != nil {
		if json.Unmarshal([]byte(s.result), &listing.Schedules) != nil {
			return nil, false
		}
	}
	own := listing.Schedules[:0]
	for _, sc := range listing.Schedules {
		if sc.Owner == "" && sc.ID != "" && sc.State != "done" && sc.State != "cancelled" {
			own = append(own, sc)
		}
	}
	return own, true
}

// list lists the reminders.
func (d dialog) list(w phrases) reply {
	s, ok := d.last(listSchedules)
	switch {
	case !ok:
		return d.call(w, listSchedules, struct{}{})
	case s.failed:
		return say(w.failed(s.result))
	}
	own, readable := d.schedules(s)
	switch {
	case !readable && strings.TrimSpace(s.result) == "":
		return say(w.failed(w.pick("the scheduler sent an empty answer.", "планировщик прислал пустой ответ.")))
	case !readable:
		return say(s.result)
	}
	return say(w.reminderList(own, d.now))
}

// maxCancels is the most reminders that one request cancels.
const maxCancels = 20

// cancel finds the reminders by their ids or words and cancels them, or asks
// which one is meant.
func (d dialog) cancel(w phrases, i grammar.Cancel) reply {
	s, ok := d.last(listSchedules)
	switch {
	case !ok:
		return d.call(w, listSchedules, map[string]any{"limit": 500})
	case s.failed:
		return say(w.failed(s.result))
	}
	own, readable := d.schedules(s)
	if !readable {
		return say(w.failed(s.result))
	}
	matches := match(own, i)
	switch {
	case len(own) == 0:
		return say(w.noReminders)
	case len(matches) == 0:
		return say(w.noSuchReminder(i.Name, own, d.now))
	case len(matches) > 1 && !i.All:
		return say(w.whichReminder(matches, d.now))
	}
	var r reply
	for _, sc := range matches[:min(len(matches), maxCancels)] {
		c, ok := d.prepare(cancelSchedule, map[string]any{"id": sc.ID})
		if !ok {
			return say(w.noTool(cancelSchedule))
		}
		r.calls = append(r.calls, c)
	}
	return r
}

// match finds the reminders that a name means: by id, by the number in the id,
// by the whole text, or by words of the text.
func match(own []schedule, i grammar.Cancel) []schedule {
	if i.All || i.Name == "" {
		return own
	}
	var byWords []schedule
	for _, sc := range own {
		if strings.EqualFold(sc.ID, i.Name) || strings.EqualFold(strings.TrimLeftFunc(sc.ID, unicode.IsLetter),
			i.Name) {
			return []schedule{sc}
		}
		if strings.EqualFold(withoutPrefix(sc.Message), i.Name) {
			return []schedule{sc}
		}
		if mentions(sc.Message, i.Name) {
			byWords = append(byWords, sc)
		}
	}
	return byWords
}

// mentions reports whether the text has all words of name, whatever their
// endings: "выключить чайник" mentions "чайнике".
func mentions(text, name string) bool {
	words := wordsOf(text)
	found := 0
	for _, w := range wordsOf(name) {
		if utf8.RuneCountInString(w) < 3 || w == "the" || w == "про" {
			continue
		}
		if !slices.ContainsFunc(words, func(word string) bool { return sameStem(w, word) }) {
			return false
		}
		found++
	}
	return found > 0
}

// wordsOf returns the words of a text in lower case.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(strings.ToLower(text), "ё", "е"), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// sameStem reports whether two words differ only in their endings: in English in that
// of the plural, in Russian in up to two letters.
func sameStem(a, b string) bool {
	if english := a[0] < utf8.RuneSelf && b[0] < utf8.RuneSelf; english {
		return pluralOf(a) == pluralOf(b)
	}
	x, y := []rune(a), []rune(b)
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n >= 3 && len(x)-n <= 2 && len(y)-n <= 2
}

// pluralOf returns the plural of an English noun, as most have it; that of a plural is
// the word itself.
func pluralOf(word string) string {
	switch {
	case strings.HasSuffix(word, "s"):
		return word
	case strings.HasSuffix(word, "y"):
		return strings.TrimSuffix(word, "y") + "ies"
	case strings.HasSuffix(word, "ch"), strings.HasSuffix(word, "sh"), strings.HasSuffix(word, "x"):
		return word + "es"
	}
	return word + "s"
}

// cancelled reports the results of the cancel_schedule calls.
func (d dialog) cancelled(w phrases) string {
	var lines []string
	names := map[string]string{}
	left := 0
	if s, ok := d.last(listSchedules); ok {
		own, _ := d.schedules(s)
		left = len(own)
		for _, sc := range own {
			names[sc.ID] = withoutPrefix(sc.Message)
		}
	}
	count := 0
	for _, s := range d.steps {
		if s.tool != cancelSchedule {
			continue
		}
		count++
		var arguments struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(s.arguments, &arguments) // written by this package
		name := arguments.ID
		if n := names[arguments.ID]; n != "" {
			name = n
		}
		switch {
		case s.failed:
			lines = append(lines, w.failed(s.result))
		case status(s.result) == "too_late":
			lines = append(lines, w.tooLate(name))
		default:
			lines = append(lines, w.cancelled(name))
		}
	}
	if count == maxCancels && left > maxCancels {
		lines = append(lines, w.moreLeft(left-maxCancels))
	}
	return strings.Join(lines, "\n")
}

// withoutPrefix removes the word that marks a message as a reminder.
func withoutPrefix(message string) string {
	for _, w := range []phrases{english, russian} {
		if rest, ok := strings.CutPrefix(message, w.reminder); ok {
			return rest
		}
	}
	return message
}
