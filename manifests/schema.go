package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/contract/near"
	"github.com/switchboard-run/switchboard/contract/schema"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// ConfigProblem is one violation of a config's schema.
type ConfigProblem struct {
	Path    []string // keys and, in lists, indexes, from the top of the config
	Key     bool     // the key is wrong, not its value
	Missing bool     // a required value is missing
	Fault   strictyaml.Fault
}

// CheckConfig checks the effective config of the extension against the manifest's
// config_schema and the references of its schedules.
func (m *Manifest) CheckConfig(config map[string]any) []ConfigProblem {
	var out []ConfigProblem
	if compiled, _ := m.compiled(); compiled != nil {
		for _, p := range compiled.Check(asAny(config)) {
			out = append(out, ConfigProblem{Path: p.Path, Key: p.Unknown, Missing: p.Missing, Fault: fault(p)})
		}
	}
	return append(out, m.timingProblems(config, out)...)
}

// asAny turns a nil config into an empty object.
func asAny(config map[string]any) any {
	if config == nil {
		return map[string]any{}
	}
	return config
}

// fault returns a problem without its position.
func fault(p schema.Problem) strictyaml.Fault {
	f := strictyaml.Fault{Message: p.Text}
	if p.Unknown && len(p.Path) > 0 {
		f.Suggestion = near.Best(p.Path[len(p.Path)-1], p.Known)
	}
	return f
}

// properties returns the property names that a schema has for the object at a location.
func properties(schema map[string]any, location []string) []string {
	for _, step := range location {
		props, _ := schema["properties"].(map[string]any)
		next, ok := props[step].(map[string]any)
		if !ok {
			next, _ = schema["items"].(map[string]any)
		}
		schema = next
	}
	props, _ := schema["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(props))
}

// DocumentPath converts a path in a config to one in the document that has the config at
// prefix.
func DocumentPath(doc *strictyaml.Document, prefix string, path []string) string {
	for _, step := range path {
		if i, err := strconv.Atoi(step); err == nil && doc.Has(prefix+strictyaml.Path(i)) {
			prefix += strictyaml.Path(i)
			continue
		}
		if next := strictyaml.Path(step); strings.HasPrefix(next, "[") || prefix == "" {
			prefix += next
		} else {
			prefix += "." + next
		}
	}
	return prefix
}

// LocateConfig gives a problem of CheckConfig its position in the manifest.
func (m *Manifest) LocateConfig(p ConfigProblem) Problem {
	path := DocumentPath(m.doc, "config", p.Path)
	if p.Key {
		return m.doc.LocateKey(path, p.Fault)
	}
	return m.doc.Locate(path, p.Fault)
}

// Locate returns a problem at the position of a path of the manifest.
func (m *Manifest) Locate(path, format string, args ...any) Problem {
	return m.doc.Locate(path, strictyaml.Fault{Message: fmt.Sprintf(format, args...)})
}

// compiled returns the schema, nil if there is none. It is compiled on first use.
func (m *Manifest) compiled() (*schema.Schema, error) {
	m.compile.Do(func() {
		if m.ConfigSchema == nil {
			return
		}
		var raw []byte
		if raw, m.invalid = json.Marshal(m.ConfigSchema); m.invalid == nil {
			m.schema, m.invalid = schema.Compile(raw)
		}
	})
	return m.schema, m.invalid
}

// Trusted reports whether the manifest's own config needs no check against its schema: it
// is built in, and tests check it.
func (m *Manifest) Trusted() bool { return m.trusted }

// checkSchema checks config_schema, the defaults in config against it, and the references
// of schedules. The configuration may supply missing values.
func (m *Manifest) checkSchema() {
	if t, ok := m.ConfigSchema["type"]; ok && t != "object" {
		m.doc.Report("config_schema.type", "must be object: a config is a mapping")
		return
	}
	if _, err := m.compiled(); err != nil {
		m.reportSchema(err)
		return
	}
	for _, p := range m.CheckConfig(m.Config) {
		if p.Missing {
			continue
		}
		path := DocumentPath(m.doc, "config", p.Path)
		if p.Key {
			m.doc.ReportKey(path, p.Fault)
		} else {
			m.doc.ReportFault(path, p.Fault)
		}
	}
}

// reportSchema reports the errors of the schema itself.
func (m *Manifest) reportSchema(err error) {
	invalid, ok := errors.AsType[*schema.Error](err)
	if !ok {
		invalid = &schema.Error{Problems: []schema.Problem{{Text: err.Error()}}}
	}
	for _, p := range invalid.Problems {
		m.doc.Report(DocumentPath(m.doc, "config_schema", p.Path), "not a JSON schema: %s", p.Text)
	}
}
