package page

import (
	"context"
	"iter"
	"net/http"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// Options are what the pages of this package need. *chat.Chat is the first three.
type Options struct {
	Chat  chat.Conversations
	Files chat.Files
	Watch func(ctx context.Context, v door.Visitor) iter.Seq2[chat.Change, error]
	Log   hclog.Logger
}

// Register adds the chat, its files, and the scripts and styles of all pages.
func Register(mux *http.ServeMux, o Options) {
	c := &chats{o}
	mux.HandleFunc("GET /static/{version}/{name}", serveStatic)
	mux.HandleFunc("GET /{$}", c.page)
	mux.HandleFunc("GET /live/chat", c.live)
	mux.HandleFunc("GET /chat/lines", c.earlier)
	mux.HandleFunc("POST /chat/say", c.say)
	mux.HandleFunc("POST /chat/read", c.read)
	mux.HandleFunc("POST /chat/delete", c.remove)
	mux.HandleFunc("POST /files", c.upload)
	mux.HandleFunc("GET /files/{blob}", c.download)
}
