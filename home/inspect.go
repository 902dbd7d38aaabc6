package home

import (
	"cmp"
	"slices"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/manifests"
)

// Inspection is the content of the files of a home and of the environment, read
// without a kernel and without running anything.
type Inspection struct {
	ConfigErr  error            // of config.yaml; usually a config.Problems
	SecretsErr error            // of secrets.env
	References config.Problems  // to ids in config.yaml that no extension has
	UTC        string           // a hint, if the zone is UTC by accident
	Entries    []InspectedEntry // by id
	ModelOrder []string         // models.default
	Timezone   string           // IANA name in force
}

// InspectedEntry is one extension as its files are.
type InspectedEntry struct {
	ID      string
	Builtin bool
	// Manifest is nil if there is none that can be read.
	Manifest *manifests.Manifest
	Err      error               // of its files
	Disabled *manifests.Disabled // why it does not start; nil: it does
	Missing  []string            // required secrets that are not set
}

// Inspect reads what a kernel with these options would read at its start.
func Inspect(o Options) (*Inspection, error) {
	live := config.Open(o.Home, o.Env)
	f, err := openFiles(o, live)
	if err != nil {
		return nil, err
	}
	p := f.plan(nil)
	c := p.config
	seen := &Inspection{UTC: c.AccidentalUTC(config.ThisMachine()), ModelOrder: c.Models.Default}
	_, seen.Timezone = c.Zone(config.ThisMachine())
	seen.ConfigErr, seen.SecretsErr = live.Errors()
	var known []string
	for _, e := range p.entries {
		known = append(known, e.ID)
		x := InspectedEntry{ID: e.ID, Builtin: e.Builtin, Manifest: e.Manifest, Err: p.problems[e.ID]}
		if d, out := p.disabled[e.File]; out {
			x.Disabled = &d
		}
		if m := p.members[e.ID]; m != nil && x.Disabled == nil {
			x.Missing = m.missing
		}
		seen.Entries = append(seen.Entries, x)
	}
	slices.SortStableFunc(seen.Entries, func(a, b InspectedEntry) int { return cmp.Compare(a.ID, b.ID) })
	seen.References = c.References(known)
	for _, problem := range p.linkProblems {
		if !slices.Contains(seen.References, problem) {
			seen.References = append(seen.References, problem)
		}
	}
	seen.References = seen.References.Sort()
	return seen, nil
}
