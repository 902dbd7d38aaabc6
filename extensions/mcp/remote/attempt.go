package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// attempt is a login that waits for the person.
type attempt struct {
	state    string
	resource string // the resource that the token is for
	wanted   challenge
	answer   chan *auth.AuthorizationResult
	ended    chan error
	cancel   context.CancelFunc
}

// Begin begins a login and returns the address that the person opens. Afterwards their
// browser is sent to the redirect address, on this machine. A login that was begun before
// ends.
func (l *Login) Begin(ctx context.Context, redirect string) (string, error) {
	q, wanted, err := l.probe(ctx)
	if err != nil {
		return "", err
	}
	run, cancel := context.WithTimeout(context.Background(), loginTimeout)
	a := &attempt{
		wanted: wanted, answer: make(chan *auth.AuthorizationResult, 1), ended: make(chan error, 1), cancel: cancel,
	}
	opened := make(chan string, 1)
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect, Client: l.web, RequestRefreshToken: true, AcceptUnadvertisedIss: true,
		AuthorizationCodeFetcher: func(
			ctx context.Context, args *auth.AuthorizationArgs,
		) (*auth.AuthorizationResult, error) {
			opened <- args.URL
			select {
			case answer := <-a.answer:
				return answer, nil
			case <-ctx.Done():
				return nil, errors.New("no one agreed in time")
			}
		},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			return oauth2.StaticTokenSource(t), l.accept(c, t, a)
		},
		ScopeFilter: func(scopes []string) []string { return l.scopes(wanted, scopes) },
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName: "Switchboard", RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none",
				GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
			},
		},
	}
	if l.client.MetadataURL != "" {
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: l.client.MetadataURL}
	}
	if l.client.ID != "" {
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: l.client.ID}
		if l.client.Secret != "" {
			config.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: l.client.Secret}
		}
	}
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		cancel()
		return "", fmt.Errorf("log in to %s: %w", l.id, err)
	}
	go func() {
		defer cancel()
		a.ended <- handler.Authorize(run, q, wanted.response()) //nolint:bodyclose // it has none
	}()
	select {
	case address := <-opened:
		u, err := url.Parse(address)
		if err == nil {
			err = reachOf(l.own.Hostname()).secure(u)
		}
		if err != nil {
			cancel()
			return "", fmt.Errorf("log in to %s: %w", l.id, err)
		}
		a.state, a.resource = u.Query().Get("state"), u.Query().Get("resource")
		l.mu.Lock()
		before := l.pending
		l.pending = a
		l.mu.Unlock()
		if before != nil {
			before.cancel()
		}
		return address, nil
	case err := <-a.ended:
		return "", fmt.Errorf("log in to %s: %w", l.id, err)
	case <-ctx.Done():
		cancel()
		return "", ctx.Err()
	}
}

// scopes are those that a login asks for: beside those that the server wants, those of the
// token that does not have them.
func (l *Login) scopes(wanted challenge, scopes []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wanted.status == http.StatusForbidden && l.kept != nil {
		for _, had := range l.kept.Scopes {
			if !slices.Contains(scopes, had) {
				scopes = append(slices.Clone(scopes), had)
			}
		}
	}
	return scopes
}

// probes are requests that a server which wants a login refuses: some refuse only what is
// asked in a session.
var probes = []string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"switchboard","version":"0.1"}}}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`,
}

// probe returns how the server refuses requests: the last that it refused, or, if it refused
// none since the last login, one that is made without a token.
func (l *Login) probe(ctx context.Context) (q *http.Request, c challenge, err error) {
	l.mu.Lock()
	c = l.wanted
	l.mu.Unlock()
	status := ""
	for _, body := range probes {
		q, err = http.NewRequestWithContext(ctx, http.MethodPost, l.address, strings.NewReader(body))
		if err != nil || c.status != 0 {
			return q, c, err
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := serverClient(l.own, nil, context.Background()).Do(q) //nolint:contextcheck // see bounded
		if err != nil {
			return nil, c, fmt.Errorf("ask %s for a login: %w", l.id, err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusUnauthorized {
			return q, challenge{resp.StatusCode, strings.Join(resp.Header.Values("WWW-Authenticate"), "\n")}, nil
		}
		if status == "" {
			status = resp.Status
		}
	}
	return nil, c, fmt.Errorf("%s asks for no login: it answered %s", l.id, status)
}

// accept stores the tokens of a login.
func (l *Login) accept(c *oauth2.Config, t *oauth2.Token, a *attempt) error {
	if !strings.EqualFold(t.Type(), "Bearer") {
		return fmt.Errorf("the authorization server gave a token of the unknown type %q", t.Type())
	}
	k := &kept{
		Address: l.address, Resource: a.resource, TokenURL: c.Endpoint.TokenURL, Client: c.ClientID, Secret: c.ClientSecret,
		InHeader: c.Endpoint.AuthStyle == oauth2.AuthStyleInHeader && c.ClientSecret != "",
		Access:   t.AccessToken, Refresh: t.RefreshToken, Scopes: c.Scopes,
	}
	if !t.Expiry.IsZero() {
		k.Expires = t.Expiry.Unix()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told, k.Logins = false, 1
	l.answered, l.wanted = a.wanted, challenge{}
	if l.kept != nil {
		k.Logins += l.kept.Logins
	}
	return l.save(k)
}

// Finish ends a login with the address that the person's browser was sent to.
func (l *Login) Finish(ctx context.Context, address string) error {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return fmt.Errorf("read the address: %w", err)
	}
	given := u.Query()
	l.mu.Lock()
	a := l.pending
	l.mu.Unlock()
	switch {
	case a == nil:
		return fmt.Errorf("no login to %s is under way: begin again", l.id)
	case given.Get("state") != a.state || a.state == "":
		return errors.New("this address is not from this login: copy the whole address from the browser")
	case given.Get("error") == "" && given.Get("code") == "":
		return errors.New("the address has no code: copy the whole address from the browser")
	}
	l.mu.Lock()
	l.pending = nil
	l.mu.Unlock()
	if refusal := given.Get("error"); refusal != "" {
		a.cancel()
		return fmt.Errorf("log in to %s: the authorization server refused: %s %s", l.id, refusal,
			given.Get("error_description"))
	}
	a.answer <- &auth.AuthorizationResult{Code: given.Get("code"), State: given.Get("state"), Iss: given.Get("iss")}
	select {
	case err := <-a.ended:
		if err != nil {
			return fmt.Errorf("log in to %s: %w", l.id, err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
