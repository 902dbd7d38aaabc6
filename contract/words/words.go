// Package words translates what the kernel and the built-in extensions say to people.
// English is in the code and is the key; each other language is one file <tag>.po in
// this directory, with the plural forms that its header declares. A text that a file
// lacks is English; a test finds those.
//
// Texts for models, logs and the command line are English only. Errors and states are
// stored and cross processes in English; Translate finds the text that they were made
// from, if it was made with Errorf or Sprintf.
package words

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/leonelquinteros/gotext"
)

//go:embed *.po
var files embed.FS

// catalog holds the texts of one language.
type catalog struct {
	po    gotext.Translator
	forms func() []form
}

// catalogs has the languages. A file is parsed when its language is first used.
var catalogs = load(files)

// load returns the languages of a directory, by tag.
func load(dir fs.FS) map[string]func() *catalog {
	all := map[string]func() *catalog{}
	names, err := fs.Glob(dir, "*.po")
	if err != nil {
		panic(err) // the pattern is valid
	}
	for _, name := range names {
		all[strings.TrimSuffix(name, path.Ext(name))] = sync.OnceValue(func() *catalog {
			text, err := fs.ReadFile(dir, name)
			if err != nil {
				panic(err) // it is part of the program
			}
			po := gotext.NewPo()
			po.Parse(text)
			return &catalog{po, sync.OnceValue(func() []form { return formsOf(po) })}
		})
	}
	return all
}

// Say formats a text in a language, an IETF tag such as ru or ru-RU; in English if it
// is empty or unknown. It is safe for concurrent use.
func Say(language, text string, args ...any) string {
	if c := find(language); c != nil && text != "" { // the empty text is a file's header
		text = c.po.Get(text)
	}
	return format(text, args)
}

// Count is Say for a text whose form depends on n, which is not itself an argument.
func Count(language, one, other string, n int, args ...any) string {
	text := other
	if c := find(language); c != nil {
		text = c.po.GetN(one, other, n)
	} else if n == 1 {
		text = one
	}
	return format(text, args)
}

func format(text string, args []any) string {
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// Languages returns the tags of the languages other than English, sorted.
func Languages() []string { return slices.Sorted(maps.Keys(catalogs)) }

// Means reports whether a person's text is an English text or a translation of it.
func Means(given, english string) bool {
	given = strings.TrimSpace(given)
	return strings.EqualFold(given, english) || slices.ContainsFunc(Languages(), func(language string) bool {
		return strings.EqualFold(given, Say(language, english))
	})
}

// find returns the texts of a language; nil: it is English or unknown.
func find(language string) *catalog {
	if language == "" {
		return nil
	}
	base, _, _ := strings.Cut(strings.ReplaceAll(language, "_", "-"), "-")
	if parsed := catalogs[strings.ToLower(base)]; parsed != nil {
		return parsed()
	}
	return nil
}

// List joins items for a sentence, of which it shows at most a number.
func List(language string, items []string, most int) string {
	text := strings.Join(items[:min(len(items), most)], ", ")
	if more := len(items) - most; more > 0 {
		text += Say(language, " and %d more", more)
	}
	return text
}

// maxQuote is the longest Quote, in characters.
const maxQuote = 60

// Quote is the beginning of a text in quotation marks, in one line.
func Quote(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxQuote {
		text = strings.TrimSpace(string(r[:maxQuote])) + "..."
	}
	return "“" + text + "”"
}

// Printable removes control characters from a text of others, and those that people don't
// see: strings.Map(words.Printable, text). Line breaks and tabs become spaces.
func Printable(c rune) rune {
	switch {
	case c == '\n' || c == '\t':
		return ' '
	case c == utf8.RuneError || unicode.IsControl(c) || unicode.Is(unicode.Cf, c) && c != '\u200d':
		return -1
	}
	return c
}
