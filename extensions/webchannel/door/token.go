package door

import (
	"context"
	"crypto/subtle"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// Token lets a program in. Its secret is shown once, when it is made.
type Token struct {
	Name    string    `json:"name"`
	Person  string    `json:"person"` // the id of the person it belongs to
	Scopes  []string  `json:"scopes"`
	Created time.Time `json:"created"`
	Hash    string    `json:"hash,omitempty"`
	Account identity  `json:"account"`
}

const (
	tokenPrefix  = "door/token/"
	tokenForm    = "sb_" // then the name, an underscore and the secret
	maxTokens    = 200
	maxTokenName = 40
)

var (
	tokenName  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
	clientName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// CreateToken makes a token that belongs to a person, and returns its secret.
func (d *Door) CreateToken(ctx context.Context, name, person string, scopes []string) (string, error) {
	if len(name) > maxTokenName || !tokenName.MatchString(name) {
		return "", fmt.Errorf("%w: the name %q: use lower-case letters, digits and dashes, at most 40",
			contract.ErrInvalid, name)
	}
	if len(scopes) == 0 {
		return "", fmt.Errorf("%w: a token needs a scope: %s", contract.ErrInvalid, strings.Join(Scopes, ", "))
	}
	clients := 0
	for _, s := range scopes {
		switch client, is := strings.CutPrefix(s, ScopeMCP); {
		case is && clientName.MatchString(client):
			clients++
		case !slices.Contains(Scopes, s):
			return "", fmt.Errorf("%w: there is no scope %q: use %s, %sCLIENT", contract.ErrInvalid, s,
				strings.Join(Scopes, ", "), ScopeMCP)
		}
	}
	if clients > 1 {
		return "", fmt.Errorf("%w: a token is one MCP client: make a token for each", contract.ErrInvalid)
	}
	known, err := d.Tokens(ctx)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(known, func(t Token) bool { return t.Name == name }) {
		return "", fmt.Errorf("%w: there is a token %q already: revoke it first, or choose another name",
			contract.ErrInvalid, name)
	}
	if len(known) >= maxTokens {
		return "", fmt.Errorf("%w: there are %d tokens, which is the limit: revoke one", contract.ErrInvalid, maxTokens)
	}
	account, err := d.admit(ctx, person)
	if err != nil {
		return "", err
	}
	p, err := d.people.visitor(ctx, account)
	if err != nil {
		return "", err
	}
	if clients > 0 && !p.Owner() {
		return "", fmt.Errorf("%w: the token of an MCP client is the owner's: leave the person out, and name for whom the "+
			"client acts in mcp.clients of config.yaml", contract.ErrDenied)
	}
	token := tokenForm + name + "_" + secret()
	t := Token{
		Name: name, Person: p.Person, Scopes: slices.Clone(scopes), Created: d.o.Now(), Hash: hash(token), Account: account,
	}
	if _, err := d.o.Store.Commit(ctx, sdk.PutAt(tokenPrefix+name, t, 0)); err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens[name] = t
	return token, nil
}

// Tokens returns all tokens by name, without their secrets, which are not stored.
func (d *Door) Tokens(ctx context.Context) ([]Token, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	all := make([]Token, 0, len(d.tokens))
	for _, t := range d.tokens {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// load reads the tokens once: only this process changes them.
func (d *Door) load(ctx context.Context) error {
	if d.tokens != nil {
		return nil
	}
	all := map[string]Token{}
	err := d.o.Store.Scan(ctx, tokenPrefix, func(stored sdk.Value) error {
		var t Token
		if err := stored.Decode(&t); err != nil {
			return err
		}
		all[t.Name] = t
		return nil
	})
	if err == nil {
		d.tokens = all
	}
	return err
}

// RevokeToken ends a token: requests with it are refused from now on.
func (d *Door) RevokeToken(ctx context.Context, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.load(ctx); err != nil {
		return err
	}
	if _, found := d.tokens[name]; !found {
		return fmt.Errorf("%w: there is no token %q; `switchboard tokens list` shows them", contract.ErrNotFound, name)
	}
	if _, err := d.o.Store.Commit(ctx, sdk.Delete(tokenPrefix+name)); err != nil {
		return err
	}
	delete(d.tokens, name)
	return nil
}

// byToken returns the visitor of a token.
func (d *Door) byToken(ctx context.Context, token string) (Visitor, bool) {
	rest, _ := strings.CutPrefix(token, tokenForm)
	name, _, _ := strings.Cut(rest, "_")
	d.mu.Lock()
	err := d.load(ctx)
	t := d.tokens[name]
	d.mu.Unlock()
	if err != nil || subtle.ConstantTimeCompare([]byte(t.Hash), []byte(hash(token))) != 1 {
		return Visitor{}, false
	}
	v, err := d.people.visitor(ctx, t.Account)
	if err != nil {
		return Visitor{}, false
	}
	v.Token, v.Scopes = t.Name, t.Scopes
	return v, true
}
