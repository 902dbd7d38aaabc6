package markdown

import "strings"

// style is a set of text attributes.
type style uint8

const (
	bold style = 1 << iota
	italic
	underline
	strike
	faint
	code
	accent
)

var sequences = [...]struct {
	style style
	code  string
}{{bold, "1"}, {faint, "2"}, {italic, "3"}, {underline, "4"}, {strike, "9"}, {code, "36"}, {accent, "35"}}

// paint wraps s into the sequences of st.
func paint(s string, st style, color bool) string {
	if !color || st == 0 || s == "" {
		return s
	}
	if st&code != 0 {
		st &^= accent
	}
	var codes []string
	for _, q := range sequences {
		if st&q.style != 0 {
			codes = append(codes, q.code)
		}
	}
	return "\x1b[" + strings.Join(codes, ";") + "m" + s + "\x1b[0m"
}
