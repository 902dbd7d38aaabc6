package contract

import (
	"slices"
	"strings"
	"unicode"
)

// fillers are letters and symbols that are shown as nothing: of Hangul, and of
// Braille.
var fillers = []rune{'\u115f', '\u1160', '\u2800', '\u3164', '\uffa0'}

// Blank reports whether a text shows nothing: it is empty, or has only spaces, control
// and format characters (such as a zero-width space), marks without a base and
// fillers. A message with it would be an empty bubble, and some platforms refuse it.
func Blank(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S, unicode.Co) && !slices.Contains(fillers, r)
	})
}
