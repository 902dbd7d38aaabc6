package index

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/extensions/memory/search"
)

// word is one word of a text.
type word struct {
	start, end int // bytes
	stem       string
	stop       bool // too common to be searched for by itself
}

// splitter finds the words of texts. Texts repeat the same words: it caches stems.
type splitter struct{ known map[string]word }

// maxKnown is the most words in the cache of stems.
const maxKnown = 50_000

func newSplitter() splitter { return splitter{map[string]word{}} }

// each calls f with the words of a text, in their order.
func (p splitter) each(text string, f func(word)) {
	start := -1
	for i, r := range text {
		switch inside := isWord(r); {
		case inside && start < 0:
			start = i
		case !inside && start >= 0:
			p.emit(text, start, i, f)
			start = -1
		}
	}
	if start >= 0 {
		p.emit(text, start, len(text), f)
	}
}

func (p splitter) emit(text string, start, end int, f func(word)) {
	part := text[start:end]
	w, ok := p.known[part]
	if !ok {
		w.stem, w.stop = search.Stem(part)
		w.stem = strings.ReplaceAll(w.stem, "'", "") // it separates words in the index
		if len(p.known) >= maxKnown {
			clear(p.known)
		}
		p.known[strings.Clone(part)] = w
	}
	if w.stem == "" {
		return
	}
	w.start, w.end = start, end
	f(w)
}

// isWord reports whether words have the rune.
func isWord(r rune) bool {
	return r == '\'' || r == '’' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// stems returns the stems of a text in their order, for the index.
func (p splitter) stems(text string) string {
	var b strings.Builder
	p.each(text, func(w word) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.stem)
	})
	return b.String()
}
