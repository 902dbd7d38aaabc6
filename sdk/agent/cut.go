package agent

import (
	"fmt"
	"unicode/utf8"
)

// cutText cuts text to limit bytes, including a note about the cut.
func cutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	note := fmt.Sprintf("\n[cut: %d bytes in all, the rest is not shown]", len(text))
	return cutBytes(text, max(0, limit-len(note))) + note
}

// cutBytes returns the longest prefix of whole characters within limit bytes.
func cutBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// cutRunes returns the first n characters of text.
func cutRunes(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
