package grammar

import (
	"maps"
	"slices"
	"sync"
	"unicode/utf8"
)

// corrections are the words whose slips of one letter are corrected, if they have
// enough letters.
var corrections = []struct {
	lists, sections []string
	letters         int
}{
	// Words of times are corrected wherever they are, unless they are other words.
	{[]string{"today", "tomorrow"}, []string{"weekday", "month"}, 6},
	// Commands are corrected in a sentence that is not understood otherwise.
	{[]string{"today", "tomorrow", "remind", "cancel", "move", "postpone", "snooze", "remember", "forget",
		"send", "reminders", "reminder", "commands"}, []string{"weekday", "month", "unit", "part"}, 5},
}

// correctable returns the words of the corrections i.
var correctable = [2]func() []string{
	sync.OnceValue(func() []string { return correctableWords(0) }),
	sync.OnceValue(func() []string { return correctableWords(1) }),
}

func correctableWords(i int) []string {
	c, all := corrections[i], map[string]bool{}
	add := func(phrase string) {
		for _, t := range tokenize(phrase) {
			if utf8.RuneCountInString(t.norm) >= c.letters {
				all[t.norm] = true
			}
		}
	}
	for _, list := range c.lists {
		for _, phrase := range languages().phrases[list] {
			add(phrase)
		}
	}
	for _, section := range c.sections {
		for phrase := range languages().values[section] {
			add(phrase)
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// corrected reads the sentence again with slips of one letter corrected. The reading is
// empty if that does not help.
func (s *scan) corrected(r Reading) Reading {
	if r.Intent != nil && r.Intent.Do != "remind" && r.Intent.Do != "todo" {
		return Reading{}
	}
	for i := range corrections {
		c := s.withCorrections(correctable[i]())
		if c == nil || r.Intent != nil && i > 0 {
			continue
		}
		if better := c.read(); better.Intent != nil && (r.Intent == nil || better.Intent.Do == "remind") ||
			better.Question != nil && better.Question.Reason != Unknown && (r.Question == nil && r.Intent == nil ||
				r.Intent != nil) {
			return better
		}
	}
	return Reading{}
}

func (s *scan) withCorrections(known []string) *scan {
	out := *s
	out.toks = slices.Clone(s.toks)
	changed := false
	for i, t := range out.toks {
		if t.kind != word || utf8.RuneCountInString(t.norm) < 4 || len(t.norm) > 40 || slices.Contains(known, t.norm) ||
			slices.Contains(languages().phrases["no_slip"], t.norm) || languages().values["weekdays"][t.norm] > 0 {
			continue
		}
		if near := slices.IndexFunc(known, func(w string) bool { return slipOf(t.norm, w) }); near >= 0 {
			out.toks[i].norm = known[near]
			changed = true
		}
	}
	if !changed {
		return nil
	}
	return &out
}

// SameButASlip reports whether two words differ in at most one letter: one more, one
// less, another one, or two in the wrong order.
func SameButASlip(a, b string) bool { return a == b || slipOf(a, b) }

func slipOf(said, meant string) bool {
	a, b := []rune(said), []rune(meant)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}
