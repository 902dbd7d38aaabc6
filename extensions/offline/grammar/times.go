package grammar

import (
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// timeForm is one row of the times.
type timeForm struct {
	flag       string
	expression string
	form       *pattern.Pattern
}

// mayBegin reports whether the form may begin with a word: most words are nowhere in it,
// and it is much cheaper to see that than to run the expression.
func (f timeForm) mayBegin(word string) bool {
	return word != "" && (strings.Contains(f.expression, " "+word+" ") || strings.Contains(word, "-") ||
		isDigit(rune(word[0])) && strings.Contains(f.expression, "[0-9]"))
}

// timeMatch is a form of a time with its slots, which are words.
type timeMatch struct {
	flag  string
	end   int // token
	slots map[string]string
}

// timesAt yields the forms of a kind of time that the tokens at i have.
func (s *scan) timesAt(kind string, i int, yield func(timeMatch)) {
	const longest = 16 // tokens
	end := min(i+longest, len(s.toks))
	line := s.line[s.offsets[i]:s.offsets[end]]
	for _, f := range languages().times[kind] {
		if !f.mayBegin(s.at(i)) {
			continue
		}
		at := f.form.FindStringSubmatchIndex(line)
		if at == nil {
			continue
		}
		m := timeMatch{flag: f.flag, end: i, slots: map[string]string{}}
		for m.end < end && s.offsets[m.end] < s.offsets[i]+at[1] {
			m.end++
		}
		for k, name := range f.form.SubexpNames() {
			if name != "" && at[2*k] >= 0 {
				m.slots[strings.TrimRight(name, "23")] = strings.Join(strings.Fields(line[at[2*k]:at[2*k+1]]), " ")
			}
		}
		yield(m)
	}
}

// value returns the value of a slot in its section, 0 if it is empty.
func (m timeMatch) value(slot string) int { return languages().values[slot][m.slots[slot]] }

// number returns the number in a slot, in digits or as a word; 0 if it is empty.
func (m timeMatch) number(slot string) int {
	text := strings.TrimSuffix(m.slots[slot], "-")
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return languages().values["number"][text]
}
