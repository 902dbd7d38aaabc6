package markup

import (
	"strings"

	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract/markdown"
)

// writer collects the text and its entities.
type writer struct {
	source []byte

	buf      strings.Builder
	units    int // length of buf in UTF-16 units
	entities []models.MessageEntity

	gap     int    // newlines to write before the next text
	indent  string // prefix of every line
	indents bool   // the next text begins a line, which has no indent yet

	styles []style // open, outermost first
	quoted bool    // inside a quote
	linked bool    // inside a link
}

// style is an open entity that Telegram does not allow around code: it is closed
// before code and reopened after it.
type style struct {
	kind models.MessageEntityType
	at   int // -1: the same style is open further out
}

// write adds text, after pending newlines and indents.
func (w *writer) write(s string) {
	for line := range strings.Lines(s) {
		body, ended := strings.CutSuffix(line, "\n")
		if body != "" {
			w.flush()
			w.raw(body)
		}
		if ended {
			w.newline()
		}
	}
}

// newline ends the line; the newline is written before the next text.
func (w *writer) newline() {
	w.gap++
	w.indents = true
}

// lines ensures at least n newlines before the next text.
func (w *writer) lines(n int) {
	w.gap = max(w.gap, n)
	w.indents = true
}

// flush writes pending newlines and the indent.
func (w *writer) flush() {
	if w.units > 0 && w.gap > 0 {
		w.raw(strings.Repeat("\n", min(w.gap, 2)))
	}
	w.gap = 0
	if w.indents {
		w.indents = false
		w.raw(w.indent)
	}
}

func (w *writer) raw(s string) {
	w.buf.WriteString(s)
	w.units += markdown.Len(s)
}

// begin returns the offset of the next text.
func (w *writer) begin() int {
	w.flush()
	return w.units
}

// add adds an entity from an offset to the end of the text, unless it is empty.
func (w *writer) add(e models.MessageEntity, from int) {
	if e.Offset, e.Length = from, w.units-from; e.Length > 0 {
		w.entities = append(w.entities, e)
	}
}

// styled calls f and formats its output.
func (w *writer) styled(kind models.MessageEntityType, inside func()) {
	at := w.begin()
	for _, s := range w.styles {
		if s.kind == kind {
			at = -1
		}
	}
	w.styles = append(w.styles, style{kind: kind, at: at})
	inside()
	s := w.styles[len(w.styles)-1]
	w.styles = w.styles[:len(w.styles)-1]
	if s.at >= 0 {
		w.add(models.MessageEntity{Type: kind}, s.at)
	}
}

// solid writes text as code, interrupting the open styles.
func (w *writer) solid(e models.MessageEntity, content string) {
	if w.linked {
		w.write(content)
		return
	}
	at := w.begin()
	for _, s := range w.styles {
		if s.at >= 0 {
			w.add(models.MessageEntity{Type: s.kind}, s.at)
		}
	}
	w.raw(content)
	w.add(e, at)
	for i := range w.styles {
		if w.styles[i].at >= 0 {
			w.styles[i].at = w.units
		}
	}
}

// quote calls f and formats its output as a quote; a quote within a quote is plain.
func (w *writer) quote(inside func()) {
	if w.quoted {
		inside()
		return
	}
	at := w.begin()
	w.quoted = true
	inside()
	w.quoted = false
	w.add(models.MessageEntity{Type: models.MessageEntityTypeBlockquote}, at)
}
