// Package markup turns Markdown, as a language model writes it, into what a
// Telegram message can show: a plain text and the entities that format it.
//
// The dialect is CommonMark with tables, strikethrough and task lists. What
// Telegram has no format for is written out: lists get bullets, headings become
// bold, tables become aligned monospace, or lists when they are too wide for a
// phone. Raw HTML stays text. Nothing that a reader needs is dropped: a link
// that Telegram would not open keeps its address beside its text.
//
// Entities have UTF-16 offsets that fit the text, nest as Telegram demands
// (nothing inside code, code inside nothing but a quote, no quote in a quote),
// and are at most [MaxEntities]; such a message cannot fail to parse. The text
// may be longer than its source; the caller measures it with [Len].
//
// Render is safe for concurrent use and keeps nothing.
package markup

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/go-telegram/bot/models"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// MaxEntities is how many entities Telegram applies to one message.
const MaxEntities = 100

var parser = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()

// Render formats a Markdown source.
func Render(source string) (string, []models.MessageEntity) {
	source = strings.ToValidUTF8(source, "\uFFFD")
	if plain(source) {
		return strings.TrimSpace(source), nil
	}
	src := []byte(source)
	w := &writer{source: src}
	w.blocks(parser.Parse(text.NewReader(src)))
	rendered := strings.TrimRightFunc(w.buf.String(), unicode.IsSpace)
	return rendered, finish(w.entities, Len(rendered))
}

// Len is the length of s as Telegram counts it, in UTF-16 units.
func Len(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// plain reports whether nothing in a text can be markup.
func plain(s string) bool {
	if strings.ContainsAny(s, "*_`[]~#>|<\\&\n\r\t\x00") {
		return false
	}
	s = strings.TrimLeft(s, " ")
	return s == "" || !strings.ContainsRune("-+=0123456789", rune(s[0]))
}

// finish cuts the entities at the end of the text and puts them into Telegram's
// order: by offset, the outer ones first.
func finish(entities []models.MessageEntity, size int) []models.MessageEntity {
	for i := range entities {
		entities[i].Length = min(entities[i].Length, size-entities[i].Offset)
	}
	entities = slices.DeleteFunc(entities, func(e models.MessageEntity) bool { return e.Length <= 0 })
	slices.SortStableFunc(entities, func(a, b models.MessageEntity) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length), cmp.Compare(rank(a), rank(b)))
	})
	return entities[:min(len(entities), MaxEntities)]
}

func rank(e models.MessageEntity) int {
	switch e.Type {
	case models.MessageEntityTypeBlockquote:
		return 0
	case models.MessageEntityTypeTextLink:
		return 1
	default:
		return 2
	}
}
