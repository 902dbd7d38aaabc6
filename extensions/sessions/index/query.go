package index

import (
	"strings"
	"unicode"
)

// query is what a person searches for.
type query struct {
	match string // as SQLite wants it; empty: no words
	stems map[string]bool
	// prefixes are beginnings of words, in lower case.
	prefixes []string
}

// parse reads a query: words, each of which a text must have in any form; "words in
// quotes" must follow one another; a word that ends in * stands for all that begin like it.
// Anything else that people type separates words: no query is wrong.
func (p splitter) parse(text string) query {
	q := query{stems: map[string]bool{}}
	var terms, stops []string
	for i, part := range strings.Split(unquoted.Replace(text), `"`) {
		if i%2 == 1 { // in quotes
			if stems := p.stems(part); stems != "" {
				terms = append(terms, `"`+stems+`"`)
				q.mark(stems)
			}
			continue
		}
		for field := range strings.FieldsSeq(part) {
			term, stop := p.term(field, &q)
			switch {
			case term == "":
			case stop:
				stops = append(stops, term)
			default:
				terms = append(terms, term)
			}
		}
	}
	if len(terms) == 0 { // common words only
		terms = stops
	}
	q.match = strings.Join(terms, " AND ")
	return q
}

// unquoted makes all quotation marks of people the same.
var unquoted = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`)

// term is the part of the expression for a field without spaces, such as kettle, kett* or
// e-mail, and whether it has only common words.
func (p splitter) term(field string, q *query) (term string, stop bool) {
	if prefix, ok := strings.CutSuffix(field, "*"); ok {
		prefix = strings.ToLower(strings.TrimFunc(prefix, func(r rune) bool { return !isWord(r) }))
		if stems := p.stems(prefix); stems != "" && strings.IndexFunc(prefix, notPlain) < 0 {
			// What the index has may be shorter than the beginning: reminder* has the stem remind.
			q.prefixes = append(q.prefixes, prefix)
			q.mark(stems)
			return `("` + prefix + `"* OR "` + stems + `")`, false
		}
	}
	stop = true
	p.each(field, func(w word) { stop = stop && w.stop })
	stems := p.stems(field)
	if stems == "" {
		return "", false
	}
	q.mark(stems)
	return `"` + stems + `"`, stop
}

func (q *query) mark(stems string) {
	for stem := range strings.FieldsSeq(stems) {
		q.stems[stem] = true
	}
}

// has reports whether the query searched for a word of a text.
func (q query) has(text string, w word) bool {
	if q.stems[w.stem] {
		return true
	}
	for _, prefix := range q.prefixes {
		if strings.HasPrefix(strings.ToLower(text[w.start:w.end]), prefix) {
			return true
		}
	}
	return false
}

func notPlain(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
