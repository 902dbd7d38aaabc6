package markup

import (
	"strings"

	"github.com/go-telegram/bot/models"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"

	"github.com/switchboard-run/switchboard/sdk/table"
)

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
	for i, cells := range rows {
		for _, cell := range cells {
			grid[i] = append(grid[i], w.cellText(cell))
		}
	}
	text, fits := table.Align(grid, t.Alignments)
	if !fits {
		w.tableAsList(rows)
		return
	}
	w.pre(text, "")
}

// cellText returns a cell without formats, on one line.
func (w *writer) cellText(cell ast.Node) string {
	inner := &writer{source: w.source}
	inner.inlines(cell)
	return strings.TrimSpace(strings.ReplaceAll(inner.buf.String(), "\n", " "))
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
