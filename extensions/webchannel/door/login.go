package door

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	enterPath  = "/enter"
	linkLife   = 10 * time.Minute
	loginLife  = 30 * 24 * time.Hour // after the last visit
	seenEvery  = 24 * time.Hour      // how often a visit is stored
	maxLogins  = 100
	linkPrefix = "door/link/"
	loginsAt   = "door/login/"
)

// link is a stored link that was not used yet.
type link struct {
	Account identity  `json:"account"`
	Expires time.Time `json:"expires"`
}

// identity is a person's account on the channel.
type identity struct {
	User    string `json:"user"`
	Account string `json:"account"`
}

// Login is a browser in which a person is logged in.
type Login struct {
	ID      string    `json:"id"`
	Browser string    `json:"browser"` // what it calls itself; data
	Began   time.Time `json:"began"`
	Seen    time.Time `json:"seen"` // the day of the last visit
	Account identity  `json:"account"`
}

// User is the user id of the person, on the channel.
func (l Login) User() string { return l.Account.User }

// Link makes a link path for a person that logs one browser in, once.
func (d *Door) Link(ctx context.Context, person string) (path string, err error) {
	account, err := d.admit(ctx, person)
	if err != nil {
		return "", err
	}
	code := secret()
	if err := d.sweep(ctx); err != nil {
		return "", err
	}
	_, err = d.o.Store.Commit(ctx, sdk.Put(linkPrefix+hash(code), link{account, d.o.Now().Add(linkLife)}))
	return enterPath + "?code=" + code, err
}

// admit returns the account of a person on the channel, which it makes if there is none.
func (d *Door) admit(ctx context.Context, person string) (identity, error) {
	p, err := d.people.byID(ctx, person)
	if err != nil {
		return identity{}, err
	}
	if p.GetRole() == "blocked" {
		return identity{}, errors.New(p.GetName() + " is blocked: `switchboard people role` changes that")
	}
	for _, a := range p.GetAccounts() {
		if a.GetChannel() == d.o.Channel {
			return identity{a.GetUserId(), a.GetId()}, nil
		}
	}
	a, err := d.o.Manage.Admit(ctx, &adminv1.AdmitRequest{
		Channel: d.o.Channel, UserId: p.GetId(), Name: p.GetName(), Person: p.GetId(), Conversation: p.GetId(),
	})
	if err != nil {
		return identity{}, err
	}
	d.people.forget()
	return identity{a.GetUserId(), a.GetId()}, nil
}

// enter logs a browser in, if it has an unused link.
func (d *Door) enter(w http.ResponseWriter, r *http.Request) {
	if !d.allow(r) {
		w.Header().Set("Retry-After", "10")
		d.refuse(w, r, http.StatusTooManyRequests, words.Sprintf("too many attempts: wait ten seconds"))
		return
	}
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		d.refuse(w, r, http.StatusMethodNotAllowed, words.Sprintf("open the link in a browser"))
		return
	}
	token, err := d.use(r.Context(), r.URL.Query().Get("code"), r.UserAgent())
	if err != nil {
		d.refuse(w, r, http.StatusForbidden,
			words.Sprintf("this link was used already or has expired: run `switchboard web` again, or write /web to your "+
				"assistant"))
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure on loopback without TLS would keep browsers out
		Name: d.cookie(), Value: token, Path: "/", MaxAge: int(loginLife.Seconds()), HttpOnly: true, Secure: d.o.Secure,
		SameSite: http.SameSiteStrictMode,
	})
	if r.Header.Get("Sec-Fetch-Site") != "cross-site" {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	// A browser doesn't send the cookie with a redirect that began at another site.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">`+
		`<title>Switchboard</title><a href="/">Switchboard</a>`)
}

var errUsed = errors.New("the link was used or has expired")

