// Package markup converts Markdown to the rich text of Slack, and to a plain text of the
// same content.
//
// The dialect is CommonMark with tables, strikethrough and task lists. Blocks without a
// format in Slack become text: headings become bold, tables become aligned monospace, or
// lists if they are too wide for a phone. Raw HTML stays text. No content is lost: a link
// that Slack cannot open keeps its address beside its text. Nothing in a source mentions
// anybody: a rich text has elements of its own for that, which are never written.
//
// Render is safe for concurrent use and has no state.
package markup

import (
	"strings"
	"sync"
	"unicode"

	"github.com/slack-go/slack"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

var markdown = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()
})

// Render converts a Markdown source. Without visible text there are no elements.
func Render(source string) (elements []slack.RichTextElement, plain string) {
	source = clean(strings.ToValidUTF8(source, "\uFFFD"))
	src := []byte(source)
	w := &writer{source: src}
	w.blocks(markdown().Parse(text.NewReader(src)))
	w.close()
	return w.done, strings.TrimSpace(w.plain.String())
}

// writer collects elements. Paragraphs that follow each other are one section.
type writer struct {
	source []byte
	done   []slack.RichTextElement
	plain  strings.Builder

	inline []slack.RichTextSectionElement
	style  slack.RichTextSectionTextStyle
	link   string // that the text is in
	gap    string // to write before the next text of the section
}

// write adds a text to the section.
func (w *writer) write(s string) {
	if s == "" {
		return
	}
	if len(w.inline) > 0 && w.gap != "" {
		gap := w.gap
		w.gap = ""
		style, link := w.style, w.link
		w.style, w.link = slack.RichTextSectionTextStyle{}, ""
		w.add(gap)
		w.style, w.link = style, link
	}
	w.gap = ""
	w.add(s)
}

func (w *writer) add(s string) {
	w.plain.WriteString(s)
	var style *slack.RichTextSectionTextStyle
	if w.style != (slack.RichTextSectionTextStyle{}) {
		own := w.style
		style = &own
	}
	if w.link != "" {
		w.inline = append(w.inline, slack.NewRichTextSectionLinkElement(w.link, s, style))
		return
	}
	if n := len(w.inline); n > 0 {
		if last, ok := w.inline[n-1].(*slack.RichTextSectionTextElement); ok && same(last.Style, style) {
			last.Text += s
			return
		}
	}
	w.inline = append(w.inline, slack.NewRichTextSectionTextElement(s, style))
}

func same(a, b *slack.RichTextSectionTextStyle) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// take returns the texts of the section, and begins another one.
func (w *writer) take() []slack.RichTextSectionElement {
	inline := w.inline
	w.inline, w.gap = nil, ""
	for len(inline) > 0 {
		last, ok := inline[len(inline)-1].(*slack.RichTextSectionTextElement)
		if !ok {
			break
		}
		if last.Text = strings.TrimRightFunc(last.Text, unicode.IsSpace); last.Text != "" {
			break
		}
		inline = inline[:len(inline)-1]
	}
	return inline
}

// close ends the section.
func (w *writer) close() {
	inline := w.take()
	if len(inline) == 0 {
		return
	}
	w.done = append(w.done, slack.NewRichTextSection(inline...))
	w.plain.WriteString("\n")
}

// within collects the texts that f writes, apart from those of the section.
func (w *writer) within(f func()) []slack.RichTextSectionElement {
	outer, gap := w.inline, w.gap
	w.inline, w.gap = nil, ""
	f()
	inner := w.take()
	w.inline, w.gap = outer, gap
	return inner
}

// clean removes control characters.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7F {
			return -1
		}
		return r
	}, s)
}
