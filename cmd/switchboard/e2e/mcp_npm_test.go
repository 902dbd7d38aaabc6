package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// npmServer is the entry of a server of npm. The packages of testdata/npm are installed in
// $SWITCHBOARD_MCP_NPM; .ci/run does that.
func npmServer(t *testing.T, name string, args ...string) map[string]any {
	t.Helper()
	dir := os.Getenv("SWITCHBOARD_MCP_NPM")
	if dir == "" {
		t.Skip("SWITCHBOARD_MCP_NPM is not set to a directory with the packages of testdata/npm")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("Node is not installed")
	}
	script := filepath.Join(dir, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"command": node, "args": append([]string{script}, args...)}
}

// The servers that most people begin with work through the real binary.
func TestServersOfNPM(t *testing.T) {
	t.Parallel()
	notes := t.TempDir()
	if err := os.WriteFile(filepath.Join(notes, "list.txt"), []byte("milk and bread"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, p := withServers(t, "", map[string]any{
		"files": npmServer(t, "server-filesystem", notes), "everything": npmServer(t, "server-everything", "stdio"),
	})
	list := filepath.Join(notes, "list.txt")
	contains(t, "a file", w.uses(p, "files__read_text_file", map[string]any{"path": list}), "milk and bread")
	w.uses(p, "files__write_file", map[string]any{"path": filepath.Join(notes, "new.txt"), "content": "eggs"})
	if text, err := os.ReadFile(filepath.Join(notes, "new.txt")); err != nil || string(text) != "eggs" {
		t.Errorf("the file has %q, %v", text, err)
	}
	contains(t, "an echo", w.uses(p, "everything__echo", map[string]any{"message": "hello"}), "hello")
	contains(t, "a picture", w.uses(p, "everything__get_tiny_image", map[string]any{}), "[image ")
	contains(t, "a sum", w.uses(p, "everything__get_sum", map[string]any{"a": 2, "b": 40}), "42")
	contains(t, "resources", w.uses(p, "everything__read_resource", map[string]any{}), "://")
	t.Logf("%+v\n%+v", w.mcpStatus("files"), w.mcpStatus("everything"))
}
