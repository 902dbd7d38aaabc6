package grammar

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

type kind uint8

const (
	word kind = iota
	quoted
	colon
	comma
	stop
	dash
	other
)

// token is a piece of the text.
type token struct {
	kind       kind
	start, end int    // byte offsets in the text
	norm       string // the normalized form, for comparisons
	glued      bool   // no space before it
}

// scan is the state of parsing one text.
type scan struct {
	text    string
	toks    []token
	now     time.Time
	names   []name
	lang    Language
	line    string  // the words, as the forms of times see them
	offsets []int   // of the tokens in the line
	old     *Timing // of the reminder to move
	asked   bool    // the text ends with a question mark
	wakes   bool    // a time of day is in the morning, unless it says otherwise
	later   bool    // a time of day that has passed is tomorrow's
}

func newScan(text string, now time.Time, names []string) *scan {
	s := &scan{text: text, toks: tokenize(text), now: now, lang: scriptOf(text),
		asked: strings.HasSuffix(strings.TrimSpace(text), "?")}
	s.lay()
	for _, n := range names {
		if n := newName(n); len(n.words) > 0 {
			s.names = append(s.names, n)
		}
	}
	return s
}

// lay writes the line.
func (s *scan) lay() {
	var line strings.Builder
	s.offsets = make([]int, 0, len(s.toks)+1)
	for _, t := range s.toks {
		s.offsets = append(s.offsets, line.Len())
		line.WriteString(" " + cmp.Or(t.norm, `"`) + " ")
	}
	s.line, s.offsets = line.String(), append(s.offsets, line.Len())
}

// norm normalizes spellings that mean the same.
func norm(s string) string {
	s = strings.ToLower(s)
	s = strings.ReplaceAll(strings.ReplaceAll(s, "ё", "е"), "’", "'")
	for _, ending := range languages().phrases["polite_ending"] {
		s = strings.TrimSuffix(s, ending)
	}
	return s
}

var closing = map[rune]string{'"': `"`, '“': "”“\"", '„': "“”\"", '«': "»", '`': "`", '\'': "'", '‘': "’'"}

func tokenize(text string) []token {
	var toks []token
	unclosed := map[rune]bool{} // quotation marks without a closing mark
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if unicode.IsSpace(r) {
			i += n
			continue
		}
		glued := len(toks) > 0 && toks[len(toks)-1].end == i
		if closing[r] != "" && !unclosed[r] {
			if end, ok := quote(text, i, r, n); ok {
				toks = append(toks, token{kind: quoted, start: i, end: end, glued: glued})
				i = end
				continue
			}
			unclosed[r] = true
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' {
			end := wordEnd(text, i)
			toks = append(toks, split(text, i, end, glued)...)
			i = end
			continue
		}
		k := other
		switch r {
		case ':':
			k = colon
		case ',', ';':
			k = comma
		case '.', '!', '?', '…':
			k = stop
		case '-', '–', '—':
			k = dash
		}
		toks = append(toks, token{kind: k, start: i, end: i + n, norm: text[i : i+n], glued: glued})
		i += n
	}
	return toks
}

// quote returns the end of a quotation that starts at i. A single quote opens
// one only if its closing quote ends a word.
func quote(text string, i int, r rune, n int) (int, bool) {
	ends := closing[r]
	for j := i + n; j < len(text); {
		q, m := utf8.DecodeRuneInString(text[j:])
		if strings.ContainsRune(ends, q) && j > i+n {
			if r != '\'' && r != '‘' {
				return j + m, true
			}
			if next, _ := utf8.DecodeRuneInString(text[j+m:]); !unicode.IsLetter(next) && !unicode.IsDigit(next) {
				return j + m, true
			}
		}
		j += m
	}
	return 0, false
}

// wordEnd returns the end of the word at i: letters and digits, joined by an
// apostrophe or hyphen, or between digits by a mark, as in 9:30, 1,5 or 25.12.
func wordEnd(text string, i int) int {
	prev := rune(0)
	for i < len(text) {
		r, n := utf8.DecodeRuneInString(text[i:])
		inWord := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_'
		if !inWord {
			next, _ := utf8.DecodeRuneInString(text[i+n:])
			switch r {
			case '\'', '’', '-':
				inWord = unicode.IsLetter(next) || unicode.IsDigit(next)
			case ':', '.', ',', '/':
				inWord = isDigit(prev) && isDigit(next)
			}
		}
		if !inWord || (r == utf8.RuneError && n <= 1) {
			return i
		}
		prev = r
		i += n
	}
	return i
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// split separates digits from letters (9am, 5min, 1h20m, 25th) in a word that
// starts with a digit.
func split(text string, start, end int, glued bool) []token {
	if !isDigit(rune(text[start])) {
		return []token{{kind: word, start: start, end: end, norm: norm(text[start:end]), glued: glued}}
	}
	var toks []token
	from, digits := start, true
	for i := start; i < end; {
		r, n := utf8.DecodeRuneInString(text[i:])
		if (unicode.IsLetter(r) && digits) || (isDigit(r) && !digits) {
			toks = append(toks, token{kind: word, start: from, end: i, norm: norm(text[from:i]), glued: glued})
			from, digits, glued = i, !digits, true
		}
		i += n
	}
	return append(toks, token{kind: word, start: from, end: end, norm: norm(text[from:end]), glued: glued})
}

// at returns the normalized word at i, or "" if the token is not a word.
func (s *scan) at(i int) string {
	if i < 0 || i >= len(s.toks) || s.toks[i].kind != word {
		return ""
	}
	return s.toks[i].norm
}

func (s *scan) is(i int, k kind) bool { return i >= 0 && i < len(s.toks) && s.toks[i].kind == k }

// words matches the longest phrase of a list at i and returns the index of the
// token after it.
func (s *scan) words(i int, list string) (int, bool) {
	return s.longest(i, slices.Values(languages().phrases[list]))
}

// begins reports whether a phrase of a list is at i.
func (s *scan) begins(i int, list string) bool {
	_, ok := s.words(i, list)
	return ok
}

// longest matches the longest of the phrases at i.
func (s *scan) longest(i int, phrases iter.Seq[string]) (int, bool) {
	best := -1
	for p := range phrases {
		j := i
		fits := true
		for w := range strings.SplitSeq(p, " ") {
			if j >= len(s.toks) || s.toks[j].norm != w || s.toks[j].kind == quoted {
				fits = false
				break
			}
			j++
		}
		if fits && j > best {
			best = j
		}
	}
	return best, best >= 0
}

// oneOf reports whether the word at i is in a list.
func (s *scan) oneOf(i int, list string) bool {
	w := s.at(i)
	return w != "" && slices.Contains(languages().phrases[list], w)
}

// value returns the value of the word at i in a section, 0 if it has none.
func (s *scan) value(section string, i int) int { return languages().values[section][s.at(i)] }

// raw returns the text of the tokens from i up to j, without the quotes if it is
// one quotation.
func (s *scan) raw(i, j int) string {
	if i >= j {
		return ""
	}
	if j-i == 1 && s.toks[i].kind == quoted {
		return s.unquote(i)
	}
	return s.text[s.toks[i].start:s.toks[j-1].end]
}

// blank reports whether a text is empty except for quotes and spaces.
func blank(text string) bool { return strings.Trim(text, " \t\r\n\"'`“”„«»‘’") == "" }

func (s *scan) unquote(i int) string {
	t := s.text[s.toks[i].start:s.toks[i].end]
	_, n := utf8.DecodeRuneInString(t)
	_, m := utf8.DecodeLastRuneInString(t)
	return strings.TrimSpace(t[n : len(t)-m])
}
