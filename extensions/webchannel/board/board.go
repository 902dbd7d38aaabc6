// Package board is the pages of the web channel beside the chat: what goes on now, and all that
// a person may look at and change.
//
// # Promises
//
//   - Each page and each change asks who the visitor is: a member sees and changes what is
//     theirs, as in a private chat; the rest is the owner's alone.
//   - A page needs no script: a change is a form, answered by a redirect; one that cannot be
//     undone asks first. Only the live board moves by script.
//   - All that is shown passes html/template: no text of a model, a tool, a name or a file is
//     ever HTML.
//   - The live board costs the same for one open page and for two hundred: it is read once and
//     sent to all, twice a second at most, and never while no page is open.
//
// What a page changes goes through adminv1, as on the command line; docs/page.md has the
// command of each.
package board

import (
	"html/template"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// Options are what the board uses.
type Options struct {
	Read   adminv1.ReadClient
	Manage adminv1.ManageClient
	Change adminv1.InstallationClient
	Chat   chat.Conversations // only Say is used: questions are answered in the chat
	Frame  Frame
	Log    hclog.Logger
	Now    func() time.Time // nil: time.Now
}

// Frame writes a page of the web channel around a body.
type Frame func(w http.ResponseWriter, r *http.Request, p Page)

// Page is a page without its frame.
type Page struct {
	Status int    // of HTTP
	Title  string // in the visitor's language
	Active string // path of the entry in the navigation that it belongs to
	Body   template.HTML
}

// board serves the pages.
type board struct {
	Options
	notes   notes
	zones   zones
	live    *live
	changes []string // the paths of all forms that change something
}

// Register adds the pages to a mux.
func Register(mux *http.ServeMux, o Options) { register(mux, o) }

func register(mux *http.ServeMux, o Options) *board {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = hclog.NewNullLogger()
	}
	b := &board{Options: o}
	b.live = newLive(b)
	b.assets(mux)
	b.now(mux)
	b.channels(mux)
	b.people(mux)
	b.extensions(mux)
	b.sessions(mux)
	b.schedules(mux)
	b.tasks(mux)
	b.memory(mux)
	b.questions(mux)
	b.usage(mux)
	b.deadLetters(mux)
	b.backups(mux)
	b.configuration(mux)
	mux.HandleFunc("GET /board/", func(w http.ResponseWriter, r *http.Request) {
		q := b.request(r)
		b.fail(w, q, http.StatusNotFound, q.say("There is no such page."))
	})
	return b
}

// Who may see a page.
type access int

const (
	owners  access = iota // the owner
	members               // also members: what is theirs
	anyone                // also guests
)

// allows reports whether a visitor may use a page.
func (a access) allows(v door.Visitor, scope string, change bool) bool {
	switch {
	case v.Person == "", a == owners && !v.Owner(), a == members && !v.Owner() && v.Role != "member":
		return false
	case a == members && scope == door.ScopeUsage && !v.Owner():
		// The scope is about everyone's; a person who is logged in may see what is theirs.
		return !change && v.Token == ""
	}
	return v.May(scope, change)
}

// page serves a page.
func (b *board) page(
	mux *http.ServeMux, path string, who access, scope string, show func(q *request) (*sheet, error),
) {
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		q := b.request(r)
		if !who.allows(q.v, scope, false) {
			b.refuse(w, q)
			return
		}
		s, err := show(q)
		if err != nil {
			b.failed(w, q, err)
			return
		}
		s.Said = b.notes.take(q.v, r.URL.Query().Get("said"))
		b.write(w, q, http.StatusOK, s)
	})
}

// change serves a form. Then the visitor sees the page at the returned address, with what was
// said.
func (b *board) change(
	mux *http.ServeMux, path string, who access, scope string, do func(q *request) (back, said string, err error),
) {
	b.changes = append(b.changes, path)
	b.form(mux, path, who, scope, func(w http.ResponseWriter, q *request) {
		back, said, err := do(q)
		if err != nil {
			b.failed(w, q, err)
			return
		}
		if said != "" {
			back = withQuery(back, "said", b.notes.put(q.v, said, b.Now()))
		}
		http.Redirect(w, q.Request, back, http.StatusSeeOther)
	})
}

// answer serves a form that changes nothing and is answered by a page.
func (b *board) answer(
	mux *http.ServeMux, path string, who access, scope string, show func(q *request) (*sheet, error),
) {
	b.form(mux, path, who, scope, func(w http.ResponseWriter, q *request) {
		s, err := show(q)
		if err != nil {
			b.failed(w, q, err)
			return
		}
		b.write(w, q, http.StatusOK, s)
	})
}

// form serves a form.
func (b *board) form(
	mux *http.ServeMux, path string, who access, scope string, serve func(w http.ResponseWriter, q *request),
) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		q := b.request(r)
		if !who.allows(q.v, scope, true) {
			b.refuse(w, q)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			b.fail(w, q, http.StatusBadRequest, q.say("The form can't be read. Please try again."))
			return
		}
		serve(w, q)
	})
}

// maxForm is the most bytes of a form.
const maxForm = 256 << 10
