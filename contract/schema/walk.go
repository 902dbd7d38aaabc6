package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/mail"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/switchboard-run/switchboard/contract/words"
)

// walk collects all problems of a value. The library stops at the first one and
// doesn't report its path, so walk visits each part of the value and checks one
// keyword at a time.
type walk struct {
	root     *jsonschema.Schema
	problems []Problem
}

func (w *walk) report(path []string, text string) {
	w.problems = append(w.problems, Problem{Path: path, Text: text})
}

func (w *walk) check(s *jsonschema.Schema, value any, path []string) {
	if s == nil {
		return
	}
	if isFalse(s) {
		w.problems = append(w.problems, Problem{Path: path, Unknown: true, Text: words.Sprintf("is not allowed here")})
		return
	}
	if s.Ref != "" {
		w.check(find(w.root, s.Ref), value, path)
	}
	if !w.keywords(s, value, path) {
		return // the other keywords don't apply to a value of another type
	}
	for _, part := range s.AllOf {
		w.check(part, value, path)
	}
	w.alternatives(s.AnyOf, value, path)
	w.alternatives(s.OneOf, value, path)
	switch v := value.(type) {
	case map[string]any:
		w.object(s, v, path)
	case []any:
		for i, item := range v {
			part := s.Items
			if i < len(s.PrefixItems) {
				part = s.PrefixItems[i]
			}
			w.check(part, item, at(path, strconv.Itoa(i)))
		}
	}
}

