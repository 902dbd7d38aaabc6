package grammar

import (
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// timeForm is one row of the times.
type timeForm struct {
	flag  string
	form  *pattern.Pattern
	opens func() []string // with one of these begins every text of the form
}

func newTimeForm(flag, expression string) timeForm {
	return timeForm{flag, pattern.Longest("^(?:" + expression + ")"), sync.OnceValue(func() []string {
		parsed, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			panic(err) // embedded
		}
		return openings(parsed)
	})}
}

// mayOpen reports whether a line may begin with the form. Most don't, and it is much
// cheaper to see than to run the expression.
func (f timeForm) mayOpen(line string) bool {
	return slices.ContainsFunc(f.opens(), func(opening string) bool {
		return strings.HasPrefix(line, strings.TrimSuffix(opening, anything))
	})
}

// anything ends an opening after which there may be anything.
const anything = "\x00"

// openings returns the beginnings of what an expression matches.
func openings(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}
	case syntax.OpCapture, syntax.OpPlus:
		return openings(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return openings(re.Sub[0])
		}
	case syntax.OpStar, syntax.OpQuest:
		return append(openings(re.Sub[0]), "")
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			all = append(all, openings(sub)...)
		}
		return all
	case syntax.OpConcat:
		all := []string{""}
		for _, sub := range re.Sub {
			var longer []string
			for _, opening := range all {
				if strings.TrimSpace(opening) != "" {
					longer = append(longer, opening)
					continue
				}
				for _, next := range openings(sub) {
					longer = append(longer, opening+next)
				}
			}
			all = longer
		}
		return all
	case syntax.OpCharClass:
		if re.Rune[len(re.Rune)-1] <= '9' {
			var digits []string
			for i := 0; i < len(re.Rune); i += 2 {
				for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
					digits = append(digits, string(r))
				}
			}
			return digits
		}
	}
	return []string{anything}
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
		if !f.mayOpen(line) {
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
