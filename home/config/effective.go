package config

import (
	"github.com/switchboard-run/switchboard/manifests"
)

// Effective returns the config of an extension: its manifest's config overlaid by
// extensions.<id>.config. Mappings are merged key by key, other values replaced; a
// null removes its key. The error is a Problems with all violations of the
// manifest's config_schema, each with the position of its value, usually in
// config.yaml. A missing required value is a violation.
func (c *Config) Effective(m *manifests.Manifest) (map[string]any, error) {
	overlay := c.Extensions[m.ID].Config
	effective := merge(m.Config, overlay)
	if len(overlay) == 0 && m.Trusted() {
		return effective, nil
	}
	var problems Problems
	for _, p := range m.CheckConfig(effective) {
		path := c.configPath(m, p.Path)
		if !p.Missing && !c.doc.Has(path) {
			problems = append(problems, m.LocateConfig(p))
			continue
		}
		if p.Key {
			problems = append(problems, c.doc.LocateKey(path, p.Fault))
		} else {
			problems = append(problems, c.doc.Locate(path, p.Fault))
		}
	}
	return effective, problems.Sort().Err()
}

// merge overlays a tree with another and changes neither.
func merge(base, over map[string]any) map[string]any {
	out := make(map[string]any, len(base)+len(over))
	for k, v := range base {
		out[k] = clone(v)
	}
	for k, v := range over {
		switch v := v.(type) {
		case nil:
			delete(out, k)
		case map[string]any:
			under, _ := out[k].(map[string]any)
			out[k] = merge(under, v)
		default:
			out[k] = clone(v)
		}
	}
	return out
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = clone(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = clone(e)
		}
		return out
	}
	return v
}
