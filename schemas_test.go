package switchboard

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/switchboard-run/switchboard/contract/schema"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

var update = flag.Bool("update", false, "write docs/schemas anew")

// TestSchemasForEditorsAreUpToDate compares docs/schemas with what the program reads.
func TestSchemasForEditorsAreUpToDate(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]reflect.Type{
		"manifest.json": reflect.TypeFor[manifests.Manifest](), "config.json": reflect.TypeFor[config.Config](),
	} {
		s := schemaOf(of)
		s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", "Switchboard "+strings.TrimSuffix(name, ".json")
		want, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		path := filepath.Join("docs", "schemas", name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is out of date (%v): go test . -run SchemasForEditors -update", path, err)
		}
	}
}

// TestManifestsFitTheirSchema: an editor must not mark what the program accepts.
func TestManifestsFitTheirSchema(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("docs", "schemas", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(manifests.FS, "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := fs.ReadFile(manifests.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		var read any
		if err := yaml.Unmarshal(data, &read); err != nil {
			t.Fatal(err)
		}
		value, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(value, &read); err != nil { // as JSON has it
			t.Fatal(err)
		}
		for _, problem := range s.Check(read) {
			t.Errorf("%s: %s", file, problem)
		}
	}
	if problems := s.Check(object{"api": 1.0, "nmae": "x"}); len(problems) < 2 {
		t.Errorf("mistakes are not found: %v", problems)
	}
}

type object = map[string]any

// schemaOf is the JSON Schema of a struct that strictyaml reads.
func schemaOf(t reflect.Type) object {
	properties, s := object{}, object{"type": "object", "additionalProperties": false}
	var required []string
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || f.Tag.Get("yaml") == "":
			continue
		case options == "rest":
			s["additionalProperties"] = valueOf(f.Type.Elem(), f.Tag)
			continue
		}
		properties[name] = valueOf(f.Type, f.Tag)
		if alias := f.Tag.Get("alias"); alias != "" {
			properties[alias] = properties[name]
		}
		if strings.Contains(options, "required") {
			required = append(required, name)
		}
		if strings.Contains(options, "single") {
			properties[name] = object{"anyOf": []any{properties[name], object{"type": "string"}}}
		}
	}
	if s["properties"] = properties; required != nil {
		s["required"] = required
	}
	return s
}

// valueOf is the JSON Schema of a field.
func valueOf(t reflect.Type, tag reflect.StructTag) object {
	s := object{}
	switch {
	case t == reflect.TypeFor[time.Duration](), t == reflect.TypeFor[strictyaml.Bytes]():
		s["type"] = []string{"string", "integer", "boolean"} // 10m, 256MiB; 0 and false: none
	case t.Kind() == reflect.Pointer:
		return valueOf(t.Elem(), tag)
	case t.Kind() == reflect.Struct:
		s = schemaOf(t)
		if short := shortForm(t); short != "" {
			return object{"anyOf": []any{object{"type": "string"}, s}}
		}
	case t.Kind() == reflect.Slice:
		s["type"], s["items"] = "array", valueOf(t.Elem(), tag)
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Interface:
		s["type"] = "object"
	case t.Kind() == reflect.Map:
		s["type"], s["additionalProperties"] = "object", valueOf(t.Elem(), tag)
	case t.Kind() == reflect.String:
		s["type"] = "string"
		if enum := tag.Get("enum"); enum != "" {
			s["enum"] = strings.Split(enum, "|")
		}
	case t.Kind() == reflect.Float64:
		s["type"] = "number"
	case t.Kind() == reflect.Interface: // any value
	case t.Kind() == reflect.Bool:
		s["type"] = "boolean"
	default:
		s["type"] = "integer"
		for key, bound := range map[string]string{"minimum": tag.Get("min"), "maximum": tag.Get("max")} {
			if n, err := strconv.Atoi(bound); err == nil {
				s[key] = n
			}
		}
	}
	return s
}

// shortForm is the field that the file may give alone in place of the struct.
func shortForm(t reflect.Type) string {
	for f := range t.Fields() {
		if _, options, _ := strings.Cut(f.Tag.Get("yaml"), ","); strings.Contains(options, "short") {
			return f.Name
		}
	}
	return ""
}
