// Package markup converts Markdown to what Discord shows of it.
//
// Discord knows most of CommonMark, and shows the rest as it is typed. So a text stays as
// it is, but for: tables, which become aligned monospace, or lists if they are too wide
// for a phone; headings below the third level, which become bold; headings that are
// underlined; images, which become links; links by reference; check boxes; line breaks in
// HTML; and two bars, which would hide the text between them.
//
// Render is safe for concurrent use and has no state.
package markup

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

var newParser = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.TaskList)).Parser()
})

// maxHeading is the lowest level of headings that Discord shows.
const maxHeading = 3

// Render converts a text.
func Render(source string) string {
	source = strings.ToValidUTF8(source, "\uFFFD")
	if !strings.ContainsAny(source, "#|[<=-") {
		return strings.TrimSpace(source)
	}
	e := &edits{source: []byte(source)}
	_ = ast.Walk(newParser().Parse(text.NewReader(e.source)), e.visit)
	return strings.TrimSpace(e.apply())
}

// edits are changes of a source.
type edits struct {
	source []byte
	all    []edit
}

// edit replaces a part of the source.
type edit struct {
	from, to int
	text     string
}

func (e *edits) replace(from, to int, s string) {
	if 0 <= from && from <= to && to <= len(e.source) {
		e.all = append(e.all, edit{from, to, s})
	}
}

// apply returns the changed source. Of edits that overlap the first one counts.
func (e *edits) apply() string {
	slices.SortStableFunc(e.all, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out strings.Builder
	at := 0
	for _, one := range e.all {
		if one.from < at {
			continue
		}
		out.Write(e.source[at:one.from])
		out.WriteString(one.text)
		at = one.to
	}
	out.Write(e.source[at:])
	return out.String()
}

func (e *edits) visit(n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	switch n := n.(type) {
	case *ast.Heading:
		if e.heading(n) {
			return ast.WalkSkipChildren, nil
		}
	case *extast.Table:
		e.table(n)
		return ast.WalkSkipChildren, nil
	case *extast.TaskCheckBox:
		e.checkBox(n)
	case *ast.Image:
		if t, ok := n.FirstChild().(*ast.Text); ok {
			e.cut(t.Segment.Start-2, "!")
		}
		e.resolve(n, string(n.Destination))
	case *ast.Link:
		e.resolve(n, string(n.Destination))
	case *ast.RawHTML:
		e.lineBreak(n)
	case *ast.CodeSpan:
		return ast.WalkSkipChildren, nil
	case *ast.Text:
		e.bars(n.Segment)
	}
	return ast.WalkContinue, nil
}

// cut removes a text at an offset, if it is there.
func (e *edits) cut(at int, s string) {
	if at >= 0 && bytes.HasPrefix(e.source[at:], []byte(s)) {
		e.replace(at, at+len(s), "")
	}
}

// line returns the start of the line of an offset, and its end without the newline.
func (e *edits) line(at int) (from, to int) {
	at = min(at, len(e.source))
	from = bytes.LastIndexByte(e.source[:at], '\n') + 1
	if n := bytes.IndexByte(e.source[at:], '\n'); n >= 0 {
		return from, at + n
	}
	return from, len(e.source)
}

// heading changes a heading that Discord does not show, and reports whether it did.
func (e *edits) heading(h *ast.Heading) bool {
	lines := h.Lines()
	if lines.Len() == 0 || h.Parent().Kind() != ast.KindDocument {
		return false
	}
	first, last := lines.At(0), lines.At(lines.Len()-1)
	from, _ := e.line(first.Start)
	_, to := e.line(max(last.Stop-1, last.Start))
	said := strings.Join(strings.Fields(string(e.source[first.Start:last.Stop])), " ")
	if !strings.HasPrefix(strings.TrimLeft(string(e.source[from:to]), " "), "#") {
		_, end := e.line(min(to+1, len(e.source))) // the line below it
		e.replace(from, end, strings.Repeat("#", h.Level)+" "+said)
		return true
	}
	if h.Level <= maxHeading {
		return false
	}
	e.replace(from, to, "**"+strings.ReplaceAll(said, "**", "")+"**")
	return true
}

func (e *edits) checkBox(n *extast.TaskCheckBox) {
	lines := n.Parent().Lines()
	if lines.Len() == 0 {
		return
	}
	at := lines.At(0).Start
	if at+3 > len(e.source) || e.source[at] != '[' {
		return
	}
	box := "☐"
	if n.IsChecked {
		box = "☑"
	}
	e.replace(at, at+3, box)
}

// resolve gives a link by reference its address.
func (e *edits) resolve(n ast.Node, destination string) {
	last, ok := n.LastChild().(*ast.Text)
	if !ok {
		return
	}
	at := last.Segment.Stop
	if at >= len(e.source) || e.source[at] != ']' || bytes.HasPrefix(e.source[at+1:], []byte("(")) {
		return
	}
	end := at + 1
	if bytes.HasPrefix(e.source[end:], []byte("[")) {
		n := bytes.IndexByte(e.source[end:], ']')
		if n < 0 {
			return
		}
		end += n + 1
	}
	e.replace(at+1, end, "("+destination+")")
}

func (e *edits) lineBreak(n *ast.RawHTML) {
	if n.Segments.Len() != 1 {
		return
	}
	s := n.Segments.At(0)
	switch strings.ToLower(strings.ReplaceAll(string(s.Value(e.source)), " ", "")) {
	case "<br>", "<br/>":
		e.replace(s.Start, s.Stop, "\n")
	}
}

// bars escapes the marks of a hidden text.
func (e *edits) bars(s text.Segment) {
	for at := s.Start; at+1 < s.Stop; at++ {
		if e.source[at] == '|' && e.source[at+1] == '|' && (at == 0 || e.source[at-1] != '\\') {
			e.replace(at, at+2, `\|\|`)
			at++
		}
	}
}
