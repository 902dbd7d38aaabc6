// Package door decides who may use the web channel, and as whom. It stands before every
// route.
//
// # Promises
//
//   - A request gets in with the cookie of a login or with a token, on loopback too. A login
//     begins with a link that works once, for ten minutes; stored are only hashes.
//   - A request for a host that is not the page's own, or from a page of another origin, is
//     refused on every route: a foreign page gets nothing, nor does a name that an attacker
//     points at this machine.
//   - A visitor is never more than the person is now: roles are read again within seconds, and
//     what was ended or revoked ends at once.
//   - No login, token or address holds more than a part of the connections.
//   - Attempts to guess are limited for each address, and the answer is the same whatever was
//     wrong.
//
// It is safe for concurrent use.
package door

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// Store is the part of *sdk.Kernel that keeps logins, links and tokens.
type Store interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Scan(ctx context.Context, prefix string, each func(sdk.Value) error) error
	Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
}

// Options are what a Door needs. All but Cookie's options must be set.
type Options struct {
	Store  Store
	Read   adminv1.ReadClient
	Manage adminv1.ManageClient
	// Channel is the id of the channel whose accounts visitors have.
	Channel string
	Hosts   []string // values of the header Host under which the site answers
	Secure  bool     // browsers speak TLS with the site
	Proxy   bool     // a trusted proxy is in front: the last address of X-Forwarded-For is the browser's
	Style   string   // address of the style sheet of pages for who isn't let in; a public path
	Now     func() time.Time
	Log     hclog.Logger
}

// Door lets requests in.
type Door struct {
	o      Options
	people people
	crowd  crowd

	mu     sync.Mutex
	tokens map[string]Token // by name; nil: not read yet
	limits map[string]*rate.Limiter
}

// New returns a Door.
func New(o Options) *Door {
	d := &Door{o: o, limits: map[string]*rate.Limiter{}}
	d.people.read, d.people.now = o.Read, o.Now
	return d
}

// cookie is the name of the cookie of a login.
func (d *Door) cookie() string {
	if d.o.Secure {
		return "__Host-switchboard"
	}
	return "switchboard"
}

// MCPPath is the path of MCP clients. Its requests from pages of another origin are refused
// with a token, too, as MCP demands.
const MCPPath = "/mcp"

// Handler lets requests through to next, which finds the visitor by From. Requests of paths
// that public names need no visitor and have none: they prove themselves otherwise, or their
// answers are no secret. Public paths that end in a slash name all paths below.
func (d *Door) Handler(next http.Handler, public ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header(w.Header())
		limitBody(w, r)
		if !slices.Contains(d.o.Hosts, strings.ToLower(r.Host)) {
			w.Header().Set("Connection", "close")
			d.refuse(w, r, http.StatusMisdirectedRequest, words.Sprintf("this address is not one of the page's own"))
			return
		}
		if r.URL.Path == enterPath {
			d.enter(w, r)
			return
		}
		if isPublic(r.URL.Path, public) {
			d.admitted(w, r, "address "+d.address(r), mostOfAddress, next)
			return
		}
		v, ok := d.visitor(r)
		switch {
		case ok && (v.Token == "" || r.URL.Path == MCPPath && r.Header.Get("Origin") != "") && foreign(r, d.o.Hosts):
			d.refuse(w, r, http.StatusForbidden, words.Sprintf("the request comes from another site"))
		case !ok && !d.allow(r):
			w.Header().Set("Retry-After", "10")
			d.refuse(w, r, http.StatusTooManyRequests, words.Sprintf("too many attempts: wait ten seconds"))
		case !ok:
			w.Header().Set("Connection", "close")
			w.Header().Set("WWW-Authenticate", `Bearer realm="switchboard"`)
			d.refuse(w, r, http.StatusUnauthorized, words.Sprintf("you are not logged in: run `switchboard web` on the "+
				"machine of the assistant, or write /web to it on another channel, and open the link"))
		default:
			ctx := With(r.Context(), v)
			if lasts(r.URL.Path) {
				watched, cancel := d.watched(ctx, v)
				defer cancel()
				ctx = watched
			}
			d.admitted(w, r.WithContext(ctx), "login "+v.Login+" token "+v.Token, mostOfVisitor, next)
		}
	})
}

// admitted serves a request unless there are too many at once of who makes it.
func (d *Door) admitted(w http.ResponseWriter, r *http.Request, who string, most int, next http.Handler) {
	leave, ok := d.crowd.enter(who, most)
	if !ok {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close")
		d.refuse(w, r, http.StatusTooManyRequests, words.Sprintf("too many requests at once: close some pages or streams"))
		return
	}
	defer leave()
	next.ServeHTTP(w, r)
}

func isPublic(path string, public []string) bool {
	return slices.ContainsFunc(public, func(p string) bool {
		return path == p || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p)
	})
}

// header sets what every answer has; a part of the site may tighten it.
func header(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "+
		"img-src 'self' blob: data:; connect-src 'self'; media-src 'self' blob:; font-src 'self'; manifest-src 'self'; "+
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, a form of the page would have the Origin "null"
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// foreign reports whether a page of another origin made a request. Following a link to a page
// is no such request; a form or a script is.
func foreign(r *http.Request, hosts []string) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		_, host, found := strings.Cut(origin, "://")
		return !found || !slices.Contains(hosts, strings.ToLower(host))
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "": // an old browser, or a program: only reading is safe
		return r.Method != http.MethodGet && r.Method != http.MethodHead
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Method != http.MethodGet ||
		r.Header.Get("Sec-Fetch-Dest") != "document"
}

// visitor returns who makes a request.
func (d *Door) visitor(r *http.Request) (v Visitor, ok bool) {
	language := languageOf(r)
	if token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); found {
		v, ok = d.byToken(r.Context(), token)
		v.Language = language
		return v, ok
	}
	c, err := r.Cookie(d.cookie())
	if err != nil {
		return Visitor{}, false
	}
	v, ok = d.byLogin(r.Context(), c.Value)
	v.Language = language
	return v, ok
}

// languageOf is the first language that the browser asks for.
func languageOf(r *http.Request) string {
	first, _, _ := strings.Cut(r.Header.Get("Accept-Language"), ",")
	tag, _, _ := strings.Cut(first, ";")
	tag, _, _ = strings.Cut(strings.TrimSpace(tag), "-")
	if len(tag) > 8 {
		return ""
	}
	return strings.ToLower(tag)
}

const (
	attemptsAtOnce = 20               // without a login, of one address
	attemptEvery   = 10 * time.Second // afterwards
	limitsKept     = 10_000           // addresses
)

// allow reports whether an address may try again to get in.
func (d *Door) allow(r *http.Request) bool {
	address := d.address(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.limits[address]
	if l == nil {
		if len(d.limits) >= limitsKept {
			clear(d.limits)
		}
		l = rate.NewLimiter(rate.Every(attemptEvery), attemptsAtOnce)
		d.limits[address] = l
	}
	return l.AllowN(d.o.Now(), 1)
}

// address is that of the browser.
func (d *Door) address(r *http.Request) string {
	if forwarded := r.Header.Get("X-Forwarded-For"); d.o.Proxy && forwarded != "" {
		return strings.TrimSpace(forwarded[strings.LastIndexByte(forwarded, ',')+1:])
	}
	host, _, _ := strings.Cut(r.RemoteAddr, "%")
	if i := strings.LastIndexByte(host, ':'); i > 0 {
		host = host[:i]
	}
	return host
}

// secret returns a new secret of 128 bits or more.
func secret() string { return rand.Text() }

// hash is what is stored of a secret.
func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
