package mcpfile_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/mcpfile"
)

func read(text string) ([]mcpfile.Server, error) {
	return mcpfile.Read([]byte(text), mcpfile.Options{
		File: "mcp.json", Home: "/home/me",
		Lookup: func(name string) (string, bool) { return "t0ken", name == "TOKEN" },
	})
}

// Files of Claude Desktop and of VS Code are read as they are.
func TestFilesOfOtherPrograms(t *testing.T) {
	t.Parallel()
	all, err := read(`{
	"globalShortcut": "Alt+Space", // of Claude Desktop
	"mcpServers": {
		"My Files": {"command": "npx", "args": ["-y", "@x/server-filesystem", "/home/me/notes/", "--log=/var/log/x", "/opt/x/dist/index.js", "/o/node_modules/a/b.js"],
			"autoApprove": [], /* of another program */ },
	},
	"inputs": [{"id": "x"}],
	"servers": {
		"remote": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
		"off": {"command": "x // no comment", "env": {"A": "${UNSET}", "N": 7}, "disabled": true},
		"py": {"command": "~x", "cwd": "~/work", "switchboard": {"network": [], "readOnly": ["a"],
			"files": ["~/notes", {"path": "/srv", "write": true}]}},
	},
}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []mcpfile.Server{
		{
			ID: "my_files", Name: "My Files", Transport: mcpfile.Stdio, Command: "npx", Network: []string{"*"},
			Args: []string{"-y", "@x/server-filesystem", "/home/me/notes/", "--log=/var/log/x",
				"/opt/x/dist/index.js", "/o/node_modules/a/b.js"},
			Files: []mcpfile.File{
				{Path: "/home/me/notes", Write: true}, {Path: "/var/log/x", Write: true}, {Path: "/opt/x"}, {Path: "/o/node_modules"},
			},
		},
		{
			ID: "remote", Name: "remote", Transport: mcpfile.HTTP, URL: "https://example.org/mcp",
			Headers: map[string]string{"Authorization": "Bearer t0ken"},
		},
		{
			ID: "off", Name: "off", Transport: mcpfile.Stdio, Command: "x // no comment", Disabled: true,
			Env: map[string]string{"A": "${UNSET}", "N": "7"}, Network: []string{"*"},
		},
		{
			ID: "py", Name: "py", Transport: mcpfile.Stdio, Command: "~x", Cwd: "/home/me/work", ReadOnly: []string{"a"},
			Files: []mcpfile.File{
				{Path: "/home/me/notes"}, {Path: "/srv", Write: true}, {Path: "/home/me/work", Write: true},
			},
		},
	}
	for i, w := range want {
		if i < len(all) && !reflect.DeepEqual(all[i], w) {
			t.Errorf("got  %+v\nwant %+v", all[i], w)
		}
	}
	if n := len(mcpfile.Running(all)); len(all) != 4 || n != 3 {
		t.Errorf("%d servers, %d of them enabled", len(all), n)
	}
	for _, secret := range mcpfile.Secrets(all) {
		if strings.Contains(string(all[1].Identity()), secret) {
			t.Errorf("the identity has the secret %q", secret)
		}
	}
}

// A registered client is read, and its secret comes from the environment.
func TestOAuthClients(t *testing.T) {
	t.Parallel()
	all, err := read(`{"servers": {
		"a": {"url": "https://a.b/mcp", "oauth": {"clientId": "me", "clientSecret": "${env:TOKEN}", "callbackPort": 8080, "scopes": "x"}},
		"b": {"url": "https://a.b/mcp", "oauth": {"clientMetadataUrl": "https://me.example/client.json"}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := (mcpfile.OAuth{ClientID: "me", Secret: "t0ken", CallbackPort: 8080}); all[0].OAuth != want {
		t.Errorf("it is %+v", all[0].OAuth)
	}
	if want := (mcpfile.OAuth{MetadataURL: "https://me.example/client.json"}); all[1].OAuth != want {
		t.Errorf("it is %+v", all[1].OAuth)
	}
	if mcpfile.Secrets(all)["mcp.json a clientSecret"] != "t0ken" {
		t.Error("the client's secret is not among those that must not be logged")
	}
	for oauth, want := range map[string]string{
		`{"clientId": "me", "clientSecret": "s3cret"}`: `mcp.json:1:90: clientSecret must not be in the file: put it into ` +
			`secrets.env, and write "clientSecret": "${env:NAME}"`,
		`{"clientSecret": "${TOKEN}"}`:                            `mcp.json:1:46: oauth has a "clientSecret" without a "clientId"`,
		`{"clientMetadataUrl": "http://a.b"}`:                     `mcp.json:1:77: "http://a.b" is no address such as https://example.org/client.json`,
		`{"clientId": "a", "clientMetadataUrl": "https://a.b/c"}`: `mcp.json:1:46: oauth has both "clientId" and "clientMetadataUrl": keep one`,
		`{"callbackPort": 70000}`:                                 `mcp.json:1:72: callbackPort must be a number from 1 to 65535`,
		`{"clientID": "a"}`:                                       `mcp.json:1:56: unknown field "clientID": did you mean "clientId"?`,
	} {
		_, err := read(`{"servers": {"a": {"url": "https://a.b/mcp", "oauth": ` + oauth + `}}}`)
		if err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", oauth, err, want)
		}
	}
}

// Every mistake is told with its place.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                            "mcp.json:1:1: invalid JSON: the file ends too early: a bracket or a quote is missing",
		"[]":                          `mcp.json:1:1: the file must be an object with "mcpServers", not a list`,
		"{}":                          `mcp.json:1:1: the file has neither "mcpServers" nor "servers"`,
		`{"servers": 1}`:              "mcp.json:1:13: servers must be an object of servers by their names, not a number",
		"{\"servers\": {\n\"é\": 1}}": "mcp.json:2:1: the name \"é\" has no letter: rename the server\nmcp.json:2:6: the server \"é\" must be an object, not a number",
		`{"servers": {"a": {}}}`:      `mcp.json:1:14: the server "a" has neither "command" nor "url"`,
		`{"servers": {"a": {"command": "x", "url": "https://a.b"}}}`: `mcp.json:1:14: the server "a" has both "command" and "url": keep one`,
		`{"servers": {"a": {"type": "sse", "url": "https://a.b"}}}`: `mcp.json:1:28: the transport "sse" was replaced in 2025: ` +
			`use "type": "http" with the server's /mcp address`,
		`{"servers": {"a": {"command": "x", "args": "y"}}}`: "mcp.json:1:44: args must be a list of texts, not a text",
		`{"servers": {"a": {"url": "a.b"}}}`:                `mcp.json:1:27: "a.b" is no address such as https://example.org/mcp`,
		`{"servers": {"a": {"command": "x", "env": {"B": "${input:key}"}}}}`: "mcp.json:1:49: ${input:key} asks for a value, " +
			"which is not supported: put it into secrets.env, and write ${env:KEY}",
		`{"servers": {"a": {"command": "x", "env": {"B": "${C}"}}}}`: "mcp.json:1:49: ${C} is not set: put C into the " +
			"environment or secrets.env",
		`{"servers": {"a": {"command": "x", "cwd": "y"}}}`: `mcp.json:1:43: the path "y" must be absolute, or begin with ~/`,
		`{"servers": {"a-b": {"command": "x"}, "A b": {"command": "x"}}}`: `mcp.json:1:39: the names "a-b" and "A b" are the same ` +
			"in the names of tools (a_b): rename one",
		`{"servers": {"a": {"command": "x"}}} x`: "mcp.json:1:38: unexpected text after the end of the object",
		`{"servers": {"a": {"command": "x"}`:     "mcp.json:1:35: invalid JSON: the file ends too early: a bracket or a quote is missing",
	} {
		all, err := read(text)
		if err == nil || err.Error() != want || all != nil {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"servers": {"a": {"command": "x", "args": ["/b"], "env": {"A": "${TOKEN}"}}}} // c`)
	f.Add("{\"mcpServers\": {\"a\": {\"url\": \"https://a.b\", /* x */}}}")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := read(text)
		if err != nil && all != nil {
			t.Error("servers beside an error")
		}
		for _, s := range all {
			if s.ID == "" || s.Hash() == "" {
				t.Errorf("%+v", s)
			}
		}
	})
}
