package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// build makes the handler with all operations.
func (a *api) build() http.Handler {
	mux := http.NewServeMux()
	h := humago.New(mux, huma.Config{
		OpenAPI:       document(),
		Formats:       map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat: "application/json",

		RejectUnknownQueryParameters: true,
	})
	for _, register := range []func(huma.API){
		a.me, a.messages, a.conversations, a.sessions, a.channels, a.schedules, a.tasks, a.memory, a.people, a.usage,
		a.questions, a.extensions, a.events, a.files,
	} {
		register(h)
	}
	text, err := json.Marshal(h.OpenAPI())
	if err != nil {
		panic(fmt.Sprintf("write the OpenAPI document: %v", err)) // it is made of types
	}
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text) // the client is gone
	})
	return a.guard(mux, a.once(mux))
}

// apiVersion is that of the operations: additions raise the second number.
const apiVersion = "1.0"

// document is the OpenAPI document without the operations.
func document() *huma.OpenAPI {
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Switchboard", Version: apiVersion,
			Description: "The API of a personal assistant. Errors are problem details (RFC 9457). " +
				"Lists come in pages: give `next` as `cursor`.",
		},
		Components: &huma.Components{
			Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"token": {
					Type: "http", Scheme: "bearer",
					Description: "A token of `switchboard tokens create NAME --scope SCOPE`.",
				},
			},
		},
		Security: []map[string][]string{{"token": {}}},
		Servers:  []*huma.Server{{URL: "/"}},
	}
}

// guard answers what the mux has no operation for, and panics, with problems.
func (a *api) guard(mux *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // it is a value of panic
				a.Log.Error("an API request panicked", "method", r.Method, "path", r.URL.Path, "panic", p,
					"stack", string(debug.Stack()))
				writeProblem(w, problem(http.StatusInternalServerError, "", "the request failed; the log has the reason"))
			} else if p != nil {
				panic(p)
			}
		}()
		if _, pattern := mux.Handler(r); pattern == "" {
			refuse(mux, w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// refuse answers a request for a path or method that does not exist.
func refuse(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	said := record{header: http.Header{}}
	mux.ServeHTTP(&said, r)
	detail := fmt.Sprintf("there is no %s; /openapi.json lists the operations", r.URL.Path)
	switch {
	case said.status == http.StatusMethodNotAllowed:
		w.Header().Set("Allow", said.header.Get("Allow"))
		detail = fmt.Sprintf("%s takes %s, not %s", r.URL.Path, said.header.Get("Allow"), r.Method)
	case said.status != http.StatusNotFound: // the path is not clean
		said.status = http.StatusNotFound
	}
	writeProblem(w, problem(said.status, "", detail))
}

// record is a response that is kept.
type record struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *record) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *record) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// Write implements http.ResponseWriter.
func (r *record) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}
