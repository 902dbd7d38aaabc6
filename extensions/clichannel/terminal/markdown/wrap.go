package markdown

import (
	"strings"

	"github.com/rivo/uniseg"
)

// cell is one visible character.
type cell struct {
	text  string
	width int
	style style
	brk   int // uniseg's line break value after the cell
}

// Width returns the number of cells of s.
func Width(s string) int { return uniseg.StringWidth(s) }

// cells splits spans into characters. Tabs become four spaces.
func cells(spans []span) []cell {
	var (
		all    strings.Builder
		ends   []int // of each span
		styles []style
	)
	for _, s := range spans {
		all.WriteString(strings.ReplaceAll(s.text, "\t", "    "))
		ends, styles = append(ends, all.Len()), append(styles, s.style)
	}
	var (
		out   []cell
		rest  = all.String()
		at    = 0
		i     = 0
		state = -1
	)
	for rest != "" {
		var (
			cluster    string
			boundaries int
		)
		cluster, rest, boundaries, state = uniseg.StepString(rest, state)
		for i < len(ends)-1 && at >= ends[i] {
			i++
		}
		at += len(cluster)
		out = append(out, cell{text: cluster, width: boundaries >> uniseg.ShiftWidth, style: styles[i],
			brk: boundaries & uniseg.MaskLine})
	}
	return out
}

// wrap breaks spans into lines of at most width cells, between words if possible.
func wrap(spans []span, width int, color bool) []string {
	var (
		lines [][]cell
		line  []cell // the current line
		used  int    // its width
		word  []cell // the cells since the last break opportunity
	)
	end := func() {
		lines = append(lines, line)
		line, used = nil, 0
	}
	place := func() { // appends word to the line, or to the next one
		if used > 0 && used+visible(word) > width {
			end()
		}
		for _, c := range word {
			if used+c.width > width && c.text != " " {
				end()
			}
			if used+c.width <= width {
				line, used = append(line, c), used+c.width
			}
		}
		word = nil
	}
	all := cells(spans)
	for i, c := range all {
		if strings.HasSuffix(c.text, "\n") {
			place()
			end()
			continue
		}
		word = append(word, c)
		path := c.text == " " && i+1 < len(all) && all[i+1].text == "/" // may begin a line, unlike in Unicode
		// "/" and "-" never break, which keeps paths, addresses and commands together.
		if path || c.brk != uniseg.LineDontBreak && c.text != "/" && c.text != "-" {
			place()
		}
	}
	place()
	if len(line) > 0 || len(lines) == 0 {
		end()
	}
	return join(lines, color)
}

// wrapHard breaks only full lines, and keeps all spaces.
func wrapHard(spans []span, width int, color bool) []string {
	var (
		lines [][]cell
		line  []cell
		used  int
	)
	for _, c := range cells(spans) {
		newline := strings.HasSuffix(c.text, "\n")
		if newline || used+c.width > width {
			lines, line, used = append(lines, line), nil, 0
		}
		if !newline && c.width <= width {
			line, used = append(line, c), used+c.width
		}
	}
	return join(append(lines, line), color)
}

// visible returns the width of word without trailing spaces.
func visible(word []cell) int {
	n := len(word)
	for n > 0 && word[n-1].text == " " {
		n--
	}
	w := 0
	for _, c := range word[:n] {
		w += c.width
	}
	return w
}

func join(lines [][]cell, color bool) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		for len(l) > 0 && l[len(l)-1].text == " " {
			l = l[:len(l)-1]
		}
		var b, run strings.Builder
		for i, c := range l {
			run.WriteString(c.text)
			if i == len(l)-1 || l[i+1].style != c.style {
				b.WriteString(paint(run.String(), c.style, color))
				run.Reset()
			}
		}
		out = append(out, b.String())
	}
	return out
}
