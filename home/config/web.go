package config

import (
	"maps"

	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// The web is two extensions: tools that read it, and the page, which has rights that nothing
// that reads strangers' pages should have.
const (
	webTools = "web"
	webPage  = "web_channel"
)

// pageSettings are the settings of the page that may stand under extensions.web.config, too.
var pageSettings = []string{"hooks", "listen", "proxy", "tls", "url", "webhooks"}

// splitWeb gives the page its settings that stand under extensions.web. An entry with nothing
// else is one for the page alone.
func (c *Config) splitWeb() {
	tools, ok := c.Extensions[webTools]
	config := maps.Clone(tools.Config)
	page := map[string]any{}
	for _, key := range pageSettings {
		if value, found := config[key]; found {
			page[key] = value
			delete(config, key)
		}
	}
	if !ok || len(page) == 0 {
		return
	}
	c.Extensions = maps.Clone(c.Extensions)
	own, named := c.Extensions[webPage]
	if !named {
		own = Extension{Enabled: tools.Enabled, Sandbox: tools.Sandbox}
	}
	maps.Copy(page, own.Config)
	own.Config, tools.Config = page, config
	c.Extensions[webPage], c.Extensions[webTools] = own, tools
	if len(config) == 0 && tools.Allow == nil {
		delete(c.Extensions, webTools)
	}
}

// configPath is where a value of an extension's config stands in config.yaml.
func (c *Config) configPath(m *manifests.Manifest, path []string) string {
	at := manifests.DocumentPath(c.doc, strictyaml.Path("extensions", m.ID, "config"), path)
	if m.ID == webPage && !c.doc.Has(at) {
		if moved := manifests.DocumentPath(c.doc, strictyaml.Path("extensions", webTools, "config"), path); c.doc.Has(moved) {
			return moved
		}
	}
	return at
}
