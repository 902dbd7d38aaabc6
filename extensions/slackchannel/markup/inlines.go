package markup

import (
	"bytes"
	stdhtml "html"
	"net/url"
	"strings"

	"github.com/slack-go/slack"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer/html"
)

// styled writes texts with a style.
func (w *writer) styled(set func(*slack.RichTextSectionTextStyle), f func()) {
	outer := w.style
	set(&w.style)
	f()
	w.style = outer
}

func (w *writer) inlines(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.inlineNode(n)
	}
}

func (w *writer) inlineNode(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		w.text(n)
	case *ast.String:
		w.write(string(n.Value))
	case *ast.CodeSpan:
		w.codeSpan(n)
	case *ast.Emphasis:
		w.styled(func(s *slack.RichTextSectionTextStyle) {
			s.Bold, s.Italic = s.Bold || n.Level == 2, s.Italic || n.Level != 2
		}, func() { w.inlines(n) })
	case *extast.Strikethrough:
		w.styled(func(s *slack.RichTextSectionTextStyle) { s.Strike = true }, func() { w.inlines(n) })
	case *ast.Link:
		w.linked(n, string(n.Destination))
	case *ast.Image:
		w.linked(n, string(n.Destination))
	case *ast.AutoLink:
		w.autoLink(n)
	case *ast.RawHTML:
		w.rawHTML(n)
	case *extast.TaskCheckBox:
		if n.IsChecked {
			w.write("☑ ")
		} else {
			w.write("☐ ")
		}
	default:
		w.inlines(n)
	}
}

func (w *writer) text(n *ast.Text) {
	value := n.Segment.Value(w.source)
	if n.IsRaw() {
		w.write(string(value))
	} else {
		w.write(unescape(value))
	}
	if n.SoftLineBreak() || n.HardLineBreak() {
		w.write("\n")
	}
}

// unescape resolves backslash escapes and character references. The library does this
// only for HTML output, whose escaping is undone.
func unescape(value []byte) string {
	if bytes.IndexByte(value, '\\') < 0 && bytes.IndexByte(value, '&') < 0 {
		return string(value)
	}
	var b bufWriter
	html.DefaultWriter.Write(&b, value)
	return clean(stdhtml.UnescapeString(b.String()))
}

// bufWriter is a bytes.Buffer with the methods that the library requires.
type bufWriter struct{ bytes.Buffer }

func (*bufWriter) Available() int { return 0 }
func (*bufWriter) Buffered() int  { return 0 }
func (*bufWriter) Flush() error   { return nil }

func (w *writer) codeSpan(n *ast.CodeSpan) {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(w.source))
		}
	}
	w.styled(func(s *slack.RichTextSectionTextStyle) { s.Code = true }, func() {
		w.write(strings.ReplaceAll(b.String(), "\n", " "))
	})
}

// linked writes a link or an image. If Slack cannot open it, its address is text.
func (w *writer) linked(n ast.Node, destination string) {
	destination = unescape([]byte(destination))
	if w.link != "" {
		w.inlines(n)
		return
	}
	before := w.plain.Len()
	if !opens(destination) {
		w.inlines(n)
		switch {
		case destination == "" || strings.HasPrefix(destination, "#"):
		case w.plain.Len() == before:
			w.write(destination)
		default:
			w.write(" (" + destination + ")")
		}
		return
	}
	if w.gap != "" && len(w.inline) > 0 { // the gap is no part of the link
		gap := w.gap
		w.gap = ""
		w.add(gap)
	}
	before = w.plain.Len()
	w.link = destination
	w.inlines(n)
	w.link = ""
	if w.plain.Len() == before {
		w.link = destination
		w.write(destination)
		w.link = ""
	}
}

func (w *writer) autoLink(n *ast.AutoLink) {
	label := string(n.Label(w.source))
	if w.link == "" && opens(label) {
		w.link = label
		defer func() { w.link = "" }()
	}
	w.write(label)
}

// opens reports whether Slack accepts an address as a link.
func opens(address string) bool {
	u, err := url.Parse(address)
	if err != nil || len(address) > 3000 || strings.ContainsAny(address, " <>\n") {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return u.Host != ""
	case "mailto":
		return u.Opaque != ""
	}
	return false
}

func (w *writer) rawHTML(n *ast.RawHTML) {
	var b strings.Builder
	for i := range n.Segments.Len() {
		segment := n.Segments.At(i)
		b.Write(segment.Value(w.source))
	}
	switch tag := strings.ToLower(strings.ReplaceAll(b.String(), " ", "")); {
	case tag == "<br>" || tag == "<br/>":
		w.write("\n")
	case strings.HasPrefix(tag, "<!--"):
	default:
		w.write(b.String())
	}
}
