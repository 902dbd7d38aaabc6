package terminal

import (
	"slices"
	"strings"
)

// completed is the line after a tab that was typed at its end, if all of it is
// the beginning of a slash command: as much longer as all commands agree on. If
// that is no longer, there are choices: the commands that begin like it. In any
// other line a tab is text.
func completed(line []rune, at int, commands []string) (next []rune, choices []string, changed bool) {
	if at != len(line) || at < 2 || line[0] != '/' || line[at-1] != tabRune {
		return nil, nil, false
	}
	typed := string(line[1 : at-1])
	if strings.ContainsFunc(typed, func(r rune) bool { return r == ' ' || r == tabRune || r == breakRune || r == '/' }) {
		return nil, nil, false
	}
	fits := slices.DeleteFunc(slices.Clone(commands), func(c string) bool { return !strings.HasPrefix(c, typed) })
	longer := typed
	if len(fits) > 0 {
		longer = common(fits)
	}
	switch {
	case len(fits) == 1:
		longer += " "
	case longer == typed:
		choices = fits
	}
	return []rune("/" + longer), choices, true
}

// common is what all words begin with.
func common(words []string) string {
	first, last := slices.Min(words), slices.Max(words)
	n := 0
	for n < min(len(first), len(last)) && first[n] == last[n] {
		n++
	}
	return first[:n]
}
