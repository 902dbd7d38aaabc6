// Package markdown formats memories as a Markdown document that people can edit,
// and parses it: lists under headings for scope and kind, with the fields of a
// memory in a nested list.
//
//	# Memory
//
//	## Scope: personal
//
//	### Open items
//
//	- [ ] Water the plants
//	  - due: 2026-03-01
//	  - channel: telegram_channel
//	  - id: m4k2q7
//	  - created: 2026-02-01T10:00:00+01:00
//
// Only the text is required; a list without a heading is a list of facts. Parsing
// a formatted document gives the same memories. Parse accepts a document entirely
// or not at all, and returns an error for each invalid line.
package markdown

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
)

var titles = map[item.Kind]string{item.Preference: "Preferences", item.Open: "Open items", item.Fact: "Facts"}

// household is the owner of an item that belongs to no person.
const household = "household"

// Format formats a document. Items of one scope and kind keep their order. own: what the
// caller imports without an owner is theirs, so the household's items need one.
func Format(items []item.Item, own bool) string {
	var b strings.Builder
	b.WriteString("# Memory\n")
	var scopes []string
	for _, i := range items {
		if !slices.Contains(scopes, i.Scope) {
			scopes = append(scopes, i.Scope)
		}
	}
	slices.Sort(scopes)
	for _, scope := range scopes {
		fmt.Fprintf(&b, "\n## Scope: %s\n", scope)
		for _, kind := range item.Kinds {
			begun := false
			for _, i := range items {
				if i.Scope != scope || i.Kind != kind {
					continue
				}
				if !begun {
					fmt.Fprintf(&b, "\n### %s\n\n", titles[kind])
					begun = true
				}
				write(&b, i, own)
			}
		}
	}
	return b.String()
}

func write(b *strings.Builder, i item.Item, own bool) {
	box := ""
	if i.Kind == item.Open {
		box = "[ ] "
	}
	for k, line := range strings.Split(item.Clean(i.Text), "\n") {
		switch {
		case k == 0:
			b.WriteString("- " + box + escape(line) + "\n")
		case line == "":
			b.WriteString("\n")
		default:
			b.WriteString("  " + escape(line) + "\n")
		}
	}
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, "  - %s: %s\n", name, value)
		}
	}
	field("due", i.Due.String())
	field("channel", i.ChannelID)
	for _, a := range i.Attachments {
		field("file", fileOf(a))
	}
	field("by", i.By)
	field("group", i.Group())
	switch {
	case i.Principal.Own:
		field("owner", i.Principal.Person)
	case own && i.Group() == "":
		field("owner", household)
	}
	field("id", i.ID)
	field("created", stamp(i.Created))
	if !i.Updated.Equal(i.Created) {
		field("updated", stamp(i.Updated))
	}
}

// fileOf is a reference with the whole hash: the document does not hold the file.
func fileOf(a contract.Attachment) string {
	short := a.Blob[:min(len(a.Blob), contract.ReferenceDigits)]
	return strings.Replace(a.Reference(), short, a.Blob, 1)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// marks are the characters that have a meaning at the beginning of a line.
const marks = `-*+#[<>\`

func escape(line string) string {
	if line != "" && strings.ContainsRune(marks, rune(line[0])) {
		return `\` + line
	}
	return line
}

func unescape(line string) string {
	if len(line) > 1 && line[0] == '\\' && strings.ContainsRune(marks, rune(line[1])) {
		return line[1:]
	}
	return line
}
