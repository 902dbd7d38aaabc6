package index

import (
	"strings"
	"unicode"
)

// Snippet is the part of a text that fits a query best.
type Snippet struct {
	Text string
	// Matches are the words that were searched for, as pairs of byte offsets in Text.
	Matches [][2]int
}

const (
	snippetRunes = 240
	beforeRunes  = 80 // at most, in front of the first match
)

// Snippet returns the part of a text that shows what a query found, on one line.
func (x *Index) Snippet(text, words string) Snippet {
	q := x.words.parse(words)
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	var found [][2]int
	x.words.each(text, func(w word) {
		if q.has(text, w) {
			found = append(found, [2]int{w.start, w.end})
		}
	})
	start, end := bounds(text, found)
	s := Snippet{Text: text[start:end]}
	shift := -start
	if start > 0 {
		s.Text = "… " + s.Text
		shift += len("… ")
	}
	if end < len(text) {
		s.Text += " …"
	}
	for _, m := range found {
		if m[0] >= start && m[1] <= end {
			s.Matches = append(s.Matches, [2]int{m[0] + shift, m[1] + shift})
		}
	}
	return s
}

// bounds chooses the part around the match that has the most others after it.
func bounds(text string, found [][2]int) (start, end int) {
	if len(text) <= snippetRunes {
		return 0, len(text)
	}
	best, most := 0, 0
	for i := range found {
		n := 0
		for ; i+n < len(found) && found[i+n][1]-found[i][0] <= snippetRunes-beforeRunes; n++ {
			continue
		}
		if n > most {
			best, most = i, n
		}
	}
	if most > 0 {
		start = back(text, found[best][0], beforeRunes)
	}
	end = forward(text, start, snippetRunes)
	if end == len(text) { // the end of a text shows more of what leads to it
		start = back(text, end, snippetRunes)
	}
	return start, end
}

// back goes back at most n runes, to the beginning of a word.
func back(text string, from, n int) int {
	at := from
	for ; n > 0 && at > 0; n-- {
		at--
		for at > 0 && text[at]&0xC0 == 0x80 {
			at--
		}
	}
	if at == 0 {
		return 0
	}
	if space := strings.IndexFunc(text[at:from], unicode.IsSpace); space >= 0 {
		return at + space + 1
	}
	return at
}

// forward goes on at most n runes, to the end of a word.
func forward(text string, from, n int) int {
	for i := range text[from:] {
		if n--; n < 0 {
			if space := strings.LastIndexFunc(text[from:from+i], unicode.IsSpace); space > i/2 {
				return from + space
			}
			return from + i
		}
	}
	return len(text)
}
