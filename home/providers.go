package home

import (
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/manifests"
)

// withProviders returns the entries of the built-in extensions and of the configured
// providers, which are instances of built-in ones. A provider that has the name of
// its kind replaces the built-in one.
func withProviders(builtins []manifests.Entry, c *config.Config) []manifests.Entry {
	all := slices.Clone(builtins)
	for _, name := range c.ProviderNames() {
		p := c.Models.Providers[name]
		kind := slices.IndexFunc(builtins, func(e manifests.Entry) bool { return e.ID == p.Kind })
		if kind < 0 || builtins[kind].Manifest == nil {
			continue // this program has no such built-in
		}
		i := manifests.Instance{
			ID: name, File: fmt.Sprintf("config.yaml (models.providers.%s)", name), Secret: p.KeyName(),
			Config:      map[string]any{"key": p.KeyName()},
			Environment: name == p.Kind && p.BaseURL == "",
		}
		contexts := map[string]any{}
		for _, m := range p.Models {
			i.Models = append(i.Models, m.Name)
			if m.Context > 0 {
				contexts[m.Name] = m.Context
			}
		}
		if len(contexts) > 0 {
			i.Config["contexts"] = contexts
		}
		if p.Context > 0 {
			i.Config["context"] = p.Context
		}
		if p.BaseURL != "" {
			i.Config["base_url"] = p.BaseURL
		}
		if len(p.Vision) > 0 {
			i.Config["vision"] = p.Vision
		}
		if i.Config["model"] = ""; len(i.Models) > 0 {
			i.Config["model"] = i.Models[0]
		}
		e := manifests.Entry{ID: name, File: i.File, Builtin: true, Manifest: builtins[kind].Manifest.Instance(i)}
		if name == p.Kind {
			all[kind] = e
		} else {
			all = append(all, e)
		}
	}
	return all
}

// enabled returns which extensions may start. A built-in that is optional may also start
// if it needs secrets and has them.
func (f *files) enabled(c *config.Config) func(id string, optional bool) bool {
	return func(id string, optional bool) bool { return c.EnabledExtension(id, optional && !f.hasSecrets(id)) }
}

func (f *files) hasSecrets(id string) bool {
	has := false
	for _, e := range f.builtins {
		if e.ID != id || e.Manifest == nil {
			continue
		}
		for _, s := range e.Manifest.Secrets {
			if _, set := f.live.Secrets().Lookup(s.Name); s.Required && !set {
				return false
			}
			has = has || s.Required
		}
	}
	return has
}

// modelOrder returns the models to try in order; nil: the kernel chooses. Configured
// providers come before all others, in the order of the file, and optional ones last. One
// whose first model transcribes is not for answers.
func (p *plan) modelOrder() []string {
	if len(p.config.Models.Default) > 0 {
		return p.config.Models.Default
	}
	var order []string
	optional, transcribes := false, false
	fallback := ""
	add := func(id string) {
		m := p.members[id]
		if m == nil || len(m.missing) > 0 || len(m.manifest.Provides.Models) == 0 {
			return
		}
		switch first := m.manifest.Provides.Models[0]; {
		case m.manifest.Provides.Fallback:
			fallback = first
		case slices.Contains(p.config.Models.Transcribe, first):
			transcribes = true
		case !slices.Contains(order, first):
			order = append(order, first)
		}
	}
	for _, name := range p.config.ProviderNames() {
		add(name)
	}
	configured := len(order)
	for _, last := range []bool{false, true} {
		for _, e := range p.entries {
			if m := p.members[e.ID]; m != nil && m.manifest.Optional == last {
				before := len(order)
				add(e.ID)
				optional = optional || last && len(order) > before
			}
		}
	}
	switch {
	case transcribes && len(order) == 0 && fallback != "":
		return []string{fallback}
	case configured == 0 && !optional && !transcribes:
		return nil
	}
	return order
}
