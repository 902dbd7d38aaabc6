package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// span is a piece of text in one style.
type span struct {
	text  string
	style style
}

// inline returns the text of a block's children.
func (r *renderer) inline(parent ast.Node, base style) []span {
	var out []span
	add := func(s string, st style) {
		if s != "" {
			out = append(out, span{Clean(s), st})
		}
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			add(unescape(n.Value(r.source), n.IsRaw()), base)
			switch {
			case n.HardLineBreak(), n.SoftLineBreak():
				add("\n", base) // line breaks in chat messages are intended
			}
		case *ast.String:
			add(string(n.Value), base)
		case *ast.CodeSpan:
			s := strings.ReplaceAll(r.raw(n), "\n", " ")
			if !r.color {
				s = "`" + s + "`"
			}
			add(s, base|code)
		case *ast.Emphasis:
			st := italic
			if n.Level >= 2 {
				st = bold
			}
			out = append(out, r.inline(n, base|st)...)
		case *strikeNode:
			out = append(out, r.inline(n, base|strike)...)
		case *ast.Link:
			label := r.inline(n, base|underline)
			out = append(out, label...)
			if target := string(n.Destination); target != "" && target != plain(label) && "mailto:"+plain(label) != target {
				add(" ("+target+")", base|faint)
			}
		case *ast.Image:
			label := r.inline(n, base|italic)
			out = append(out, label...)
			add(" ("+string(n.Destination)+")", base|faint)
		case *ast.AutoLink:
			add(string(n.Label(r.source)), base|underline)
		case *ast.RawHTML:
			add(segments(n.Segments, r.source), base)
		default:
			out = append(out, r.inline(n, base)...)
		}
	}
	return out
}

// raw returns the source of an inline node's text.
func (r *renderer) raw(parent ast.Node) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Value(r.source))
		case *ast.String:
			b.Write(n.Value)
		}
	}
	return b.String()
}

func unescape(b []byte, raw bool) string {
	if raw {
		return string(b)
	}
	return string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(b))))
}

func plain(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.text)
	}
	return b.String()
}
