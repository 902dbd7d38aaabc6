package kernel

import (
	"cmp"
	"slices"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/manifests"
)

// Inspection is what the files of a home and the environment say, read without
// running anything and without a kernel.
type Inspection struct {
	ConfigErr  error            // of config.yaml; usually a config.Problems
	SecretsErr error            // of secrets.env
	References config.Problems  // what config.yaml names and nobody is
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
	Disabled *manifests.Disabled // why it will not start; nil: it will
	Missing  []string            // required secrets that are not set
}

// Inspect reads what a kernel with these options would read at its start.
func Inspect(o Options) (*Inspection, error) {
	k := &Kernel{options: o, directory: &directory.Directory{}}
	k.live = config.Open(o.Home, o.Env)
	var err error
	if k.builtins, err = manifests.LoadBuiltin(o.Builtins, o.BuiltinsPrefix); err != nil {
		return nil, err
	}
	if k.dropped, err = manifests.OpenDir(o.Home.Extensions()); err != nil {
		return nil, err
	}
	p := k.makePlan()
	c := k.live.Config()
	seen := &Inspection{UTC: c.AccidentalUTC(config.ThisMachine()), ModelOrder: c.Models.Default}
	_, seen.Timezone = c.Zone(config.ThisMachine())
	seen.ConfigErr, seen.SecretsErr = k.live.Errors()
	var known []string
	for _, e := range p.entries {
		known = append(known, e.ID)
		x := InspectedEntry{ID: e.ID, Builtin: e.Builtin, Manifest: e.Manifest, Err: p.problems[e.ID]}
		if d, out := p.disabled[e.ID]; out {
			x.Disabled = &d
		}
		if m := p.members[e.ID]; m != nil {
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
