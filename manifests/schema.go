package manifests

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

const schemaURL = "schema:config"

var printer = message.NewPrinter(language.English)

// noLoader refuses references to other files or addresses.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("references to other documents (%s) are not followed", url)
}

// ConfigProblem is one way in which a config does not fit its schema.
type ConfigProblem struct {
	Path    []string // keys and, in lists, indexes, from the top of the config
	Key     bool     // it is the key that is wrong, not its value
	Missing bool     // it fits once something absent is supplied
	Fault   strictyaml.Fault
}

// CheckConfig checks a config, as the extension would get it, against the
// manifest's config_schema and what its schedules take from it.
func (m *Manifest) CheckConfig(config map[string]any) []ConfigProblem {
	var out []ConfigProblem
	if schema, _ := m.compiled(); schema != nil {
		var invalid *jsonschema.ValidationError
		if err := schema.Validate(asAny(config)); errors.As(err, &invalid) {
			flatten(invalid, func(e *jsonschema.ValidationError) {
				out = append(out, m.configProblems(e)...)
			})
		}
	}
	return append(out, m.timingProblems(config, out)...)
}

// asAny gives an absent config the form of an empty object.
func asAny(config map[string]any) any {
	if config == nil {
		return map[string]any{}
	}
	return config
}

// flatten visits the innermost causes. The alternatives of anyOf and oneOf are
// one problem.
func flatten(e *jsonschema.ValidationError, visit func(*jsonschema.ValidationError)) {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
		visit(e)
		return
	}
	if len(e.Causes) == 0 {
		visit(e)
	}
	for _, c := range e.Causes {
		flatten(c, visit)
	}
}

func (m *Manifest) configProblems(e *jsonschema.ValidationError) []ConfigProblem {
	at := func(more ...string) []string { return append(slices.Clone(e.InstanceLocation), more...) }
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		known := properties(m.ConfigSchema, e.InstanceLocation)
		var out []ConfigProblem
		for _, p := range k.Properties {
			out = append(out, ConfigProblem{Path: at(p), Key: true, Fault: strictyaml.Fault{
				Message: "unknown field", Suggestion: strictyaml.Suggest(p, known),
			}})
		}
		return out
	case *kind.Required:
		var out []ConfigProblem
		for _, p := range k.Missing {
			out = append(out, ConfigProblem{Path: at(p), Missing: true, Fault: strictyaml.Fault{Message: "is required"}})
		}
		return out
	case *kind.FalseSchema:
		return []ConfigProblem{{Path: at(), Key: true, Fault: strictyaml.Fault{Message: "is not allowed here"}}}
	}
	text, missing := explain(e)
	return []ConfigProblem{{Path: at(), Missing: missing, Fault: strictyaml.Fault{Message: text}}}
}

// explain says what is wrong, for alternatives with the reason of each.
// Missing: one of the alternatives only lacks something.
func explain(e *jsonschema.ValidationError) (text string, missing bool) {
	var why []string
	for _, alternative := range e.Causes {
		onlyMissing := true
		flatten(alternative, func(leaf *jsonschema.ValidationError) {
			why = append(why, leaf.ErrorKind.LocalizedString(printer))
			if _, ok := leaf.ErrorKind.(*kind.Required); !ok {
				onlyMissing = false
			}
		})
		missing = missing || onlyMissing
	}
	if len(why) == 0 {
		return e.ErrorKind.LocalizedString(printer), false
	}
	return "fits none of the alternatives: " + strings.Join(slices.Compact(why), "; or "), missing
}

// properties are the names that a schema lists for the object at a location.
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

// DocumentPath turns a path of a config into one of the document that holds
// it at prefix.
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

// LocateConfig places a problem of CheckConfig in the manifest.
func (m *Manifest) LocateConfig(p ConfigProblem) Problem {
	path := DocumentPath(m.doc, "config", p.Path)
	if p.Key {
		return m.doc.LocateKey(path, p.Fault)
	}
	return m.doc.Locate(path, p.Fault)
}

// Locate places a fault in the value at a path of the manifest.
func (m *Manifest) Locate(path, format string, args ...any) Problem {
	return m.doc.Locate(path, strictyaml.Fault{Message: fmt.Sprintf(format, args...)})
}

// compiled returns the schema, nil if there is none. It is compiled when it is
// needed first: reading the rules of JSON Schema takes several milliseconds,
// which a start with built-in extensions only can do without.
func (m *Manifest) compiled() (*jsonschema.Schema, error) {
	m.compile.Do(func() {
		if m.ConfigSchema == nil {
			return
		}
		compiler := jsonschema.NewCompiler()
		compiler.AssertFormat()
		compiler.UseLoader(noLoader{})
		if m.invalid = compiler.AddResource(schemaURL, m.ConfigSchema); m.invalid == nil {
			m.schema, m.invalid = compiler.Compile(schemaURL)
		}
	})
	return m.schema, m.invalid
}

// Unquestioned reports whether the manifest's own config needs no check
// against its schema: it is a built-in's, which tests have checked.
func (m *Manifest) Unquestioned() bool { return m.trusted }

// checkSchema checks config_schema and checks the defaults in config against
// it, and what schedules take from them. What the defaults leave out, the
// configuration may supply.
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

// reportSchema reports what is wrong with the schema itself.
func (m *Manifest) reportSchema(err error) {
	var meta *jsonschema.SchemaValidationError
	var invalid *jsonschema.ValidationError
	if errors.As(err, &meta) && errors.As(meta.Err, &invalid) {
		flatten(invalid, func(e *jsonschema.ValidationError) {
			text, _ := explain(e)
			m.doc.Report(DocumentPath(m.doc, "config_schema", e.InstanceLocation), "not a JSON schema: %s", text)
		})
		return
	}
	text := strings.ReplaceAll(err.Error(), schemaURL, "config_schema")
	m.doc.Report("config_schema", "not a JSON schema: %s", text)
}
