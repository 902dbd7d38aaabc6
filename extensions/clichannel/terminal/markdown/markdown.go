// Package markdown renders Markdown for a terminal: a list of lines that fit a
// width, styled with ANSI sequences or plain.
//
// Promises: no line is wider than the given width (in cells: wide characters have
// two); each line is self-contained, and styles end with it; no control character
// or escape sequence of the source is passed through. Any text can be rendered,
// including unfinished ones.
//
// The parser is goldmark's. Its extensions are not used: they compile patterns
// at program start, and this package is linked into every extension process.
package markdown

import (
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// MinWidth is the smallest width that Render uses, even for a narrower terminal.
const MinWidth = 8

// maxSource is the size above which a text is shown unrendered: for some texts the
// parser takes quadratic time.
const maxSource = 16 << 10

var newParser = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithInlineParsers(util.Prioritized(strikeParser{}, 500)),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)
})

// Render returns source as lines of at most width cells. Without color it uses
// no escape sequence at all.
func Render(source string, width int, color bool) []string {
	if len(source) > maxSource {
		return Text(source, width)
	}
	source = Clean(source)
	r := &renderer{source: []byte(source), color: color}
	doc := newParser().Parse(text.NewReader(r.source))
	r.blocks(doc, frame{width: max(width, MinWidth)})
	return r.lines
}

// Text returns source unrendered, wrapped to lines of at most width cells.
func Text(source string, width int) []string {
	return wrap([]span{{text: Clean(source)}}, max(width, MinWidth), false)
}

// Clean removes characters that could control a terminal: control characters except
// newline and tab, and characters that reorder text.
func Clean(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return -1
		case r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
}

// renderer collects the lines of one document.
type renderer struct {
	source []byte
	color  bool
	lines  []string
}

// frame is the space of a block: width cells after the prefix.
type frame struct {
	width int
	first string // prefix of the next line
	rest  string // prefix of all following lines
	tight bool   // no empty lines between blocks
}

// inside returns the frame of a block within f whose first line begins with first
// and whose other lines begin with rest, both cells wide. If less than MinWidth
// would be left, nesting is not shown.
func (f frame) inside(first, rest string, cells int) frame {
	if f.width-cells < MinWidth {
		return f
	}
	return frame{width: f.width - cells, first: f.first + first, rest: f.rest + rest, tight: f.tight}
}

// emit adds lines with f's prefixes.
func (r *renderer) emit(f *frame, lines []string) {
	for _, l := range lines {
		r.lines = append(r.lines, strings.TrimRight(f.first+l, " "))
		f.first = f.rest
	}
}

// blocks renders the children of parent, separated by empty lines.
func (r *renderer) blocks(parent ast.Node, f frame) {
	began := false
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindLinkReferenceDefinition {
			continue
		}
		if began && !f.tight {
			r.emit(&f, []string{""})
		}
		before := len(r.lines)
		r.block(n, f)
		if len(r.lines) > before {
			began, f.first = true, f.rest
		}
	}
}

func (r *renderer) block(n ast.Node, f frame) {
	switch n := n.(type) {
	case *ast.Heading:
		style := bold | accent
		if n.Level == 1 {
			style |= underline
		}
		r.emit(&f, wrap(r.inline(n, style), f.width, r.color))
	case *ast.Paragraph, *ast.TextBlock:
		if t, ok := r.table(n.Lines()); ok {
			r.emit(&f, t.render(f.width, r.color))
			return
		}
		r.emit(&f, wrap(r.inline(n, 0), f.width, r.color))
	case *ast.List:
		r.list(n, f)
	case *ast.Blockquote:
		bar := paint("│", faint, r.color) + " "
		r.blocks(n, f.inside(bar, bar, 2))
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		r.emit(&f, r.code(n.Lines(), f.width))
	case *ast.ThematicBreak:
		r.emit(&f, []string{paint(strings.Repeat("─", min(f.width, 40)), faint, r.color)})
	case *ast.HTMLBlock:
		lines := segments(n.Lines(), r.source)
		if n.HasClosure() {
			lines += string(n.ClosureLine.Value(r.source))
		}
		r.emit(&f, wrap([]span{{text: strings.TrimRight(lines, "\n")}}, f.width, r.color))
	default:
		r.blocks(n, f)
	}
}

// code keeps its lines; a line that is too long is split.
func (r *renderer) code(lines *text.Segments, width int) []string {
	source := strings.TrimRight(segments(lines, r.source), "\n")
	var out []string
	for _, l := range wrapHard([]span{{text: source, style: code}}, width-2, r.color) {
		out = append(out, "  "+l)
	}
	return out
}

func segments(lines *text.Segments, source []byte) string {
	var b strings.Builder
	for i := range lines.Len() {
		s := lines.At(i)
		b.Write(s.Value(source))
	}
	return b.String()
}
