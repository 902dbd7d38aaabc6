package manifests

import (
	"io/fs"
	"maps"
	"strings"
)

// Builtins returns the ids of the built-in extensions.
func Builtins() []string {
	names, _ := fs.Glob(FS, "*.yaml") // the pattern is valid
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ".yaml")
	}
	return names
}

// Instance is a second extension made from a built-in provider of models.
type Instance struct {
	ID     string
	File   string         // where it is configured, for messages; unique
	Secret string         // the name of the one secret that it gets; empty: none
	Models []string       // names at the server; the first is the default
	Config map[string]any // on top of the built-in's
	// Environment keeps the variables of the built-in, which are part of its settings.
	Environment bool
}

// Instance returns the manifest of an instance of m.
func (m *Manifest) Instance(i Instance) *Manifest {
	x := &Manifest{
		API: m.API, ID: i.ID, Name: m.Name, Version: m.Version, Description: m.Description, Requires: m.Requires,
		Run: m.Run, Provides: m.Provides, Permissions: m.Permissions, Restart: m.Restart,
		Config: maps.Clone(m.Config), ConfigSchema: m.ConfigSchema,
		File: i.File, Digest: m.Digest, doc: m.doc, trusted: m.trusted,
	}
	if i.ID != m.ID {
		x.Name = i.ID
	}
	if i.Secret != "" {
		x.Secrets = []Secret{{Name: i.Secret, Required: true}}
	}
	if !i.Environment {
		x.Run.Env, x.Permissions.Network = nil, nil
		for _, d := range m.Permissions.Network {
			if !strings.HasPrefix(d, variable) {
				x.Permissions.Network = append(x.Permissions.Network, d)
			}
		}
	}
	if x.Config == nil {
		x.Config = map[string]any{}
	}
	maps.Copy(x.Config, i.Config)
	x.Provides.Models = nil
	for _, name := range append(i.Models, "*") {
		x.Provides.Models = append(x.Provides.Models, i.ID+"/"+name)
	}
	return x
}