// use turns a link into a login, in one commit: of two that use it at once, one gets in.
func (d *Door) use(ctx context.Context, code, browser string) (token string, err error) {
	key := linkPrefix + hash(code)
	stored, err := d.o.Store.Get(ctx, key)
	if err != nil {
		return "", err
	}
	var l link
	if stored.Version == 0 || stored.Decode(&l) != nil || d.o.Now().After(l.Expires) {
		return "", errUsed
	}
	token = secret()
	now := d.o.Now()
	login := Login{ID: hash(token)[:12], Browser: cut(browser), Began: now, Seen: now, Account: l.Account}
	_, err = d.o.Store.Commit(ctx, sdk.DeleteAt(key, stored.Version), sdk.Put(loginsAt+hash(token), login))
	return token, err
}

func cut(s string) string {
	s = strings.ToValidUTF8(s, "")
	return s[:min(len(s), 200)]
}

// byLogin returns the visitor of a cookie.
func (d *Door) byLogin(ctx context.Context, token string) (Visitor, bool) {
	key := loginsAt + hash(token)
	stored, err := d.o.Store.Get(ctx, key)
	var l Login
	if err != nil || stored.Version == 0 || stored.Decode(&l) != nil || d.o.Now().Sub(l.Seen) > loginLife {
		return Visitor{}, false
	}
	v, err := d.people.visitor(ctx, l.Account)
	if err != nil {
		return Visitor{}, false
	}
	if now := d.o.Now(); now.Sub(l.Seen) > seenEvery {
		l.Seen = now
		if _, err := d.o.Store.Commit(ctx, sdk.PutAt(key, l, stored.Version)); err != nil {
			d.o.Log.Debug("note a visit", "error", err)
		}
	}
	v.Login, v.Began = l.ID, l.Began
	return v, true
}

// Logins returns the browsers in which the person of a visitor is logged in, the last one
// that visited first. The owner sees all.
func (d *Door) Logins(ctx context.Context, v Visitor) (all []Login, err error) {
	err = d.eachLogin(ctx, func(_ string, l Login) {
		if v.Owner() || l.Account.Account == v.Account {
			all = append(all, l)
		}
	})
	slices.SortFunc(all, func(a, b Login) int { return b.Seen.Compare(a.Seen) })
	return all, err
}

// EndLogin ends a login that Logins shows to the visitor. It wraps contract.ErrNotFound if
// there is none.
func (d *Door) EndLogin(ctx context.Context, v Visitor, id string) error {
	key := ""
	if err := d.eachLogin(ctx, func(at string, l Login) {
		if l.ID == id && (v.Owner() || l.Account.Account == v.Account) {
			key = at
		}
	}); err != nil {
		return err
	}
	if key == "" {
		return contract.ErrNotFound
	}
	_, err := d.o.Store.Commit(ctx, sdk.Delete(key))
	return err
}

func (d *Door) eachLogin(ctx context.Context, each func(key string, l Login)) error {
	return d.o.Store.Scan(ctx, loginsAt, func(stored sdk.Value) error {
		var l Login
		if stored.Decode(&l) == nil {
			each(stored.Key, l)
		}
		return nil
	})
}

// sweep deletes what has expired, and the oldest logins above the limit.
func (d *Door) sweep(ctx context.Context) error {
	var over []sdk.Effect
	now := d.o.Now()
	err := d.o.Store.Scan(ctx, linkPrefix, func(stored sdk.Value) error {
		var l link
		if stored.Decode(&l) != nil || now.After(l.Expires) {
			over = append(over, sdk.Delete(stored.Key))
		}
		return nil
	})
	if err != nil {
		return err
	}
	type kept struct {
		key  string
		seen time.Time
	}
	var logins []kept
	if err := d.eachLogin(ctx, func(key string, l Login) { logins = append(logins, kept{key, l.Seen}) }); err != nil {
		return err
	}
	slices.SortFunc(logins, func(a, b kept) int { return b.seen.Compare(a.seen) })
	for i, l := range logins {
		if i >= maxLogins || now.Sub(l.seen) > loginLife {
			over = append(over, sdk.Delete(l.key))
		}
	}
	if len(over) > 0 {
		_, err = d.o.Store.Commit(ctx, over...)
	}
	return err
}
