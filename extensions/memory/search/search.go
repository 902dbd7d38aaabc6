// Package search finds texts by their words in any form: "чайнику" finds
// "чайник", "reminders" finds "remind". English and Russian words are reduced to
// their stems by the Snowball algorithms. Stop words ("the", "что") count only if
// a query has no others. A word that no text has also matches words with the same
// beginning.
//
// Texts with more, and rarer, words of the query rank first. The length of a text
// and the number of times it has a word don't matter, so that two statements
// about one thing rank equally, and the caller's order decides between them.
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
	known map[string]stemmed             // cache of stems by word
}

// maxKnown is the most words in the cache of stems.
const maxKnown = 50_000

// New returns an empty index.
func New() *Index {
	return &Index{texts: map[string][]string{}, stems: map[string]map[string]struct{}{}, known: map[string]stemmed{}}
}

// Len returns the number of texts.
func (x *Index) Len() int { return len(x.texts) }

// Set adds a text, or replaces the text with the same id.
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

// stem is the cached function stem: texts repeat the same words.
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

// Remove removes a text.
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

// Hit is a search result. Within one query, a higher score is better; a text with
// all words has score 1.
type Hit struct {
	ID    string
	Score float64
}

// prefixWeight is the weight of a word that only has the same beginning.
const prefixWeight = 0.5

// minPrefix is the number of letters that two words with the same beginning share
// at least.
const minPrefix = 4

// Find returns the texts that have a word of the query, the best first. Hits with
// the same score are in the order of compare.
func (x *Index) Find(query string, compare func(a, b string) int) []Hit {
	scores := map[string]float64{}
	total := 0.0
	for _, s := range Stems(query) {
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
		for _, other := range x.samePrefix(s) {
			for id := range x.stems[other] {
				found[id] = struct{}{}
			}
		}
		for id := range found {
			scores[id] += prefixWeight * x.weight(len(found))
		}
	}
	hits := make([]Hit, 0, len(scores))
	for id, score := range scores {
		hits = append(hits, Hit{id, math.Round(score/total*1e6) / 1e6})
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), compare(a.ID, b.ID))
	})
	return hits
}

// weight is the weight of a word that n texts have: the inverse document
// frequency of BM25.
func (x *Index) weight(n int) float64 {
	return math.Log(1 + (float64(len(x.texts)-n)+0.5)/(float64(n)+0.5))
}

// samePrefix returns the stems that are a prefix of s, or that have s as a prefix.
func (x *Index) samePrefix(s string) (found []string) {
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
