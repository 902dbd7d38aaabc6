package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// table is a pipe table; the first row is the header.
type table struct {
	rows [][][]span
	cols int
}

// table parses a paragraph whose second line is a row of dashes.
func (r *renderer) table(lines *text.Segments) (table, bool) {
	if lines.Len() < 2 {
		return table{}, false
	}
	var t table
	for i := range lines.Len() {
		s := lines.At(i)
		row := splitRow(string(s.Value(r.source)))
		if i == 0 {
			t.cols = len(row)
		}
		if i == 1 {
			if len(row) != t.cols || !isRule(row) {
				return table{}, false
			}
			continue
		}
		if i == 0 && t.cols < 2 {
			return table{}, false
		}
		out := make([][]span, t.cols)
		for c := range min(len(row), t.cols) {
			var st style
			if i == 0 {
				st = bold
			}
			out[c] = r.cellText(row[c], st)
		}
		t.rows = append(t.rows, out)
	}
	return t, true
}

// cellText renders the inline Markdown of one table cell.
func (r *renderer) cellText(source string, base style) []span {
	inner := &renderer{source: []byte(source), color: r.color}
	doc := newParser().Parse(text.NewReader(inner.source))
	if p, ok := doc.FirstChild().(*ast.Paragraph); ok && p.NextSibling() == nil {
		return inner.inline(p, base)
	}
	return []span{{source, base}}
}

func splitRow(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = strings.TrimSuffix(line, "|")
	}
	var (
		row  []string
		cell strings.Builder
	)
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == '|':
			cell.WriteByte('|')
			i++
		case line[i] == '|':
			row = append(row, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(line[i])
		}
	}
	return append(row, strings.TrimSpace(cell.String()))
}

func isRule(row []string) bool {
	for _, c := range row {
		c = strings.TrimSuffix(strings.TrimPrefix(c, ":"), ":")
		if c == "" || strings.Trim(c, "-") != "" {
			return false
		}
	}
	return true
}

// render lays out the columns side by side and wraps long cells. A table that is
// too wide becomes one line for each cell.
func (t table) render(width int, color bool) []string {
	const gap = 2
	widths := make([]int, t.cols)
	total := gap * (t.cols - 1)
	for c := range t.cols {
		for _, row := range t.rows {
			widths[c] = max(widths[c], Width(plain(row[c])), 1)
		}
		total += widths[c]
	}
	if room := width - gap*(t.cols-1); room < 4*t.cols {
		return t.stacked(width, color)
	}
	for total > width { // shrink the widest column
		widest := 0
		for c := range t.cols {
			if widths[c] > widths[widest] {
				widest = c
			}
		}
		widths[widest]--
		total--
	}
	var out []string
	for i, row := range t.rows {
		columns, height := make([][]string, t.cols), 1
		bare := make([][]string, t.cols)
		for c := range t.cols {
			columns[c] = wrap(row[c], widths[c], color)
			bare[c] = wrap(row[c], widths[c], false)
			height = max(height, len(columns[c]))
		}
		for l := range height {
			var b strings.Builder
			for c := range t.cols {
				used := 0
				if l < len(columns[c]) {
					b.WriteString(columns[c][l])
					used = Width(bare[c][l])
				}
				if c < t.cols-1 {
					b.WriteString(strings.Repeat(" ", max(0, widths[c]-used)+gap))
				}
			}
			out = append(out, strings.TrimRight(b.String(), " "))
		}
		if i == 0 {
			out = append(out, paint(strings.Repeat("─", min(total, width)), faint, color))
		}
	}
	return out
}

func (t table) stacked(width int, color bool) []string {
	var out []string
	for i, row := range t.rows[1:] {
		if i > 0 {
			out = append(out, "")
		}
		for c := range t.cols {
			line := append(append([]span{}, t.rows[0][c]...), span{text: ": "})
			out = append(out, wrap(append(line, row[c]...), width, color)...)
		}
	}
	return out
}
