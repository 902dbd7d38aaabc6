package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/internal/loopback"
)

// overHTTP sends requests of an MCP client to the web channel.
type overHTTP struct{ token, origin string }

// RoundTrip implements http.RoundTripper.
func (o overHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if o.token != "" {
		r.Header.Set("Authorization", "Bearer "+o.token)
	}
	if o.origin != "" {
		r.Header.Set("Origin", o.origin)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// serveMCP starts a kernel that serves MCP clients over HTTP, and returns the address.
func (w *world) serveMCP() string {
	w.t.Helper()
	port, err := loopback.Take()
	if err != nil {
		w.t.Fatal(err)
	}
	port.Release()
	w.write(fmt.Sprintf("%s\n%s\nextensions: {web_channel: {config: {listen: %q}}}\n", w.text("config.yaml"), allowClaude,
		port.Addr), 0o600, "config.yaml")
	w.start()
	return "http://" + port.Addr + "/mcp"
}

// connectHTTP connects an MCP client over HTTP.
func (w *world) connectHTTP(url, version string, through overHTTP) (*mcpClient, error) {
	c := &mcpClient{w: w, changed: make(chan struct{}, 100), progress: make(chan string, 100)}
	client := mcp.NewClient(&mcp.Implementation{Name: "somebody else", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			select {
			case c.changed <- struct{}{}:
			default:
			}
		},
		ProgressNotificationHandler: func(_ context.Context, p *mcp.ProgressNotificationClientRequest) {
			select {
			case c.progress <- p.Params.Message:
			default:
			}
		},
	})
	session, err := client.Connect(w.ctx(), &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: through}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, err
	}
	c.ClientSession = session
	w.t.Cleanup(func() { _ = session.Close() })
	return c, nil
}

func (w *world) tokenOf(name, scope string) string {
	return list[struct{ Token string }](w, "tokens", "create", name, "--scope", scope).Token
}

// A client over HTTP has the grants of its name, like one over stdio, and gets in only with its
// token and from no page of another site.
func TestMCPClientOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	url := w.serveMCP()
	w.telegramReady()
	claude := overHTTP{token: w.tokenOf("desk", "mcp:claude")}
	for _, version := range []string{"2025-03-26", "2025-11-25", "2026-07-28"} {
		c, err := w.connectHTTP(url, version, claude)
		if err != nil {
			t.Fatalf("connect with protocol %s: %v", version, err)
		}
		if tools := c.tools(); !slices.Contains(tools, "memory__remember") || slices.Contains(tools, "list_agents") {
			t.Errorf("%s: the tools are %v", version, tools)
		}
		c.does("memory__remember", map[string]any{"text": "the " + version + " kettle is blue"})
		contains(t, "recall", c.does("memory__recall", map[string]any{"query": version}), "kettle is blue")
		c.does("send_to_channel", map[string]any{"channel_id": "telegram_channel", "text": "protocol " + version})
		all := w.telegram.Messages(anna)
		if got := all[len(all)-1].Text; got != "claude (MCP): protocol "+version {
			t.Errorf("Anna reads %q", got)
		}
	}
	if !slices.Contains(w.called("claude"), "memory/remember") {
		t.Errorf("recorded are %v", w.called("claude"))
	}
	reader, err := w.connectHTTP(url, "", overHTTP{token: w.tokenOf("reader", "mcp:reader")})
	if err != nil {
		t.Fatal(err)
	}
	if got := reader.tools(); !slices.Contains(got, "memory__recall") || slices.Contains(got, "memory__remember") {
		t.Errorf("a client without a list of tools has %v", got)
	}

	status := func(o overHTTP) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(w.ctx(), http.MethodPost, url, strings.NewReader(initialize))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		said, err := (&http.Client{Transport: o}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer said.Body.Close()
		text, _ := io.ReadAll(said.Body)
		return said.StatusCode, string(text)
	}
	stranger := overHTTP{token: w.tokenOf("stranger", "mcp:stranger")}
	for name, tt := range map[string]struct {
		by     overHTTP
		status int
		text   string
	}{
		"no token":        {overHTTP{}, http.StatusUnauthorized, ""},
		"a wrong token":   {overHTTP{token: claude.token + "x"}, http.StatusUnauthorized, ""},
		"another scope":   {overHTTP{token: w.tokenOf("all", "all")}, http.StatusForbidden, "--scope mcp:"},
		"a foreign page":  {overHTTP{claude.token, "https://evil.example"}, http.StatusForbidden, "another site"},
		"no page":         {overHTTP{claude.token, "null"}, http.StatusForbidden, "another site"},
		"its own page":    {overHTTP{claude.token, strings.TrimSuffix(url, "/mcp")}, http.StatusOK, "switchboard"},
		"an unknown name": {stranger, http.StatusOK, "does not allow the MCP client"},
	} {
		if got, text := status(tt.by); got != tt.status || !strings.Contains(text, tt.text) {
			t.Errorf("%s: %d %s, want %d %s", name, got, text, tt.status, tt.text)
		}
	}
	w.must("tokens", "revoke", "desk")
	if got, text := status(claude); got != http.StatusUnauthorized {
		t.Errorf("a revoked token: %d %s", got, text)
	}
	for _, scopes := range []string{"mcp:Claude", "mcp:", "mcp:a,mcp:b"} {
		if out, complaints, code := w.cli("tokens", "create", "bad", "--scope", scopes); code == 0 {
			t.Errorf("the scope %s: %s%s", scopes, out, complaints)
		}
	}
}

// A question that is asked over HTTP outlives a kill of all processes, and is asked once.
func TestMCPQuestionOverHTTPOutlivesTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	url := w.serveMCP()
	w.telegramReady()
	c, err := w.connectHTTP(url, "", overHTTP{token: w.tokenOf("desk", "mcp:claude")})
	if err != nil {
		t.Fatal(err)
	}
	question := map[string]any{"question": "Where are the keys?"}
	type outcome struct {
		text    string
		isError bool
	}
	first := make(chan outcome, 1)
	go func() {
		text, isError := c.try("ask_user", question)
		first <- outcome{text, isError}
	}()
	asked := func() (n int) {
		for _, text := range w.texts(anna) {
			if strings.Contains(text, "claude (MCP): Where are the keys?") {
				n++
			}
		}
		return n
	}
	w.eventually("the question", func() bool { return asked() == 1 })
	w.settled()
	w.crash()
	if o := <-first; !o.isError {
		t.Errorf("the call whose server was killed returned %s", o.text)
	}
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "under the mat")
	var again outcome
	w.eventually("the answer", func() bool {
		again.text, again.isError = c.try("ask_user", question)
		return !again.isError
	})
	contains(t, "the answer", again.text, "under the mat")
	if n := asked(); n != 1 {
		t.Errorf("the question was asked %d times", n)
	}
}

// A client that listens learns of more tools.
func TestMCPClientOverHTTPIsToldOfNewTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serveMCP()
	c, err := w.connectHTTP(url, "2026-07-28", overHTTP{token: w.tokenOf("reader", "mcp:reader")})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.tools(); slices.Contains(got, "memory__remember") {
		t.Fatalf("the tools are %v", got)
	}
	w.write(strings.Replace(w.text("config.yaml"), "reader: {}", "reader: {tools: [memory/*]}", 1), 0o600, "config.yaml")
	select {
	case <-c.changed:
	case <-w.ctx().Done():
		t.Fatal("the client was not told")
	}
	w.eventually("the new tool", func() bool { return slices.Contains(c.tools(), "memory__remember") })
}
