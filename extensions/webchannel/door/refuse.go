package door

import (
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/switchboard-run/switchboard/contract/words"
)

var refusal = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("refusal").Parse(`<!doctype html><html lang="{{.Language}}">
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Switchboard</title><h1>Switchboard</h1><p>{{.Text}}</p></html>
`))
})

// refuse answers a request that doesn't get in, in the form that the path's clients expect.
func refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	endBody(w, r)
	h := w.Header()
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/v1/"):
		h.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		kind := "invalid_request_error"
		if status == http.StatusTooManyRequests {
			kind = "rate_limit_error"
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"error": map[string]any{"message": text, "type": kind, "param": nil, "code": codeOf(status)},
		})
	case strings.HasPrefix(r.Header.Get("Accept"), "text/html"):
		h.Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		language := languageOf(r)
		_ = refusal().Execute(w, map[string]string{"Language": language, "Text": words.Translate(language, text)})
	default:
		h.Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": text})
	}
}

func codeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "invalid_api_key"
	case http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	}
	return "forbidden"
}
