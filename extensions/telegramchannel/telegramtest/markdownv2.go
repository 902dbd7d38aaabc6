package telegramtest

import (
	"strings"
)

const reserved = "_*[]()~`>#+-=|{}.!"

type openMark struct {
	mark string
	name string
	at   int // UTF-16 units
	byte int
}

var markNames = map[string]string{
	"*": "Bold", "_": "Italic", "__": "Underline", "~": "Strikethrough", "||": "Spoiler", "[": "TextUrl",
}

var markTypes = map[string]string{
	"*": "bold", "_": "italic", "__": "underline", "~": "strikethrough", "||": "spoiler",
}

// markdown parses the MarkdownV2 parse mode.
type markdown struct {
	src      string
	i        int
	out      strings.Builder
	stack    []openMark
	entities []Entity
}

func parseMarkdownV2(src string) (string, []Entity, *apiError) {
	p := &markdown{src: src}
	for p.i < len(p.src) {
		if refusal := p.step(); refusal != nil {
			return "", nil, refusal
		}
	}
	if len(p.stack) > 0 {
		top := p.stack[len(p.stack)-1]
		return "", nil, cannotParse("Can't find end of %s entity at byte offset %d", top.name, top.byte)
	}
	text := p.out.String()
	return text, p.entities, check(text, p.entities)
}

func (p *markdown) step() *apiError {
	c := p.src[p.i]
	switch {
	case c == '\\' && p.i+1 < len(p.src) && p.src[p.i+1] > 0 && p.src[p.i+1] < 127:
		p.out.WriteByte(p.src[p.i+1])
		p.i += 2
		return nil
	case c == '`':
		return p.code()
	case c == ']' && len(p.stack) > 0 && p.stack[len(p.stack)-1].mark == "[":
		return p.link()
	case !strings.ContainsRune(reserved, rune(c)) || c >= 0x80:
		p.out.WriteByte(c)
		p.i++
		return nil
	}
	mark := string(c)
	for _, double := range []string{"__", "||"} {
		if strings.HasPrefix(p.src[p.i:], double) {
			mark = double
		}
	}
	name := markNames[mark]
	if name == "" {
		return cannotParse("Character '%c' is reserved and must be escaped with the preceding '\\'", c)
	}
	at := utf16Len(p.out.String())
	start := p.i
	p.i += len(mark)
	if n := len(p.stack); n > 0 && p.stack[n-1].mark == mark {
		p.add(Entity{Type: markTypes[mark], Offset: p.stack[n-1].at, Length: at - p.stack[n-1].at})
		p.stack = p.stack[:n-1]
		return nil
	}
	p.stack = append(p.stack, openMark{mark: mark, name: name, at: at, byte: start})
	return nil
}

func (p *markdown) add(e Entity) {
	if e.Length > 0 {
		p.entities = append(p.entities, e)
	}
}

// code reads `code` and ```pre```.
func (p *markdown) code() *apiError {
	start, fence, kind, name := p.i, "`", "code", "Code"
	if strings.HasPrefix(p.src[p.i:], "```") {
		fence, kind, name = "```", "pre", "Pre"
	}
	p.i += len(fence)
	e := Entity{Type: kind, Offset: utf16Len(p.out.String())}
	if kind == "pre" {
		if line, _, ok := strings.Cut(p.src[p.i:], "\n"); ok && !strings.ContainsAny(line, " `") {
			e.Language = line
			p.i += len(line) + 1
		}
	}
	for !strings.HasPrefix(p.src[p.i:], fence) {
		if p.i >= len(p.src) {
			return cannotParse("Can't find end of %s entity at byte offset %d", name, start)
		}
		if p.src[p.i] == '\\' && p.i+1 < len(p.src) {
			p.i++
		}
		p.out.WriteByte(p.src[p.i])
		p.i++
	}
	p.i += len(fence)
	e.Length = utf16Len(p.out.String()) - e.Offset
	p.add(e)
	return nil
}

// link reads the rest of [text](url) after the text.
func (p *markdown) link() *apiError {
	top := p.stack[len(p.stack)-1]
	p.stack = p.stack[:len(p.stack)-1]
	p.i++
	e := Entity{Type: "text_link", Offset: top.at, Length: utf16Len(p.out.String()) - top.at}
	if !strings.HasPrefix(p.src[p.i:], "(") {
		return nil
	}
	start := p.i
	var url strings.Builder
	for p.i++; ; p.i++ {
		switch {
		case p.i >= len(p.src):
			return cannotParse("Can't find end of a URL at byte offset %d", start)
		case p.src[p.i] == ')':
			p.i++
			if e.URL = url.String(); e.URL != "" {
				p.add(e)
			}
			return nil
		case p.src[p.i] == '\\' && p.i+1 < len(p.src):
			p.i++
		}
		url.WriteByte(p.src[p.i])
	}
}
