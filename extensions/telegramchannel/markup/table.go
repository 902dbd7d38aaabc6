package markup

import (
	"strings"
	"unicode/utf8"

	"github.com/go-telegram/bot/models"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// A phone shows about this many monospace characters on a line; a wider table becomes
// a list.
const phoneWidth = 42

func (w *writer) table(t *extast.Table) {
	var rows [][]ast.Node
	for r := t.FirstChild(); r != nil; r = r.NextSibling() {
		var cells []ast.Node
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, c)
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 {
		return
	}
	grid := make([][]string, len(rows))
	width := make([]int, len(rows[0]))
	for i, cells := range rows {
		grid[i] = make([]string, len(width))
		for j := range min(len(cells), len(width)) {
			grid[i][j] = w.cellText(cells[j])
			width[j] = max(width[j], utf8.RuneCountInString(grid[i][j]))
		}
	}
	total := 3 * (len(width) - 1)
	for _, n := range width {
		total += n
	}
	if total > phoneWidth && len(rows) > 1 {
		w.tableAsList(rows)
		return
	}
	w.pre(align(grid, width, t.Alignments), "")
}

// cellText returns a cell without formats, on one line.
func (w *writer) cellText(cell ast.Node) string {
	inner := &writer{source: w.source}
	inner.inlines(cell)
	return strings.TrimSpace(strings.ReplaceAll(inner.buf.String(), "\n", " "))
}

func align(grid [][]string, width []int, alignments []extast.Alignment) string {
	var b strings.Builder
	for i, cells := range grid {
		var line strings.Builder
		for j, cell := range cells {
			if j > 0 {
				line.WriteString(" | ")
			}
			pad := strings.Repeat(" ", width[j]-utf8.RuneCountInString(cell))
			if j < len(alignments) && alignments[j] == extast.AlignRight {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		if i == 0 {
			for j, n := range width {
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

// tableAsList writes each row as its first cell and, below it, the other cells with
// their headings.
func (w *writer) tableAsList(rows [][]ast.Node) {
	for _, cells := range rows[1:] {
		for j, cell := range cells {
			if w.cellText(cell) == "" {
				continue
			}
			if j == 0 {
				w.styled(models.MessageEntityTypeBold, func() { w.inlines(cell) })
				w.lines(1)
				continue
			}
			w.write("• ")
			if heading := w.cellText(rows[0][j]); heading != "" {
				w.write(heading + ": ")
			}
			w.inlines(cell)
			w.lines(1)
		}
		w.lines(2)
	}
}
