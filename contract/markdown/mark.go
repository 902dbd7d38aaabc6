package markdown

import (
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
)

// Parts are the texts that are sent to a channel with a limit; 0: it has none. Each has
// room for a mark.
func Parts(text string, limit int) []string { return Split(text, roomBesideMark(limit)) }

// Marked is a text that may have been sent before, with the mark that says so in the
// language of its reader. It fits the limit.
func Marked(text string, limit int, language string) string {
	sign := words.Say(language, strings.TrimSpace(contract.RepeatMark))
	const more = "\n…"
	if limit > 0 && Len(text) > roomBesideMark(limit) { // the limit was lowered after the text was split
		text = Split(text, max(roomBesideMark(limit)-Len(more), 1))[0] + more
	}
	if strings.ContainsAny(text[:min(len(text), 1)], "`~#>|*-+=_:0123456789 \t\n") {
		return sign + "\n\n" + text
	}
	return sign + " " + text
}

// roomBesideMark is the longest text that fits a channel's limit with a mark, which
// is on a line of its own before Markdown that must begin a line. No language has a
// longer mark than English.
func roomBesideMark(limit int) int {
	if limit < contract.MinChannelLength {
		return limit
	}
	return limit - Len(contract.RepeatMark) - 1
}
