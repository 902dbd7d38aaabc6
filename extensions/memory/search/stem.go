package search

import (
	"slices"
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"
	"github.com/kljensen/snowball/russian"
	"golang.org/x/text/unicode/norm"
)

// maxWord is the most letters of a word that are looked at.
const maxWord = 64

// Stems are the words of a text, each once, reduced to what their forms have in
// common, without those that carry no meaning unless there are no others.
func Stems(text string) []string { return stems(text, stem) }

func stems(text string, stem func(word string) stemmed) []string {
	var stems, empty []string
	for word := range words(text) {
		if s := stem(word); s.meaning {
			stems = append(stems, s.text)
		} else {
			empty = append(empty, s.text)
		}
	}
	if len(stems) == 0 {
		stems = empty
	}
	slices.Sort(stems)
	return slices.Clip(slices.Compact(stems))
}

// stemmed is a word without its endings, and whether it carries a meaning.
type stemmed struct {
	text    string
	meaning bool
}

var same = strings.NewReplacer("ё", "е", "’", "'", "_", " ")

// words are the runs of letters and digits, in lower case.
func words(text string) func(yield func(string) bool) {
	text = same.Replace(strings.ToLower(norm.NFC.String(text)))
	return func(yield func(string) bool) {
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
			return r != '\'' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
		}) {
			if word = strings.Trim(word, "'"); word == "" {
				continue
			}
			if runes := []rune(word); len(runes) > maxWord {
				word = string(runes[:maxWord])
			}
			if !yield(word) {
				return
			}
		}
	}
}

func stem(word string) stemmed {
	if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }) {
		return stemmed{strings.Clone(russian.Stem(word, true)), !russian.IsStopWord(word) && !russianAlso[word]}
	}
	return stemmed{strings.Clone(english.Stem(word, true)), !english.IsStopWord(word) && !englishAlso[word]}
}

// Words of questions and requests that the lists of the library leave out.
var (
	englishAlso = set("i'm", "i've", "i'd", "i'll", "it's", "what's", "that's", "there's", "he's", "she's", "don't", "doesn't", "didn't", "isn't", "aren't", "can't", "won't",
		"please", "tell", "know", "remember", "us", "would", "could", "shall", "should", "hi", "hello", "hey", "thanks", "ok")
	russianAlso = set("это", "этот", "эта", "эти", "этом", "этого", "мой", "моя", "мое", "мои", "моего", "моей", "моем", "мне", "меня", "мной", "твой", "наш", "наша",
		"пожалуйста", "скажи", "расскажи", "помнишь", "знаешь", "запомни", "привет", "спасибо", "который", "которая", "которые", "про", "обо", "очень", "тебя", "тебе")
)

func set(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// Shared is which part of its words the text that has fewer shares with the
// other: 1 if all.
func Shared(a, b string) float64 {
	x, y := Stems(a), Stems(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	n := 0
	for _, s := range x {
		if _, found := slices.BinarySearch(y, s); found {
			n++
		}
	}
	return float64(n) / float64(max(1, len(x)))
}
