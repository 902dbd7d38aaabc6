package offline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// schedule is one entry of list_schedules, and the result of schedule_once and
// schedule_recurring.
type schedule struct {
	ID        string     `json:"id"`
	Kind      string     `json:"kind"`
	State     string     `json:"state"`
	Message   string     `json:"message"`
	Timing    string     `json:"timing"`
	EveryDays int        `json:"every_days"`
	Timezone  string     `json:"timezone"`
	Next      *time.Time `json:"next"`
	LastFired *time.Time `json:"last_fired"`
	ChannelID string     `json:"channel_id"`
	Owner     string     `json:"declared_by"`
	Notes     []string   `json:"notes"`
	Status    string     `json:"status"`
	cron      string     // read from Timing
}

// remind sets a reminder.
func (d dialog) remind(w phrases, i grammar.Intent) reply {
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
	if i.Flag == "it" { // "remind me about it"
		return d.snooze(w, i)
	}
	if channelID == "" && !i.Here {
		channelID = d.prefers
	}
	return d.schedule(w, i.Text, i.When, channelID, i.Verbatim)
}

// schedule sets a reminder with a message.
func (d dialog) schedule(w phrases, message string, when grammar.When, channelID string, verbatim bool) reply {
	arguments := d.timing(when)
	if verbatim {
		arguments["payload"] = map[string]bool{"verbatim": true}
	}
	arguments["message"] = message
	if len(d.files) > 0 {
		arguments["attachments"] = d.files
	}
	if channelID != "" {
		arguments["channel_id"] = channelID
	}
	if repeats(when) {
		return d.call(w, scheduleRecurring, arguments)
	}
	return d.call(w, scheduleOnce, arguments)
}

func repeats(when grammar.When) bool {
	switch when.(type) {
	case grammar.Every, grammar.Cron:
		return true
	}
	return false
}

// timing returns the arguments of a time.
func (d dialog) timing(when grammar.When) map[string]any {
	arguments := map[string]any{}
	switch when := when.(type) {
	case grammar.After:
		arguments["delay_seconds"] = when.Delay.Seconds()
	case grammar.At:
		arguments["at"] = when.Time.Format(time.RFC3339)
		d.addZone(arguments)
	case grammar.Every:
		arguments["every_seconds"] = when.Interval.Seconds()
	case grammar.Cron:
		arguments["cron"] = when.Expr
		if when.Days > 0 {
			arguments["every_days"] = when.Days
		}
		d.addZone(arguments)
	}
	return arguments
}

// timer sets a timer or an alarm.
func (d dialog) timer(w phrases, i grammar.Intent) reply {
	text := i.Text
	if text == "" {
		switch when := i.When.(type) {
		case grammar.At:
			text = when.Time.Format("15:04")
		case grammar.After:
			text = d.now.Add(when.Delay).Format("15:04")
		case grammar.Cron:
			var hour, minute int
			_, _ = fmt.Sscan(when.Expr, &minute, &hour) // written by package grammar
			text = fmt.Sprintf("%02d:%02d", hour, minute)
		default:
			text = d.text
		}
	}
	return d.schedule(w, w.marked(i.Do, text), i.When, "", false)
}

// snooze repeats the reminder that was delivered last, or that was just talked about.
func (d dialog) snooze(w phrases, i grammar.Intent) reply {
	when := i.When
	if when == nil {
		when = grammar.After{Delay: snoozeDelay}
	}
	if d.quote != nil {
		return d.snoozeQuoted(w, i, when)
	}
	if i.Flag == "again" || i.Flag == "it" { // "remind me of this"
		if d.files = d.meantFiles(); len(d.files) > 0 {
			return d.schedule(w, w.fileText(d.files), when, "", false)
		}
	}
	id, message := d.focus()
	if acts := d.lastPast().acts(); i.Flag == "also" && (len(acts) == 0 || id == "") {
		return reply{text: w.text("nothing_understood"), aside: true}
	}
	if id != "" {
		s, instead, done := d.listed(w)
		if done {
			return instead
		}
		for _, sc := range withID(s, id) {
			if i.Flag == "also" { // on the same day, unless it says another
				r := grammar.ParseFor(d.text, d.now, sc.oldTiming(), d.channelNames()...)
				if r.Question != nil {
					return say(r.Question.Text())
				}
				when = r.Intent.When
			}
			if message = sc.Message; i.Flag == "" && sc.Kind == "once" && i.By != (grammar.Span{}) {
				return d.update(w, sc, d.timing(grammar.At{Time: i.By.After(sc.Next.In(d.now.Location()), 1)}))
			}
		}
	}
	if message == "" {
		return say(w.text("no_snooze"))
	}
	if late := strings.LastIndex(message, " (late: "); late > 0 {
		message = message[:late]
	}
	return d.schedule(w, plainText(strings.TrimPrefix(message, "⏰ ")), when, "", false)
}

