package strictyaml

import (
	"fmt"
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/switchboard-run/switchboard/contract/near"
)

type pair struct{ key, value *yaml.Node }

// pairs returns the entries of a mapping with valid keys, and records their positions.
func (d *decoder) pairs(n *yaml.Node, path string) []pair {
	var out []pair
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.fault(key, path, Faultf("a key must be a string, found %s", describe(key)))
			continue
		}
		switch tag := key.ShortTag(); tag {
		case "!!str", "!!timestamp":
		case "!!merge":
			d.fault(key, path, Faultf("merge keys (<<) are not supported: write the values out"))
			continue
		default:
			d.fault(key, path, Faultf("a key must be a string, found %s: put it in quotes", describe(key)))
			continue
		}
		at := join(path, key.Value)
		if line, ok := seen[key.Value]; ok {
			d.fault(key, at, Faultf("duplicate key, first in line %d", line))
			continue
		}
		seen[key.Value] = key.Line
		where := position{value.Line, value.Column, key.Line, key.Column}
		if isNull(value) {
			where.line, where.column = key.Line, key.Column
		}
		d.doc.positions[at] = where
		out = append(out, pair{key, value})
	}
	return out
}

func (d *decoder) structure(n *yaml.Node, path string, v reflect.Value) {
	all := fields(v.Type())
	known := names(all)
	rest := slices.IndexFunc(all, func(f field) bool { return f.rest })
	given := map[string]pair{}
	var others []pair
	for _, p := range d.pairs(n, path) {
		i := slices.IndexFunc(all, func(f field) bool {
			return !f.rest && (f.name == p.key.Value || f.alias != "" && f.alias == p.key.Value)
		})
		at := join(path, p.key.Value)
		switch {
		case i < 0 && rest >= 0:
			others = append(others, p)
		case i < 0:
			f := Fault{Message: "unknown field", Suggestion: near.Best(p.key.Value, known)}
			d.doc.add(p.key.Line, p.key.Column, at, f)
		default:
			name := all[i].name
			if first, dup := given[name]; dup {
				d.fault(p.key, at, Faultf("is the same as %s in line %d: use one of them", first.key.Value, first.key.Line))
				continue
			}
			d.doc.positions[join(path, name)] = d.doc.positions[at]
			given[name] = p
		}
	}
	for _, f := range all {
		if f.rest {
			d.mapping(others, path, v.Field(f.index), f.rules, known)
			continue
		}
		p, ok := given[f.name]
		at := join(path, f.name)
		switch {
		case !ok:
			if f.required {
				d.doc.Report(at, "is required")
			}
		case isNull(p.value) && f.required:
			d.fault(p.key, at, Faultf("is required and empty"))
		case isNull(p.value) && v.Field(f.index).Kind() == reflect.Pointer:
			d.fault(p.key, at, Faultf("is empty: write its fields, {} for the defaults, or remove it"))
		case isNull(p.value) && v.Field(f.index).Kind() != reflect.Interface:
			delete(d.doc.positions, at)
		default:
			d.value(p.value, at, v.Field(f.index), f.rules, f.single)
		}
	}
}

// mapping decodes entries into a map. known are the fields beside a rest map, to suggest
// for a misspelled key.
func (d *decoder) mapping(entries []pair, path string, v reflect.Value, r rules, known []string) {
	t := v.Type()
	if t.Elem().Kind() == reflect.Interface && r.check == "" {
		out := map[string]any{}
		for _, p := range entries {
			if tree, ok := d.tree(p.value, join(path, p.key.Value)); ok {
				out[p.key.Value] = tree
			}
		}
		v.Set(reflect.ValueOf(out))
		return
	}
	out := reflect.MakeMapWithSize(t, len(entries))
	for _, p := range entries {
		at := join(path, p.key.Value)
		elem := reflect.New(t.Elem()).Elem()
		d.defaults(elem)
		if elem.Kind() == reflect.Struct && p.value.Kind != yaml.MappingNode && known != nil {
			if !isNull(p.value) {
				f := Fault{
					Message:    fmt.Sprintf("expected %s, found %s", wanted(t.Elem()), describe(p.value)),
					Suggestion: near.Best(p.key.Value, known),
				}
				d.doc.add(p.key.Line, p.key.Column, at, f)
				continue
			}
		}
		if r.keys != "" {
			if f := d.check(r.keys)(p.key.Value); f != nil {
				d.fault(p.key, at, f)
				continue
			}
		}
		if !isNull(p.value) {
			d.value(p.value, at, elem, rules{enum: r.enum, min: r.min, max: r.max, check: r.check}, false)
		} else if elem.Kind() != reflect.Struct {
			d.fault(p.key, at, Faultf("is empty"))
			continue
		}
		out.SetMapIndex(reflect.ValueOf(p.key.Value), elem)
	}
	v.Set(out)
}
