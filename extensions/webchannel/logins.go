package webchannel

import (
	"embed"
	"errors"
	"net/http"
	"strings"

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
		Title: words.Say(v.Language, "Logins"), Active: "/board/logins", Content: loginsPage, Data: shown(v.Language, all),
	})
}

// login is a login with the name of its browser for people.
type login struct {
	door.Login
	Name string
}

func shown(language string, all []door.Login) (named []login) {
	for _, l := range all {
		named = append(named, login{l, browserName(language, l.Browser)})
	}
	return named
}

// browserName is a browser and its system, from what it calls itself. Most browsers also name
// those that they resemble.
func browserName(language, agent string) string {
	first := func(names ...string) string {
		for i := 0; i < len(names); i += 2 {
			if strings.Contains(agent, names[i]) {
				return names[i+1]
			}
		}
		return ""
	}
	browser := first("Edg", "Edge", "OPR/", "Opera", "YaBrowser", "Yandex", "SamsungBrowser", "Samsung Internet",
		"Firefox", "Firefox", "FxiOS", "Firefox", "Chrom", "Chrome", "CriOS", "Chrome", "Safari", "Safari")
	system := first("Android", "Android", "iPhone", "iPhone", "iPad", "iPad", "Windows", "Windows", "Mac OS X", "macOS",
		"CrOS", "ChromeOS", "Linux", "Linux")
	switch {
	case browser == "":
		return agent
	case system == "":
		return browser
	}
	return words.Say(language, "%s on %s", browser, system)
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
