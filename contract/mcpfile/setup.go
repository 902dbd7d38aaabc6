package mcpfile

import "github.com/switchboard-run/switchboard/contract/sandbox"

// Setup is the configuration of the extension that connects the servers.
type Setup struct {
	Servers []Launch `json:"servers"`
	// Allow are the ids of the servers that the owner allowed in config.yaml.
	Allow []string `json:"allow,omitempty"`
	// Confine is the command that applies a sandbox and executes the rest of its arguments.
	Confine []string `json:"confine,omitempty"`
}

// Launch is a server with how to start its process.
type Launch struct {
	Server
	Dir    string          `json:"dir,omitempty"`    // its own directory; absolute
	Policy *sandbox.Policy `json:"policy,omitempty"` // nil: it has no sandbox
	// Environ is the environment without the server's own Env.
	Environ []string `json:"environ,omitempty"`
}
