package page

import "net/http"

// Options are what the pages of this package need.
type Options struct{}

// Register adds the pages of this package, and the files of all pages.
func Register(mux *http.ServeMux, _ Options) {
	mux.HandleFunc("GET /static/{version}/{name}", serveStatic)
}
