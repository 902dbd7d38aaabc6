package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
)

// safeText writes text for people. It drops every character that could control the
// terminal: names, messages, answers of models and manifests are shown as they came.
// The colors of the printer stay.
type safeText struct {
	w     io.Writer
	color bool
}

var colors = regexp.MustCompile(`\x1b\[(39|31|32|33|90)m`)

func (s safeText) Write(b []byte) (int, error) {
	text := string(b)
	var clean strings.Builder
	for s.color {
		at := colors.FindStringIndex(text)
		if at == nil {
			break
		}
		clean.WriteString(markdown.Clean(text[:at[0]]) + text[at[0]:at[1]])
		text = text[at[1]:]
	}
	clean.WriteString(markdown.Clean(text))
	_, err := io.WriteString(s.w, clean.String())
	return len(b), err
}

// safeJSON writes JSON. It writes the characters that safeText would drop, and that
// JSON allows in a string, as escape sequences of JSON: the value stays the same.
type safeJSON struct{ w io.Writer }

func (s safeJSON) Write(b []byte) (int, error) {
	var safe strings.Builder
	for text := string(b); text != ""; {
		r, size := utf8.DecodeRuneInString(text)
		if r >= 0x7f && markdown.Clean(text[:size]) == "" {
			fmt.Fprintf(&safe, `\u%04x`, r)
		} else {
			safe.WriteString(text[:size])
		}
		text = text[size:]
	}
	_, err := io.WriteString(s.w, safe.String())
	return len(b), err
}
