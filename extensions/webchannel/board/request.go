package board

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/extensions/webchannel/httpstatus"
)

// request is a request of a visitor.
type request struct {
	*http.Request
	b    *board
	v    door.Visitor
	zone *time.Location // of the visitor
}

func (b *board) request(r *http.Request) *request {
	v := door.From(r.Context())
	return &request{Request: r, b: b, v: v, zone: b.zones.of(r.Context(), b, v)}
}

// say says something in the visitor's language.
func (q *request) say(text string, args ...any) string { return words.Say(q.v.Language, text, args...) }

// translate translates what the kernel or an extension said in English.
func (q *request) translate(text string) string { return words.Translate(q.v.Language, text) }

// field returns a field of the form that was sent.
func (q *request) field(name string) string { return strings.TrimSpace(q.PostForm.Get(name)) }

// person returns for whom tools are called: a member's account, and everyone for the owner.
func (q *request) person() string {
	if q.v.Owner() {
		return ""
	}
	return q.v.Account
}

// refuse answers a visitor who may not see a page.
func (b *board) refuse(w http.ResponseWriter, q *request) {
	b.fail(w, q, http.StatusForbidden, q.say("You can't open this page: it is the owner's."))
}

// toolError is an error of a tool, in words for people.
type toolError string

func (e toolError) Error() string { return string(e) }

// statusOf returns the status of an error.
func statusOf(err error) int {
	if _, ok := errors.AsType[toolError](err); ok {
		return http.StatusUnprocessableEntity
	}
	return httpstatus.Of(err)
}

// failed shows an error.
func (b *board) failed(w http.ResponseWriter, q *request, err error) {
	status := statusOf(err)
	if status == http.StatusInternalServerError && q.Context().Err() == nil {
		b.Log.Error("serve a page", "path", q.URL.Path, "error", err)
	}
	b.fail(w, q, status, q.problem(err))
}

// problem returns an error for people.
func (q *request) problem(err error) string {
	text := err.Error()
	for _, sentinel := range []error{
		contract.ErrNotFound, contract.ErrInvalid, contract.ErrUnavailable, contract.ErrGone, contract.ErrDenied,
	} {
		text = strings.TrimPrefix(text, sentinel.Error()+": ")
	}
	return q.translate(text)
}

// fail shows a page with an error.
func (b *board) fail(w http.ResponseWriter, q *request, status int, text string) {
	s := &sheet{Title: q.say("This didn't work"), Blocks: []block{{Problems: []string{text}}}}
	if q.Method == http.MethodPost {
		s.Blocks[0].Text = []string{q.say("Nothing was changed. Go back in your browser to correct what you entered.")}
	}
	b.write(w, q, status, s)
}

// write writes a page into its frame.
func (b *board) write(w http.ResponseWriter, q *request, status int, s *sheet) {
	var body bytes.Buffer
	if err := templates().ExecuteTemplate(&body, "sheet", s); err != nil {
		b.Log.Error("write a page", "path", q.URL.Path, "error", err)
		http.Error(w, q.say("The page can't be shown. The log of the extension says why."), http.StatusInternalServerError)
		return
	}
	b.Frame(w, q.Request, Page{Status: status, Title: s.Title, Active: b.active(q), Body: safe(body)})
}

// nav returns the pages that a visitor may open.
func (b *board) nav(q *request) (all []link) {
	for _, p := range []struct {
		path, title string
		who         access
		scope       string
	}{
		{boardPath, q.say("Now"), members, door.ScopeSessions},
		{"/board/channels", q.say("Channels"), owners, door.ScopeChannels},
		{"/board/people", q.say("People"), owners, door.ScopePeople},
		{"/board/extensions", q.say("Extensions"), owners, door.ScopeAdmin},
		{"/board/sessions", q.say("Sessions"), members, door.ScopeSessions},
		{"/board/schedules", q.say("Schedules"), members, door.ScopeSchedules},
		{"/board/tasks", q.say("Tasks"), members, door.ScopeTasks},
		{"/board/memory", q.say("Memory"), members, door.ScopeMemory},
		{"/board/questions", q.say("Questions"), anyone, door.ScopeMessages},
		{"/board/usage", q.say("Usage"), members, door.ScopeUsage},
		{"/board/deadletters", q.say("Dead letters"), owners, door.ScopeAdmin},
		{"/board/backups", q.say("Backups"), owners, door.ScopeAdmin},
		{"/board/configuration", q.say("Configuration"), owners, door.ScopeAdmin},
	} {
		if p.who.allows(q.v, p.scope, false) {
			here := q.URL.Path == p.path || p.path != boardPath && strings.HasPrefix(q.URL.Path, p.path+"/")
			all = append(all, link{Text: p.title, Href: p.path, Here: here})
		}
	}
	return all
}

const boardPath = "/board"

// active returns the page to which a request belongs.
func (b *board) active(q *request) string {
	for _, l := range b.nav(q) {
		if l.Here {
			return l.Href
		}
	}
	return boardPath
}

// withQuery returns an address with a value in its query.
func withQuery(address, name, value string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	all := u.Query()
	all.Set(name, value)
	u.RawQuery = all.Encode()
	return u.String()
}

// zones knows the time zones of people for a while.
type zones struct {
	mu    sync.Mutex
	until time.Time
	known map[string]*time.Location // by person; of the installation under the empty id
}

const zonesKnown = time.Minute

// of returns the time zone of a visitor: their own, else the configured one.
func (z *zones) of(ctx context.Context, b *board, v door.Visitor) *time.Location {
	z.mu.Lock()
	defer z.mu.Unlock()
	if now := b.Now(); now.After(z.until) {
		z.until = now.Add(zonesKnown)
		z.read(ctx, b)
	}
	for _, id := range []string{v.Person, ""} {
		if at := z.known[id]; at != nil {
			return at
		}
	}
	return time.UTC
}

func (z *zones) read(ctx context.Context, b *board) {
	z.known = map[string]*time.Location{}
	names := map[string]string{}
	if s, err := b.Read.Status(ctx, &adminv1.StatusRequest{}); err == nil {
		names[""] = s.GetTimezone()
	} else {
		z.until = time.Time{}
	}
	if all, err := b.Read.People(ctx, &adminv1.PeopleRequest{}); err == nil {
		for _, p := range all.GetPeople() {
			names[p.GetId()] = p.GetTimezone()
		}
	}
	for id, name := range names {
		if at, err := time.LoadLocation(name); err == nil && name != "" {
			z.known[id] = at
		}
	}
}
