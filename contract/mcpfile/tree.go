package mcpfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// node is a value of the file with its position.
type node struct {
	at     int // offset in the file
	value  any // string, json.Number, bool, nil; else it is an object or a list
	object []member
	list   []*node
	kind   string // object, list, string, number, true or false, null
}

type member struct {
	name  string
	at    int
	value *node
}

// plain replaces comments and trailing commas by spaces, so that offsets remain.
func plain(data []byte) []byte {
	out := bytes.Clone(data)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' && out[i] != '\r' {
				out[i] = ' '
			}
		}
	}
	comma := -1
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			for i++; i < len(out) && out[i] != '"' && out[i] != '\n'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
			comma = -1
		case c == '/' && bytes.HasPrefix(out[i:], []byte("//")):
			end := i + len(line(out[i:]))
			blank(i, end)
			i = end - 1
		case c == '/' && bytes.HasPrefix(out[i:], []byte("/*")):
			end := len(out)
			if n := bytes.Index(out[i+2:], []byte("*/")); n >= 0 {
				end = i + 2 + n + 2
			}
			blank(i, end)
			i = end - 1
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			out[comma], comma = ' ', -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			comma = -1
		}
	}
	return out
}

func line(data []byte) []byte {
	first, _, _ := bytes.Cut(data, []byte("\n"))
	return first
}

// parser reads the values of a file.
type parser struct {
	data []byte
	dec  *json.Decoder
}

// maxDepth bounds how deep values are nested.
const maxDepth = 50

func parse(data []byte) (*node, *Problem) {
	p := &parser{data: plain(data)}
	p.dec = json.NewDecoder(bytes.NewReader(p.data))
	p.dec.UseNumber()
	root, err := p.value(0)
	if err == nil {
		if at := p.next(); at < len(p.data) {
			return nil, p.problem(at, "unexpected text after the end of the object")
		}
		return root, nil
	}
	at, text := int(p.dec.InputOffset()), err.Error()
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		at = min(max(at, int(syntax.Offset)-1), len(p.data))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		at, text = len(bytes.TrimRight(p.data, " \t\r\n")), "the file ends too early: a bracket or a quote is missing"
	}
	return nil, p.problem(at, "invalid JSON: "+text)
}

// next returns the offset of the next value or name.
func (p *parser) next() int {
	at := int(p.dec.InputOffset())
	for at < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[at]) >= 0 {
		at++
	}
	return at
}

func (p *parser) value(depth int) (*node, error) {
	n := &node{at: p.next()}
	token, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("values are nested more than %d deep", maxDepth)
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			n.kind = "a list"
			for p.dec.More() {
				item, err := p.value(depth + 1)
				if err != nil {
					return nil, err
				}
				n.list = append(n.list, item)
			}
		} else {
			n.kind = "an object"
			for p.dec.More() {
				m := member{at: p.next()}
				key, err := p.dec.Token()
				if err != nil {
					return nil, err
				}
				m.name, _ = key.(string)
				if m.value, err = p.value(depth + 1); err != nil {
					return nil, err
				}
				n.object = append(n.object, m)
			}
		}
		_, err = p.dec.Token()
		return n, err
	case string:
		n.kind = "a text"
	case bool:
		n.kind = "true or false"
	case json.Number:
		n.kind = "a number"
	default:
		n.kind = "null"
	}
	n.value = token
	return n, nil
}

// problem is a mistake at an offset.
func (p *parser) problem(at int, text string) *Problem {
	at = min(at, len(p.data))
	before := p.data[:at]
	start := bytes.LastIndexByte(before, '\n') + 1
	return &Problem{Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(before[start:]) + 1, Text: text}
}
