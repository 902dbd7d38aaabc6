package strictyaml

import (
	"fmt"
	"math"

	"gopkg.in/yaml.v3"
)

// tree decodes a free value into what JSON can hold.
func (d *decoder) tree(n *yaml.Node, path string) (any, bool) {
	if d.depth++; d.depth > maxDepth {
		d.fault(n, path, Faultf("nested deeper than %d levels", maxDepth))
		d.depth--
		return nil, false
	}
	defer func() { d.depth-- }()
	switch n.Kind {
	case yaml.AliasNode:
		d.fault(n, path, Faultf("aliases (*%s) are not supported: write the value out", n.Value))
		return nil, false
	case yaml.MappingNode:
		out := map[string]any{}
		for _, p := range d.pairs(n, path) {
			if v, ok := d.tree(p.value, join(path, p.key.Value)); ok {
				out[p.key.Value] = v
			}
		}
		return out, true
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for i, item := range n.Content {
			at := path + fmt.Sprintf("[%d]", i)
			d.doc.positions[at] = position{item.Line, item.Column, item.Line, item.Column}
			if v, ok := d.tree(item, at); ok {
				out = append(out, v)
			}
		}
		return out, true
	}
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return nil, true
	case "!!str", "!!timestamp", "!!merge":
		return n.Value, true
	case "!!bool", "!!int", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			d.fault(n, path, Faultf("expected %s to be what the tag %s says", quote(n.Value), tag))
			return nil, false
		}
		switch x := v.(type) {
		case int:
			return int64(x), true
		case float64:
			if math.IsNaN(x) || math.IsInf(x, 0) {
				d.fault(n, path, Faultf("%s is no number that JSON can hold", n.Value))
				return nil, false
			}
		}
		return v, true
	default:
		d.fault(n, path, Faultf("the tag %s is not supported", tag))
		return nil, false
	}
}
