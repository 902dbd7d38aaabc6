package grammar

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

var (
	// timed are the intents that may have a time: in any other sentence it is not
	// understood.
	timed = map[string]bool{"remind": true, "alarm": true, "move": true, "correct": true, "snooze": true, "send": true,
		"ask": true, "list": true, "ask_date": true, "ask_days": true, "when": true, "recall": true, "ask_memory": true,
		"next": true, "bye": true}
	// readings are the flags that say how a form is read, not what it means.
	readings = map[string]bool{"!": true, "literal": true, "quoted": true, "greeting": true, "greet": true,
		"timed": true, "stop": true, "wake": true}
	// channeled are the intents that may name a channel.
	channeled = map[string]bool{"remind": true, "send": true, "alarm": true, "timer": true, "move": true, "correct": true,
		"ask": true}
)

var prefers = pattern.New(`^(?:(?:i|we) (?:always |usually |would )?prefer|(?:я|мы) (?:всегда |обычно )?` +
	`предпочита(?:ю|ем)) `)

// intend returns what a sentence of this form means, or a question about it; neither
// if it does not have the form after all.
func (m match) intend() (*Intent, *Question) {
	i := &Intent{Do: m.intent, Text: m.text("text"), List: m.text("list"), Which: m.which()}
	switch {
	case m.flag == "it", m.flag == "that":
		i.Which.It = m.flag
	case !readings[m.flag]:
		i.Flag = m.flag
	}
	if c := m.channel; c != nil {
		i.Channel, i.Here, i.All = c.said, c.here, c.all
	} else if said := m.text("channel"); said != "" {
		i.Channel = said
	}
	if len(m.times) > 0 && !timed[i.Do] || m.channel != nil && !channeled[i.Do] {
		return nil, nil
	}
	if m.conflict != nil {
		return nil, m.conflict
	}
	if q, ok := m.spans(i); !ok || q != nil {
		return nil, q
	}
	switch i.Do {
	case "ask":
		said := m.text("said")
		if m.flag == string(NotUnderstood) && said == "" {
			return nil, nil
		}
		return nil, &Question{Reason: Reason(m.flag), Said: said}
	case "remind":
		return m.remind(i)
	case "send":
		return m.send(i)
	case "remember", "todo", "additem":
		return m.remember(i)
	case "calculate":
		result, ok := calculate(m.text("expr"))
		if !ok {
			return nil, nil
		}
		i.Text = result
	case "pick":
		if i.Flag != "all" && i.Which.Nth == 0 {
			return nil, nil
		}
	case "list", "next", "ask_date", "ask_days":
		if m.timeIn("which") {
			return nil, nil
		}
		if len(m.times) == 0 {
			return i, nil
		}
		return m.onDay(i)
	case "alarm":
		m.wakes = m.flag == "wake"
		m.later = true
		return m.withTime(i)
	case "snooze":
		if m.flag == "also" && m.asked {
			return nil, nil // "and tomorrow?"
		}
		if len(m.times) == 0 && i.By.zero() {
			return i, nil
		}
		return m.withTime(i)
	case "move", "correct":
		if len(m.times) > 0 {
			i.Text = m.raw(m.times[0].start, m.times[len(m.times)-1].end)
		}
		if m.old == nil {
			return i, nil // the time depends on the reminder
		}
		return m.withTime(i)
	case "cancel":
		if m.flag == "stop" && m.timeIn("which") {
			return nil, nil // "don't remind me at 6 to ..."
		}
	case "recall", "forget":
		about := i.Text + i.Which.Name
		if i.Flag != "all" && (about == "" || pronounOnly(about)) {
			return nil, nil
		}
	}
	return i, nil
}

// timeIn reports whether a slot has a time.
func (m match) timeIn(slot string) bool {
	r := m.slots[slot]
	return slices.ContainsFunc(m.atoms, func(a atom) bool { return a.start >= r[0] && a.end <= r[1] })
}

// pronounOnly reports whether a text is only a pronoun.
func pronounOnly(text string) bool {
	return slices.Contains(languages().phrases["pronoun"], norm(text))
}

// spans reads the slots with a length of time or a time of day. It reports false if
// they are something else.
func (m *match) spans(i *Intent) (*Question, bool) {
	if r, ok := m.slots["span"]; ok {
		sp, end, ok := m.span(r[0])
		if !ok || end != m.trim(r[0], r[1]) {
			return nil, false
		}
		if sp.problem != "" {
			return &Question{Reason: sp.problem, Said: m.raw(r[0], r[1])}, true
		}
		i.By = Span{sp.months, sp.days, sp.exact}
		if i.Do == "snooze" || i.Do == "timer" || i.Do == "correct" {
			m.times = append(m.times, atom{kind: delayAtom, start: r[0], end: r[1], delay: sp})
			i.Text = cmp.Or(i.Text, m.raw(r[0], r[1]))
		}
		if i.Do == "timer" {
			when, q := m.resolve(m.times)
			i.When = when
			return q, true
		}
	}
	if r, ok := m.slots["clock"]; ok {
		c, end, reason, ok := m.clock(r[0], true)
		if !ok || end != m.trim(r[0], r[1]) {
			return nil, false
		}
		m.times = append(m.times, atom{kind: clockAtom, start: r[0], end: r[1], clock: c, problem: reason})
	}
	return nil, true
}

