// Package markup converts Markdown to a Telegram message: a plain text and the
// entities that format it.
//
// The dialect is CommonMark with tables, strikethrough and task lists. Blocks without
// a Telegram format become text: lists get bullets, headings become bold, tables
// become aligned monospace, or lists if they are too wide for a phone. Raw HTML stays
// text. No content is lost: a link that Telegram cannot open keeps its address beside
// its text.
//
// Entities have UTF-16 offsets within the text, nest as Telegram requires (nothing
// inside code, code only inside quotes, no quote in a quote), and are at most
// [MaxEntities], so Telegram accepts the message. The text may be longer than its
// source: check it with [markdown.Len].
//
// Render is safe for concurrent use and has no state.
package markup

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/go-telegram/bot/models"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/switchboard-run/switchboard/contract/markdown"
)

// MaxEntities is the number of entities that Telegram applies to a message.
const MaxEntities = 100

var parser = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough,
	extension.TaskList)).Parser()

// Render converts a Markdown source to a text and its entities.
func Render(source string) (string, []models.MessageEntity) {
	source = strings.ToValidUTF8(source, "\uFFFD")
	if plain(source) {
		return strings.TrimSpace(source), nil
	}
	src := []byte(source)
	w := &writer{source: src}
	w.blocks(parser.Parse(text.NewReader(src)))
	rendered := strings.TrimRightFunc(w.buf.String(), unicode.IsSpace)
	return rendered, finish(w.entities, markdown.Len(rendered))
}

// plain reports whether a text contains no markup.
func plain(s string) bool {
	if strings.ContainsAny(s, "*_`[]~#>|<\\&\n\r\t\x00") {
		return false
	}
	s = strings.TrimLeft(s, " ")
	return s == "" || !strings.ContainsRune("-+=0123456789", rune(s[0]))
}

// finish clips the entities to the text and sorts them in Telegram's order: by offset,
// outer ones first.
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
