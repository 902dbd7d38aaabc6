package page

import (
	"bytes"
	"html/template"
	"regexp"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// converter renders Markdown: raw HTML stays text, a picture becomes a link, and headings are
// below those of the page.
var converter = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList, extension.Linkify),
	goldmark.WithRendererOptions(html.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(own{}, 100))),
)

var checkbox = regexp.MustCompile(`^checkbox$`)

// policy lets through what converter makes, whatever it was given.
var policy = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "em", "strong", "del", "blockquote", "pre", "code", "ul", "ol", "li",
		"h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("align").Matching(bluemonday.CellAlign).OnElements("th", "td")
	p.AllowAttrs("type").Matching(checkbox).OnElements("input")
	p.AllowAttrs("checked", "disabled").OnElements("input")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
})

// Markdown renders a text of a model or of anyone: no HTML in it has an effect, it loads
// nothing, and its links lead elsewhere.
func Markdown(text string) template.HTML {
	var b bytes.Buffer
	if err := converter.Convert([]byte(strings.ToValidUTF8(text, "\uFFFD")), &b); err != nil {
		return template.HTML("<p>" + template.HTMLEscapeString(text) + "</p>") //nolint:gosec // it is escaped
	}
	return template.HTML(policy().Sanitize(b.String())) //nolint:gosec // it is sanitized
}

// own renders what should not be as in HTML.
type own struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (own) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, func(
		w util.BufWriter, source []byte, n ast.Node, entering bool,
	) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		_, _ = w.WriteString("<p>")
		for i := range n.Lines().Len() {
			line := n.Lines().At(i)
			escape(w, line.Value(source))
		}
		if block, ok := n.(*ast.HTMLBlock); ok && block.HasClosure() {
			escape(w, block.ClosureLine.Value(source))
		}
		_, _ = w.WriteString("</p>\n")
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if raw, ok := n.(*ast.RawHTML); ok && entering {
			for i := range raw.Segments.Len() {
				segment := raw.Segments.At(i)
				escape(w, segment.Value(source))
			}
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindImage, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		image, ok := n.(*ast.Image)
		switch {
		case ok && entering:
			_, _ = w.WriteString(`<a href="`)
			escape(w, util.URLEscape(image.Destination, true))
			_, _ = w.WriteString(`">`)
			if !n.HasChildren() {
				escape(w, image.Destination)
			}
		default:
			_, _ = w.WriteString("</a>")
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindHeading, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		level := 3
		if heading, ok := n.(*ast.Heading); ok {
			level = min(heading.Level+2, 6)
		}
		tag := "<h"
		if !entering {
			tag = "</h"
		}
		_, _ = w.WriteString(tag)
		_ = w.WriteByte(byte('0' + level))
		_ = w.WriteByte('>')
		return ast.WalkContinue, nil
	})
}

func escape(w util.BufWriter, text []byte) { template.HTMLEscape(w, text) }
