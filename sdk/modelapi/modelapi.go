// Package modelapi is what extensions share that provide the models of servers with an
// HTTP API: an extension is a Kind, which knows the API, and a Config, which names the
// server.
//
// # Promises
//
// Answers are streamed: text as it arrives, each call when it is complete, and at
// the end the token counts and the finish reason. A partial call is never passed
// on: if the stream ends early, the completion is an error. The model's output is
// passed on unchanged, including arguments that are not JSON, which the caller
// must handle.
//
// Failed connections, 429, 5xx and streams that break off are retried a few times
// with backoff and jitter, following Retry-After, but only before the first delta. A
// stalled stream ends after the idle timeout, and any completion after the total
// timeout. Errors are for people in chats and say what to do, without the address of
// the server, which the log has. Neither has the key.
//
// The key goes to the configured server only: redirects are refused, and the
// environment overrides the configuration of the API's own service only.
//
// A request that cannot fit into the model's context window is refused before it is sent,
// and the first delta tells the window, so that the caller can send less. See window.go.
//
// Completions are independent and run concurrently over pooled connections.
// Nothing is stored.
//
// # Readiness
//
// Without a key that the configuration names, or with an invalid address, the
// extension is unconfigured, which is not an error. If the key is refused, it is
// degraded until a completion succeeds.
package modelapi

import (
	"context"
	"io"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// Kind is one API that servers have.
type Kind struct {
	// ID is the id of the extension for the API's own service, Service its name for
	// people. BaseURL and Model are its address and its default model, URLEnv and
	// ModelEnv the environment variables that override them.
	ID, Service, BaseURL, Model string
	URLEnv, ModelEnv            string
	// Version is the path of a base URL that has none; empty: it stays without.
	Version string
	// API is the name of the API, for people.
	API string
	// Completions and Models are paths below the base URL, and so is Transcriptions: a
	// multipart form with a file; empty: the API has none.
	Completions, Models, Transcriptions string
	// Headers adds the key to a request; empty: there is none.
	Headers func(h http.Header, key string)
	// Encode returns the body of a request. Own says that it goes to the API's own
	// service.
	Encode func(r *sdk.CompleteRequest, model string, own bool) ([]byte, error)
	// Event adds one event of a stream to the answer. Done says that it was the last.
	Event func(a *Answer, event string, data []byte) (done bool, err error)
	// Choose returns the index of the default model in a list that is not empty; nil:
	// the first.
	Choose func([]Model) int
	// Window returns the context window of a model from an API that the server has besides
	// this one; 0: not known. It uses load for requests that load the model; nil: it must
	// not. False: the server has no such API. nil: only the list of models tells windows.
	Window func(ctx context.Context, ask, load Ask, model string) (tokens Tokens, tells bool)
}

// Extension returns the extension of an id.
func (k *Kind) Extension(id string) sdk.Extension {
	m := &models{kind: k, id: id}
	return sdk.Extension{
		ID: id,
		Start: func(_ context.Context, kernel *sdk.Kernel) error {
			c := Config{}
			if err := kernel.Config(&c); err != nil {
				return err
			}
			m.read = func(ctx context.Context, r *extensionv1.Recording, to io.Writer) error {
				_, err := kernel.GetBlob(sdk.WithLane(ctx, r.GetLane()), r.GetBlob(), to)
				return err
			}
			m.start(c.Overridden(k, id, os.Getenv), kernel.Secret(c.Key), kernel.Log(), kernel.SetReadiness)
			return nil
		},
		Stop: func(context.Context) error {
			if s := m.server.Load(); s != nil {
				s.Close()
			}
			return nil
		},
		Models: m,
	}
}

// models holds the server and its readiness.
type models struct {
	kind    *Kind
	id      string
	server  atomic.Pointer[Server]
	invalid error // why the configuration is invalid
	log     hclog.Logger
	report  func(extensionv1.Readiness_State, string)
	read    func(ctx context.Context, r *extensionv1.Recording, to io.Writer) error
	refused atomic.Bool
}

// start runs before the first completion. An invalid configuration does not fail
// the start, because a restart would not help: readiness and every completion
// report it.
func (m *models) start(c Config, key string, log hclog.Logger, report func(extensionv1.Readiness_State, string)) {
	m.log, m.report = log, report
	s, err := NewServer(m.kind, m.id, c, key)
	if err != nil {
		m.invalid = failf(Unconfigured, "%v", err)
		report(sdk.Unconfigured, err.Error())
		return
	}
	m.server.Store(s)
	if s.keyMissing() {
		report(sdk.Unconfigured, s.noKey())
	} else {
		report(sdk.Ready, "")
	}
}

// Complete answers one request and updates the readiness.
func (m *models) Complete(ctx context.Context, r *sdk.CompleteRequest, emit func(*sdk.Delta) error) error {
	s := m.server.Load()
	switch {
	case s == nil && m.invalid != nil:
		return m.invalid
	case s == nil:
		return failf(Unavailable, "the models of %s are still starting: try again", m.id)
	}
	var err error
	if file := r.GetRecording(); file != nil {
		err = m.transcribe(ctx, s, r.GetModel(), file, emit)
	} else {
		err = s.Complete(ctx, r, emit)
	}
	switch {
	case err == nil:
		if m.refused.CompareAndSwap(true, false) {
			m.report(sdk.Ready, "")
		}
	case KindOf(err) == KeyRefused:
		if m.refused.CompareAndSwap(false, true) {
			m.report(sdk.Degraded, err.Error())
		}
	}
	if err != nil && ctx.Err() == nil {
		m.log.Warn("completion failed", "model", r.GetModel(), "address", s.where, "error", err)
	}
	return err
}

// transcribe answers a request for the words of a recording.
func (m *models) transcribe(
	ctx context.Context, s *Server, model string, file *extensionv1.Recording, emit func(*sdk.Delta) error,
) error {
	said, err := s.Transcribe(ctx, model, Recording{
		Name: file.GetName(), MIME: file.GetMime(), Size: file.GetSize(),
		Write: func(ctx context.Context, to io.Writer) error { return m.read(ctx, file, to) },
	})
	if err != nil {
		return err
	}
	return emit(&sdk.Delta{Text: said.Text, Model: m.id + "/" + said.Model, Usage: said.Usage, Finish: "stop"})
}
