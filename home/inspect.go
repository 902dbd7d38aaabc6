package home

import (
	"cmp"
	"maps"
	"slices"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/manifests"
)

// Inspection describes the files of a home and the environment. Nothing runs to
// make it.
type Inspection struct {
	ConfigErr  error            // of config.yaml; usually a config.Problems
	SecretsErr error            // of secrets.env
	ConsentErr error            // of the file with what the owner allowed
	ServersErr error            // of mcp.json
	References config.Problems  // to ids in config.yaml that no extension has
	UTC        string           // see config.AccidentalUTC
	Entries    []InspectedEntry // by id
	ModelOrder []string         // models to try; empty: the configured ones
	Providers  []string         // names in models.providers, in the order of the file
	Transcribe []string         // the models of models.transcribe
	// Price returns the price of a model, as <provider>/<model>; false: not known.
	Price    func(model string) (config.Price, bool)
	MoneyIn  []string // currencies of the limits in money
	Budgets  []string // names of people who have one
	Timezone string   // IANA name in force
	Unread   []string // names in secrets.env that no extension reads
	// OnlyInEnvironment has the names that extensions read from this environment because
	// secrets.env does not have them: a kernel with another environment lacks them.
	OnlyInEnvironment []string
}

// InspectedEntry describes one extension by its files.
type InspectedEntry struct {
	ID      string
	Builtin bool
	// Manifest is nil if it is missing or invalid.
	Manifest *manifests.Manifest
	Err      error               // of its files
	Pinned   bool                // a cell of a cluster stays where its data directory is
	Waiting  string              // what the owner can do if it is not allowed, or only an older version is
	Disabled *manifests.Disabled // why it does not start; nil: it does
	Missing  []string            // required secrets that are not set
	Unused   []string            // what it provides or waits for in vain, and why; not of built-ins
	Config   map[string]any      // in force
	Secrets  map[string]string   // that it gets
	// Env looks up the variables of the manifest's run.env.
	Env func(string) (string, bool)
}

// Inspect reads what a kernel with these options would read at its start.
func Inspect(o Options) (*Inspection, error) {
	live := config.Open(o.Home, o.Env)
	f, err := openFiles(o, live)
	if err != nil {
		return nil, err
	}
	return f.inspect(f.plan(nil)), nil
}

// Inspect returns what the kernel read last.
func (i *Installation) Inspect() *Inspection { return i.files.inspect(i.plan.Load()) }

// inspect describes the files that a plan was made of.
func (f *files) inspect(p *plan) *Inspection {
	c := p.config
	found := &Inspection{
		UTC: c.AccidentalUTC(config.ThisMachine()), ModelOrder: p.modelOrder(), Providers: c.ProviderNames(),
		Price: p.price, Transcribe: c.Models.Transcribe, Budgets: slices.Sorted(maps.Keys(c.People)),
	}
	for _, l := range c.Models.Limits {
		if l.Money > 0 {
			found.MoneyIn = append(found.MoneyIn, cmp.Or(l.Currency, c.Models.Currency))
		}
	}
	_, found.Timezone = c.Zone(config.ThisMachine())
	found.ConfigErr, found.SecretsErr = f.live.Errors()
	found.ConsentErr = p.consentErr
	_, found.ServersErr = f.readServers(nil)
	var known, read []string
	for _, e := range p.entries {
		known = append(known, e.ID)
		read = append(read, reads(e, c)...)
		x := InspectedEntry{ID: e.ID, Builtin: e.Builtin, Manifest: e.Manifest, Err: p.problems[e.ID]}
		if d, out := p.disabled[e.File]; out {
			x.Disabled = &d
		}
		x.Pinned = p.pinned(e)
		waits := x.Disabled != nil && x.Disabled.Cause == manifests.Consent
		if a := p.asked[e.ID]; a != nil && !e.Builtin && (a.older || waits) {
			x.Waiting = a.waiting(e.ID)
		}
		if m := p.members[e.ID]; m != nil && x.Disabled == nil {
			x.Missing, x.Config, x.Secrets, x.Env = m.missing, m.config, m.secrets, m.env
			if !e.Builtin {
				x.Unused = p.unused(e.ID)
			}
		}
		found.Entries = append(found.Entries, x)
	}
	inFile := f.live.Secrets().Names()
	found.Unread = slices.DeleteFunc(slices.Clone(inFile), func(name string) bool { return slices.Contains(read, name) })
	slices.Sort(read)
	found.OnlyInEnvironment = slices.DeleteFunc(slices.Compact(read), func(name string) bool {
		value, _ := f.options.Env(name)
		return value == "" || slices.Contains(inFile, name)
	})
	slices.SortStableFunc(found.Entries, func(a, b InspectedEntry) int { return cmp.Compare(a.ID, b.ID) })
	found.References = c.References(known)
	for _, problem := range p.linkProblems {
		if !slices.Contains(found.References, problem) {
			found.References = append(found.References, problem)
		}
	}
	found.References = found.References.Sort()
	return found
}

// pinned reports whether the data directory of an extension is pinned, by the configuration
// or the manifest in force.
func (p *plan) pinned(e manifests.Entry) bool {
	m := e.Manifest
	if x := p.members[e.ID]; x != nil {
		m = x.manifest
	}
	if m == nil {
		return false
	}
	return cmp.Or(p.config.Extensions[e.ID].Data, m.Data) == manifests.DataPinned
}

// pinnedHere returns the extensions that run with pinned data.
func (p *plan) pinnedHere() (ids []string) {
	for _, e := range p.entries {
		if _, off := p.disabled[e.File]; !off && p.pinned(e) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// reads returns the names in secrets.env that an extension reads with a configuration.
func reads(e manifests.Entry, c *config.Config) (names []string) {
	if e.Manifest == nil {
		return nil
	}
	effective, err := c.Effective(e.Manifest)
	if err != nil {
		effective = e.Manifest.Config
	}
	for _, s := range e.Manifest.SecretsOf(effective) {
		names = append(names, s.Name)
	}
	if e.Builtin {
		names = append(names, e.Manifest.Run.Env...)
	}
	return names
}