// snoozeQuoted is snooze in a reply. A one-shot that came comes again, and a series gets one
// more reminder beside it.
func (d dialog) snoozeQuoted(w phrases, i grammar.Intent, when grammar.When) reply {
	sc, instead, done := d.quoted(w)
	switch {
	case done:
		return instead
	case sc.fired() && !repeats(when):
		return d.update(w, sc, d.timing(when))
	case sc.Kind == "once" && i.Flag == "" && i.By != (grammar.Span{}) && sc.Next != nil:
		return d.update(w, sc, d.timing(grammar.At{Time: i.By.After(sc.Next.In(d.now.Location()), 1)}))
	}
	return d.schedule(w, plainText(sc.Message), when, "", false)
}

// snoozeDelay is how long a reminder waits without a given time.
const snoozeDelay = 10 * time.Minute

// addZone adds the zone of the times, if it has a name.
func (d dialog) addZone(arguments map[string]any) {
	if name := d.now.Location().String(); name != "" && name != "Local" && name != "UTC" {
		arguments["timezone"] = name
	}
}

// scheduled reports the result of scheduling a reminder.
func (d dialog) scheduled(w phrases, s step) string {
	var made schedule
	if json.Unmarshal([]byte(s.result), &made) != nil || made.Next == nil {
		return w.done(s.result)
	}
	where := ""
	if made.ChannelID != "" {
		where = d.titleOf(made.ChannelID)
	}
	var arguments struct{ Payload struct{ Verbatim bool } }
	_ = json.Unmarshal(s.arguments, &arguments) // written by this package
	lines := []string{w.scheduled(made, arguments.Payload.Verbatim, w.at(*made.Next, d.now, made.Timezone), where)}
	for _, n := range made.Notes {
		lines = append(lines, w.note(n))
	}
	return strings.Join(lines, "\n")
}

var cronExpression = pattern.New(`^cron "([^"]+)"`)

// schedules reads the reminders of people from the result of list_schedules,
// without the schedules that manifests declare.
func (d dialog) schedules(s step) ([]schedule, bool) {
	all, ok := d.everySchedule(s)
	return slices.DeleteFunc(all, func(sc schedule) bool { return sc.fired() || sc.State == "cancelled" }), ok
}

// everySchedule is schedules with finished ones.
func (d dialog) everySchedule(s step) ([]schedule, bool) {
	var listing struct {
		Schedules []schedule `json:"schedules"`
	}
	if json.Unmarshal([]byte(s.result), &listing) != nil {
		return nil, false
	}
	own := listing.Schedules[:0]
	for _, sc := range listing.Schedules {
		if sc.Owner == "" && sc.ID != "" {
			if m := cronExpression.FindStringSubmatch(sc.Timing); m != nil {
				sc.cron = m[1]
			}
			own = append(own, sc)
		}
	}
	return own, true
}

// listed returns the reminders. If done is set, it returns the reply to give first: a
// call of list_schedules, or its failure.
func (d dialog) listed(w phrases) (own []schedule, instead reply, done bool) {
	s, instead, done := d.ask(w, listSchedules, map[string]any{"limit": 500})
	if done {
		return nil, instead, true
	}
	own, readable := d.schedules(s)
	switch {
	case !readable && strings.TrimSpace(s.result) == "":
		return nil, say(w.failed(w.text("empty_answer"))), true
	case !readable:
		return nil, say(s.result), true
	case len(own) == 0:
		return nil, say(w.text("no_reminders")), true
	}
	return own, reply{}, false
}

