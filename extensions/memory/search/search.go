// Package search finds texts by their words, whatever their forms: "чайнику"
// finds "чайник", "reminders" finds "remind". Words of English and Russian are
// reduced to their stems by the Snowball algorithms; those that carry no
// meaning of their own ("the", "что") are looked for only if nothing else was
// asked for. A word that is found nowhere stands for those that begin alike.
//
// Texts that have more of the rarer words asked for rank first. Neither the
// length of a text nor how often it says a word counts, so that two statements
// about one thing rank alike, and the caller's order decides between them.
//
// An Index is not safe for concurrent use.
package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Index finds texts by their words.
type Index struct {
	texts map[string][]string            // the stems of each text
	stems map[string]map[string]struct{} // the texts of each stem
	known map[string]stemmed             // words that were reduced before
}

// maxKnown bounds the words whose stems are kept.
const maxKnown = 50_000

// New is an index without any text.
func New() *Index {
	return &Index{texts: map[string][]string{}, stems: map[string]map[string]struct{}{}, known: map[string]stemmed{}}
}

// Len is the number of texts.
func (x *Index) Len() int { return len(x.texts) }

// Set adds a text, or replaces the one of the same id.
func (x *Index) Set(id, text string) {
	x.Remove(id)
	stems := stems(text, x.stem)
	x.texts[id] = stems
	for _, s := range stems {
		of := x.stems[s]
		if of == nil {
			of = make(map[string]struct{}, 1)
			x.stems[s] = of
		}
		of[id] = struct{}{}
	}
}

// stem reduces a word, or remembers how it was: texts say the same words again
// and again.
func (x *Index) stem(word string) stemmed {
	s, ok := x.known[word]
	if !ok {
		s = stem(word)
		if len(x.known) >= maxKnown {
			clear(x.known)
		}
		x.known[strings.Clone(word)] = s
	}
	return s
}

// Remove forgets a text.
func (x *Index) Remove(id string) {
	for _, s := range x.texts[id] {
		if of := x.stems[s]; len(of) == 1 {
			delete(x.stems, s)
		} else {
			delete(of, id)
		}
	}
	delete(x.texts, id)
}

// Hit is a text that was found. Among the hits of one query, a greater score is
// a better one; 1 is that of a text with all words.
type Hit struct {
	ID    string
	Score float64
}

// alike is how much a word that only begins alike counts.
const alike = 0.5

// minPrefix is how many letters two words that begin alike have in common.
const minPrefix = 4

// Find returns the texts that have a word of the query, the best first. Hits of
// the same score are in the order of less.
func (x *Index) Find(query string, less func(a, b string) int) []Hit {
	asked := Stems(query)
	scores := map[string]float64{}
	total := 0.0
	for _, s := range asked {
		of := x.stems[s]
		weight := x.weight(len(of))
		total += weight
		if len(of) > 0 {
			for id := range of {
				scores[id] += weight
			}
			continue
		}
		found := map[string]struct{}{}
		for _, near := range x.near(s) {
			for id := range x.stems[near] {
				found[id] = struct{}{}
			}
		}
		for id := range found {
			scores[id] += alike * x.weight(len(found))
		}
	}
	hits := make([]Hit, 0, len(scores))
	for id, score := range scores {
		hits = append(hits, Hit{id, math.Round(score/total*1e6) / 1e6})
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), less(a.ID, b.ID))
	})
	return hits
}

// weight is what a word tells that stands in n texts: the inverse document
// frequency of BM25.
func (x *Index) weight(n int) float64 {
	return math.Log(1 + (float64(len(x.texts)-n)+0.5)/(float64(n)+0.5))
}

// near are the stems that begin as s does, or s as they do.
func (x *Index) near(s string) (found []string) {
	if utf8.RuneCountInString(s) < minPrefix {
		return nil
	}
	for other := range x.stems {
		if strings.HasPrefix(other, s) || strings.HasPrefix(s, other) && utf8.RuneCountInString(other) >= minPrefix {
			found = append(found, other)
		}
	}
	return found
}
