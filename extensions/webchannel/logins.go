package webchannel

import (
	"embed"
	"errors"
	"net/http"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/extensions/webchannel/httpstatus"
	"github.com/switchboard-run/switchboard/extensions/webchannel/page"
)

//go:embed logins.html
var loginsFile embed.FS

var loginsPage = page.Parse(loginsFile, "logins.html")

// logins shows the browsers in which a person is logged in, and ends logins.
type logins struct {
	door *door.Door
	log  hclog.Logger
}

func (l logins) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /board/logins", l.list)
	mux.HandleFunc("POST /board/logins/end", l.end)
}

func (l logins) list(w http.ResponseWriter, r *http.Request) {
	v := door.From(r.Context())
	if v.Token != "" {
		page.Refuse(w, r, http.StatusForbidden)
		return
	}
	all, err := l.door.Logins(r.Context(), v)
	if err != nil {
		l.fail(w, r, err)
		return
	}
	page.Render(w, r, page.Page{
		Title: words.Say(v.Language, "Logins"), Active: "/board/logins", Content: loginsPage, Data: all,
	})
}

func (l logins) end(w http.ResponseWriter, r *http.Request) {
	v := door.From(r.Context())
	if v.Token != "" {
		page.Refuse(w, r, http.StatusForbidden)
		return
	}
	err := l.door.EndLogin(r.Context(), v, r.PostFormValue("id"))
	if err != nil && !errors.Is(err, contract.ErrNotFound) { // it has ended already
		l.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/board/logins", http.StatusSeeOther)
}

func (l logins) fail(w http.ResponseWriter, r *http.Request, err error) {
	l.log.Warn("logins of the page", "error", err)
	page.Refuse(w, r, httpstatus.Of(err))
}
