package router

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Split cuts a Markdown text into parts of at most limit UTF-16 units: between
// paragraphs if it can, else between lines, sentences or words, never inside of
// a character. A code fence that has to be cut is closed and opened again. A
// limit of 0 cuts nothing.
func Split(text string, limit int) []string {
	if limit <= 0 || units(text) <= limit {
		return []string{text}
	}
	var parts []string
	fence := "" // the line that opened the fence the rest begins in
	for units(text) > 0 {
		opening, room := "", limit
		if fence != "" {
			opening = fence + "\n"
			room -= units(opening)
		}
		if units(text) <= room {
			parts = append(parts, opening+text)
			break
		}
		cut := cutAt(text, room-units("\n```"))
		head := text[:cut]
		rest := strings.TrimLeft(text[cut:], "\n")
		open := openFence(opening + head)
		if open != "" {
			parts = append(parts, strings.TrimRight(opening+head, "\n")+"\n"+closing(open))
		} else {
			parts = append(parts, strings.TrimSpace(opening+head))
			rest = strings.TrimLeft(rest, " ")
		}
		// A fence line that leaves no room for text is not worth repeating.
		if fence = open; units(fence) > limit/2 {
			fence = closing(fence)
		}
		text = rest
	}
	return parts
}

// cutAt is the byte offset of the best place to cut within room units.
func cutAt(text string, room int) int {
	end, n := 0, 0
	for i, r := range text {
		if n += utf16.RuneLen(r); n > room {
			end = i
			break
		}
	}
	if end == 0 { // not even one character fits: take one all the same
		_, size := utf8.DecodeRuneInString(text)
		return size
	}
	for _, mark := range []string{"\n\n", "\n", ". ", " "} {
		if i := strings.LastIndex(text[:end], mark); i > end/3 {
			if i += len(mark); openFence(text[:i]) == "" || mark == "\n" || mark == "\n\n" {
				return i
			}
		}
	}
	return end
}

// openFence is the line that opened the code fence which text ends in; empty if
// it ends outside.
func openFence(text string) string {
	open := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		mark := strings.TrimLeft(line, " ")
		switch {
		case len(line)-len(mark) > 3 || !strings.HasPrefix(mark, "```") && !strings.HasPrefix(mark, "~~~"):
		case open == "":
			open = mark
		case strings.HasPrefix(mark, closing(open)) && strings.Trim(mark, open[:1]) == "":
			open = ""
		}
	}
	return open
}

// closing is the line that closes a fence.
func closing(open string) string {
	return open[:len(open)-len(strings.TrimLeft(open, open[:1]))]
}

func units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
