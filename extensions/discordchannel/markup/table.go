package markup

import (
	"strings"

	extast "github.com/yuin/goldmark/extension/ast"

	"github.com/switchboard-run/switchboard/sdk/table"
)

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
	bared := make([][]string, len(rows))
	for i, cells := range rows {
		for _, cell := range cells {
			bared[i] = append(bared[i], bare(cell))
		}
	}
	text, fits := table.Align(bared, t.Alignments)
	if !fits {
		e.replace(from, to, asList(rows))
		return
	}
	e.replace(from, to, "```\n"+text+"\n```")
}

// bare returns a cell without the marks of formats, which code would show.
func bare(cell string) string {
	return strings.NewReplacer("**", "", "__", "", "~~", "", "`", "", `\|`, "|", "||", "| |").Replace(cell)
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
