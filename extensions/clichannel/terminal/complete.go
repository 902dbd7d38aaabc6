package terminal

import (
	"slices"
	"strings"
)

// complete completes a line that ends in a tab, if it is the beginning of a slash
// command: up to the common prefix of all matching commands. If that adds nothing,
// it returns the matching commands as choices. In any other line a tab is text.
func complete(line []rune, cursor int, commands []string) (next []rune, choices []string, changed bool) {
	if cursor != len(line) || cursor < 2 || line[0] != '/' || line[cursor-1] != tabRune {
		return nil, nil, false
	}
	typed := string(line[1 : cursor-1])
	if strings.ContainsFunc(typed, func(r rune) bool { return r == ' ' || r == tabRune || r == breakRune || r == '/' }) {
		return nil, nil, false
	}
	matches := slices.DeleteFunc(slices.Clone(commands), func(c string) bool { return !strings.HasPrefix(c, typed) })
	completed := typed
	if len(matches) > 0 {
		completed = commonPrefix(matches)
	}
	switch {
	case len(matches) == 1:
		completed += " "
	case completed == typed:
		choices = matches
	}
	return []rune("/" + completed), choices, true
}

// commonPrefix returns the longest common prefix of words.
func commonPrefix(words []string) string {
	first, last := slices.Min(words), slices.Max(words)
	n := 0
	for n < min(len(first), len(last)) && first[n] == last[n] {
		n++
	}
	return first[:n]
}
