package markup

import (
	"bytes"
	stdhtml "html"
	"net/url"
	"strings"

	"github.com/go-telegram/bot/models"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer/html"
)

func (w *writer) inlines(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.inline(n)
	}
}

func (w *writer) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		w.text(n)
	case *ast.String:
		w.write(clean(string(n.Value)))
	case *ast.CodeSpan:
		w.codeSpan(n)
	case *ast.Emphasis:
		kind := models.MessageEntityTypeItalic
		if n.Level == 2 {
			kind = models.MessageEntityTypeBold
		}
		w.styled(kind, func() { w.inlines(n) })
	case *extast.Strikethrough:
		w.styled(models.MessageEntityTypeStrikethrough, func() { w.inlines(n) })
	case *ast.Link:
		w.link(n, string(n.Destination))
	case *ast.Image:
		w.link(n, string(n.Destination))
	case *ast.AutoLink:
		w.write(clean(string(n.Label(w.source))))
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
		w.write(clean(string(value)))
	} else {
		w.write(clean(unescape(value)))
	}
	if n.SoftLineBreak() || n.HardLineBreak() {
		w.newline()
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
	return stdhtml.UnescapeString(b.String())
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
	code := clean(strings.ReplaceAll(b.String(), "\n", " "))
	if code != "" {
		w.solid(models.MessageEntity{Type: models.MessageEntityTypeCode}, code)
	}
}

// link writes a link or an image. If Telegram cannot open it, its address is text.
func (w *writer) link(n ast.Node, destination string) {
	destination = clean(unescape([]byte(destination)))
	if w.linked {
		w.inlines(n)
		return
	}
	start := w.begin()
	if !opens(destination) {
		w.inlines(n)
		switch {
		case destination == "" || strings.HasPrefix(destination, "#"):
		case w.units == start:
			w.write(destination)
		case !strings.HasSuffix(w.buf.String(), strings.TrimPrefix(destination, "mailto:")):
			w.write(" (" + destination + ")")
		}
		return
	}
	w.linked = true
	w.inlines(n)
	w.linked = false
	if w.units == start {
		w.write(destination)
		return
	}
	w.add(models.MessageEntity{Type: models.MessageEntityTypeTextLink, URL: destination}, start)
}

// opens reports whether Telegram accepts an address as a link.
func opens(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https", "tg", "ton":
		return true
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
		w.newline()
	case strings.HasPrefix(tag, "<!--"):
	default:
		w.write(clean(b.String()))
	}
}
