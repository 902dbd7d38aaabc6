package strictyaml

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// field is what the tags of one struct field say.
type field struct {
	index                         int
	name, alias                   string
	required, short, single, rest bool
	rules                         rules
}

// rules are the constraints on a value or on the elements of a list or map.
type rules struct {
	enum                []string
	min, max            string
	check, keys, unique string
	fallback            string
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	bytesType    = reflect.TypeFor[Bytes]()
)

// known are the fields of the types that were read: reading tags takes longer than
// reading what they describe.
var known sync.Map // of reflect.Type to []field

func fields(t reflect.Type) []field {
	if all, ok := known.Load(t); ok {
		return all.([]field)
	}
	all := readFields(t)
	known.Store(t, all)
	return all
}

func readFields(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("yaml")
		if !ok || tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		out := field{
			index: i, name: name, alias: f.Tag.Get("alias"),
			rules: rules{
				min: f.Tag.Get("min"), max: f.Tag.Get("max"), check: f.Tag.Get("check"),
				keys: f.Tag.Get("keys"), unique: f.Tag.Get("unique"), fallback: f.Tag.Get("default"),
			},
		}
		if e := f.Tag.Get("enum"); e != "" {
			out.rules.enum = strings.Split(e, "|")
		}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "required":
				out.required = true
			case "short":
				out.short = true
			case "single":
				out.single = true
			case "rest":
				out.rest = true
			}
		}
		all = append(all, out)
	}
	return all
}

func names(all []field) []string {
	var out []string
	for _, f := range all {
		if !f.rest {
			out = append(out, f.name)
		}
	}
	return out
}

// shortField is the field that may stand for its whole mapping.
func shortField(t reflect.Type) (field, bool) {
	if t.Kind() != reflect.Struct {
		return field{}, false
	}
	all := fields(t)
	i := slices.IndexFunc(all, func(f field) bool { return f.short })
	if i < 0 {
		return field{}, false
	}
	return all[i], true
}

// defaults fills a struct with the defaults of its tags. A default that does
// not parse is a mistake in this program, so it panics.
func (d *decoder) defaults(v reflect.Value) {
	if v.Kind() != reflect.Struct {
		return
	}
	for _, f := range fields(v.Type()) {
		target := v.Field(f.index)
		if f.rules.fallback == "" {
			d.defaults(target)
			continue
		}
		if fault := setScalar(target, f.rules.fallback, ""); fault != nil {
			panic("strictyaml: default of " + v.Type().String() + "." + f.name + ": " + fault.Message)
		}
	}
}
