package markup

import (
	"strings"
	"unicode/utf8"

	extast "github.com/yuin/goldmark/extension/ast"
)

// A phone shows about this many monospace characters on a line; a wider table becomes
// a list.
const phoneWidth = 42

// table replaces a table.
func (e *edits) table(t *extast.Table) {
	from, to := len(e.source), 0
	var rows [][]string
	for r := t.FirstChild(); r != nil; r = r.NextSibling() {
		var cells []string
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			var said strings.Builder
			for i := range c.Lines().Len() {
				s := c.Lines().At(i)
				said.Write(s.Value(e.source))
				start, _ := e.line(s.Start)
				_, end := e.line(s.Stop)
				from, to = min(from, start), max(to, end)
			}
			cells = append(cells, strings.TrimSpace(said.String()))
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 || len(rows[0]) == 0 || from >= to ||
		strings.HasPrefix(strings.TrimSpace(string(e.source[from:to])), ">") {
		return
	}
	widths, total := make([]int, len(rows[0])), 3*(len(rows[0])-1)
	for _, cells := range rows {
		for j := range min(len(cells), len(widths)) {
			widths[j] = max(widths[j], utf8.RuneCountInString(bare(cells[j])))
		}
	}
	for _, n := range widths {
		total += n
	}
	if total > phoneWidth && len(rows) > 1 {
		e.replace(from, to, asList(rows))
		return
	}
	e.replace(from, to, "```\n"+align(rows, widths, t.Alignments)+"\n```")
}

// bare returns a cell without the marks of formats, which code would show.
func bare(cell string) string {
	return strings.NewReplacer("**", "", "__", "", "~~", "", "`", "", `\|`, "|", "||", "| |").Replace(cell)
}

func align(rows [][]string, widths []int, alignments []extast.Alignment) string {
	var b strings.Builder
	for i, cells := range rows {
		var line strings.Builder
		for j, width := range widths {
			cell := ""
			if j < len(cells) {
				cell = bare(cells[j])
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
	return strings.TrimRight(b.String(), "\n")
}

// asList writes each row as its first cell and, below it, the other cells with their
// headings.
func asList(rows [][]string) string {
	var b strings.Builder
	for _, cells := range rows[1:] {
		for j, cell := range cells {
			cell = strings.ReplaceAll(cell, `\|`, "|")
			switch {
			case cell == "":
			case j == 0:
				b.WriteString("**" + strings.ReplaceAll(cell, "**", "") + "**\n")
			case j < len(rows[0]) && rows[0][j] != "":
				b.WriteString("- " + rows[0][j] + ": " + cell + "\n")
			default:
				b.WriteString("- " + cell + "\n")
			}
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
