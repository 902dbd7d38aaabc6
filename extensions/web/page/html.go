package page

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// maxElements is how many elements of a page its article is looked for in.
	maxElements = 100_000
	// maxLink is the longest address of a link, in bytes. Longer ones are those of trackers.
	maxLink = 500
)

// readHTML returns the article of a page; of a page that has none, such as a list, the text
// of its main part.
func (s Source) readHTML(text string) (p Page, err error) {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return p, errors.New("its HTML is damaged")
	}
	address, err := url.Parse(s.URL)
	if err != nil {
		return p, err
	}
	p.Type = "text/html"
	var article *html.Node
	parser := readability.NewParser()
	parser.MaxElemsToParse = maxElements
	if found, err := parser.ParseDocument(doc, address); err == nil {
		p.Title, p.Author = found.Title(), found.Byline()
		if at, err := found.PublishedTime(); err == nil {
			p.Date = at.Format("2006-01-02")
		}
		if parser.CheckDocument(doc) {
			article = found.Node
		}
	}
	if article == nil {
		article = mainPart(doc)
	}
	p.Text, err = markdown(article, address)
	if err == nil && strings.TrimSpace(p.Text) == "" {
		p.Text, err = markdown(mainPart(doc), address)
	}
	return p, err
}

// mainPart returns the part of a page that says that it is the main one, or the page.
func mainPart(doc *html.Node) *html.Node {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && (n.DataAtom == atom.Main || attribute(n, "role") == "main") {
			return n
		}
	}
	return doc
}

// markdown renders a part of a page. It changes the part.
func markdown(part *html.Node, address *url.URL) (string, error) {
	simplify(part, address)
	c := converter.NewConverter(
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()),
		converter.WithEscapeMode(converter.EscapeModeDisabled))
	text, err := c.ConvertNode(part)
	if err != nil {
		return "", errors.New("its HTML cannot be read")
	}
	return string(text), nil
}

// unread are elements that are not read: their text is not shown, or is none.
var unread = []atom.Atom{
	atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Svg, atom.Head, atom.Object, atom.Embed,
	atom.Canvas, atom.Audio, atom.Video, atom.Button, atom.Input, atom.Select, atom.Textarea, atom.Dialog,
}

// simplify leaves out what is not read, makes the addresses of links whole, and replaces
// pictures with their descriptions.
func simplify(n *html.Node, address *url.URL) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		switch {
		case c.Type == html.CommentNode, c.Type == html.ElementNode && (slices.Contains(unread, c.DataAtom) || hidden(c)):
			n.RemoveChild(c)
		case c.Type == html.ElementNode && c.DataAtom == atom.Img:
			if about := strings.TrimSpace(attribute(c, "alt")); about != "" {
				n.InsertBefore(&html.Node{Type: html.TextNode, Data: "[picture: " + about + "]"}, c)
			}
			n.RemoveChild(c)
		default:
			if c.DataAtom == atom.A {
				c.Attr = link(attribute(c, "href"), address)
			}
			simplify(c, address)
		}
		c = next
	}
}

// hidden reports whether an element says that it is not shown.
func hidden(n *html.Node) bool {
	style := strings.ToLower(strings.ReplaceAll(attribute(n, "style"), " ", ""))
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "hidden" }) ||
		attribute(n, "aria-hidden") == "true" ||
		strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
}

// link returns the attributes of a link: none, unless it leads to another page.
func link(href string, page *url.URL) []html.Attribute {
	to, err := page.Parse(strings.TrimSpace(href))
	if href == "" || strings.HasPrefix(href, "#") || err != nil || to.Scheme != "http" && to.Scheme != "https" ||
		to.User != nil || len(to.String()) > maxLink {
		return nil
	}
	return []html.Attribute{{Key: "href", Val: to.String()}}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
