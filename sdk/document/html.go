package document

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/transform"
)

func decoderReader(file []byte, t transform.Transformer) io.Reader {
	return transform.NewReader(bytes.NewReader(file), t)
}

// hidden are elements whose text people don't see, lines those that begin a line.
var (
	hidden = map[atom.Atom]bool{
		atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Iframe: true, atom.Svg: true,
	}
	lines = map[atom.Atom]bool{
		atom.P: true, atom.Div: true, atom.Br: true, atom.Li: true, atom.Tr: true, atom.H1: true, atom.H2: true,
		atom.H3: true, atom.H4: true, atom.H5: true, atom.H6: true, atom.Title: true, atom.Pre: true, atom.Section: true,
		atom.Article: true, atom.Blockquote: true, atom.Table: true, atom.Ul: true, atom.Ol: true,
	}
)

// htmlText returns the text of a page as people see it, without scripts.
func htmlText(file []byte) (string, error) {
	decoded, err := charset.NewReader(bytes.NewReader(file), "text/html")
	if err != nil {
		return "", err
	}
	var out writer
	tokens := html.NewTokenizer(decoded)
	var skip atom.Atom // the hidden element that the tokens are in
	for depth := 0; !out.full(); {
		switch kind := tokens.Next(); kind {
		case html.ErrorToken:
			if err := tokens.Err(); !errors.Is(err, io.EOF) {
				return out.String(), err
			}
			return out.String(), nil
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			name, _ := tokens.TagName()
			tag := atom.Lookup(name)
			switch {
			case skip == 0 && kind == html.StartTagToken && hidden[tag]:
				skip, depth = tag, 1
			case skip != 0 && tag == skip && kind == html.StartTagToken:
				depth++
			case skip != 0 && tag == skip && kind == html.EndTagToken:
				if depth--; depth == 0 {
					skip = 0
				}
			case lines[tag]:
				out.line()
			case tag == atom.Td || tag == atom.Th:
				out.space("\t")
			}
		case html.TextToken:
			if skip == 0 {
				out.words(string(tokens.Text()))
			}
		case html.CommentToken, html.DoctypeToken:
		}
	}
	return out.String(), nil
}

// writer collects text with at most one empty line between its lines.
type writer struct {
	strings.Builder
	pending string // blanks before the next word
}

func (w *writer) full() bool { return w.Len() > MaxText }

func (w *writer) line() { w.space("\n") }

func (w *writer) space(s string) {
	if w.Len() == 0 || strings.Count(w.pending, "\n") >= 2 {
		return
	}
	if s == "\n" {
		w.pending = strings.TrimRight(w.pending, " \t")
	}
	w.pending += s
}

// words adds text whose blanks mean nothing.
func (w *writer) words(text string) {
	words := strings.Fields(html.UnescapeString(text))
	if len(words) == 0 {
		if text != "" && w.pending == "" {
			w.space(" ")
		}
		return
	}
	if w.pending == "" && strings.TrimLeft(text[:1], " \t\r\n") == "" {
		w.space(" ")
	}
	w.text(strings.Join(words, " "))
	if strings.TrimRight(text[len(text)-1:], " \t\r\n") == "" {
		w.space(" ")
	}
}

// text adds text as it is.
func (w *writer) text(text string) {
	if text != "" {
		w.WriteString(w.pending)
		w.WriteString(text)
		w.pending = ""
	}
}
