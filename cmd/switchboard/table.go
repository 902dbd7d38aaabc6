package main

import (
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
)

// cell is one field of a table.
type cell struct {
	text  string
	color paint
}

func text(s string) cell { return cell{text: s} }

const (
	columnGap   = 2
	wrapColumn  = 20 // minimal width of a last column that is wrapped
	leastColumn = 8  // minimal width of a narrowed column
)

// table prints rows under a header; nothing without rows. On a terminal it narrows the
// widest columns so that lines fit: it wraps the last one and cuts others. Otherwise it
// writes everything.
func (p *printer) table(header string, rows [][]cell) {
	if len(rows) == 0 {
		return
	}
	var titles []cell
	for title := range strings.FieldsSeq(header) {
		titles = append(titles, cell{strings.ReplaceAll(title, "_", " "), gray})
	}
	all := append([][]cell{titles}, rows...)
	widths := make([]int, len(titles))
	for _, cells := range all {
		for i, c := range cells {
			widths[i] = max(widths[i], markdown.Width(oneLine(c.text)))
		}
	}
	p.narrow(widths)
	for _, cells := range all {
		p.row(cells, widths)
	}
}

// narrow makes the widest columns fit the terminal, except the first: it has the ids for
// commands.
func (p *printer) narrow(widths []int) {
	total := -columnGap
	for _, w := range widths {
		total += w + columnGap
	}
	for ; p.width > 0 && total > p.width; total-- {
		widest := 0
		for i, w := range widths {
			if i > 0 && w > leastColumn && (widest == 0 || w >= widths[widest]) {
				widest = i
			}
		}
		if widest == 0 {
			return
		}
		widths[widest]--
	}
}

func (p *printer) row(cells []cell, widths []int) {
	var b strings.Builder
	last, start, used := len(widths)-1, 0, 0 // used: cells of the line that are not blank
	var more []string
	for i, c := range cells {
		s := oneLine(c.text)
		switch {
		case markdown.Width(s) <= widths[i]:
		case i == last && widths[i] >= wrapColumn:
			lines := markdown.Text(s, widths[i])
			s, more = lines[0], lines[1:]
		default:
			s = cut(s, widths[i])
		}
		if s != "" {
			b.WriteString(strings.Repeat(" ", start-used))
			b.WriteString(p.paint(c.color, s))
			used = start + markdown.Width(s)
		}
		if i < last {
			start += widths[i] + columnGap
		}
	}
	fmt.Fprintln(p.w, b.String())
	for _, s := range more {
		fmt.Fprintln(p.w, strings.Repeat(" ", start)+p.paint(cells[last].color, s))
	}
}

// cut shortens s to a width in cells of the terminal.
func cut(s string, width int) string {
	if markdown.Width(s) <= width {
		return s
	}
	r := []rune(s)
	for len(r) > 0 && markdown.Width(string(r)) > width-1 {
		r = r[:len(r)-1]
	}
	return string(r) + "…"
}