// list lists the reminders, or those of a day or kind, or tells the next of them.
func (d dialog) list(w phrases, i grammar.Intent) reply {
	own, instead, done := d.listed(w)
	if done {
		return instead
	}
	if i.Which.Name != "" {
		own = match(own, i.Which.Name)
	}
	day, isDay := i.When.(grammar.At)
	next := i.Do == "next"
	own = slices.DeleteFunc(own, func(sc schedule) bool { return isDay && !sc.on(day.Time) || next && sc.Next == nil })
	switch {
	case len(own) == 0 && isDay:
		return say(w.text("no_reminders_then", w.day(day.Time, d.now)))
	case len(own) == 0 && i.Which.Name != "":
		return say(w.text("nothing_about", i.Which.Name))
	case len(own) == 0:
		return say(w.text("no_reminders"))
	case next:
		first := slices.MinFunc(own, func(a, b schedule) int { return a.Next.Compare(*b.Next) })
		return say(w.text("next_is", w.line(first, d.now)))
	}
	return say(w.lines(w.text("your_reminders"), own, d.now))
}

// on reports whether a reminder comes on a day.
func (sc schedule) on(day time.Time) bool {
	if sc.Next == nil || daysBetween(sc.Next.In(day.Location()), day) < 0 {
		return false
	}
	fields := strings.Fields(sc.cron)
	if daysBetween(sc.Next.In(day.Location()), day) == 0 || len(fields) != 5 {
		return daysBetween(sc.Next.In(day.Location()), day) == 0
	}
	in := func(field string, n int) bool {
		days := strings.Split(strings.Replace(field, "1-5", "1,2,3,4,5", 1), ",")
		return field == "*" || slices.Contains(days, strconv.Itoa(n))
	}
	return in(fields[2], day.Day()) && in(fields[4], int(day.Weekday())) &&
		(sc.EveryDays < 2 || daysBetween(sc.Next.In(day.Location()), day)%sc.EveryDays == 0)
}

// when tells the time of a reminder, or what memory knows.
func (d dialog) when(w phrases, i grammar.Intent) reply {
	if _, recalled := d.last(recallTool); recalled {
		return d.askMemory(w, i.Which.Name)
	}
	own, instead, done := d.listed(w)
	if done && len(instead.calls) > 0 {
		return instead
	}
	found := match(own, i.Which.Name)
	for _, word := range wordsOf(i.Which.Name) {
		if len(found) == 0 && !noise[word] {
			found = match(own, word)
		}
	}
	if len(found) > 0 {
		return say(w.lines(w.text("your_reminders"), found, d.now))
	}
	return d.askMemory(w, i.Which.Name)
}

// maxCancels is the most reminders that one request cancels.
const maxCancels = 20

// cancel cancels the reminders that are meant, or asks which.
func (d dialog) cancel(w phrases, i grammar.Intent) reply {
	if d.means(i.Which) && i.Flag == "" {
		sc, instead, done := d.quoted(w)
		if done {
			return instead
		}
		return d.call(w, cancelSchedule, map[string]any{"id": sc.ID})
	}
	if last := d.lastActs(); i.Which.It != "" && len(last) > 0 && last[0].tool != cancelSchedule &&
		(last[0].tool != updateSchedule || !personal[strings.ToLower(i.Which.It)]) {
		return d.undo(w) // "cancel that" after a change
	}
	own, instead, done := d.listed(w)
	if done {
		return instead
	}
	if i.Flag == "all" {
		return say(w.text("cancel_all", len(own)))
	}
	matches := slices.DeleteFunc(slices.Clone(own), func(sc schedule) bool {
		return d.only != nil && !slices.Contains(d.only, sc.ID)
	})
	if i.Flag != "confirmed" {
		if matches, instead, done = d.pick(w, own, i.Which); done {
			return instead
		}
	}
	var r reply
	for _, sc := range matches[:min(len(matches), maxCancels)] {
		c, ok := d.prepare(cancelSchedule, map[string]any{"id": sc.ID})
		if !ok {
			return say(w.text("no_tool", cancelSchedule))
		}
		r.calls = append(r.calls, c)
	}
	return r
}

