package control_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/control"
)

// Whatever stands in a request, it is answered in JSON, and only a kernel that
// fails makes it a failure of the server.
func FuzzRequest(f *testing.F) {
	routes := []string{
		"GET /v1/status", "GET /v1/sessions/ID", "POST /v1/channels/ID/send", "POST /v1/tools/ID/ID", "POST /v1/reached", "GET /v1/follow?topic=ID",
		"GET /ID", "POST /v1/ID",
	}
	for i, seed := range [][2]string{
		{"", ""}, {"a/../b?c", ""}, {"x", `{"text":"hello"}`}, {"x", `{"a":1}`}, {"", `[{"source":"x","dedupe_key":"a:1"},{"id":"e4"}]`}, {"a.*&limit=-5", ""},
		{"../../etc", ""}, {"%00", "\xff"},
	} {
		f.Add(uint(i), seed[0], seed[1])
	}
	h := control.Handler("secret", &fake{})
	f.Fuzz(func(t *testing.T, route uint, id, body string) {
		method, path, _ := strings.Cut(routes[route%uint(len(routes))], " ")
		u, err := url.Parse("http://" + control.Host + strings.ReplaceAll(path, "ID", url.PathEscape(id)))
		if err != nil {
			t.Skip("no address")
		}
		r := httptest.NewRequestWithContext(t.Context(), method, "/", strings.NewReader(body))
		r.URL, r.Host = u, control.Host
		r.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%s %s %q: %d %s", method, u, body, w.Code, w.Body)
		}
		if w.Code == http.StatusOK && !json.Valid(w.Body.Bytes()) && !strings.Contains(path, "follow") {
			t.Errorf("%s %s: %s", method, u, w.Body)
		}
	})
}
