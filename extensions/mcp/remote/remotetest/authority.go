// Package remotetest has an authorization server for tests, which enforces what OAuth 2.1 and
// MCP demand of a client.
package remotetest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Authority is an authorization server that enforces what OAuth 2.1 and MCP demand.
type Authority struct {
	*httptest.Server
	Resource string // the server that it gives tokens for

	mu       sync.Mutex
	Clients  map[string]string // by id, their redirect addresses
	codes    map[string]url.Values
	tokens   map[string]bool   // access tokens that are good
	refresh  map[string]string // refresh tokens, and their clients
	n        int
	renewals int
	Metadata func(map[string]any) // changes what it says of itself
	Answer   func(url.Values)     // changes where it sends the browser
}

// Start starts one.
func Start(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{
		Clients: map[string]string{}, codes: map[string]url.Values{}, tokens: map[string]bool{},
		refresh: map[string]string{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server", a.describe)
	mux.HandleFunc("POST /register", a.register)
	mux.HandleFunc("GET /authorize", a.authorize)
	mux.HandleFunc("POST /token", a.token)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (a *Authority) describe(w http.ResponseWriter, _ *http.Request) {
	all := map[string]any{
		"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token",
		"registration_endpoint": a.URL + "/register", "response_types_supported": []string{"code"},
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		"authorization_response_iss_parameter_supported": true,
	}
	if a.Metadata != nil {
		a.Metadata(all)
	}
	reply(w, http.StatusOK, all)
}

func (a *Authority) register(w http.ResponseWriter, q *http.Request) {
	var r struct {
		RedirectURIs []string `json:"redirect_uris"`
		Method       string   `json:"token_endpoint_auth_method"`
	}
	if err := json.NewDecoder(q.Body).Decode(&r); err != nil || len(r.RedirectURIs) != 1 || r.Method != "none" {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	id := fmt.Sprintf("client%d", a.n)
	a.Clients[id] = r.RedirectURIs[0]
	reply(w, http.StatusCreated, map[string]any{
		"client_id": id, "redirect_uris": r.RedirectURIs, "token_endpoint_auth_method": "none",
	})
}

// authorize is the page on which a person agrees: here, they always do.
func (a *Authority) authorize(w http.ResponseWriter, q *http.Request) {
	given := q.URL.Query()
	a.mu.Lock()
	defer a.mu.Unlock()
	if redirect := a.Clients[given.Get("client_id")]; redirect == "" || redirect != given.Get("redirect_uri") ||
		given.Get("response_type") != "code" || given.Get("code_challenge_method") != "S256" ||
		given.Get("code_challenge") == "" || given.Get("state") == "" || given.Get("resource") != a.Resource {
		http.Error(w, "bad request: "+given.Encode(), http.StatusBadRequest)
		return
	}
	a.n++
	code := fmt.Sprintf("code%d", a.n)
	a.codes[code] = given
	back := url.Values{"code": {code}, "state": {given.Get("state")}, "iss": {a.URL}}
	if a.Answer != nil {
		a.Answer(back)
	}
	http.Redirect(w, q, given.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (a *Authority) token(w http.ResponseWriter, q *http.Request) {
	_ = q.ParseForm()
	a.mu.Lock()
	defer a.mu.Unlock()
	refuse := func(reason string) { reply(w, http.StatusBadRequest, map[string]string{"error": reason}) }
	client := q.Form.Get("client_id")
	if q.Form.Get("resource") != a.Resource || a.Clients[client] == "" {
		refuse("invalid_target")
		return
	}
	switch q.Form.Get("grant_type") {
	case "authorization_code":
		asked := a.codes[q.Form.Get("code")]
		delete(a.codes, q.Form.Get("code"))
		sum := sha256.Sum256([]byte(q.Form.Get("code_verifier")))
		if asked == nil || base64.RawURLEncoding.EncodeToString(sum[:]) != asked.Get("code_challenge") ||
			asked.Get("client_id") != client || asked.Get("redirect_uri") != q.Form.Get("redirect_uri") {
			refuse("invalid_grant")
			return
		}
	case "refresh_token":
		old := q.Form.Get("refresh_token")
		if a.refresh[old] != client {
			refuse("invalid_grant")
			return
		}
		delete(a.refresh, old)
		a.renewals++
	default:
		refuse("unsupported_grant_type")
		return
	}
	a.n++
	access, again := fmt.Sprintf("access%d", a.n), fmt.Sprintf("refresh%d", a.n)
	a.tokens[access], a.refresh[again] = true, client
	reply(w, http.StatusOK, map[string]any{
		"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": again,
	})
}

// Agree opens an address as a person's browser does, and returns where it is sent.
func Agree(t testing.TB, address string) string {
	t.Helper()
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Get(address) //nolint:noctx // of a test
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Fatalf("the authorization server answers %s to %s", resp.Status, address)
	}
	return resp.Header.Get("Location")
}

// Guard makes an MCP server below an address want tokens of the authority.
func (a *Authority) Guard(next http.Handler, metadata func(map[string]any)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasPrefix(q.URL.Path, "/.well-known/oauth-protected-resource") {
			all := map[string]any{"resource": a.Resource, "authorization_servers": []string{a.URL}}
			if metadata != nil {
				metadata(all)
			}
			reply(w, http.StatusOK, all)
			return
		}
		if a.takes(strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")) {
			next.ServeHTTP(w, q)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://`+q.Host+
			`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
}

func (a *Authority) takes(token string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tokens[token]
}

// RevokeAccess revokes the access tokens.
func (a *Authority) RevokeAccess() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.tokens)
}

// RevokeAll revokes the refresh tokens, too.
func (a *Authority) RevokeAll() {
	a.RevokeAccess()
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.refresh)
}

// Renewals counts the refreshed tokens.
func (a *Authority) Renewals() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.renewals
}
