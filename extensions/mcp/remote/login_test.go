package remote

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/mcp/remote/remotetest"
)

// guarded is an MCP server that wants tokens of an authority.
func guarded(t *testing.T, a *remotetest.Authority, metadata func(map[string]any)) *host {
	t.Helper()
	h := serve(t, false)
	a.Resource = h.URL + "/mcp"
	h.wrap(func(next http.Handler) http.Handler { return a.Guard(next, metadata) })
	return h
}

const back = "http://127.0.0.1:8976/callback"

func newLogin(t *testing.T, dir, address string, tell func(int)) *Login {
	t.Helper()
	l, err := NewLogin(dir, "far", address, Client{}, tell)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLogin(t *testing.T) {
	t.Parallel()
	a := remotetest.Start(t)
	h := guarded(t, a, nil)
	address, dir, told := h.URL+"/mcp", t.TempDir(), 0
	l := newLogin(t, dir, address, func(int) { told++ })
	for range 2 { // told once
		if _, _, err := open(t, address, "2025-11-25", nil, l); err == nil ||
			!strings.Contains(err.Error(), "switchboard mcp login far") {
			t.Fatalf("without a token: %v", err)
		}
	}
	if told != 1 {
		t.Errorf("the owner was told %d times", told)
	}
	link, err := l.Begin(t.Context(), back)
	if err != nil {
		t.Fatal(err)
	}
	answer := remotetest.Agree(t, link)
	for _, bad := range []string{
		"", "http://127.0.0.1:8976/callback", strings.Replace(answer, "state=", "state=x", 1),
		strings.Replace(answer, "code=", "kode=", 1),
	} {
		if err := l.Finish(t.Context(), bad); err == nil {
			t.Errorf("the address %q was taken", bad)
		}
	}
	if err := l.Finish(t.Context(), " "+answer+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := l.Finish(t.Context(), answer); err == nil {
		t.Error("a login was finished twice")
	}
	info, err := os.Stat(l.file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the tokens are in %v, %v", info.Mode(), err)
	}
	if folder, err := os.Stat(dir + "/oauth"); err != nil || folder.Mode().Perm() != 0o700 {
		t.Errorf("their directory is %v, %v", folder.Mode(), err)
	}
	_, x, err := open(t, address, "2025-11-25", nil, l)
	if err != nil {
		t.Fatal(err)
	}
	works := func(what string) {
		t.Helper()
		if got, err := echo(t.Context(), x, what); got != what || err != nil {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	works("logged in")

	// The access token is revoked: it is refreshed within the call.
	a.RevokeAccess()
	works("refreshed")
	// It expires.
	l.mu.Lock()
	l.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	l.mu.Unlock()
	works("renewed")
	if n := a.Renewals(); n != 2 {
		t.Errorf("the token was refreshed %d times", n)
	}
	// After a restart the tokens are there.
	again := newLogin(t, dir, address, func(int) { told++ })
	_, x, err = open(t, address, "2025-11-25", nil, again)
	if err != nil {
		t.Fatal(err)
	}
	works("after a restart")
	if other := newLogin(t, dir, h.URL+"/other", nil); other.LoggedIn() {
		t.Error("the tokens are taken for another address")
	}
	// All is revoked: the owner is told once more, and once.
	a.RevokeAll()
	for range 3 {
		if _, err := echo(t.Context(), x, "revoked"); err == nil || !strings.Contains(err.Error(), "switchboard mcp login far") {
			t.Errorf("revoked: %v", err)
		}
	}
	if data, err := os.ReadFile(again.file); err != nil || strings.Contains(string(data), "refresh") || told != 2 {
		t.Errorf("told %d times, %s, %v", told, data, err)
	}
	link, err = again.Begin(t.Context(), back)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Finish(t.Context(), remotetest.Agree(t, link)); err != nil {
		t.Fatal(err)
	}
	works("logged in again")
}

// A client that is known without registration.
func TestLoginWithoutRegistration(t *testing.T) {
	t.Parallel()
	const document = "https://switchboard.example/client.json"
	for name, client := range map[string]Client{
		"a metadata document": {MetadataURL: document}, "registered by hand": {ID: "mine"},
	} {
		a := remotetest.Start(t)
		a.Clients[document], a.Clients["mine"] = back, back
		a.Metadata = func(m map[string]any) {
			m["client_id_metadata_document_supported"] = true
			delete(m, "registration_endpoint")
		}
		h := guarded(t, a, nil)
		l, err := NewLogin(t.TempDir(), "far", h.URL+"/mcp", client, nil)
		if err != nil {
			t.Fatal(err)
		}
		link, err := l.Begin(t.Context(), back)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := l.Finish(t.Context(), remotetest.Agree(t, link)); err != nil || !l.LoggedIn() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHostileAuthorizationServers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		resource, metadata func(a *remotetest.Authority) func(map[string]any)
		answer             func(url.Values)
		want               string
	}{
		"the resource is another one": {
			resource: func(*remotetest.Authority) func(map[string]any) {
				return func(m map[string]any) { m["resource"] = "https://bank.example/mcp" }
			},
		},
		"the issuer is another one": {
			metadata: func(*remotetest.Authority) func(map[string]any) {
				return func(m map[string]any) { m["issuer"] = "https://bank.example" }
			},
			want: "issuer",
		},
		"without PKCE": {
			metadata: func(*remotetest.Authority) func(map[string]any) {
				return func(m map[string]any) { delete(m, "code_challenge_methods_supported") }
			},
		},
		"an issuer of another login answers": {
			answer: func(v url.Values) { v.Set("iss", "https://bank.example") },
			want:   "issuer",
		},
		"no issuer answers": {answer: func(v url.Values) { v.Del("iss") }, want: "iss"},
		"it refuses": {
			answer: func(v url.Values) {
				v.Del("code")
				v.Set("error", "access_denied")
			},
			want: "access_denied",
		},
		"tokens over http": {
			metadata: func(*remotetest.Authority) func(map[string]any) {
				return func(m map[string]any) { m["token_endpoint"] = "http://bank.example/token" }
			},
		},
		"registration at a private address": {
			metadata: func(*remotetest.Authority) func(map[string]any) {
				return func(m map[string]any) { m["registration_endpoint"] = "https://10.0.0.5/register" }
			},
			want: "non-public",
		},
		"registration at the address of a cloud": {
			metadata: func(*remotetest.Authority) func(map[string]any) {
				return func(m map[string]any) { m["registration_endpoint"] = "https://169.254.169.254/latest" }
			},
			want: "non-public",
		},
		"a page that is a script": {
			metadata: func(*remotetest.Authority) func(map[string]any) {
				return func(m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" }
			},
		},
		"a page over http": {
			metadata: func(*remotetest.Authority) func(map[string]any) {
				return func(m map[string]any) { m["authorization_endpoint"] = "http://bank.example/authorize" }
			},
			want: "HTTPS",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := remotetest.Start(t)
			a.Answer = tt.answer
			if tt.metadata != nil {
				a.Metadata = tt.metadata(a)
			}
			var resource func(map[string]any)
			if tt.resource != nil {
				resource = tt.resource(a)
			}
			h := guarded(t, a, resource)
			l := newLogin(t, t.TempDir(), h.URL+"/mcp", nil)
			link, err := l.Begin(t.Context(), back)
			if err == nil {
				err = l.Finish(t.Context(), remotetest.Agree(t, link))
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the login: %v", err)
			}
			if l.LoggedIn() {
				t.Error("tokens are kept")
			}
		})
	}
}

func TestAServerThatWantsNoLogin(t *testing.T) {
	t.Parallel()
	h := serve(t, true)
	l := newLogin(t, t.TempDir(), h.URL, nil)
	if _, err := l.Begin(t.Context(), back); err == nil || !strings.Contains(err.Error(), "asks for no login") {
		t.Error(err)
	}
	if err := l.Finish(t.Context(), back+"?code=c&state="); err == nil || !strings.Contains(err.Error(), "no login to far") {
		t.Error(err)
	}
}
