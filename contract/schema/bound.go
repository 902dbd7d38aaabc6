package schema

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxSteps bounds how many schemas may apply to one value. The library follows
// references without a bound, so a cycle would crash the process.
const maxSteps = 10_000

// bounded refuses schemas that refer to themselves for the same value, directly or
// through others, and schemas in which too many parts apply to one value.
func bounded(root *jsonschema.Schema) error {
	b := bounds{root: root, steps: map[*jsonschema.Schema]int{}}
	return b.all(root)
}

type bounds struct {
	root  *jsonschema.Schema
	steps map[*jsonschema.Schema]int // for one value; 0: unknown, -1: being counted
}

// all bounds a schema and every schema in it.
func (b *bounds) all(s *jsonschema.Schema) error {
	if s == nil {
		return nil
	}
	if _, err := b.count(s); err != nil {
		return err
	}
	for _, part := range parts(s) {
		if err := b.all(part); err != nil {
			return err
		}
	}
	return nil
}

func (b *bounds) count(s *jsonschema.Schema) (int, error) {
	switch {
	case s == nil:
		return 0, nil
	case b.steps[s] < 0:
		return 0, errors.New("the schema refers to itself for the same value")
	case b.steps[s] > 0:
		return b.steps[s], nil
	case s.DynamicRef != "":
		return 0, errors.New("$dynamicRef is not supported")
	}
	b.steps[s] = -1
	same := inPlace(s)
	if s.Ref != "" {
		target := find(b.root, s.Ref)
		if target == nil {
			if !strings.HasPrefix(s.Ref, "#") {
				return 0, outside(s.Ref)
			}
			return 0, fmt.Errorf("$ref %q not found: write #, #/$defs/name or a path to another part", s.Ref)
		}
		same = append(same, target)
	}
	total := 1
	for _, part := range same {
		n, err := b.count(part)
		if err != nil {
			return 0, err
		}
		if total += n; total > maxSteps {
			return 0, fmt.Errorf("more than %d parts of the schema apply to one value", maxSteps)
		}
	}
	b.steps[s] = total
	return total, nil
}

func outside(ref string) error {
	return fmt.Errorf("%s is outside of the schema: a schema may refer only to its own parts", ref)
}

// inPlace returns the schemas in s that apply to the same value as s.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	same := []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		same = append(same, list...)
	}
	for _, m := range []map[string]*jsonschema.Schema{s.DependentSchemas, s.DependencySchemas} {
		for _, part := range m {
			same = append(same, part)
		}
	}
	return same
}

// parts returns all direct subschemas of s.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	all := append(inPlace(s), s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems, s.AdditionalProperties,
		s.PropertyNames, s.UnevaluatedProperties, s.ContentSchema)
	all = append(append(all, s.PrefixItems...), s.ItemsArray...)
	for _, m := range []map[string]*jsonschema.Schema{s.Properties, s.PatternProperties, s.Defs, s.Definitions} {
		for _, part := range m {
			all = append(all, part)
		}
	}
	return all
}

// find resolves a reference within root; nil if it names nothing.
func find(root *jsonschema.Schema, ref string) *jsonschema.Schema {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	s := root
	steps := strings.Split(pointer, "/")[1:]
	for i := 0; s != nil && i < len(steps); i++ {
		var named map[string]*jsonschema.Schema
		var listed []*jsonschema.Schema
		switch steps[i] {
		case "properties":
			named = s.Properties
		case "patternProperties":
			named = s.PatternProperties
		case "$defs":
			named = s.Defs
		case "definitions":
			named = s.Definitions
		case "allOf":
			listed = s.AllOf
		case "anyOf":
			listed = s.AnyOf
		case "oneOf":
			listed = s.OneOf
		case "prefixItems":
			listed = s.PrefixItems
		case "items":
			s = s.Items
			continue
		case "additionalProperties":
			s = s.AdditionalProperties
			continue
		default:
			return nil
		}
		if i++; i == len(steps) {
			return nil
		}
		if named != nil {
			name, err := url.PathUnescape(strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[i]))
			if err != nil {
				return nil
			}
			s = named[name]
			continue
		}
		n, err := strconv.Atoi(steps[i])
		if err != nil || n < 0 || n >= len(listed) {
			return nil
		}
		s = listed[n]
	}
	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		return nil // an anchor
	}
	return s
}
