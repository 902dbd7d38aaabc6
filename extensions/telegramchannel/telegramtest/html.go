package telegramtest

import (
	"strconv"
	"strings"
)

var htmlTags = map[string]string{
	"b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
	"s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "span": "spoiler",
	"tg-spoiler": "spoiler", "a": "text_link", "code": "code", "pre": "pre", "blockquote": "blockquote",
}

func cannotParse(format string, args ...any) *apiError {
	return badRequest("can't parse entities: "+format, args...)
}

type openTag struct {
	name, attr string
	at         int
}

// parseHTML parses the HTML parse mode. Offsets in errors are bytes, as in the real thing.
func parseHTML(src string) (string, []Entity, *apiError) {
	var out strings.Builder
	var stack []openTag
	var entities []Entity
	for i := 0; i < len(src); {
		switch src[i] {
		case '&':
			text, n := htmlReference(src[i:])
			out.WriteString(text)
			i += n
		case '<':
			end := strings.IndexByte(src[i:], '>')
			if end < 0 {
				return "", nil, cannotParse("Unclosed start tag at byte offset %d", i)
			}
			tag := src[i+1 : i+end]
			name, attr, _ := strings.Cut(strings.TrimPrefix(tag, "/"), " ")
			name = strings.ToLower(strings.TrimSpace(name))
			kind, known := htmlTags[name]
			switch {
			case !known && !strings.HasPrefix(tag, "/"):
				return "", nil, cannotParse("Unsupported start tag \"%s\" at byte offset %d", name, i)
			case !strings.HasPrefix(tag, "/"):
				stack = append(stack, openTag{name: name, attr: attr, at: utf16Len(out.String())})
			case len(stack) == 0:
				return "", nil, cannotParse("Unexpected end tag at byte offset %d", i)
			default:
				top := stack[len(stack)-1]
				if top.name != name {
					return "", nil, cannotParse("Unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"", i,
						top.name, name)
				}
				stack = stack[:len(stack)-1]
				e := Entity{Type: kind, Offset: top.at, Length: utf16Len(out.String()) - top.at}
				entities = addHTML(entities, e, top)
			}
			i += end + 1
		default:
			out.WriteByte(src[i])
			i++
		}
	}
	if len(stack) > 0 {
		return "", nil, cannotParse("Can't find end tag corresponding to start tag \"%s\"", stack[len(stack)-1].name)
	}
	for i := range entities {
		if entities[i].Type == "language" { // outside a pre, the language means nothing
			entities[i].Type, entities[i].Language = "code", ""
		}
	}
	return out.String(), entities, check(out.String(), entities)
}

func addHTML(entities []Entity, e Entity, tag openTag) []Entity {
	if e.Length == 0 {
		return entities
	}
	value := attribute(tag.attr)
	switch tag.name {
	case "a":
		if e.URL = value; e.URL == "" {
			return entities
		}
	case "code":
		if language, ok := strings.CutPrefix(value, "language-"); ok {
			return append(entities, Entity{Type: "language", Offset: e.Offset, Length: e.Length, Language: language})
		}
	case "pre":
		if n := len(entities); n > 0 && entities[n-1].solidOrLanguage() && entities[n-1].Offset == e.Offset &&
			entities[n-1].Length == e.Length {
			e.Language = entities[n-1].Language
			entities = entities[:n-1]
		}
	}
	return append(entities, e)
}

func (e Entity) solidOrLanguage() bool { return e.Type == "language" || e.Type == "code" }

// attribute is the value of the only attribute that a tag may have.
func attribute(attr string) string {
	_, value, _ := strings.Cut(attr, "=")
	value = strings.Trim(strings.TrimSpace(value), `"'`)
	var out strings.Builder
	for i := 0; i < len(value); {
		if value[i] != '&' {
			out.WriteByte(value[i])
			i++
			continue
		}
		text, n := htmlReference(value[i:])
		out.WriteString(text)
		i += n
	}
	return out.String()
}

// htmlReference decodes the character reference that s begins with; an unknown one stays as it is.
func htmlReference(s string) (text string, length int) {
	end := strings.IndexByte(s[:min(len(s), 12)], ';')
	if end < 0 {
		return "&", 1
	}
	switch name := s[1:end]; {
	case name == "lt":
		return "<", end + 1
	case name == "gt":
		return ">", end + 1
	case name == "amp":
		return "&", end + 1
	case name == "quot":
		return `"`, end + 1
	case strings.HasPrefix(name, "#x"):
		if n, err := strconv.ParseInt(name[2:], 16, 32); err == nil {
			return string(rune(n)), end + 1
		}
	case strings.HasPrefix(name, "#"):
		if n, err := strconv.ParseInt(name[1:], 10, 32); err == nil {
			return string(rune(n)), end + 1
		}
	}
	return "&", 1
}