func (w *walk) object(s *jsonschema.Schema, v map[string]any, path []string) {
	for _, name := range s.Required {
		if _, given := v[name]; !given {
			w.problems = append(w.problems, Problem{Path: at(path, name), Missing: true, Text: words.Sprintf("is required")})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		part, known := s.Properties[name]
		for pattern, p := range s.PatternProperties {
			if re, err := regexp.Compile(pattern); err == nil && re.MatchString(name) {
				part, known = p, true
			}
		}
		switch {
		case known:
			w.check(part, v[name], at(path, name))
		case s.AdditionalProperties != nil && isFalse(s.AdditionalProperties):
			w.problems = append(w.problems, Problem{
				Path: at(path, name), Unknown: true, Text: "unknown field", Known: slices.Sorted(maps.Keys(s.Properties)),
			})
		default:
			w.check(s.AdditionalProperties, v[name], at(path, name))
		}
	}
}

// alternatives reports a value that fits none of the schemas as one problem. If
// only one of them has the value's type, it reports that one's problems instead.
func (w *walk) alternatives(all []*jsonschema.Schema, value any, path []string) {
	var why []string
	var near [][]Problem
	missing := false
	for _, s := range all {
		alternative := walk{root: w.root}
		alternative.check(s, value, path)
		if len(alternative.problems) == 0 {
			return
		}
		onlyMissing := true
		for _, p := range alternative.problems {
			text := p.Text
			if len(p.Path) > len(path) {
				text = strings.Join(p.Path[len(path):], ".") + " " + p.Text
			}
			why = append(why, text)
			onlyMissing = onlyMissing && p.Missing
		}
		missing = missing || onlyMissing
		if p := alternative.problems[0]; !p.otherType || len(p.Path) > len(path) {
			near = append(near, alternative.problems)
		}
	}
	switch {
	case len(near) == 1:
		w.problems = append(w.problems, near[0]...)
	case len(why) > 0:
		text := "fits none of the alternatives: " + strings.Join(slices.Compact(why), "; or ")
		w.problems = append(w.problems, Problem{Path: path, Missing: missing, Text: text})
	}
}

// keywords checks the keywords about the value itself. It returns false if the
// value has another type.
func (w *walk) keywords(s *jsonschema.Schema, value any, path []string) bool {
	if types := append(slices.Clone(s.Types), s.Type); len(types) > 1 || s.Type != "" {
		if !w.fits(&jsonschema.Schema{Type: s.Type, Types: s.Types}, value) {
			types = slices.DeleteFunc(types, func(t string) bool { return t == "" })
			text := words.Sprintf("got %v, want %v", typeOf(value), strings.Join(types, " or ")) + example(s)
			w.problems = append(w.problems, Problem{Path: path, Text: text, otherType: true})
			return false
		}
	}
	for _, k := range []struct {
		given bool
		only  jsonschema.Schema
		text  func() string
	}{
		{s.Enum != nil, jsonschema.Schema{Enum: s.Enum}, func() string {
			return words.Sprintf("must be one of %s", list(s.Enum))
		}},
		{s.Const != nil, jsonschema.Schema{Const: s.Const}, func() string {
			return words.Sprintf("must be %s", list([]any{*s.Const}))
		}},
		{s.Minimum != nil, jsonschema.Schema{Minimum: s.Minimum}, func() string {
			return words.Sprintf("got %s, want at least %s", fmt.Sprint(value), number(s.Minimum))
		}},
		{s.Maximum != nil, jsonschema.Schema{Maximum: s.Maximum}, func() string {
			return words.Sprintf("got %s, want at most %s", fmt.Sprint(value), number(s.Maximum))
		}},
		{s.ExclusiveMinimum != nil, jsonschema.Schema{ExclusiveMinimum: s.ExclusiveMinimum}, func() string {
			return words.Sprintf("got %s, want more than %s", fmt.Sprint(value), number(s.ExclusiveMinimum))
		}},
		{s.ExclusiveMaximum != nil, jsonschema.Schema{ExclusiveMaximum: s.ExclusiveMaximum}, func() string {
			return words.Sprintf("got %s, want less than %s", fmt.Sprint(value), number(s.ExclusiveMaximum))
		}},
		{s.MultipleOf != nil, jsonschema.Schema{MultipleOf: s.MultipleOf}, func() string {
			return words.Sprintf("got %s, want a multiple of %s", fmt.Sprint(value), number(s.MultipleOf))
		}},
		{s.MinLength != nil, jsonschema.Schema{MinLength: s.MinLength}, func() string {
			return words.Count("", "want at least %d character", "want at least %d characters", *s.MinLength, *s.MinLength)
		}},
		{s.MaxLength != nil, jsonschema.Schema{MaxLength: s.MaxLength}, func() string {
			return words.Count("", "want at most %d character", "want at most %d characters", *s.MaxLength, *s.MaxLength)
		}},
		{s.MinItems != nil, jsonschema.Schema{MinItems: s.MinItems}, func() string {
			return words.Count("", "want at least %d item", "want at least %d items", *s.MinItems, *s.MinItems)
		}},
		{s.MaxItems != nil, jsonschema.Schema{MaxItems: s.MaxItems}, func() string {
			return words.Count("", "want at most %d item", "want at most %d items", *s.MaxItems, *s.MaxItems)
		}},
		{s.Pattern != "", jsonschema.Schema{Pattern: s.Pattern}, func() string {
			if example := example(s); example != "" {
				return words.Sprintf("%s does not have the right form", list([]any{value})) + example
			}
			return words.Sprintf("%s does not match %q", list([]any{value}), s.Pattern)
		}},
	} {
		if k.given && !w.fits(&k.only, value) {
			w.report(path, k.text())
		}
	}
	if text, ok := value.(string); ok && formats[s.Format] != nil {
		if err := formats[s.Format](text); err != nil {
			w.report(path, words.Sprintf("%s is not a valid %s: %v", list([]any{value}), s.Format, err))
		}
	}
	w.rest(s, value, path)
	return true
}

// example is what to write instead, if the schema has examples.
func example(s *jsonschema.Schema) string {
	if len(s.Examples) == 0 {
		return ""
	}
	return words.Sprintf(": write %s, for example", list(s.Examples[:1]))
}

// rest checks the other keywords, and reports them in the library's words.
func (w *walk) rest(s *jsonschema.Schema, value any, path []string) {
	only := &jsonschema.Schema{
		UniqueItems: s.UniqueItems, Contains: s.Contains, MinContains: s.MinContains, MaxContains: s.MaxContains,
		MinProperties: s.MinProperties, MaxProperties: s.MaxProperties, PropertyNames: s.PropertyNames,
		DependentRequired: s.DependentRequired, DependentSchemas: s.DependentSchemas, DependencySchemas: s.DependencySchemas,
		DependencyStrings: s.DependencyStrings, Not: s.Not, If: s.If, Then: s.Then, Else: s.Else,
	}
	if reflect.DeepEqual(only, &jsonschema.Schema{}) {
		return
	}
	only.Schema, only.Defs, only.Definitions = w.root.Schema, w.root.Defs, w.root.Definitions
	resolved, err := only.CloneSchemas().Resolve(nil)
	if err != nil {
		return // refers to another part: Check validates the whole schema
	}
	if err := resolved.Validate(value); err != nil {
		w.report(path, lastCause(err))
	}
}

// fits reports whether a value fits a schema without subschemas.
func (w *walk) fits(s *jsonschema.Schema, value any) bool {
	resolved, err := s.Resolve(nil)
	return err != nil || resolved.Validate(value) == nil
}

// formats maps each supported format to its check.
var formats = map[string]func(string) error{
	"uri": func(s string) error {
		if u, err := url.Parse(s); err != nil || !u.IsAbs() {
			return fmt.Errorf("a scheme such as https is missing")
		}
		return nil
	},
	"email":     func(s string) error { _, err := mail.ParseAddress(s); return err },
	"date":      func(s string) error { _, err := time.Parse(time.DateOnly, s); return err },
	"time":      func(s string) error { _, err := time.Parse("15:04:05Z07:00", s); return err },
	"date-time": func(s string) error { _, err := time.Parse(time.RFC3339, s); return err },
	"ipv4":      func(s string) error { _, err := netip.ParseAddr(s); return err },
	"ipv6":      func(s string) error { _, err := netip.ParseAddr(s); return err },
	"regex":     func(s string) error { _, err := regexp.Compile(s); return err },
}

// isFalse reports whether s is the schema false, which the library reads as
// {"not": {}}.
func isFalse(s *jsonschema.Schema) bool {
	return s.Not != nil && reflect.DeepEqual(s, &jsonschema.Schema{Not: &jsonschema.Schema{}})
}

func at(path []string, step string) []string { return append(slices.Clone(path), step) }

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	}
	return "number"
}

func number(f *float64) string { return strconv.FormatFloat(*f, 'f', -1, 64) }

// list joins the values, encoded as JSON.
func list(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		raw, err := json.Marshal(v)
		if err != nil {
			raw = []byte(fmt.Sprint(v))
		}
		texts[i] = string(raw)
	}
	return strings.Join(texts, ", ")
}

// lastCause returns the library's message without its paths.
func lastCause(err error) string {
	text := err.Error()
	if strings.Contains(text, ": not: ") {
		return "has a form that is not allowed"
	}
	if i := strings.LastIndex(text, "<anonymous schema>: "); i >= 0 {
		text = text[i+len("<anonymous schema>: "):]
	}
	return strings.TrimPrefix(text, "validating root: ")
}
