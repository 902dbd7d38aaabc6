package openaiapi

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTheOfficialClient uses the client for Node, which is installed in the directory
// $SWITCHBOARD_MCP_NPM; .ci/run does that.
func TestTheOfficialClient(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("SWITCHBOARD_MCP_NPM")
	if dir == "" {
		t.Skip("SWITCHBOARD_MCP_NPM is not set to a directory with the package openai of npm")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	b := start(t)
	out, err := exec.CommandContext(t.Context(), node, "testdata/client.mjs", dir, b.site.URL+"/v1").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Errorf("%v: %s", err, out)
	}
}
