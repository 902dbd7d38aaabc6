package grammar

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// correctable are the words in which a slip of one letter is corrected: days and
// months anywhere, unless they are other words; commands in a sentence that is not
// understood otherwise.
var correctable = [2]func() []string{
	sync.OnceValue(func() []string { return longWords(6, "today", "tomorrow", "weekday", "month") }),
	sync.OnceValue(func() []string {
		return longWords(5, "today", "tomorrow", "weekday", "month", "unit", "part", "remind", "cancel", "move",
			"postpone", "snooze", "remember", "forget", "send", "reminders", "reminder", "thanks", "greeting", "bye")
	}),
}

// longWords returns the words of lists and sections that have enough letters.
func longWords(letters int, names ...string) []string {
	all := map[string]bool{}
	for _, name := range names {
		phrases := slices.Concat(languages().phrases[name], slices.Collect(maps.Keys(languages().values[name])))
		for word := range strings.FieldsSeq(strings.Join(phrases, " ")) {
			all[word] = utf8.RuneCountInString(word) >= letters
		}
	}
	maps.DeleteFunc(all, func(_ string, long bool) bool { return !long })
	return slices.Sorted(maps.Keys(all))
}

// corrected reads the sentence again with slips of one letter corrected. The reading is
// empty if that does not help.
func (s *scan) corrected(r Reading) Reading {
	if r.Intent != nil && r.Intent.Do != "remind" && r.Intent.Do != "todo" {
		return Reading{}
	}
	for i, words := range correctable {
		c := s.withCorrections(words())
		known := r.Intent != nil || r.Question != nil && r.Question.Reason != Unknown && r.Question.Reason != NotUnderstood
		if c == nil || i > 0 && known {
			continue
		}
		better := c.read()
		if better.Intent != nil || better.Question != nil && (r.Intent != nil || r.Question == nil) {
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
			s.oneOf(i, "no_slip") || s.value("weekdays", i) > 0 {
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
	out.lay()
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