func (m match) withTime(i *Intent) (*Intent, *Question) {
	when, q := m.resolve(m.times)
	i.When = when
	return i, q
}

// onDay restricts a list to a day.
func (m match) onDay(i *Intent) (*Intent, *Question) {
	if len(m.times) != 1 || m.times[0].kind != dayAtom || m.times[0].problem != "" {
		return nil, nil
	}
	y, month, d, _ := m.times[0].day.resolve(m.now)
	t, _ := wall(y, month, d, 12, 0, m.now.Location())
	i.When = At{Time: t}
	return i, nil
}

// which reads the slot of a reminder or memory.
func (m match) which() Which {
	r, ok := m.slots["which"]
	if n, picked := m.slots["n"]; picked {
		r, ok = n, true
	}
	if !ok {
		return Which{}
	}
	i, n := m.bounds(r)
	whole := m.raw(i, n)
	if end, ok := m.words(i, "it"); ok && end == n {
		return Which{It: whole}
	}
	for i < n-1 && m.intent != "forget" {
		next, ok := m.words(i, "which_front")
		if !ok && (m.is(i, colon) || m.is(i, other)) {
			next, ok = i+1, true
		}
		if !ok || next >= n {
			break
		}
		i = next
	}
	for n-1 > i && m.intent != "forget" && m.oneOf(n-1, "which_back") {
		n--
	}
	switch nth := m.value("ordinal", i); {
	case i+1 != n:
	case nth != 0:
		return Which{Nth: nth}
	case m.oneOf(i, "reminder"), m.oneOf(i, "reminders"):
		if m.oneOf(i, "which_front") {
			return Which{}
		}
	default:
		if k, end, ok := m.integer(i); ok && end == n && k > 0 {
			return Which{Nth: k, Name: m.raw(i, n)}
		}
	}
	return Which{Name: m.raw(i, n)}
}

// remind reads a reminder.
func (m match) remind(i *Intent) (*Intent, *Question) {
	if m.intent == "remind" && m.flag == "timed" && len(m.times) == 0 ||
		m.flag == "literal" && len(m.times) == 0 {
		return nil, nil
	}
	if m.flag == "quoted" {
		i.Text = m.raw(m.slots["quote"][0], m.slots["quote"][1])
	}
	if m.flag == "literal" {
		i.Text = strings.TrimSpace(m.raw(m.slots["text"][0], len(m.toks)))
	}
	if blank(i.Text) || pronounOnly(i.Text) {
		i.Flag = "it"
		if blank(i.Text) {
			return nil, &Question{Reason: NoText}
		}
	}
	if m.flag != "literal" && m.flag != "quoted" {
		if q := m.inner(); q != nil {
			return nil, q
		}
	}
	if i.All {
		return nil, &Question{Reason: NotUnderstood, Said: "all"}
	}
	when, q := m.resolve(m.times)
	if q != nil {
		return nil, q
	}
	i.When = when
	r := m.slots["text"]
	for k := r[0]; k < r[1] && m.channel == nil && i.Channel == ""; k++ {
		i.MayNameChannel = i.MayNameChannel || m.oneOf(k, "channel_preposition") && !m.oneOf(k, "to")
	}
	return i, nil
}

// inner asks about a time, a channel or a command inside the text, and about a text
// that begins or ends in the middle of a time.
func (m match) inner() *Question {
	r := m.slots["text"]
	i, n := r[0], m.trim(r[0], r[1])
	if m.before > 0 && (m.continues(i) || m.lang == English && m.oneOf(i, "after_time")) {
		return &Question{Reason: NotUnderstood, Said: m.raw(i, min(i+3, n))}
	}
	if a := complete(m.times[:m.before]); a != nil && len(m.times) > m.before && m.times[m.before].kind != partAtom {
		b := m.times[m.before]
		return &Question{Reason: TwoTimes, Said: m.raw(a.start, a.end), Other: m.raw(b.start, b.end)}
	}
	for k := i; k < n; k++ {
		if _, ok := m.words(k, "remind_verb"); ok {
			return &Question{Reason: TwoCommands}
		}
	}
	for _, a := range m.atoms {
		switch {
		case a.start < i || a.end > n:
		case len(m.times) > 0:
			first := m.times[0]
			return &Question{Reason: TwoTimes, Said: m.raw(first.start, first.end), Other: m.raw(a.start, a.end)}
		default:
			return &Question{Reason: InnerTime, Said: m.raw(a.start, a.end)}
		}
	}
	if c := m.channel; c != nil && !c.here && c.end > n && m.oneOf(i, "writing") {
		return &Question{Reason: InnerChannel, Said: c.said}
	}
	if len(m.times) == 0 {
		return nil
	}
	last := n - 1
	if m.oneOf(last, "connector") || m.oneOf(last, "roughly") {
		return &Question{Reason: NotUnderstood, Said: m.raw(last, n)}
	}
	if _, _, ok := m.integer(last); ok && m.oneOf(last-1, "before_number") {
		return &Question{Reason: NotUnderstood, Said: m.raw(last-1, n)}
	}
	return nil
}

