// Package mcpfile reads mcp.json, the file that lists MCP servers in the format of Claude
// Desktop (mcpServers) and VS Code (servers).
//
// Comments and trailing commas are allowed, as VS Code does. All mistakes are reported at
// once, each with its line and column. Fields that other programs know and this one does
// not need are ignored; any other unknown field is a mistake.
package mcpfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Transports of a server.
const (
	Stdio = "stdio" // a process of this machine
	HTTP  = "http"  // streamable HTTP
)

// File is something that a server may use on this machine besides its own directory.
type File struct {
	Path  string `json:"path"` // absolute
	Write bool   `json:"write,omitempty"`
}

// OAuth is how Switchboard introduces itself to the authorization server of a server. Empty:
// it registers itself.
type OAuth struct {
	ClientID string `json:"client_id,omitempty"` // registered by hand
	Secret   string `json:"secret,omitempty"`    // of that client
	// MetadataURL is that of a client-ID metadata document.
	MetadataURL string `json:"metadata_url,omitempty"`
	// CallbackPort is the port of this machine that the browser is sent to; 0: any.
	CallbackPort int `json:"callback_port,omitempty"`
}

// Server is one server of the file.
type Server struct {
	ID        string            `json:"id"`   // of its name: lower-case letters, digits and underscores
	Name      string            `json:"name"` // as in the file
	Transport string            `json:"transport"`
	Disabled  bool              `json:"disabled,omitempty"`
	Command   string            `json:"command,omitempty"`
	Args      []string          `json:"args,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Cwd       string            `json:"cwd,omitempty"` // absolute; empty: the server's own directory
	URL       string            `json:"url,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	OAuth     OAuth             `json:"oauth,omitzero"`
	// Files are those that the entry names, in its arguments or under "switchboard".
	Files []File `json:"files,omitempty"`
	// Network are the hosts that a process may connect to, as host or host:port; "*": any.
	Network []string `json:"network,omitempty"`
	// ReadOnly are the tools that the owner declares to change nothing.
	ReadOnly []string `json:"read_only,omitempty"`
}

// Hash identifies what the server may do: with another hash the owner is asked again. The
// values of variables and headers are not part of it, so a new token is no new server.
func (s Server) Hash() string {
	sum := sha256.Sum256(s.Identity())
	return hex.EncodeToString(sum[:])
}

// Identity is what the Hash is made of.
func (s Server) Identity() []byte {
	text, _ := json.Marshal(map[string]any{ //nolint:errchkjson // strings
		"command": s.Command, "args": s.Args, "env": slices.Sorted(maps.Keys(s.Env)), "cwd": s.Cwd, "url": s.URL,
		"headers": slices.Sorted(maps.Keys(s.Headers)), "files": s.Files, "network": s.Network,
	})
	return text
}

// AnyNetwork reports whether the server's process may connect to any host.
func (s Server) AnyNetwork() bool { return slices.Contains(s.Network, "*") }

// installers are programs that download what they run, and set the modes of its files.
var installers = []string{"npx", "npm", "pnpm", "yarn", "bunx", "bun", "uvx", "uv", "pipx", "deno"}

// Installs reports whether the command downloads the program that it runs.
func (s Server) Installs() bool {
	return slices.Contains(installers, strings.TrimSuffix(filepath.Base(s.Command), ".cmd"))
}

// Running returns the servers that are not disabled.
func Running(all []Server) []Server {
	return slices.DeleteFunc(slices.Clone(all), func(s Server) bool { return s.Disabled })
}

// Secrets returns the values of variables and headers, and client secrets, which must not be
// logged.
func Secrets(all []Server) map[string]string {
	found := map[string]string{}
	for _, s := range all {
		for name, value := range s.Env {
			found["mcp.json "+s.ID+" "+name] = value
		}
		for name, value := range s.Headers {
			found["mcp.json "+s.ID+" "+name] = value
			if _, token, ok := strings.Cut(value, " "); ok { // Bearer
				found["mcp.json "+s.ID+" "+name+" token"] = token
			}
		}
		if s.OAuth.Secret != "" {
			found["mcp.json "+s.ID+" clientSecret"] = s.OAuth.Secret
		}
	}
	return found
}

// Problem is one mistake in the file.
type Problem struct {
	Line, Column int
	Text         string
}

func (p Problem) String() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Text) }

// Problems are all mistakes of a file, as an error.
type Problems struct {
	File string
	All  []Problem
}

func (p Problems) Error() string {
	lines := make([]string, len(p.All))
	for i, x := range p.All {
		lines[i] = p.File + ":" + x.String()
	}
	return strings.Join(lines, "\n")
}
