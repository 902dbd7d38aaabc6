package config

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// Provider is a server with models. It becomes an extension with its name, made from
// the built-in extension of its kind.
type Provider struct {
	Kind    string  `yaml:"kind,required" enum:"openai|anthropic"` // the API that the server has
	BaseURL string  `yaml:"base_url" check:"base_url"`             // empty: that of the kind's own service
	Key     string  `yaml:"key" check:"key_name"`                  // the name of a secret; empty: none, see KeyName
	Models  []Model `yaml:"models" unique:"name"`                  // the first is the provider's default
	Price   *Price  `yaml:"price"`                                 // of models without one; nil: the list price
	// Context is the context window of models without one, in tokens; 0: the server is asked.
	Context int64 `yaml:"context" min:"1000" max:"100000000"`
	// Vision are patterns of the names of the models that can see images, or "none";
	// empty: it is decided by well-known names.
	Vision []string `yaml:"vision" check:"vision" unique:"-"`
}

// Model is a model of a provider. The file may give just its name.
type Model struct {
	Name    string `yaml:"name,required,short" check:"model_id"`
	Price   *Price `yaml:"price"`
	Context int64  `yaml:"context" min:"1000" max:"100000000"` // 0: that of the provider
}

func limitPath(i int) string { return strictyaml.Path("models", "limits", i) }

// currency matches codes of currencies.
var currency = regexp.MustCompile(`^[A-Z]{3}$`)

// kindKeys are the secrets of each kind's own service.
var kindKeys = map[string]string{"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}

// KeyName returns the name of the secret with the provider's key; empty: it has none.
// Only the kind's own service has a default, so that no key is sent to a server that
// it was not configured for.
func (p Provider) KeyName() string {
	if p.BaseURL == "" {
		return cmp.Or(p.Key, kindKeys[p.Kind])
	}
	return p.Key
}

// ProviderNames returns the names of the providers in the order of the file.
func (c *Config) ProviderNames() []string {
	names := make([]string, 0, len(c.Models.Providers))
	for name := range c.Models.Providers {
		names = append(names, name)
	}
	line := func(name string) Problem { return c.doc.LocateKey(providerPath(name), strictyaml.Fault{}) }
	slices.SortFunc(names, func(a, b string) int {
		x, y := line(a), line(b)
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
	})
	return names
}

func providerPath(name string) string { return strictyaml.Path("models", "providers", name) }

// checkProviders checks the names of providers against the built-in extensions. The
// name of a kind is free for a provider of that kind, which replaces the built-in one.
func (c *Config) checkProviders() {
	for name, p := range c.Models.Providers {
		switch _, isKind := kindKeys[name]; {
		case isKind && p.Kind == name, c.doc.Faulty(providerPath(name)):
		case isKind:
			c.doc.ReportKey(providerPath(name), strictyaml.Fault{
				Message: "a provider with this name must have kind: " + name + "; or choose another name",
			})
		case slices.Contains(manifests.Builtins(), name):
			c.doc.ReportKey(providerPath(name), strictyaml.Fault{
				Message: "a built-in extension has this name: choose another one",
			})
		}
	}
}

// keyName matches names of secrets. Capitals alone keep most keys apart from names.
var keyName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

// checkKeyName does not quote the value: it may be the key itself.
func checkKeyName(s string) *strictyaml.Fault {
	if keyName.MatchString(s) {
		return nil
	}
	return strictyaml.Faultf("must be the name of a secret in capitals, such as OPENROUTER_API_KEY; the key itself " +
		"belongs in secrets.env, as NAME=key")
}

// checkBaseURL does not quote the value: it may hold a password.
func checkBaseURL(s string) *strictyaml.Fault {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return strictyaml.Faultf("must be an address with http:// or https:// and a host, " +
			"such as http://localhost:11434/v1")
	case u.User != nil:
		return strictyaml.Faultf("must not hold a user or a password: put the key in secrets.env and its name in key")
	case u.RawQuery != "" || u.Fragment != "":
		return strictyaml.Faultf("must not have a ? or a #: write the address only, such as https://example.org/v1")
	}
	return nil
}

// checkVision checks a pattern of names of models that can see.
func checkVision(s string) *strictyaml.Fault {
	if _, err := path.Match(s, ""); err != nil || s == "" {
		return strictyaml.Faultf("%q is not a pattern: write the name of a model that can see images, such as llava*, "+
			"\"*\" for all, or none", s)
	}
	return nil
}

func checkModelID(s string) *strictyaml.Fault {
	if s != "" && !strings.ContainsAny(s, " \t\n\r*\x00") {
		return nil
	}
	return strictyaml.Faultf("%q is not the name of a model: write it as the server lists it", s)
}
