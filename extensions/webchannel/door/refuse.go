package door

import (
	"cmp"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/contract/words"
)

var refusal = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("refusal").Parse(`<!doctype html><html lang="{{.Language}}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Switchboard</title>{{with .Style}}<link rel="stylesheet" href="{{.}}">{{end}}</head>
<body class="refused"><main><h1>Switchboard</h1>
<p>{{range .Parts}}{{if .Code}}<code>{{.Text}}</code>{{else}}{{.Text}}{{end}}{{end}}</p></main></body></html>
`))
})

// part is a piece of a text: words, or a command between backticks.
type part struct {
	Text string
	Code bool
}

// sentence returns a text as a sentence, in its parts.
func sentence(text string) (all []part) {
	first, size := utf8.DecodeRuneInString(text)
	for i, piece := range strings.Split(string(unicode.ToUpper(first))+text[size:]+".", "`") {
		all = append(all, part{piece, i%2 == 1})
	}
	return all
}

// refuse answers a request that doesn't get in, in the form that the path's clients expect.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	endBody(w, r)
	h := w.Header()
	html := strings.HasPrefix(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/v1/")
	if status == http.StatusUnauthorized && !html {
		text += "; programs need a token of `switchboard tokens create`"
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1/"):
		h.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		kind := "invalid_request_error"
		if status == http.StatusTooManyRequests {
			kind = "rate_limit_error"
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"error": map[string]any{"message": text, "type": kind, "param": nil, "code": codeOf(status)},
		})
	case html:
		h.Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		language := languageOf(r)
		_ = refusal().Execute(w, map[string]any{
			"Language": cmp.Or(language, "en"), "Style": d.o.Style, "Parts": sentence(words.Translate(language, text)),
		})
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