// complete returns the atom that makes the times before a text complete, so that
// a time after the text would be a second one. "Tomorrow" alone is not complete.
func complete(atoms []atom) *atom {
	for i := range atoms {
		a := &atoms[i]
		if a.kind == delayAtom || a.kind == clockAtom || (a.kind == repeatAtom && a.repeat.interval > 0) {
			return a
		}
	}
	return nil
}

// continues reports whether the token at i may be part of the time before it.
func (s *scan) continues(i int) bool {
	if s.lang == English {
		return false // a word marks the text
	}
	_, _, ok := s.integer(i)
	return ok || s.oneOf(i, "after_time") || s.unitHere(i) || s.is(i, dash) || s.is(i, other)
}

// send reads a message to a channel, now or later.
func (m match) send(i *Intent) (*Intent, *Question) {
	switch m.flag {
	case "quoted":
		i.Text = m.raw(m.slots["quote"][0], m.slots["quote"][1])
	case "literal":
		r := m.slots["text"]
		i.Text = strings.TrimSpace(m.raw(r[0], len(m.toks)))
		if r[1]-r[0] == 1 {
			i.Text = m.raw(r[0], r[1])
		}
	case "greeting":
		i.Text = map[Language]string{English: "Hi", Russian: "Привет"}[m.lang]
	case "greet":
		first, size := utf8.DecodeRuneInString(i.Text)
		i.Text = string(unicode.ToUpper(first)) + i.Text[size:]
	default:
		r := m.slots["text"]
		if end, ok := m.words(r[0], "greet_text"); ok && end < r[1] {
			if m.oneOf(end, "to") {
				return nil, &Question{Reason: Recipient, Said: m.raw(end+1, min(end+2, r[1]))}
			}
			return nil, &Question{Reason: NotUnderstood, Said: m.raw(end, r[1])}
		}
		switch q := m.inner(); {
		case m.channel == nil:
			return nil, nil
		case m.channel.end > r[0]:
			return nil, &Question{Reason: Unquoted}
		case len(m.times) > m.before:
			return nil, &Question{Reason: InnerTime, Said: m.raw(m.times[m.before].start, m.times[m.before].end)}
		case q != nil:
			return nil, q
		}
	}
	switch {
	case blank(i.Text):
		return nil, &Question{Reason: NoMessage}
	case len(m.times) > 0:
		i.Do, i.Verbatim = "remind", true
		if i.All {
			return nil, &Question{Reason: NotUnderstood, Said: "all"}
		}
		return m.withTime(i)
	case i.Channel == "" && !i.All:
		return nil, &Question{Reason: NoChannel}
	}
	return i, nil
}

// remember reads what to remember.
func (m match) remember(i *Intent) (*Intent, *Question) {
	if i.Flag == "household" {
		i.Flag, i.Household = "", true
	}
	if r, ok := m.slots["text"]; ok {
		if m.is(r[0], comma) || m.is(r[0], colon) {
			r[0]++
		}
		i.Text = m.raw(r[0], m.trim(r[0], r[1]))
		if _, ok := m.words(r[0], "remind"); ok {
			return nil, nil
		}
		for k := r[0]; k < r[1]; k++ {
			for _, verb := range []string{"remind_verb", "forget"} {
				if _, ok := m.words(k, verb); ok {
					return nil, &Question{Reason: TwoCommands}
				}
			}
		}
	}
	switch {
	case m.asked && !m.request():
		return nil, nil
	case blank(i.Text), pronounOnly(i.Text):
		return nil, &Question{Reason: NoFact}
	case i.Do == "remember" && prefers.MatchString(norm(i.Text)):
		i.Flag = "preference"
	}
	return i, nil
}

// request reports whether a question is a request: "can you ...?"
func (s *scan) request() bool {
	_, ok := s.words(0, "opener")
	return ok
}
