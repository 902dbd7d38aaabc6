// Package strictyaml decodes handwritten configuration files. The target struct is the
// schema. It reports all mistakes of a file at once, each with its position and a
// suggestion for a misspelled name.
//
// It guesses and converts nothing: unknown keys, duplicate keys, values of another type,
// aliases, merge keys and a second document are problems. A key without a value counts as
// absent. After a problem the field keeps its default, so that further checks can run.
//
// The schema is in struct tags. A field without a yaml tag is not read.
//
//	yaml:"name"            the key
//	yaml:"name,required"   the key is required
//	yaml:"name,short"      this value may replace its whole mapping
//	yaml:"name,single"     one value may be written instead of a list of one
//	yaml:",rest"           a map for all keys without a field
//	alias:"other"          another key for the field
//	default:"10s"          the value if absent, written as in the file
//	enum:"a|b"             the values allowed (of each element of a list or map)
//	min:"1" max:"10"       the range allowed, written as in the file
//	check:"topic"          a Check for the string (each element, each map value)
//	keys:"id"              a Check for the keys of a map
//	unique:"name"          the elements of a list differ in this key; "-": in their values
//
// Types: structs and pointers to structs, slices, maps with string keys, string, bool, int
// types, float64, time.Duration (also in days: 30d), Bytes (256MiB), and any and
// map[string]any for free trees (of string, bool, int64, uint64, float64, nil, []any and
// map[string]any).
//
// A Document is safe for concurrent use after the last Report.
package strictyaml

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// MaxSize bounds the size of a file, in bytes.
const MaxSize = 1 << 20

// Check checks a string; nil: it is valid.
type Check func(value string) *Fault

// Checks are the checks by their names in tags.
type Checks map[string]Check

// Document has the positions of all values of a file, for checks after decoding.
type Document struct {
	file      string
	lines     []string
	positions map[string]position
	problems  Problems
}

type position struct {
	line, column       int // of the value
	keyLine, keyColumn int // of its key; of the value itself in a list
}

// Decode decodes data into the struct that into points to, whose type is the schema. The
// file name is for messages.
func Decode(file string, data []byte, into any, checks Checks) *Document {
	d := &Document{file: file, lines: strings.Split(string(data), "\n"), positions: map[string]position{}}
	v := reflect.ValueOf(into).Elem()
	dec := decoder{doc: d, checks: checks}
	dec.defaults(v)
	root := d.parse(data)
	if root == nil && len(d.problems) > 0 {
		return d
	}
	dec.document(root, v)
	return d
}

// Problems returns the problems so far, in the order of the file.
func (d *Document) Problems() Problems { return append(Problems(nil), d.problems...).Sort() }

// Faulty reports whether there is a problem at the path or inside of it.
func (d *Document) Faulty(path string) bool {
	for _, p := range d.problems {
		if rest, ok := strings.CutPrefix(p.Path, path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// Has reports whether the file has a value at the path. The empty path is the whole file,
// which it has if the file is a mapping.
func (d *Document) Has(path string) bool {
	_, ok := d.positions[path]
	return ok
}

// Report adds a problem with the value at the path. Without a value, the position is that
// of the nearest enclosing one.
func (d *Document) Report(path, format string, args ...any) {
	d.ReportFault(path, Fault{Message: fmt.Sprintf(format, args...)})
}

// ReportFault is Report with a suggestion.
func (d *Document) ReportFault(path string, f Fault) {
	p := d.Locate(path, f)
	d.add(p.Line, p.Column, p.Path, f)
}

// ReportKey is ReportFault at the key of the value, not at the value.
func (d *Document) ReportKey(path string, f Fault) {
	p := d.nearest(path)
	d.add(p.keyLine, p.keyColumn, path, f)
}

// Locate returns the problem that ReportFault would add. A missing value is located at the
// key of the enclosing one.
func (d *Document) Locate(path string, f Fault) Problem {
	p := d.nearest(path)
	line, column := p.line, p.column
	if !d.Has(path) {
		line, column = p.keyLine, p.keyColumn
	}
	line, column = d.clamp(line, column)
	return Problem{File: d.file, Line: line, Column: column, Path: path, Message: f.Message, Suggestion: f.Suggestion}
}

// LocateKey is Locate at the key of the value.
func (d *Document) LocateKey(path string, f Fault) Problem {
	p := d.nearest(path)
	line, column := d.clamp(p.keyLine, p.keyColumn)
	return Problem{File: d.file, Line: line, Column: column, Path: path, Message: f.Message, Suggestion: f.Suggestion}
}

func (d *Document) nearest(path string) position {
	for {
		if p, ok := d.positions[path]; ok {
			return p
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			break
		}
		path = path[:cut]
	}
	if p, ok := d.positions[""]; ok {
		return p
	}
	return position{1, 1, 1, 1}
}

func (d *Document) add(line, column int, path string, f Fault) {
	line, column = d.clamp(line, column)
	d.problems = append(d.problems, Problem{
		File: d.file, Line: line, Column: column, Path: path, Message: f.Message, Suggestion: f.Suggestion,
	})
}

// clamp keeps a position inside the file: YAML has more kinds of line breaks than editors
// count.
func (d *Document) clamp(line, column int) (int, int) {
	line = min(max(line, 1), len(d.lines))
	text := strings.TrimSuffix(d.lines[line-1], "\r")
	return line, min(max(column, 1), utf8.RuneCountInString(text)+1)
}
