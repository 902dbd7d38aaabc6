// Package markdown fits texts in Markdown to the limits of channels: it splits a long
// text, and marks one that may have been sent before.
package markdown

import (
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Split cuts a Markdown text into parts of at most limit UTF-16 units: between
// paragraphs if possible, else between lines, sentences or words, and inside a
// character (a grapheme) only if that alone is too long. A code fence that must be cut
// is closed and opened again, so that each part renders by itself; if the limit leaves
// no room for that, fences are cut like text. White space around a cut is dropped,
// nothing else is. A limit of 0 means no limit.
func Split(text string, limit int) []string {
	if limit <= 0 || Len(text) <= limit {
		return []string{text}
	}
	s := splitter{limit: limit}
	for _, fence := range fenceForm.FindAllString(text, -1) {
		s.reserve = max(s.reserve, len("\n"+fence))
	}
	if 4*s.reserve > limit {
		s.reserve, s.plain = 0, true
	}
	return s.split(text)
}

var fenceForm = regexp.MustCompile("`{3,}|~{3,}")

type splitter struct {
	limit   int
	reserve int  // what closing the longest fence of the text takes
	plain   bool // there is no room for fences
}

func (s *splitter) split(text string) (parts []string) {
	again := "" // the line that opens the fence again which the rest begins in
	for strings.TrimSpace(text) != "" {
		if len(text) <= 3*s.limit { // otherwise it is too long, whatever is in it
			if rest := s.close(again + text); Len(rest) <= s.limit {
				return append(parts, rest)
			}
		}
		cut := s.cut(again, text)
		head, rest := again+text[:cut], text[cut:]
		open := s.open(head)
		if open == "" {
			rest = strings.TrimLeft(rest, "\r\n")
			if !strings.HasSuffix(head, "\n") {
				rest = strings.TrimLeft(rest, " ")
			}
		} else if line, next, _ := strings.Cut(rest, "\n"); strings.HasSuffix(head, "\n") && closes(open, line) {
			open, rest = "", next // closed here, too
		}
		if head = s.close(head); strings.TrimSpace(head) != "" {
			parts = append(parts, head)
		}
		again, text = "", rest
		if open != "" {
			if Len(open) >= s.limit/4 {
				open = closing(open) // its language takes too much room
			}
			again = open + "\n"
		}
	}
	if len(parts) == 0 {
		parts = []string{" "}
	}
	return parts
}

// close closes the fence that a part ends in.
func (s *splitter) close(part string) string {
	if open := s.open(part); open != "" {
		return strings.TrimSuffix(part, "\n") + "\n" + closing(open)
	}
	return strings.TrimRight(part, " \t\r\n")
}

func (s *splitter) open(part string) string {
	if s.plain {
		return ""
	}
	return openFence(part)
}

// cut is the byte offset at which to cut text, which follows the line that opens a
// fence again.
func (s *splitter) cut(again, text string) int {
	room := s.limit - Len(again)
	var paragraph, outside, line, sentence, word int // the last place after one of these
	open := s.open(again)
	at, end, n, began, state := 0, 0, 0, 0, -1
	for rest, c, before := text, "", ""; rest != ""; before = c {
		c, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		ends := c == "\n" || c == "\r\n"
		if n += Len(c); n > room && (!ends || n-Len(c) > room) { // the end of a line is cut off
			break
		}
		at += len(c)
		closable := n <= room-s.reserve
		if closable {
			end = at
		}
		switch {
		case ends:
			full := strings.TrimRight(text[began:at], "\r\n")
			if !s.plain {
				open = after(open, full)
			}
			began = at
			if open == "" {
				outside = at
				if strings.TrimSpace(full) == "" {
					paragraph = at
				}
			}
			if closable {
				line = at
			}
		case c == " " && closable:
			word = at
			if before != "" && strings.Contains(".!?…:;", before) { //nolint:gocritic // argOrder: it is one of these
				sentence = at
			}
		}
	}
	for _, place := range []struct{ at, least int }{
		{paragraph, end / 3}, {outside, end / 2}, {line, end / 3}, {sentence, end / 3}, {word, end / 3},
	} {
		if place.at > place.least {
			return place.at
		}
	}
	if end > 0 {
		return end
	}
	return someRunes(text, room-s.reserve)
}

// someRunes is the longest prefix within room units, of one rune at least.
func someRunes(text string, room int) int {
	end, n := 0, 0
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		if n += utf16.RuneLen(r); n > room && end > 0 {
			break
		}
		end += size
	}
	return end
}

// openFence is the line that opened the code fence which text ends in; empty if
// it ends outside.
func openFence(text string) (open string) {
	for line := range strings.Lines(text) {
		open = after(open, line)
	}
	return open
}

// after is the fence that is open after a line.
func after(open, line string) string {
	switch {
	case open == "":
		return opens(line)
	case closes(open, line):
		return ""
	}
	return open
}

// opens is the line without indentation if it opens a fence.
func opens(line string) string {
	mark := strings.TrimSpace(line)
	if !strings.HasPrefix(mark, "```") && !strings.HasPrefix(mark, "~~~") {
		return ""
	}
	if info := mark[len(closing(mark)):]; mark[0] == '`' && strings.Contains(info, "`") {
		return "" // code within a line
	}
	return mark
}

func closes(open, line string) bool {
	mark := strings.TrimSpace(line)
	return strings.HasPrefix(mark, closing(open)) && strings.Trim(mark, open[:1]) == ""
}

// closing is the line that closes a fence.
func closing(open string) string {
	return open[:len(open)-len(strings.TrimLeft(open, open[:1]))]
}

// Len is the length of a text in UTF-16 units, as limits count it.
func Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
