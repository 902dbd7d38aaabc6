package grammar

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var sendVerbs = []string{
	"say", "tell", "send", "write", "post", "message", "text", "drop", "deliver", "greet",
	"передай", "передайте", "скажи", "скажите", "отправь", "отправьте", "пришли", "пришлите", "напиши", "напишите",
	"сообщи", "пошли",
	"отправить", "написать", "передать", "поздоровайся со мной", "поздоровайся",
}

var messageNouns = []string{
	"a message", "the message", "message", "a text", "the text", "a note", "сообщение", "текст", "такое сообщение",
	"the following", "следующее",
}

// greetings are texts that need no quotes.
var greetings = []string{
	"hi there", "hi", "hello there", "hello", "hey", "good morning", "good evening", "good night", "good afternoon",
	"goodbye", "bye",
	"привет", "приветик", "здравствуй", "здравствуйте", "доброе утро", "добрый день", "добрый вечер", "спокойной ночи",
	"доброй ночи", "пока",
}

var greetingNouns = []string{"a greeting", "greetings", "приветствие"}

// send reads a message to a channel, now or later. It reports false for other
// sentences.
func (s *scan) send() (Reading, bool) {
	var h head
	n := s.trim(0, len(s.toks))
	i, verb := 0, -1
	for i < n && verb < 0 {
		if next, ok := s.words(i, sendVerbs...); ok {
			verb, i = i, next
			s.lang = scriptOf(s.at(verb))
			break
		}
		if next, ok := s.words(i, fillers...); ok {
			i = next
			continue
		}
		next, ok := s.take(&h, i)
		if !ok {
			return Reading{}, false
		}
		i = next
	}
	if verb < 0 {
		return Reading{}, false
	}
	intent, q, ok := s.sendWhat(&h, verb, i, n)
	if !ok {
		return Reading{}, false
	}
	return Reading{Language: s.lang, Intent: intent, Question: q}, true
}

// sendWhat reads the words after the verb.
func (s *scan) sendWhat(h *head, verb, i, n int) (Intent, *Question, bool) {
	text := ""
	if s.oneOf(verb, "greet", "поздоровайся") {
		text = s.greeting()
	}
	for i < n {
		if next, ok := s.words(i, append(me, "please", "пожалуйста")...); ok {
			i = next
			continue
		}
		if next, ok := s.words(i, messageNouns...); ok {
			i = next
			continue
		}
		if next, ok := s.take(h, i); ok {
			i = next
			continue
		}
		if c, ok := s.freeChannel(i, func(k int) bool { return s.is(k, colon) || s.is(k, quoted) }); ok {
			h.setChannel(c)
			i = c.end
			continue
		}
		break
	}
	switch {
	case text != "":
		return s.sendRest(h, text, i, n)
	case i >= n:
		if h.channel == nil {
			return nil, nil, false
		}
		return nil, &Question{Reason: NoMessage}, true
	case s.is(i, colon):
		literal := strings.TrimSpace(s.raw(i+1, len(s.toks)))
		if s.is(i+1, quoted) && i+2 == n {
			literal = s.unquote(i + 1)
		}
		return s.sent(h, literal)
	case s.is(i, quoted):
		return s.sendRest(h, s.unquote(i), i+1, n)
	}
	if next, ok := s.words(i, greetingNouns...); ok {
		return s.sendRest(h, s.greeting(), next, n)
	}
	if next, ok := s.words(i, greetings...); ok {
		attempt := *h // a copy: if the text goes on after the greeting, h is used again
		attempt.atoms = slices.Clone(h.atoms)
		if intent, q, ok := s.sendRest(&attempt, capital(s.raw(i, next)), next, n); ok &&
			(q == nil || q.Reason != NotUnderstood || attempt.channel != nil) {
			return intent, q, true
		}
	}
	if h.channel == nil {
		// "say good luck in Telegram", or no message at all ("tell me a joke").
		k, after := s.body(i, n, me...)
		if k < n && after.channel != nil && !after.channel.here {
			return nil, &Question{Reason: Unquoted}, true
		}
		return nil, nil, false
	}
	if s.oneOf(i, "that", "saying", "что") {
		i++
	} else if len(h.atoms) > 0 && s.continues(i) || s.is(i, dash) || s.is(i, other) {
		return nil, &Question{Reason: NotUnderstood, Said: s.raw(i, min(i+3, n))}, true
	}
	end, after := s.body(i, n)
	end = s.trim(i, end)
	if after.channel != nil {
		return nil, &Question{Reason: TwoChannels, Said: h.channel.label(), Other: after.channel.label()}, true
	}
	if len(after.atoms) > 0 { // "that dinner is ready in 5 minutes": the time may be part of the text
		a := after.atoms[0]
		return nil, &Question{Reason: InnerTime, Said: s.raw(a.start, a.end)}, true
	}
	if q := s.inner(i, end, false); q != nil {
		return nil, q, true
	}
	return s.sent(h, s.raw(i, end))
}

func (s *scan) greeting() string {
	if s.lang == Russian {
		return "Привет"
	}
	return "Hi"
}

// sendRest reads the words after a text whose end is clear: the channel, the
// recipient, a time.
func (s *scan) sendRest(h *head, text string, i, n int) (Intent, *Question, bool) {
	for i < n {
		if next, ok := s.words(i, me...); ok {
			i = next
			continue
		}
		if next, ok := s.words(i, tailFillers...); ok {
			i = next
			continue
		}
		if next, ok := s.take(h, i); ok {
			i = next
			continue
		}
		ends := func(k int) bool { return k >= n || s.tailOnly(k, n) }
		if c, ok := s.freeChannel(i, ends); ok {
			h.setChannel(c)
			i = c.end
			continue
		}
		if s.oneOf(i, "to") && s.is(i+1, word) {
			return nil, &Question{Reason: Recipient, Said: s.raw(i+1, i+2)}, true
		}
		return nil, &Question{Reason: NotUnderstood, Said: s.raw(i, n)}, true
	}
	return s.sent(h, text)
}

// tailOnly reports whether only times and politeness follow the name of a channel.
func (s *scan) tailOnly(i, n int) bool {
	h, ok := s.tail(i, n, me...)
	return ok && h.channel == nil
}

// sent makes the intent of a text and a head.
func (s *scan) sent(h *head, text string) (Intent, *Question, bool) {
	text = strings.TrimSpace(text)
	switch {
	case h.conflict != nil:
		return nil, h.conflict, true
	case blank(text):
		return nil, &Question{Reason: NoMessage}, true
	case len(h.atoms) > 0:
		when, q := s.resolve(h.atoms)
		if q != nil {
			return nil, q, true
		}
		r := Remind{Text: text, When: when, Verbatim: true}
		if c := h.channel; c != nil {
			if c.all {
				return nil, &Question{Reason: NotUnderstood, Said: c.label()}, true
			}
			r.Channel, r.Here = c.said, c.here
		}
		return r, nil, true
	case h.channel == nil || h.channel.here:
		return nil, &Question{Reason: NoChannel}, true
	case h.channel.all:
		return Send{Text: text, All: true}, nil, true
	}
	return Send{Text: text, Channel: h.channel.said}, nil, true
}

func capital(t string) string {
	r, n := utf8.DecodeRuneInString(t)
	return string(unicode.ToUpper(r)) + t[n:]
}
