package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// conformance are the scenarios of the suite that need no tools, prompts or resources of the
// suite's own server, by revision of the protocol.
var conformance = map[string][]string{
	"2025-11-25": {"server-initialize", "ping", "tools-list", "dns-rebinding-protection"},
	"2026-07-28": {
		"server-stateless", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection", "caching",
	},
}

// nonconforming reports whether a scenario found a fault. That the server lacks tools of the suite, and
// refuses prompts and resources, which it doesn't declare, is none.
func nonconforming(said string) bool {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		undeclared := strings.HasPrefix(line, "Error: prompts/") || strings.HasPrefix(line, "Error: resources/")
		switch {
		case !strings.HasPrefix(line, "Error: "):
		case strings.HasPrefix(line, "Error: Not testable: server does not list the diagnostic tool"):
		case undeclared && strings.Contains(line, "returned JSON-RPC error -32601"):
		default:
			return true
		}
	}
	return false
}

// The MCP server passes what the conformance suite of MCP asks of every server. The suite knows
// no tokens, so a proxy adds one.
func TestMCPServerConformance(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("SWITCHBOARD_MCP_CONFORMANCE")
	if dir == "" {
		t.Skip("SWITCHBOARD_MCP_CONFORMANCE names no directory with the npm packages of extensions/mcp/testdata/conformance")
	}
	w := newWorld(t)
	served, err := url.Parse(w.serveMCP())
	if err != nil {
		t.Fatal(err)
	}
	token := w.tokenOf("desk", "mcp:claude")
	proxy := httptest.NewUnstartedServer(nil)
	own := proxy.Listener.Addr().String()
	proxy.Config.Handler = &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = served.Scheme, served.Host
		r.Out.Header.Set("Authorization", "Bearer "+token)
		if r.Out.Host == own {
			r.Out.Host = served.Host
		}
		if r.Out.Header.Get("Origin") == "http://"+own {
			r.Out.Header.Set("Origin", "http://"+served.Host)
		}
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}}
	proxy.Start()
	t.Cleanup(proxy.Close)
	programs := filepath.Join(dir, "node_modules", ".bin")
	for revision, scenarios := range conformance {
		for _, scenario := range scenarios {
			t.Run(revision+"/"+scenario, func(t *testing.T) {
				cmd := exec.CommandContext(w.ctx(), filepath.Join(programs, "conformance"), "server",
					"--url", "http://"+own+served.Path, "--scenario", scenario, "--spec-version", revision, "-o", t.TempDir())
				cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
				said, err := cmd.CombinedOutput()
				if nonconforming(string(said)) || err != nil && !strings.Contains(string(said), "Passed: ") {
					t.Errorf("%v\n%s", err, said)
				}
				t.Logf("%s", said)
			})
		}
	}
}
