package grammar

import (
	"slices"
	"strings"
)

// sentence is a text as the patterns see it: its words, and signs for its times,
// channels, quotations and politeness.
type sentence struct {
	line   string
	pieces []piece
}

// piece is one word or sign of a sentence.
type piece struct {
	offset   int // in the line
	from, to int // tokens
	atom     *atom
	channel  *channelPhrase
}

func (s *scan) sentence() sentence {
	var out sentence
	var b strings.Builder
	n := s.trim(0, len(s.toks))
	for i := 0; i < n; {
		p := piece{offset: b.Len(), from: i, to: i + 1}
		sign := s.toks[i].norm
		if a, ok := s.atom(i); ok && a.end <= n {
			p.to, p.atom, sign = a.end, &a, "T"
			if a.weak {
				sign = "W"
			}
		} else if c, ok := s.channel(i); ok {
			p.to, p.channel, sign = c.end, &c, "C"
		} else if end, ok := s.words(i, "polite"); ok {
			p.to, sign = end, "P"
		} else if s.is(i, quoted) {
			sign = "Q"
		} else if s.is(i, stop) {
			sign = "."
		}
		if !s.is(i, comma) {
			b.WriteString(" " + sign + " ")
			out.pieces = append(out.pieces, p)
		}
		i = p.to
	}
	out.line = b.String()
	return out
}

// match is a sentence that has a form.
type match struct {
	*scan
	intent, flag string
	slots        map[string][2]int // tokens
	atoms, times []atom            // all that count, and those outside of the slots
	channel      *channelPhrase
	conflict     *Question
	before       int // how many of the times are before the text
}

// matches yields the forms that the sentence has, those of its language first.
func (s *scan) matches(in sentence, yield func(match) bool) {
	own := s.lang
	order := []Language{own, English, Russian}
	latin, cyrillic := letters(s.text)
	for i, language := range order {
		foreign := language == English && latin == 0 || language == Russian && cyrillic == 0
		if slices.Contains(order[:i], language) || i > 0 && foreign { // its patterns need not be compiled
			continue
		}
		for _, f := range languages().sentences[language] {
			at := f.form.FindStringSubmatchIndex(in.line)
			if at == nil {
				continue
			}
			m := match{scan: s, intent: f.intent, flag: f.flag, slots: map[string][2]int{}}
			for k, name := range f.form.SubexpNames() {
				if name != "" && at[2*k] >= 0 && at[2*k] < at[2*k+1] {
					m.slots[name] = in.tokens(at[2*k], at[2*k+1])
				}
			}
			m.collect(in)
			s.lang = language
			if yield(m) {
				return
			}
			s.lang = own
		}
	}
}

// tokens returns the range of tokens of a part of the line.
func (in sentence) tokens(from, to int) [2]int {
	out := [2]int{-1, -1}
	for _, p := range in.pieces {
		if p.offset >= from && p.offset < to {
			if out[0] < 0 {
				out[0] = p.from
			}
			out[1] = p.to
		}
	}
	return out
}

// collect collects the times and channels outside of the slots.
func (m *match) collect(in sentence) {
	text, hasText := m.slots["text"]
	for _, p := range in.pieces {
		if p.atom != nil && !p.atom.weak {
			m.atoms = append(m.atoms, *p.atom)
		}
		if m.inSlot(p) {
			continue
		}
		if p.atom != nil {
			m.times = append(m.times, *p.atom)
			if hasText && p.from < text[0] {
				m.before++
			}
		}
		if p.channel == nil {
			continue
		}
		if m.channel != nil {
			m.conflict = &Question{Reason: TwoChannels, Said: m.channel.label(), Other: p.channel.label()}
			continue
		}
		m.channel = p.channel
	}
}

func (m *match) inSlot(p piece) bool {
	for _, r := range m.slots {
		if p.from >= r[0] && p.to <= r[1] {
			return true
		}
	}
	return false
}

// text returns the words of a slot as the person wrote them.
func (m match) text(slot string) string {
	r, ok := m.slots[slot]
	if !ok {
		return ""
	}
	return strings.TrimSpace(m.raw(m.bounds(r)))
}

// bounds leaves out politeness and marks at the ends.
func (m match) bounds(r [2]int) (int, int) {
	i, n := r[0], m.trim(r[0], r[1])
	for {
		start, end := i, n
		if next, ok := m.words(i, "polite"); ok && next <= n {
			i = next
		}
		if m.is(i, comma) {
			i++
		}
		for k := max(i, n-3); k < n; k++ {
			if next, ok := m.words(k, "polite"); ok && next == n {
				n = m.trim(i, k)
			}
		}
		if i == start && n == end || i >= n {
			return i, n
		}
	}
}

// trim removes punctuation from the end of the tokens from i up to n.
func (s *scan) trim(i, n int) int {
	for n > i && (s.is(n-1, comma) || s.is(n-1, stop) || s.is(n-1, dash)) {
		n--
	}
	return n
}