// personal are the pronouns that mean a reminder, not the last change.
var personal = map[string]bool{"it": true, "его": true, "ее": true, "её": true}

// pick returns the one reminder that is meant. If done is set, it returns the
// question which one.
func (d dialog) pick(w phrases, own []schedule, which grammar.Which) (one []schedule, instead reply, done bool) {
	if d.only != nil {
		own = slices.DeleteFunc(slices.Clone(own), func(sc schedule) bool { return !slices.Contains(d.only, sc.ID) })
	}
	matches := own
	shown := d.shown()
	id, delivered := d.focus()
	switch {
	case which.Nth != 0 && len(shown) > 0:
		n := which.Nth
		if n < 0 {
			n = len(shown)
		}
		if n > len(shown) {
			return nil, say(w.lines(w.text("which_reminder"), own, d.now)), true
		}
		matches = withID(own, shown[n-1])
	case which.Name != "":
		matches = match(own, which.Name)
	case which.It != "" || which == grammar.Which{} && len(own) > 1:
		matches = withID(own, id)
		if delivered != "" {
			matches = match(own, plainText(strings.TrimPrefix(delivered, "⏰ ")))
		}
		if len(matches) == 0 {
			matches = own
		}
	}
	switch {
	case len(matches) == 0:
		return nil, say(w.lines(w.text("no_such_reminder", which.Name), own, d.now)), true
	case len(matches) > 1 || which.Nth != 0 && len(shown) == 0 && which.Name == "":
		return nil, say(w.lines(w.text("which_reminder"), matches, d.now)), true
	}
	return matches, reply{}, false
}

func withID(own []schedule, id string) []schedule {
	return slices.DeleteFunc(slices.Clone(own), func(sc schedule) bool { return sc.ID != id })
}

// change changes the time, text or channel of a reminder.
func (d dialog) change(w phrases, i grammar.Intent) reply {
	if d.means(i.Which) {
		sc, instead, done := d.quoted(w)
		if done {
			return instead
		}
		return d.changeOne(w, i, sc)
	}
	if i.Do == "correct" {
		if len(d.lastActs()) == 0 {
			return say(w.text("what_else"))
		}
		i.Which.It = "it"
	}
	reminders := d.listed
	if d.quote != nil {
		reminders = d.all // one that came may have been listed
	}
	own, instead, done := reminders(w)
	if done {
		return instead
	}
	one, instead, done := d.pick(w, own, i.Which)
	if done {
		return instead
	}
	return d.changeOne(w, i, one[0])
}

func (d dialog) changeOne(w phrases, i grammar.Intent, sc schedule) reply {
	if sc.fired() { // it is moved from when it came
		sc.Next = sc.LastFired
	}
	switch i.Do {
	case "pause", "resume":
		return d.update(w, sc, map[string]any{"action": i.Do})
	case "rename":
		return d.update(w, sc, map[string]any{"message": i.Text})
	case "amend":
		text, ok := replaceWords(plainText(sc.Message), i.Which.Name, i.Text)
		if !ok {
			return say(w.text("what_to_change", plainText(sc.Message)))
		}
		return d.update(w, sc, map[string]any{"message": text})
	case "later", "earlier":
		if sc.Kind != "once" || sc.Next == nil {
			return say((&grammar.Question{Reason: grammar.Repeats, Language: w.language, Said: d.text}).Text())
		}
		sign, from := map[string]int{"later": 1, "earlier": -1}[i.Do], *sc.Next
		if sc.fired() {
			from = d.now
		}
		return d.update(w, sc, d.timing(grammar.At{Time: i.By.After(from.In(d.now.Location()), sign)}))
	}
	if sc.Next == nil {
		return say(w.text("what_else"))
	}
	r := grammar.ParseFor(d.text, d.now, sc.oldTiming(), d.channelNames()...)
	switch {
	case r.Question != nil:
		return say(r.Question.Text())
	case r.Intent.When == nil, repeats(r.Intent.When) != (sc.Kind == "recurring"):
		return say(w.text("other_kind"))
	}
	return d.update(w, sc, d.timing(r.Intent.When))
}

