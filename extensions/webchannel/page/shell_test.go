package page

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

func get(t *testing.T, h http.Handler, path string, v door.Visitor) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(door.With(t.Context(), v), http.MethodGet, path, nil)
	h.ServeHTTP(w, r)
	return w
}

func mustHave(t *testing.T, body string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(body, part) {
			t.Errorf("%q is missing in\n%s", part, body)
		}
	}
}

const nasty = `"'><script>alert(1)</script>`

func TestAPageEscapesWhatPeopleChose(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Render(w, r, Page{
			Title: nasty, Active: "/board/people", Data: nasty, Texts: map[string]string{"x": "</script>" + nasty},
			Content: ParseText(`<p title="{{.Data}}">{{.Data}}</p>`),
		})
	})
	w := get(t, h, "/?q="+strings.ReplaceAll(nasty, " ", "+"), door.Visitor{Name: nasty, Role: "owner", Language: "ru", Person: "p1"})
	body := w.Body.String()
	if strings.Contains(body, "<script>") || strings.Contains(body, "</script>\"") {
		t.Errorf("a text became markup:\n%s", body)
	}
	mustHave(t, body, `<html lang="ru">`, `<a href="/board/people" aria-current="page">`, `<main id="main"`)
}

func TestAGuestSeesOnlyTheChat(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Refuse(w, r, http.StatusForbidden) })
	w := get(t, h, "/", door.Visitor{Name: "Gus", Role: "guest", Person: "p1"})
	body := w.Body.String()
	mustHave(t, body, `<a href="/">Chat</a>`, `role="alert"`)
	if w.Code != http.StatusForbidden || strings.Contains(body, "Memory") || strings.Contains(body, "Backups") ||
		strings.Contains(body, `role="search"`) {
		t.Errorf("status %d, page:\n%s", w.Code, body)
	}
}

func TestFilesHaveTheAddressOfTheirVersion(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	Register(mux, Options{})
	for _, name := range []string{"style.css", "shell.js", "icon.svg"} {
		w := get(t, mux, Static(name), door.Visitor{})
		if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") ||
			w.Header().Get("Content-Type") != types[name[strings.LastIndex(name, "."):]] {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
	for _, path := range []string{"/static/old/style.css", "/static/" + version() + "/..%2fshell.html", Static("nothing.css")} {
		if w := get(t, mux, path, door.Visitor{}); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
