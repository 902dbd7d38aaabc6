// Package openai serves the models of OpenAI, and of any server with its chat
// completions API, as <id>/<name>. Any name is passed through; "default" is the
// configured model, else the first that the server lists. Each server is an extension
// of its own, and its key goes to no other one: redirects are refused.
//
// # Promises
//
// Answers are streamed: text as it arrives, each call when it is complete, and at
// the end the token counts and the finish reason. A partial call is never passed
// on: if the stream ends early, the completion is an error. The model's output is
// passed on unchanged, including arguments that are not JSON, which the caller
// must handle. The API accepts the requests, whatever the history contains.
//
// Failed connections, 429, 5xx and streams that break off are retried a few times
// with backoff and jitter, following Retry-After, but only before the first delta. A
// stalled stream ends after the idle timeout, and any completion after the total
// timeout. Errors are for people in chats and say what to do, without the address of
// the server, which the log has. Neither has the key.
//
// Completions are independent and run concurrently over pooled connections.
// Nothing is stored.
//
// # Readiness
//
// Without a key that the configuration names, or with an invalid address, the
// extension is unconfigured, which is not an error. If the key is refused, it is degraded until a completion
// succeeds.
package openai

import (
	"context"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// ID is the id of the extension for OpenAI itself.
const ID = "openai"

// The name of its secret, and of the environment variables that override its
// configuration.
const (
	KeyName  = "OPENAI_API_KEY"
	URLEnv   = "OPENAI_BASE_URL"
	ModelEnv = "OPENAI_MODEL"
)

// New returns the extension of an id.
func New(id string) sdk.Extension {
	m := &models{id: id}
	return sdk.Extension{
		ID: id,
		Start: func(_ context.Context, k *sdk.Kernel) error {
			c := Config{}
			if err := k.Config(&c); err != nil {
				return err
			}
			m.start(c.withEnvironment(id), k.Secret(c.Key), k.Log(), k.SetReadiness)
			return nil
		},
		Stop: func(context.Context) error {
			if p := m.provider.Load(); p != nil {
				p.close()
			}
			return nil
		},
		Models: m,
	}
}

// models holds the provider and its readiness.
type models struct {
	id       string
	provider atomic.Pointer[provider]
	invalid  error // why the configuration is invalid
	log      hclog.Logger
	report   func(extensionv1.Readiness_State, string)
	refused  atomic.Bool
}

// start runs before the first completion. An invalid configuration does not fail
// the start, because a restart would not help: readiness and every completion
// report it.
func (m *models) start(c Config, key string, log hclog.Logger, report func(extensionv1.Readiness_State, string)) {
	m.log, m.report = log, report
	p, err := newProvider(m.id, c, key)
	if err != nil {
		m.invalid = failf(Unconfigured, "%v", err)
		report(sdk.Unconfigured, err.Error())
		return
	}
	m.provider.Store(p)
	if p.keyMissing() {
		report(sdk.Unconfigured, p.noKey())
	} else {
		report(sdk.Ready, "")
	}
}

// Complete answers one request and updates the readiness.
func (m *models) Complete(ctx context.Context, r *sdk.CompleteRequest, emit func(*sdk.Delta) error) error {
	p := m.provider.Load()
	switch {
	case p == nil && m.invalid != nil:
		return m.invalid
	case p == nil:
		return failf(Unavailable, "the models of %s are still starting: try again", m.id)
	}
	err := p.complete(ctx, r, emit)
	switch {
	case err == nil:
		if m.refused.CompareAndSwap(true, false) {
			m.report(sdk.Ready, "")
		}
	case kindOf(err) == KeyRefused:
		if m.refused.CompareAndSwap(false, true) {
			m.report(sdk.Degraded, err.Error())
		}
	}
	if err != nil && ctx.Err() == nil {
		m.log.Warn("completion failed", "model", r.GetModel(), "address", p.where, "error", err)
	}
	return err
}
