package coretool

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// maxFound is how many tools a search returns with their schemas.
const maxFound = 10

// Found is a tool as find_tools returns it.
type Found struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	score       int
}

// Find returns the tools that fit a query. Those that fit best come first, maxFound of
// them with their schemas. If none fits, it returns all of them without schemas.
func Find(query string, all []Found) []Found {
	words := strings.FieldsFunc(strings.ToLower(query), notWord)
	for i := range all {
		all[i].score = score(&all[i], words)
	}
	slices.SortStableFunc(all, func(a, b Found) int { return cmp.Compare(b.score, a.score) })
	fit := slices.IndexFunc(all, func(f Found) bool { return f.score == 0 })
	if fit > 0 {
		all = all[:fit]
	}
	for i := range all {
		if fit == 0 || i >= maxFound {
			all[i].Schema = nil
		}
	}
	return all
}

// score rates how well a tool fits words: those in its name count most.
func score(t *Found, words []string) (score int) {
	names, about := strings.FieldsFunc(strings.ToLower(t.Name), notWord), strings.ToLower(t.Description)
	for _, word := range words {
		switch {
		case slices.ContainsFunc(names, func(n string) bool { return alike(n, word) }):
			score += 4
		case len(word) > 2 && strings.Contains(about, strings.TrimSuffix(word, "s")):
			score++
		}
	}
	return score
}

// alike reports whether two words are equal, or one begins with the other.
func alike(a, b string) bool {
	return a == b || min(len(a), len(b)) > 2 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

func notWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
