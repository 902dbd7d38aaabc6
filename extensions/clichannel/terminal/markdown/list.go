package markdown

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// bullets by depth.
var bullets = [...]string{"•", "◦", "▪"}

func (r *renderer) list(l *ast.List, f frame) {
	depth := 0
	for p := l.Parent(); p != nil; p = p.Parent() {
		if p.Kind() == ast.KindList {
			depth++
		}
	}
	number, cells := l.Start, 2
	if l.IsOrdered() {
		cells = len(fmt.Sprint(l.Start+l.ChildCount()-1)) + 2
	}
	f.tight = l.IsTight
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		marker := bullets[depth%len(bullets)]
		if l.IsOrdered() {
			marker = fmt.Sprintf("%*s", cells-1, fmt.Sprintf("%d%c", number, l.Marker))
			number++
		}
		if item != l.FirstChild() && !f.tight {
			r.emit(&f, []string{""})
		}
		inner := f.inside(paint(marker, accent, r.color)+" ", strings.Repeat(" ", cells), cells)
		before := len(r.lines)
		r.blocks(item, inner)
		if len(r.lines) == before {
			r.emit(&inner, []string{""})
		}
		f.first = f.rest
	}
}
