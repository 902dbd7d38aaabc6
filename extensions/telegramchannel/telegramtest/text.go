package telegramtest

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxText is the length of a message's text in UTF-16 units, after parsing.
const MaxText = 4096

const maxEntities = 100

// utf16Len returns the length of s in UTF-16 units.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// format parses, trims and measures the text of a call.
func format(p params) (string, []Entity, *apiError) {
	text, entities, refusal := formatText(p)
	switch {
	case refusal != nil:
		return "", nil, refusal
	case text == "":
		return "", nil, badRequest("message text is empty")
	case utf16Len(text) > MaxText:
		return "", nil, badRequest("message is too long")
	}
	return text, entities, nil
}

// formatText parses and trims a text of any length.
func formatText(p params) (string, []Entity, *apiError) {
	text := p["text"]
	if !utf8.ValidString(text) {
		return "", nil, badRequest("strings must be encoded in UTF-8")
	}
	text = strings.Map(func(r rune) rune {
		if r == '\r' || (r < ' ' && r != '\n' && r != '\t') {
			return -1
		}
		return r
	}, text)
	var entities []Entity
	var refusal *apiError
	switch mode := strings.ToLower(p["parse_mode"]); mode {
	case "":
		if err := p.json("entities", &entities); err != nil {
			return "", nil, badRequest("can't parse entities JSON object")
		}
		if refusal = check(text, entities); refusal == nil {
			refusal = checkNesting(entities)
		}
	case "html":
		text, entities, refusal = parseHTML(text)
	case "markdownv2":
		text, entities, refusal = parseMarkdownV2(text)
	default:
		refusal = badRequest("unsupported parse_mode")
	}
	if refusal != nil {
		return "", nil, refusal
	}
	text, entities = trim(text, entities)
	return text, entities[:min(len(entities), maxEntities)], nil
}

var entityTypes = []string{
	"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bold", "italic",
	"underline", "strikethrough", "spoiler", "blockquote", "expandable_blockquote", "code", "pre",
	"text_link", "text_mention", "custom_emoji",
}

// check refuses entities that do not fit their text.
func check(text string, entities []Entity) *apiError {
	units := utf16.Encode([]rune(text))
	for _, e := range entities {
		switch {
		case !slices.Contains(entityTypes, e.Type):
			return badRequest("can't parse MessageEntity: Field \"type\" has unsupported value %q", e.Type)
		case e.Offset < 0 || e.Length <= 0:
			return badRequest("receive entity with incorrect offset/length")
		case e.Offset+e.Length > len(units):
			return badRequest("entity ends after the end of the text at %d", len(units))
		case insidePair(units, e.Offset):
			return badRequest("entity begins in a middle of a UTF-16 symbol at offset %d", e.Offset)
		case insidePair(units, e.Offset+e.Length):
			return badRequest("entity ends in a middle of a UTF-16 symbol at offset %d", e.Offset+e.Length)
		case e.Type == "text_link" && e.URL == "":
			return badRequest("can't parse MessageEntity: Field \"url\" must be of type String")
		case e.Type == "text_mention" && e.User == nil:
			return badRequest("can't parse MessageEntity: Field \"user\" must be of type Object")
		}
	}
	slices.SortStableFunc(entities, func(a, b Entity) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length))
	})
	return nil
}

// checkNesting checks that entities nest as Telegram documents it: properly,
// nothing inside code, code and links in nothing but quotes, quotes not in quotes.
// Telegram fixes the entities of a parse mode, so only explicit ones are checked.
func checkNesting(entities []Entity) *apiError {
	var open []Entity
	for _, e := range entities {
		for len(open) > 0 && open[len(open)-1].end() <= e.Offset {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			outer := open[len(open)-1]
			switch {
			case e.end() > outer.end():
				return badRequest("entities %s and %s overlap at offset %d", outer.Type, e.Type, e.Offset)
			case outer.solid(), e.solid() && !outer.quote(), outer.quote() && e.quote(),
				outer.Type == "text_link" && e.Type == "text_link":
				return badRequest("entity %s can't be inside of %s at offset %d", e.Type, outer.Type, e.Offset)
			}
		}
		open = append(open, e)
	}
	return nil
}

func (e Entity) end() int    { return e.Offset + e.Length }
func (e Entity) solid() bool { return e.Type == "code" || e.Type == "pre" }
func (e Entity) quote() bool { return e.Type == "blockquote" || e.Type == "expandable_blockquote" }

func insidePair(units []uint16, at int) bool {
	return at > 0 && at < len(units) && utf16.IsSurrogate(rune(units[at-1])) && units[at-1] < 0xDC00
}

// trim drops the white space around a text and moves the entities with it.
func trim(text string, entities []Entity) (string, []Entity) {
	lead := utf16Len(text) - utf16Len(strings.TrimLeftFunc(text, unicode.IsSpace))
	text = strings.TrimSpace(text)
	size := utf16Len(text)
	kept := entities[:0]
	for _, e := range entities {
		from, to := max(e.Offset-lead, 0), min(e.end()-lead, size)
		if from < to {
			e.Offset, e.Length = from, to-from
			kept = append(kept, e)
		}
	}
	return text, kept
}
