package strictyaml

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Encode writes a struct as a file that Decode reads back to the same values, with all
// defaults. It leaves out what is absent: a value that is zero and has no default, a nil
// list and an empty map.
func Encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(encode(reflect.ValueOf(v))); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return out.Bytes(), nil
}

// encode returns the node of a value; nil: it is left out.
func encode(v reflect.Value) *yaml.Node {
	switch {
	case v.Type() == durationType:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: FormatDuration(v.Interface().(time.Duration))}
	case v.Type() == bytesType:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.Interface().(Bytes).String()}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return encode(v.Elem())
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, f := range fields(v.Type()) {
			value := v.Field(f.index)
			switch under := encode(value); {
			case f.rest:
				n.Content = append(n.Content, entries(value)...)
			case under == nil, value.IsZero() && value.Kind() != reflect.Struct && f.rules.fallback == "":
			default:
				n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: f.name}, under)
			}
		}
		return some(n)
	case reflect.Map:
		return some(&yaml.Node{Kind: yaml.MappingNode, Content: entries(v)})
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n.Content = append(n.Content, encode(v.Index(i)))
		}
		return n
	case reflect.String:
		if v.Len() == 0 {
			return nil
		}
	case reflect.Interface:
		if v.IsNil() {
			return nil
		}
	}
	n := &yaml.Node{}
	if err := n.Encode(v.Interface()); err != nil {
		panic("strictyaml: " + v.Type().String() + " has no form in a file: " + err.Error())
	}
	return n
}

// entries returns the keys and values of a map, sorted.
func entries(v reflect.Value) (all []*yaml.Node) {
	under := map[string]*yaml.Node{}
	for it := v.MapRange(); it.Next(); {
		n := &yaml.Node{}
		if it.Value().Kind() == reflect.Interface { // a free tree
			_ = n.Encode(it.Value().Interface())
		} else {
			n = encode(it.Value())
		}
		if n != nil {
			under[it.Key().String()] = n
		}
	}
	for _, key := range slices.Sorted(maps.Keys(under)) {
		name := &yaml.Node{}
		name.SetString(key)
		all = append(all, name, under[key])
	}
	return all
}

func some(n *yaml.Node) *yaml.Node {
	if len(n.Content) == 0 {
		return nil
	}
	return n
}

// FormatDuration writes a duration as ParseDuration reads it, in whole days where it has
// them: 30d, 15m, 1d12h.
func FormatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	text := (d % day).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	switch {
	case d < day:
		return text
	case d%day == 0:
		text = ""
	}
	return fmt.Sprintf("%dd%s", d/day, text)
}
