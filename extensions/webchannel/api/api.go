// Package api is the HTTP API of the web channel: resources under /api/v1, described by the
// OpenAPI 3.1 document at /openapi.json, which is made from the Go types here.
//
// # Promises
//
//   - Each operation checks the scope of its request (package door). A member reads and
//     changes what is theirs and the household's, a guest only sends messages, and what
//     concerns everyone is the owner's alone.
//   - Each error is a problem detail (RFC 9457), also those for a path or method that does not
//     exist, and for a body that is too large.
//   - A POST with an Idempotency-Key that is repeated has no second effect, and gets the first
//     response, for a day and over crashes of any process. The exception is the restart of
//     an extension, which a crash at that moment may repeat. The key with another request is
//     refused (422).
//   - Events (SSE) come in the order of their sequence number, each once; who comes back with
//     Last-Event-ID gets the next one, also after a restart of the kernel.
//   - Lists come in pages; following next to the end returns each item that existed
//     throughout once.
//
// Nothing is built before the first request.
package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
)

// Options are what the API works on. All but the limits are required.
type Options struct {
	Read   adminv1.ReadClient
	Manage adminv1.ManageClient
	Chat   chat.Conversations
	Files  chat.Files
	Store  Store
	Log    hclog.Logger
	// Closing ends streams and waits when the extension shuts down.
	Closing context.Context //nolint:containedctx // it is the extension's life
	Now     func() time.Time
	// Still reports whether a visitor may still come in; streams ask it with each heartbeat.
	// Nil: always.
	Still func(context.Context, door.Visitor) bool

	Streams   int           // streams and waits at a time for each token; 0: 16
	Heartbeat time.Duration // between comments on a stream; 0: 15 seconds
}

// Store is the part of sdk.Kernel that keeps idempotency keys.
type Store interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Page(ctx context.Context, prefix, after string, limit int) ([]sdk.Value, bool, error)
	Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
}

const (
	defaultStreams   = 16
	defaultHeartbeat = 15 * time.Second
)

// Register adds the API to a mux that only door lets requests into.
func Register(mux *http.ServeMux, o Options) {
	if o.Streams == 0 {
		o.Streams = defaultStreams
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = defaultHeartbeat
	}
	if o.Still == nil {
		o.Still = func(context.Context, door.Visitor) bool { return true }
	}
	a := &api{Options: o, streams: map[string]int{}, running: map[string]bool{}}
	handler := sync.OnceValue(a.build)
	serve := func(w http.ResponseWriter, r *http.Request) { handler().ServeHTTP(w, r) }
	mux.HandleFunc("/api/", serve)
	mux.HandleFunc("GET /openapi.json", serve)
}

// api serves the operations.
type api struct {
	Options

	mu      sync.Mutex
	streams map[string]int  // open ones by token
	running map[string]bool // idempotency keys of requests that are being handled
	swept   string          // the day up to which old keys are deleted
}
