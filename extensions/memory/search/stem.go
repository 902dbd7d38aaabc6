package search

import (
	"slices"
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"
	"github.com/kljensen/snowball/russian"
	"golang.org/x/text/unicode/norm"
)

// maxWord is the most letters of a word that count.
const maxWord = 64

// Stems returns the stems of a text's words, sorted and each once. Stop words are
// included only if there are no others.
func Stems(text string) []string { return stems(text, stem) }

func stems(text string, stem func(word string) stemmed) []string {
	var stems, stop []string
	for word := range words(text) {
		if s := stem(word); s.stop {
			stop = append(stop, s.text)
		} else {
			stems = append(stems, s.text)
		}
	}
	if len(stems) == 0 {
		stems = stop
	}
	slices.Sort(stems)
	return slices.Clip(slices.Compact(stems))
}

// Stem returns the stem of one word, and whether it is a stop word.
func Stem(word string) (text string, stop bool) {
	for w := range words(word) {
		s := stem(w)
		return s.text, s.stop
	}
	return "", false
}

// stemmed is the stem of a word.
type stemmed struct {
	text string
	stop bool // a stop word
}

var same = strings.NewReplacer("ё", "е", "’", "'", "_", " ")

// words yields the words of a text in lower case.
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
		return stemmed{strings.Clone(russian.Stem(word, true)), russian.IsStopWord(word) || russianStop[word]}
	}
	return stemmed{strings.Clone(english.Stem(word, true)), english.IsStopWord(word) || englishStop[word]}
}

// Stop words of questions and requests that the library lacks.
var (
	englishStop = set("i'm", "i've", "i'd", "i'll", "it's", "what's", "that's", "there's", "he's", "she's", "don't",
		"doesn't", "didn't", "isn't", "aren't", "can't", "won't",
		"please", "tell", "know", "remember", "us", "would", "could", "shall", "should", "hi", "hello", "hey", "thanks",
		"ok")
	russianStop = set("это", "этот", "эта", "эти", "этом", "этого", "мой", "моя", "мое", "мои", "моего", "моей", "моем",
		"мне", "меня", "мной", "твой", "наш", "наша",
		"пожалуйста", "скажи", "расскажи", "помнишь", "знаешь", "запомни", "привет", "спасибо", "который", "которая",
		"которые", "про", "обо", "очень", "тебя", "тебе")
)

func set(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// Overlap returns the share of the shorter text's words that the other text has,
// from 0 to 1.
func Overlap(a, b string) float64 {
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
