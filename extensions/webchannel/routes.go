package webchannel

import (
	"net/http"

	"github.com/switchboard-run/switchboard/extensions/webchannel/page"
	"github.com/switchboard-run/switchboard/sdk"
)

// public are the paths whose requests prove themselves, or whose answers are no secret. One
// that ends in a slash stands for all below it.
var public = []string{"/healthz", "/readyz"}

// register adds the routes of all parts. Each part checks what its visitor may.
func (s *site) register(mux *http.ServeMux, _ *sdk.Kernel) {
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", healthy)
	page.Register(mux, page.Options{Chat: s.chat, Files: s.chat, Watch: s.chat.Watch, Log: s.log})
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}
