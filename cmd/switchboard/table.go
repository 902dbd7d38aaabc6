package main

import (
	"fmt"
	"slices"
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
	cutColumn   = 16 // minimal width of another one while there are columns to omit
	leastColumn = 8  // minimal width of a narrowed column
	belowIndent = 4  // of a last column that stands below its row
)

// table prints rows under a header; nothing without rows. The header has the titles, and
// after "|" those of columns that a narrow terminal omits, in this order. On a terminal the
// lines fit: table omits columns, narrows the widest ones and wraps the last one, below
// its row if it is too narrow for that. Otherwise it writes everything.
func (p *printer) table(header string, rows [][]cell) {
	if len(rows) == 0 {
		return
	}
	shown, omissible, _ := strings.Cut(header, "|")
	titles := strings.Fields(shown)
	all := make([][]cell, 1, len(rows)+1)
	for _, title := range titles {
		all[0] = append(all[0], cell{strings.ReplaceAll(title, "_", " "), gray})
	}
	all = append(all, rows...)
	widths := make([]int, len(titles))
	for _, cells := range all {
		for i, c := range cells {
			widths[i] = max(widths[i], markdown.Width(oneLine(c.text)))
		}
	}
	for title := range strings.FieldsSeq(omissible) {
		if p.fits(widths) {
			break
		}
		i := slices.Index(titles, title)
		titles, widths = slices.Delete(titles, i, i+1), slices.Delete(widths, i, i+1)
		for n, cells := range all {
			all[n] = slices.Concat(cells[:i], cells[i+1:])
		}
	}
	last, natural := len(widths)-1, slices.Clone(widths)
	p.narrow(widths)
	below := last > 0 && widths[last] < min(natural[last], wrapColumn)
	if below {
		widths = natural[:last]
		p.narrow(widths)
	}
	for n, cells := range all {
		p.row(cells[:len(widths)], widths)
		if below && n > 0 && cells[last].text != "" {
			for _, s := range markdown.Text(oneLine(cells[last].text), max(p.width-belowIndent, leastColumn)) {
				fmt.Fprintln(p.w, strings.Repeat(" ", belowIndent)+p.paint(cells[last].color, s))
			}
		}
	}
}

// fits reports whether the terminal has room for the columns, with the wide ones narrowed.
func (p *printer) fits(widths []int) bool {
	total := -columnGap
	for i, w := range widths {
		switch {
		case i == len(widths)-1:
			w = min(w, wrapColumn)
		case i > 0:
			w = min(w, cutColumn)
		}
		total += w + columnGap
	}
	return p.width <= 0 || total <= p.width
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
