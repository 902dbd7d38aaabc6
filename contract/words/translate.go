package words

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leonelquinteros/gotext"
)

// Errorf is fmt.Errorf for an error that Translate can translate. The verbs %w and %v
// are for texts that Translate translates too; other verbs are for names and values.
func Errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// Sprintf is Errorf for a text that is no error.
func Sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// Translate translates an English text that was made with Errorf or Sprintf. One that
// the language lacks stays as it is. A name before it, with a colon, stays
// too. Lines, and texts that semicolons join, are translated one by one.
func Translate(language, text string) string {
	c := find(language)
	if c == nil {
		return text
	}
	text, _ = c.translate(language, text)
	return text
}

// item begins an item of a list.
const item = "- "

// translate also returns how much of the text it knows.
func (c *catalog) translate(language, text string) (translated string, known int) {
	if parts := spanParts(text); parts != nil {
		return c.translateAll(language, parts, " ")
	}
	if at, ok := translateTime(language, text); ok {
		return at, len(text)
	}
	found := false
	for _, f := range c.forms() { // of several that fit, the one whose arguments are known too
		if args, ok := match(text, f.literals); ok && f.fits(args) {
			if t, n := f.render(c, language, args); !found || n > known {
				translated, known, found = t, n, true
			}
		}
	}
	if found {
		return translated, known
	}
	if name, rest, ok := strings.Cut(text, ": "); ok && !strings.ContainsAny(name, " \n") {
		rest, known = c.translate(language, rest)
		return name + ": " + rest, known
	}
	for _, separator := range []string{"\n", "; "} {
		if parts := strings.Split(text, separator); len(parts) > 1 {
			return c.translateAll(language, parts, separator)
		}
	}
	if rest, ok := strings.CutPrefix(text, item); ok {
		rest, known = c.translate(language, rest)
		return item + rest, known
	}
	return text, 0
}

func (c *catalog) translateAll(language string, parts []string, separator string) (translated string, known int) {
	for i, part := range parts {
		t, n := c.translate(language, part)
		parts[i], known = t, known+n
	}
	return strings.Join(parts, separator), known
}

// form is an English format and its translation.
type form struct {
	literals    []string // the text between the verbs
	verbs       []string
	translation *gotext.Translation
	plural      func(n int) string // nil: there is one form
}

var verb = regexp.MustCompile(`%(\[\d+\])?[a-z%]`)

// formsOf returns the formats of a language, those with the longest literals first.
func formsOf(po gotext.Translator) (all []form) {
	for english, t := range po.GetDomain().GetTranslations() {
		if english == "" {
			continue
		}
		if t.PluralID == "" {
			all = append(all, newForm(english, t))
			continue
		}
		for _, format := range []string{english, t.PluralID} {
			f := newForm(format, t)
			f.plural = func(n int) string { return po.GetN(english, t.PluralID, n) }
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b form) int {
		x, y := strings.Join(a.literals, ""), strings.Join(b.literals, "")
		return cmp.Or(cmp.Compare(len(y), len(x)), cmp.Compare(x, y))
	})
	return all
}

// leastLiteral is how much text a format has beside what may be anything: a shorter one
// fits by chance.
const leastLiteral = 6

// fits reports whether a text that matches was surely made from the format.
func (f form) fits(args []string) bool {
	literal := len(strings.Join(f.literals, ""))
	for i, v := range f.verbs {
		if v == "%d" {
			if _, err := strconv.ParseInt(args[i], 10, 64); err != nil {
				return false
			}
		} else if literal < leastLiteral {
			return false
		}
	}
	return true
}

func newForm(format string, t *gotext.Translation) form {
	const percent = "\x00"
	format = strings.NewReplacer("%%", percent, "%q", `"%s"`).Replace(format)
	f := form{verbs: verb.FindAllString(format, -1), translation: t}
	for _, literal := range verb.Split(format, -1) {
		f.literals = append(f.literals, strings.ReplaceAll(literal, percent, "%"))
	}
	return f
}

// match returns the parts of a text between literals that begin and end it.
func match(text string, literals []string) (args []string, ok bool) {
	rest, ok := strings.CutPrefix(text, literals[0])
	if !ok {
		return nil, false
	}
	if literals = literals[1:]; len(literals) == 0 {
		return nil, rest == ""
	}
	if len(literals) == 1 {
		arg, ok := strings.CutSuffix(rest, literals[0])
		return []string{arg}, ok
	}
	for from := 0; ; {
		i := strings.Index(rest[from:], literals[0])
		if i < 0 {
			return nil, false
		}
		from += i
		if more, ok := match(rest[from:], literals); ok {
			return append([]string{rest[:from]}, more...), true
		}
		if from++; from > len(rest) {
			return nil, false
		}
	}
}

// render puts arguments, which are texts, into the translation. It returns how much of
// the English text it knows.
func (f form) render(c *catalog, language string, args []string) (text string, known int) {
	text, known = f.translation.Get(), len(strings.Join(f.literals, ""))
	if f.plural != nil {
		n := 0
		if i := slices.Index(f.verbs, "%d"); i >= 0 {
			n, _ = strconv.Atoi(args[i])
		}
		text = f.plural(n)
	}
	next := 0
	text = verb.ReplaceAllStringFunc(text, func(v string) string {
		if v == "%%" {
			return "%"
		}
		i := next
		next++
		if of, named := strings.CutPrefix(v, "%["); named {
			n, _ := strconv.Atoi(of[:strings.IndexByte(of, ']')])
			i = n - 1
		}
		if i < 0 || i >= len(args) {
			return v
		}
		switch v[len(v)-1] {
		case 'w', 'v':
			arg, n := c.translate(language, args[i])
			known += n
			return arg
		case 'q':
			return `"` + args[i] + `"`
		}
		return args[i]
	})
	return text, known
}
