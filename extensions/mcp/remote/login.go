package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// loginTimeout is how long a person may take to agree.
const loginTimeout = 15 * time.Minute

// ErrLogin says that the owner has to log in to a server.
var ErrLogin = errors.New("the server wants a login")

// Client is how Switchboard introduces itself to authorization servers, beyond dynamic
// registration.
type Client struct {
	MetadataURL string // of a client-ID metadata document
	ID, Secret  string // registered by hand
}

// Login logs in to one server and keeps its tokens. It is safe for concurrent use.
type Login struct {
	id, address, file string
	own               *url.URL
	client            Client
	tell              func(logins int) // the owner that a login is needed, after so many
	web               *http.Client

	mu       sync.Mutex
	kept     *kept // nil: none
	told     bool
	pending  *attempt
	wanted   challenge  // of the server, since the last login
	answered challenge  // with the last login
	renewed  renewal    // the last one
	refresh  sync.Mutex // one refresh at a time
	now      func() time.Time
}

// challenge is how a server refused a request.
type challenge struct {
	status int    // 0: it did not
	header string // WWW-Authenticate, one a line
}

// response is the answer that had the challenge.
func (c challenge) response() *http.Response {
	return &http.Response{
		StatusCode: c.status, Body: http.NoBody, Header: http.Header{"Www-Authenticate": strings.Split(c.header, "\n")},
	}
}

// renewal is a token that the refresh token gave.
type renewal struct {
	access string
	at     time.Time
}

// uselessRenewal is how soon a server refuses a renewed token if another renewal would not
// help either: it wants tokens of another authorization server, for example.
const uselessRenewal = 10 * time.Minute

// kept is what is stored of a login.
type kept struct {
	Address  string `json:"address"` // of the server that it is for
	Logins   int    `json:"logins"`
	Resource string `json:"resource"`
	TokenURL string `json:"token_url"`
	Client   string `json:"client_id"`
	Secret   string `json:"client_secret,omitempty"`
	InHeader bool   `json:"client_in_header,omitempty"`
	Access   string `json:"access_token"` // empty: it was refused
	Refresh  string `json:"refresh_token,omitempty"`
	Expires  int64  `json:"expires,omitempty"` // Unix seconds; 0: unknown
	// Scopes are those that were asked for.
	Scopes []string `json:"scopes,omitempty"`
}

// NewLogin reads the tokens of a server from a directory. Tell is called once when the owner
// has to log in, with the number of logins before: after a restart it may be called again
// with the same number.
func NewLogin(dir, id, address string, client Client, tell func(logins int)) (*Login, error) {
	u, err := parse(address)
	if err != nil {
		return nil, err
	}
	l := &Login{
		id: id, address: u.String(), file: filepath.Join(dir, "oauth", id+".json"), own: u, client: client, tell: tell,
		now: time.Now, web: metadataClient(u),
	}
	data, err := os.ReadFile(l.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, nil
	case err != nil:
		return nil, fmt.Errorf("read the tokens of %s: %w", id, err)
	}
	var k kept
	if err := json.Unmarshal(data, &k); err == nil && k.Address == l.address {
		l.kept = &k
	}
	return l, nil
}

// save stores tokens. The caller holds l.mu.
func (l *Login) save(k *kept) error {
	l.kept = k
	data, err := json.Marshal(k) //nolint:gosec // into a file of the owner alone
	if err != nil {
		return err
	}
	dir := filepath.Dir(l.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("store the tokens of %s: %w", l.id, err)
	}
	f, err := os.CreateTemp(dir, ".tokens-*") // mode 0600
	if err != nil {
		return fmt.Errorf("store the tokens of %s: %w", l.id, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), l.file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("store the tokens of %s: %w", l.id, err)
	}
	return nil
}

// LoggedIn reports whether there are tokens.
func (l *Login) LoggedIn() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept != nil && l.kept.Access != ""
}

// TokenSource implements auth.OAuthHandler.
func (l *Login) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	if !l.LoggedIn() {
		return nil, nil //nolint:nilnil // the interface wants it: no token yet
	}
	return source{l, ctx}, nil
}

type source struct {
	l   *Login
	ctx context.Context //nolint:containedctx // of the connection
}

// Token implements oauth2.TokenSource.
func (s source) Token() (*oauth2.Token, error) {
	s.l.mu.Lock()
	k := s.l.kept
	s.l.mu.Unlock()
	if k == nil || k.Access == "" {
		return nil, s.l.needed()
	}
	if k.Expires > 0 && s.l.now().Add(30*time.Second).Unix() > k.Expires {
		var err error
		if k, err = s.l.renew(s.ctx, k.Access); err != nil {
			return nil, err
		}
	}
	return &oauth2.Token{AccessToken: k.Access, TokenType: "Bearer"}, nil
}

