package config

import "maps"

// MCP configures Switchboard as an MCP server.
type MCP struct {
	Clients map[string]MCPClient `yaml:"clients" keys:"id_syntax"` // by the names given to `switchboard mcp --client`
}

// MCPClient is what one MCP client may do.
type MCPClient struct {
	Tools  []string `yaml:"tools" check:"tool_pattern" unique:"-"` // not given: some that only read
	Person string   `yaml:"person" check:"text"`                   // for whom it acts, by name; empty: the owner
}

// mcpServer is the extension that the clients are for.
const mcpServer = "mcp_server"

// allowMCPClients gives the clients to their extension, which runs if there are any.
func (c *Config) allowMCPClients() {
	if len(c.MCP.Clients) == 0 {
		return
	}
	all := map[string]any{}
	for name, client := range c.MCP.Clients {
		one := map[string]any{}
		if client.Tools != nil {
			one["tools"] = list(client.Tools)
		}
		if client.Person != "" {
			one["person"] = client.Person
		}
		all[name] = one
	}
	e, ok := c.Extensions[mcpServer]
	if !ok {
		e = Extension{Enabled: true, Sandbox: true}
	}
	e.Config = maps.Clone(e.Config)
	if e.Config == nil {
		e.Config = map[string]any{}
	}
	e.Config["clients"] = all
	if len(c.Approve) > 0 {
		e.Config["approve"] = list(c.Approve)
	}
	c.Extensions = maps.Clone(c.Extensions)
	if c.Extensions == nil {
		c.Extensions = map[string]Extension{}
	}
	c.Extensions[mcpServer] = e
}

// list is a list as YAML decodes it.
func list(values []string) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}
