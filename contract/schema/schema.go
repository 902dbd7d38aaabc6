// Package schema checks JSON values against JSON Schemas (drafts 2020-12 and 7)
// and reports every mistake with its path. It checks the arguments of tools and
// commands, and the configuration of extensions.
//
// A schema refers only to its own parts: it can't make the kernel read a file or
// an address. The formats uri, email, date, time, date-time, ipv4 and ipv6 are
// checked, other formats are not. Regular expressions are Go's (RE2).
//
// A *Schema is immutable and safe for concurrent use.
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is a compiled JSON Schema.
type Schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
	formats  bool // may name formats, which the library doesn't check
}

// Problem is one mistake in a value.
type Problem struct {
	Path    []string // property names and array indexes, from the top of the value
	Unknown bool     // the schema doesn't allow this property
	Missing bool     // adding something absent would fix the value
	Text    string   // without the path, such as "got string, want integer"
	Known   []string // for an unknown property: the names that the schema lists

	otherType bool // the value doesn't have the schema's type
}

// String returns the problem in one line, with its path.
func (p Problem) String() string {
	if len(p.Path) == 0 {
		return p.Text
	}
	return strings.Join(p.Path, ".") + ": " + p.Text
}

// Error lists the mistakes of a schema that can't be compiled.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Compile compiles a schema, given as JSON. A mistake in the schema is an *Error;
// any other error means that raw is not JSON.
func Compile(raw []byte) (*Schema, error) {
	var document any
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	s, err := compile(raw)
	if meta := keywords(); err != nil || meta.resolved.Validate(document) != nil {
		w := walk{root: meta.root}
		w.check(meta.root, document, nil)
		if len(w.problems) == 0 {
			w.report(nil, err.Error())
		}
		return nil, &Error{w.problems}
	}
	return s, nil
}

func compile(raw []byte) (*Schema, error) {
	s := &Schema{root: &jsonschema.Schema{}, formats: bytes.Contains(raw, []byte(`"format"`))}
	if err := json.Unmarshal(raw, s.root); err != nil {
		return nil, err
	}
	if err := bounded(s.root); err != nil {
		return s, err
	}
	var err error
	load := func(address *url.URL) (*jsonschema.Schema, error) { return nil, outside(address.String()) }
	s.resolved, err = s.root.Resolve(&jsonschema.ResolveOptions{Loader: load})
	return s, err
}

// Check returns the problems of a value as encoding/json decodes it, ordered by
// property name; none if it fits. A nil Schema accepts anything.
func (s *Schema) Check(value any) []Problem {
	if s == nil {
		return nil
	}
	err := s.resolved.Validate(value)
	if err == nil && !s.formats {
		return nil
	}
	w := walk{root: s.root}
	w.check(s.root, value, nil)
	if len(w.problems) == 0 && err != nil {
		w.report(nil, lastCause(err))
	}
	return w.problems
}

// keywords is the schema of schemas. It is compiled on first use.
var keywords = sync.OnceValue(func() *Schema {
	s, err := compile([]byte(metaschema))
	if err != nil {
		panic("compile the schema of schemas: " + err.Error())
	}
	return s
})

const metaschema = `{"$ref": "#/$defs/any", "$defs": {
	"any": {"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/schema"}]},
	"list": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/any"}},
	"map": {"type": "object", "additionalProperties": {"$ref": "#/$defs/any"}},
	"count": {"type": "integer", "minimum": 0},
	"names": {"type": "array", "items": {"type": "string"}},
	"type": {"enum": ["array", "boolean", "integer", "null", "number", "object", "string"]},
	"schema": {"type": "object", "properties": {
		"type": {"anyOf": [{"$ref": "#/$defs/type"}, {"type": "array", "items": {"$ref": "#/$defs/type"}}]},
		"$ref": {"type": "string"}, "title": {"type": "string"}, "description": {"type": "string"},
		"format": {"type": "string"}, "enum": {"type": "array"}, "required": {"$ref": "#/$defs/names"},
		"minimum": {"type": "number"}, "maximum": {"type": "number"}, "multipleOf": {"type": "number", "exclusiveMinimum": 0},
		"exclusiveMinimum": {"type": "number"}, "exclusiveMaximum": {"type": "number"},
		"minLength": {"$ref": "#/$defs/count"}, "maxLength": {"$ref": "#/$defs/count"},
		"minItems": {"$ref": "#/$defs/count"}, "maxItems": {"$ref": "#/$defs/count"},
		"minProperties": {"$ref": "#/$defs/count"}, "maxProperties": {"$ref": "#/$defs/count"},
		"pattern": {"type": "string", "format": "regex"}, "uniqueItems": {"type": "boolean"},
		"properties": {"$ref": "#/$defs/map"}, "patternProperties": {"$ref": "#/$defs/map"},
		"$defs": {"$ref": "#/$defs/map"}, "definitions": {"$ref": "#/$defs/map"},
		"additionalProperties": {"$ref": "#/$defs/any"}, "propertyNames": {"$ref": "#/$defs/any"},
		"items": {"anyOf": [{"$ref": "#/$defs/any"}, {"$ref": "#/$defs/list"}]}, "contains": {"$ref": "#/$defs/any"},
		"allOf": {"$ref": "#/$defs/list"}, "anyOf": {"$ref": "#/$defs/list"}, "oneOf": {"$ref": "#/$defs/list"},
		"not": {"$ref": "#/$defs/any"}, "if": {"$ref": "#/$defs/any"}, "then": {"$ref": "#/$defs/any"},
		"else": {"$ref": "#/$defs/any"}}}}}`