// Authorize implements auth.OAuthHandler: a server refused a request. A refused token is
// refreshed; otherwise the owner has to log in.
func (l *Login) Authorize(ctx context.Context, q *http.Request, resp *http.Response) error {
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxMetadata))
	wanted := challenge{resp.StatusCode, strings.Join(resp.Header.Values("WWW-Authenticate"), "\n")}
	if wanted.status == http.StatusForbidden && !strings.Contains(wanted.header, "insufficient_scope") {
		return nil // the call fails with what the server says
	}
	refused := strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")
	l.mu.Lock()
	l.wanted = wanted
	again := l.again()
	useless := refused == l.renewed.access && l.now().Sub(l.renewed.at) < uselessRenewal
	l.mu.Unlock()
	switch {
	case again != nil:
		return again
	case refused == "" || wanted.status == http.StatusForbidden:
		return l.needed()
	case useless:
		return l.drop()
	}
	_, err := l.renew(ctx, refused)
	if err == nil {
		l.mu.Lock()
		l.wanted = challenge{}
		l.mu.Unlock()
	}
	return err
}

// Missing is ErrLogin if the server refused a request since the last login.
func (l *Login) Missing() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wanted.status == 0 {
		return nil
	}
	return cmp.Or(l.again(), l.missing())
}

// again is an error if the server refused what it has just had a login for. The caller holds
// l.mu.
func (l *Login) again() error {
	if l.wanted != l.answered || l.wanted.status != http.StatusForbidden {
		return nil
	}
	return fmt.Errorf("%w that it has had already, and refuses the call nevertheless: ask its operator", ErrLogin)
}

func (l *Login) missing() error {
	return fmt.Errorf("%w: run `switchboard mcp login %s`", ErrLogin, l.id)
}

// needed tells the owner, once, that they have to log in.
func (l *Login) needed() error {
	l.mu.Lock()
	first, logins := !l.told, 0
	l.told = true
	if l.kept != nil {
		logins = l.kept.Logins
	}
	l.mu.Unlock()
	if first && l.tell != nil {
		l.tell(logins)
	}
	return l.missing()
}

// renew replaces an access token by the refresh token. If another one is there already, it
// is returned.
func (l *Login) renew(ctx context.Context, old string) (*kept, error) {
	l.refresh.Lock()
	defer l.refresh.Unlock()
	l.mu.Lock()
	k := l.kept
	l.mu.Unlock()
	switch {
	case k == nil, k.Access == "":
		return nil, l.needed()
	case k.Access != old:
		return k, nil
	case k.Refresh == "":
		return nil, l.drop()
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {k.Refresh}, "resource": {k.Resource}}
	if !k.InHeader {
		form.Set("client_id", k.Client)
		if k.Secret != "" {
			form.Set("client_secret", k.Secret)
		}
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, k.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	q.Header.Set("Accept", "application/json")
	if k.InHeader {
		q.SetBasicAuth(url.QueryEscape(k.Client), url.QueryEscape(k.Secret))
	}
	resp, err := l.web.Do(q)
	if err != nil {
		return nil, fmt.Errorf("refresh the token of %s: %w", l.id, err)
	}
	defer resp.Body.Close()
	var answer struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Expires int64  `json:"expires_in"`
		Error   string `json:"error"`
	}
	err = json.NewDecoder(resp.Body).Decode(&answer)
	switch {
	case slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client"}, answer.Error):
		return nil, l.drop()
	case resp.StatusCode != http.StatusOK || err != nil || answer.Access == "":
		return nil, fmt.Errorf("refresh the token of %s: the authorization server answered %s", l.id, resp.Status)
	}
	next := *k
	next.Access, next.Expires = answer.Access, 0
	if answer.Refresh != "" {
		next.Refresh = answer.Refresh
	}
	if answer.Expires > 0 {
		next.Expires = l.now().Unix() + answer.Expires
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = renewal{next.Access, l.now()}
	return &next, l.save(&next)
}

// drop deletes tokens that are no longer good.
func (l *Login) drop() error {
	l.mu.Lock()
	err := l.save(&kept{Address: l.address, Logins: l.kept.Logins})
	l.mu.Unlock()
	return errors.Join(l.needed(), err)
}
