package webchannel

import (
	"html/template"
	"net/http"
	"time"

	"github.com/switchboard-run/switchboard/extensions/webchannel/api"
	"github.com/switchboard-run/switchboard/extensions/webchannel/board"
	"github.com/switchboard-run/switchboard/extensions/webchannel/page"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// public are the paths whose requests prove themselves, or whose answers are no secret. One
// that ends in a slash stands for all below it.
var public = []string{"/healthz", "/readyz"}

// register adds the routes of all parts. Each part checks what its visitor may.
func (s *site) register(mux *http.ServeMux, k *sdk.Kernel) {
	conn := k.Services().Conn
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", healthy)
	page.Register(mux, page.Options{Chat: s.chat, Files: s.chat, Watch: s.chat.Watch, Log: s.log})
	api.Register(mux, api.Options{
		Read: admin.Reader(conn), Manage: admin.Manager(conn), Chat: s.chat, Store: k, Log: s.log, Closing: k.Draining(),
		Now: time.Now,
	})
	board.Register(mux, board.Options{
		Read: admin.Reader(conn), Manage: admin.Manager(conn), Chat: s.chat, Frame: inShell, Log: s.log,
	})
}

// body is a page of the board in the shell.
var body = template.Must(template.New("body").Parse(`{{.Data}}`))

// inShell writes a page of the board.
func inShell(w http.ResponseWriter, r *http.Request, p board.Page) {
	page.Render(w, r, page.Page{Title: p.Title, Active: p.Active, Status: p.Status, Content: body, Data: p.Body})
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}