// oldTiming is the timing that a change is relative to; nil if it has none.
func (sc schedule) oldTiming() *grammar.Timing {
	if sc.Next == nil {
		return nil
	}
	return &grammar.Timing{Next: *sc.Next, Cron: grammar.Cron{Expr: sc.cron, Days: sc.EveryDays}}
}

func (d dialog) update(w phrases, sc schedule, arguments map[string]any) reply {
	arguments["id"] = sc.ID
	clockText := func(t time.Time) string { return w.marked("alarm", t.In(d.now.Location()).Format("15:04")) }
	if sc.Next != nil && sc.Message == clockText(*sc.Next) { // an alarm is called by its time
		if text, ok := arguments["at"].(string); ok {
			if at, err := time.Parse(time.RFC3339, text); err == nil {
				arguments["message"] = clockText(at)
			}
		}
	}
	return d.call(w, updateSchedule, arguments)
}

// changed reports the result of update_schedule.
func (d dialog) changed(w phrases, s step) string {
	var made schedule
	switch {
	case json.Unmarshal([]byte(s.result), &made) != nil || made.ID == "":
		return w.done(s.result)
	case made.Status == "restored":
		return w.text("restored", w.line(made, d.now))
	}
	return w.text("moved", w.line(made, d.now))
}

// match finds the reminders that a name means: by id, by the number in the id,
// by the whole text, by words of the text, or by words with a slip of one letter.
func match(own []schedule, name string) []schedule {
	var byWords, bySlips []schedule
	for _, sc := range own {
		if strings.EqualFold(sc.ID, name) || strings.EqualFold(strings.TrimLeftFunc(sc.ID, unicode.IsLetter), name) ||
			strings.EqualFold(plainText(sc.Message), name) {
			return []schedule{sc}
		}
		if mentions(sc.Message, name, sameStem) {
			byWords = append(byWords, sc)
		}
		if mentions(sc.Message, name, almostSame) {
			bySlips = append(bySlips, sc)
		}
	}
	if len(byWords) == 0 {
		return bySlips
	}
	return byWords
}

// almostSame reports whether two words of four letters or more differ by a slip: a letter
// too many, too few, or in the wrong place. Another letter makes another word of a short
// one: "Carl" is not "call".
func almostSame(a, b string) bool {
	x, y := []rune(a), []rune(b)
	slices.Sort(x)
	slices.Sort(y)
	other := len(x) == len(y) && !slices.Equal(x, y)
	return sameStem(a, b) || min(len(x), len(y)) >= 4 && (!other || len(x) >= 6) && grammar.SameButASlip(a, b)
}

// mentions reports whether the text has all words of name, whatever their
// endings: "выключить чайник" mentions "чайнике".
func mentions(text, name string, same func(said, word string) bool) bool {
	words := wordsOf(text)
	found := 0
	for _, w := range wordsOf(name) {
		if utf8.RuneCountInString(w) < 3 || noise[w] {
			continue
		}
		if !slices.ContainsFunc(words, func(word string) bool { return same(w, word) }) {
			return false
		}
		found++
	}
	return found > 0
}

// noise are words that no text is recognized by.
var noise = map[string]bool{"the": true, "about": true, "for": true, "about it": true, "про": true, "reminder": true,
	"напоминание": true, "for me": true}

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

// cancelled reports the result of cancel_schedule.
func (d dialog) cancelled(w phrases, s step) string {
	var arguments struct{ ID string }
	_ = json.Unmarshal(s.arguments, &arguments) // written by this package
	name := arguments.ID
	if list, ok := d.last(listSchedules); ok {
		own, _ := d.schedules(list)
		for _, sc := range withID(own, arguments.ID) {
			name = plainText(sc.Message) + tag(sc.ID)
		}
	}
	if status(s.result) == "too_late" {
		return w.text("too_late", name)
	}
	return w.text("cancelled", name)
}
