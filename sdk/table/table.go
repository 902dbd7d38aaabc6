// Package table writes the tables of a text for platforms that have none.
package table

import (
	"strings"
	"unicode/utf8"

	extast "github.com/yuin/goldmark/extension/ast"
)

// phoneWidth is about how many monospaced characters a phone shows on a line.
const phoneWidth = 42

// Align returns rows, the first of which has the headings, as columns for a monospaced
// font. It reports false if a phone could not show that: write a list then. All rows have
// as many columns as the first one.
func Align(rows [][]string, alignments []extast.Alignment) (text string, fits bool) {
	widths := make([]int, len(rows[0]))
	for _, cells := range rows {
		for j := range min(len(cells), len(widths)) {
			widths[j] = max(widths[j], utf8.RuneCountInString(cells[j]))
		}
	}
	total := 3 * (len(widths) - 1)
	for _, n := range widths {
		total += n
	}
	if total > phoneWidth && len(rows) > 1 {
		return "", false
	}
	var b strings.Builder
	for i, cells := range rows {
		var line strings.Builder
		for j, width := range widths {
			cell := ""
			if j < len(cells) {
				cell = cells[j]
			}
			if j > 0 {
				line.WriteString(" | ")
			}
			pad := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
			if j < len(alignments) && alignments[j] == extast.AlignRight {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		if i == 0 {
			for j, n := range widths {
				if j > 0 {
					b.WriteString("-+-")
				}
				b.WriteString(strings.Repeat("-", n))
			}
			b.WriteString("\n")
		}
	}
	return strings.TrimRight(b.String(), "\n"), true
}
