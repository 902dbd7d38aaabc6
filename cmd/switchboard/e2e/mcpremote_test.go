package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/extensions/mcp/remote/remotetest"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

const farKey = "canary-71d0ab"

// far is an MCP server on another machine that wants a login.
type far struct {
	*httptest.Server
	authority *remotetest.Authority
	handler   atomic.Pointer[http.Handler]
	keyless   atomic.Int64 // requests without the configured header
}

func newFar(t *testing.T) *far {
	t.Helper()
	f := &far{authority: remotetest.Start(t)}
	f.restart()
	f.Server = httptest.NewServer(f.authority.Guard(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("X-Key") != farKey {
			f.keyless.Add(1)
		}
		(*f.handler.Load()).ServeHTTP(w, q)
	}), nil))
	f.authority.Resource = f.URL + "/mcp"
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

// restart makes it forget its sessions.
func (f *far) restart() {
	s := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Say a text again."}, func(
		_ context.Context, _ *mcp.CallToolRequest, in struct {
			Text string `json:"text"`
		},
	) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "far: " + in.Text}}}, nil, nil
	})
	var h http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	f.handler.Store(&h)
}

// login runs `switchboard mcp login far`. Answer gets the address that the browser is sent
// to, and returns what is pasted.
func (w *world) login(answer func(redirect string) (paste string)) string {
	w.t.Helper()
	cmd := w.command("mcp", "login", "far", "--no-browser")
	in, out, stderr := pipes(w.t, cmd)
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	var shown strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		shown.WriteString(line + "\n")
		if strings.HasPrefix(line, "http://") {
			if paste := answer(remotetest.Agree(w.t, line)); paste != "" {
				fmt.Fprintln(in, paste)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		w.t.Fatalf("the login: %v: %s%s", err, shown.String(), stderr)
	}
	return shown.String()
}

func TestAnMCPServerOverHTTPIsLoggedInTo(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	w := newWorld(t, withModel)
	w.env["FAR_KEY"] = farKey
	w.config("extensions: {mcp: {allow: [far]}}")
	w.mcp(map[string]any{"far": map[string]any{
		"type": "http", "url": f.URL + "/mcp", "headers": map[string]string{"X-Key": "${env:FAR_KEY}"},
	}})
	w.start()
	p := w.attach()
	contains(t, "the notice", p.hears(1), "far wants you to log in", "switchboard mcp login far")
	shown := w.login(func(redirect string) string {
		resp, err := http.Get(redirect) //nolint:noctx // of a test
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return ""
	})
	contains(t, "the login", shown, "You are logged in to far.")
	w.mcpReady("far")
	if got := w.uses(p, "far__echo", map[string]any{"text": "hello"}); !strings.Contains(got, "far: hello") {
		t.Errorf("the tool says %s", got)
	}
	info, err := os.Stat(w.file("data", "mcp", "oauth", "far.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the tokens are in %v, %v", info, err)
	}

	// The login survives the kernel, and the access token is refreshed.
	w.restart()
	f.authority.RevokeAccess()
	p = w.attach()
	w.mcpReady("far")
	if got := w.uses(p, "far__echo", map[string]any{"text": "again"}); !strings.Contains(got, "far: again") {
		t.Errorf("after a restart the tool says %s", got)
	}

	// The server forgets its sessions: a call fails at most once.
	f.restart()
	if got := w.uses(p, "far__echo", map[string]any{"text": "lost"}); !strings.Contains(got, "far: lost") {
		if got = w.uses(p, "far__echo", map[string]any{"text": "found"}); !strings.Contains(got, "far: found") {
			t.Errorf("after a restart of the server the tool says %s", got)
		}
	}

	// Everything is revoked: the owner is asked once, and pastes the address this time.
	before, requests := len(p.texts()), w.model.Total()
	f.authority.RevokeAll()
	w.model.Queue(openaitest.CallTool("use_tool", map[string]any{
		"name": "mcp/far__echo", "arguments": map[string]any{"text": "revoked"},
	}), openaitest.Say("It was refused."))
	p.say("use it")
	p.hears(before + 1)
	p.say("yes")
	contains(t, "the result", w.results(requests+2), "switchboard mcp login far")
	w.eventually("the second notice", func() bool { // before the answer or after it
		shown := strings.Join(p.texts()[before:], "\n")
		return strings.Contains(shown, "far wants you to log in") && strings.Contains(shown, "It was refused.")
	})
	contains(t, "the login", w.login(func(redirect string) string {
		return "http://127.0.0.1/callback?code=x&state=y\n" + redirect
	}), "not from this login", "You are logged in to far.")
	w.mcpReady("far")
	if got := w.uses(p, "far__echo", map[string]any{"text": "back"}); !strings.Contains(got, "far: back") {
		t.Errorf("after the second login the tool says %s", got)
	}
	if n := f.keyless.Load(); n > 0 {
		t.Errorf("%d requests lack the configured header", n)
	}
	for _, file := range []string{"mcp.log", "kernel.log"} {
		if text := w.text("logs", file); strings.Contains(text, farKey) || strings.Contains(text, "refresh_token") {
			t.Errorf("%s has a secret: %s", file, text)
		}
	}
}

func TestLoginToServersThatHaveNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config("extensions: {mcp: {allow: [fake, keyed]}}")
	w.mcp(map[string]any{
		"fake":  mcpServer(),
		"keyed": map[string]any{"url": "http://127.0.0.1:9/mcp", "headers": map[string]string{"Authorization": "Bearer x"}},
		"new":   map[string]any{"url": "http://127.0.0.1:9/mcp"},
	})
	w.start()
	for server, want := range map[string]string{
		"fake": "needs no login", "keyed": "Authorization header", "none": "none", "new": "waits for the owner's consent",
	} {
		if out, complaints, code := w.cli("mcp", "login", server); code == 0 || !strings.Contains(complaints, want) {
			t.Errorf("%s: %d %s%s", server, code, out, complaints)
		}
	}
}
