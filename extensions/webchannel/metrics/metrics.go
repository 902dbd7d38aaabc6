// Package metrics serves GET /metrics in the text format of Prometheus, and the two checks
// /healthz and /readyz.
//
// # Promises
//
//   - Nothing is followed and nothing is counted before the first scrape. From then on the
//     kernel's events are counted as they come; counters begin with 0 at that first scrape and
//     after a restart of the extension or the kernel, as Prometheus expects.
//   - What is measured is what the kernel has stored: times between its own rows, tokens as
//     providers reported them (estimated ones are counted apart), and money by configured
//     prices.
//   - No label has a text that a person, a model or a stranger chose: only ids of extensions,
//     agents, channels, tools and models, and topics. Topics of extensions have their owner
//     only.
//   - /healthz and /readyz say ok or not ok, and nothing else. They need no visitor.
package metrics

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/common/expfmt"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// Options are what the part needs. All must be set.
type Options struct {
	Context context.Context //nolint:containedctx // ends with the extension
	Read    adminv1.ReadClient
	Now     func() time.Time
	Log     hclog.Logger
}

// Public are the paths that need no visitor.
var Public = []string{"/healthz", "/readyz"}

type server struct {
	Options
	counts  *counts
	started sync.Once

	mu    sync.Mutex
	ready bool
	asked time.Time
}

// Register adds the routes.
func Register(mux *http.ServeMux, o Options) {
	s := &server{Options: o, counts: newCounts(o.Read)}
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, true) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { say(w, s.isReady(r.Context())) })
}

func say(w http.ResponseWriter, ok bool) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("not ok\n"))
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

const (
	readyKept    = time.Second // how long an answer about readiness is used
	readyTimeout = 5 * time.Second
)

// isReady reports whether the kernel answers and its store is sound.
func (s *server) isReady(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.Now(); s.asked.IsZero() || now.Sub(s.asked) >= readyKept {
		ctx, cancel := context.WithTimeout(ctx, readyTimeout)
		defer cancel()
		status, err := s.Read.Status(ctx, &adminv1.StatusRequest{})
		s.ready, s.asked = err == nil && status.GetDamage() == "", now
	}
	return s.ready
}

func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	if !door.From(r.Context()).May(door.ScopeMetrics, false) {
		http.Error(w, "this needs a token of the owner with the scope metrics", http.StatusForbidden)
		return
	}
	ctx := r.Context()
	var failed error
	s.started.Do(func() { failed = s.begin(ctx) })
	now := &families{}
	if failed == nil {
		failed = s.gather(ctx, now)
	}
	if failed != nil {
		s.Log.Warn("gather metrics", "error", failed)
		http.Error(w, "the kernel doesn't answer", http.StatusServiceUnavailable)
		return
	}
	s.counts.write(now)
	var text bytes.Buffer
	for _, f := range now.sorted() {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			s.Log.Error("write metrics", "family", f.GetName(), "error", err)
		}
	}
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	_, _ = w.Write(text.Bytes())
}
