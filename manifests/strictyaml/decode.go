package strictyaml

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/switchboard-run/switchboard/contract/near"
)

// maxDepth bounds the nesting of values.
const maxDepth = 64

type decoder struct {
	doc    *Document
	checks Checks
	depth  int
}

func (d *decoder) fault(n *yaml.Node, path string, f *Fault) {
	if f != nil {
		d.doc.add(n.Line, n.Column, path, *f)
	}
}

// document decodes the file; root is nil if it is empty.
func (d *decoder) document(root *yaml.Node, v reflect.Value) {
	if root == nil || isNull(root) {
		root = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}
	}
	if root.Kind != yaml.MappingNode {
		d.fault(root, "", Faultf("expected a mapping (name: value lines), found %s", describe(root)))
		return
	}
	d.doc.positions[""] = position{root.Line, root.Column, root.Line, root.Column}
	d.value(root, "", v, rules{}, false)
}

// value decodes a node into v and records the problems.
func (d *decoder) value(n *yaml.Node, path string, v reflect.Value, r rules, single bool) {
	if d.depth++; d.depth > maxDepth {
		d.fault(n, path, Faultf("nested deeper than %d levels", maxDepth))
		d.depth--
		return
	}
	defer func() { d.depth-- }()
	if n.Kind == yaml.AliasNode {
		d.fault(n, path, Faultf("aliases (*%s) are not supported: write the value out", n.Value))
		return
	}
	t := v.Type()
	switch t.Kind() {
	case reflect.Pointer:
		target := reflect.New(t.Elem())
		d.defaults(target.Elem())
		d.value(n, path, target.Elem(), r, single)
		v.Set(target)
	case reflect.Interface:
		if tree, ok := d.tree(n, path); ok && tree != nil {
			v.Set(reflect.ValueOf(tree))
		}
	case reflect.Struct:
		if short, ok := shortField(t); ok && n.Kind == yaml.ScalarNode {
			at := join(path, short.name)
			d.doc.positions[at] = d.doc.positions[path]
			d.value(n, at, v.Field(short.index), short.rules, false)
			return
		}
		if n.Kind != yaml.MappingNode {
			d.fault(n, path, Faultf("expected %s, found %s", wanted(t), describe(n)))
			return
		}
		d.structure(n, path, v)
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			d.fault(n, path, Faultf("expected %s, found %s", wanted(t), describe(n)))
			return
		}
		d.mapping(d.pairs(n, path), path, v, r, nil)
	case reflect.Slice:
		d.list(n, path, v, r, single)
	default:
		d.scalar(n, path, v, r)
	}
}

func (d *decoder) scalar(n *yaml.Node, path string, v reflect.Value, r rules) {
	if n.Kind != yaml.ScalarNode {
		d.fault(n, path, Faultf("expected %s, found %s", wanted(v.Type()), describe(n)))
		return
	}
	tag := n.ShortTag()
	switch tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp":
	case "!!merge":
		tag = "!!str"
	default:
		d.fault(n, path, Faultf("the tag %s is not supported", tag))
		return
	}
	parsed := reflect.New(v.Type()).Elem()
	if f := setScalar(parsed, n.Value, tag); f != nil {
		d.fault(n, path, f)
		return
	}
	var f *Fault
	switch {
	case parsed.Kind() == reflect.String && len(r.enum) > 0:
		f = oneOf(parsed.String(), r.enum)
	case parsed.Kind() == reflect.String && r.check != "":
		f = d.check(r.check)(parsed.String())
	case parsed.CanInt() || parsed.CanFloat():
		f = inRange(parsed, r)
	}
	if f != nil {
		d.fault(n, path, f)
		return
	}
	v.Set(parsed)
}

func oneOf(value string, allowed []string) *Fault {
	if slices.Contains(allowed, value) {
		return nil
	}
	return &Fault{
		Message:    fmt.Sprintf("%s is not one of %s", quote(value), strings.Join(allowed, ", ")),
		Suggestion: near.Best(value, allowed),
	}
}

func (d *decoder) check(name string) Check {
	c, ok := d.checks[name]
	if !ok {
		panic("strictyaml: the schema names an unknown check " + name)
	}
	return c
}

func (d *decoder) list(n *yaml.Node, path string, v reflect.Value, r rules, single bool) {
	nodes := n.Content
	if n.Kind != yaml.SequenceNode {
		if !single || n.Kind != yaml.ScalarNode {
			f := Faultf("expected %s, found %s", wanted(v.Type()), describe(n))
			if n.Kind == yaml.ScalarNode && v.Type().Elem().Kind() == reflect.String {
				f.Message += fmt.Sprintf(": write [%s]", n.Value)
			}
			d.fault(n, path, f)
			return
		}
		nodes = []*yaml.Node{n}
	}
	out := reflect.MakeSlice(v.Type(), len(nodes), len(nodes))
	seen := map[string]int{}
	for i, item := range nodes {
		at := path + fmt.Sprintf("[%d]", i)
		d.doc.positions[at] = position{item.Line, item.Column, item.Line, item.Column}
		target := out.Index(i)
		d.defaults(target)
		if isNull(item) {
			d.fault(item, at, Faultf("is empty"))
			continue
		}
		d.value(item, at, target, rules{enum: r.enum, min: r.min, max: r.max, check: r.check}, false)
		if same := uniqueValue(item, v.Type().Elem(), r.unique); same != "" {
			if first, dup := seen[same]; dup {
				d.fault(item, at, Faultf("%s is already in the list, in line %d", quote(same), nodes[first].Line))
			} else {
				seen[same] = i
			}
		}
	}
	v.Set(out)
}

// uniqueValue returns the text that must be unique in a list.
func uniqueValue(n *yaml.Node, t reflect.Type, key string) string {
	if key == "" {
		return ""
	}
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	if n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key && n.Content[i+1].Kind == yaml.ScalarNode {
				return n.Content[i+1].Value
			}
		}
	}
	return ""
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	return describeScalar(n.Value, n.ShortTag())
}
