package manifests

import (
	"maps"
	"slices"
)

// anyKey stands for each key of an object in a reference to the config.
const anyKey = "*"

// SecretsOf returns the secrets that the extension gets with a config, each once. A secret
// $config.<key> is the one whose name the config has there; * in the key stands for every
// key of an object, as in $config.hooks.*.secret.
func (m *Manifest) SecretsOf(config map[string]any) (all []Secret) {
	for _, s := range m.Secrets {
		names := []string{s.Name}
		if path, refers := parseReference(s.Name); refers {
			names = nil
			for _, value := range lookupAll(config, path) {
				if name, is := value.(string); is {
					names = append(names, name)
				}
			}
		}
		for _, name := range names {
			if name != "" && !slices.ContainsFunc(all, func(known Secret) bool { return known.Name == name }) {
				all = append(all, Secret{Name: name, Required: s.Required})
			}
		}
	}
	return all
}

// lookupAll returns all values that a path with * leads to, by their keys.
func lookupAll(value any, path []string) (all []any) {
	below, is := value.(map[string]any)
	switch {
	case len(path) == 0:
		return []any{value}
	case !is:
		return nil
	case path[0] != anyKey:
		if next, found := below[path[0]]; found {
			return lookupAll(next, path[1:])
		}
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(below)) {
		all = append(all, lookupAll(below[key], path[1:])...)
	}
	return all
}
