package grammar

import "strings"

var remindVerbs = []string{
	"remind", "set a reminder", "create a reminder", "add a reminder", "make a reminder", "set reminder",
	"set up a reminder", "send me a reminder", "give me a reminder",
	"напомни", "напомните", "напомнить", "напоминай", "напоминайте", "поставь напоминание", "создай напоминание",
	"добавь напоминание", "сделай напоминание", "установи напоминание",
}

var me = []string{"me", "us", "мне", "нам", "for me", "for us", "to me"}

// remind reads a reminder. It reports false for other sentences.
func (s *scan) remind() (Reading, bool) {
	var h head
	lang := Language("")
	i, verb := 0, -1
	n := s.trim(0, len(s.toks))
	for i < n {
		if verb < 0 {
			if next, ok := s.words(i, remindVerbs...); ok {
				lang = scriptOf(s.at(i))
				verb, i = i, next
				if s.oneOf(i-1, "reminder", "напоминание") && s.oneOf(i, "for", "на") {
					if a, ok := s.atom(i + 1); ok && a.kind == dayAtom {
						i++
					}
				}
				if next, ok := s.words(i, me...); ok {
					i = next
				} else if s.at(verb) == "remind" && !s.afterVerb(i, n) {
					return question(lang, &Question{Reason: Recipient, Said: s.raw(i, i+1)}), true
				}
				s.lang = lang
				continue
			}
			if next, ok := s.words(i, fillers...); ok {
				i = next
				continue
			}
		} else if next, ok := s.words(i, "please", "пожалуйста", "мне", "нам"); ok {
			i = next
			continue
		}
		if next, ok := s.take(&h, i); ok {
			i = next
			continue
		}
		if c, ok := s.freeChannel(i, s.marker); verb >= 0 && lang == English && ok && s.at(i) != "to" {
			h.setChannel(c)
			i = c.end
			continue
		}
		break
	}
	if verb < 0 {
		for k := i; k < n; k++ {
			if _, ok := s.words(k, "remind me", "remind us", "напомни", "напомните", "напоминай"); ok {
				return question(scriptOf(s.at(k)), &Question{Reason: NotUnderstood, Said: s.raw(i, k)}), true
			}
		}
		return Reading{}, false
	}
	r, q := s.remindText(&h, i, n, lang)
	if q != nil {
		return question(lang, q), true
	}
	return Reading{Language: lang, Intent: r}, true
}

func question(lang Language, q *Question) Reading { return Reading{Language: lang, Question: q} }

// afterVerb reports whether a time, a channel or the text follows "remind"
// without "me".
func (s *scan) afterVerb(i, n int) bool {
	if i >= n || s.marker(i) {
		return true
	}
	if _, ok := s.atom(i); ok {
		return true
	}
	_, ok := s.channel(i)
	return ok
}

// marker reports whether the text of a reminder begins at i.
func (s *scan) marker(i int) bool {
	return s.oneOf(i, "to", "that", "about", "of") || s.is(i, colon) || s.is(i, quoted) || s.is(i, dash)
}

// remindText reads the text of a reminder and the times and channels after it.
func (s *scan) remindText(h *head, i, n int, lang Language) (Intent, *Question) {
	r := Remind{}
	literal := false
	begin, end := i, n
	switch {
	case i >= n:
	case s.is(i, colon):
		begin = i + 1
		if len(h.atoms) > 0 {
			literal, end = true, len(s.toks)
		}
	case s.is(i, quoted):
		literal, end = true, i+1
	case s.is(i, dash):
		begin = i + 1
	case s.oneOf(i, "to", "that", "about", "of") && lang == English:
		begin = i + 1
	case s.oneOf(i, "not") && s.oneOf(i+1, "to"): // part of the text
	case s.oneOf(i, "что"):
		begin = i + 1
	case lang == English:
		return nil, &Question{Reason: NotUnderstood, Said: s.raw(i, min(i+3, n))}
	case len(h.atoms) > 0 && s.continues(i):
		return nil, &Question{Reason: NotUnderstood, Said: s.raw(i, min(i+3, n))}
	}
	if !literal && s.is(begin, quoted) {
		if _, ok := s.tail(begin+1, n); ok {
			literal, end = true, begin+1
		}
	}
	after := head{}
	switch {
	case literal && end < n:
		t, ok := s.tail(end, n)
		if !ok {
			return nil, &Question{Reason: NotUnderstood, Said: s.raw(end, n)}
		}
		after = t
	case !literal:
		end, after = s.body(begin, n)
		end = s.trim(begin, end)
	}
	if after.conflict != nil {
		return nil, after.conflict
	}
	text := strings.TrimSpace(s.raw(begin, end))
	if blank(text) {
		return nil, &Question{Reason: NoText}
	}
	if !literal {
		if q := s.inner(begin, end, len(after.atoms) > 0); q != nil {
			if q.Reason == InnerTime && len(h.atoms)+len(after.atoms) > 0 {
				first := append(h.atoms, after.atoms...)[0]
				q.Reason, q.Said, q.Other = TwoTimes, s.raw(first.start, first.end), q.Said
			}
			return nil, q
		}
		if after.channel != nil && !after.channel.here && s.oneOf(begin, writing...) {
			return nil, &Question{Reason: InnerChannel, Said: after.channel.said}
		}
	}
	if a := complete(h.atoms); a != nil && len(after.atoms) > 0 {
		b := after.atoms[0]
		return nil, &Question{Reason: TwoTimes, Said: s.raw(a.start, a.end), Other: s.raw(b.start, b.end)}
	}
	if after.channel != nil {
		h.setChannel(*after.channel)
	}
	if h.conflict != nil {
		return nil, h.conflict
	}
	when, q := s.resolve(append(h.atoms, after.atoms...))
	if q != nil {
		return nil, q
	}
	r.Text, r.When = text, when
	if c := h.channel; c != nil {
		if c.all {
			return nil, &Question{Reason: NotUnderstood, Said: c.label()}
		}
		r.Channel, r.Here = c.said, c.here
	} else if !literal {
		for k := begin; k < end; k++ {
			r.MayNameChannel = r.MayNameChannel || s.oneOf(k, "in", "on", "via", "through", "в", "во", "на", "через",
				"по")
		}
	}
	return r, nil
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

// writing are actions that the person may want to do in a channel.
var writing = []string{
	"write", "answer", "reply", "message", "post", "send", "text", "call", "check", "look", "read", "ask", "tell",
	"contact", "join",
	"написать", "ответить", "отписаться", "позвонить", "проверить", "посмотреть", "прочитать", "спросить", "отправить",
	"сообщить", "зайти", "связаться",
}
