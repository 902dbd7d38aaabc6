// Package openai serves the models of OpenAI, and of any server that speaks its
// chat completions API, as openai/<name>. Any name is passed through; "default"
// stands for the configured one.
//
// # What it promises
//
// An answer is streamed: text as it comes, each call once it is whole, and at
// the end the token counts and the reason. A call is never passed on in part:
// if the stream ends in the middle, the completion is an error. What the model
// says is passed on as it said it, arguments that are not JSON included; whoever
// runs the calls answers those. Requests are made such that the API accepts
// them whatever the history holds.
//
// Connections that cannot be made, 429 and 5xx are tried again with back-off
// and jitter, obeying Retry-After, a few times and only before the first delta
// has been passed on. A stream that stalls is given up after the idle timeout,
// everything after the total one. Errors are sentences for people that say what
// to do; none of them, and no log, holds the key.
//
// Completions are independent and run concurrently over connections that are
// kept open. Nothing is stored.
//
// # Readiness
//
// Without a key, or with an address that is none, it is unconfigured, which is
// no error. A key that is refused
// makes it degraded until a completion succeeds.
package openai

import (
	"context"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// ID is the extension's id.
const ID = "openai"

// Names of the secret and of what the environment may override.
const (
	KeyName  = "OPENAI_API_KEY"
	URLEnv   = "OPENAI_BASE_URL"
	ModelEnv = "OPENAI_MODEL"
)

// New is the extension, ready to be served.
func New() sdk.Extension {
	m := &models{}
	return sdk.Extension{
		ID: ID,
		Start: func(_ context.Context, k *sdk.Kernel) error {
			c := Config{}
			if err := k.Config(&c); err != nil {
				return err
			}
			m.start(c.withEnvironment(), k.Secret(KeyName), k.Log(), k.SetReadiness)
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

// models is the provider once Start has run, and its readiness.
type models struct {
	provider atomic.Pointer[provider]
	wrong    error // with the configuration
	log      hclog.Logger
	report   func(extensionv1.Readiness_State, string)
	refused  atomic.Bool
}

// start runs before the first completion. A configuration that cannot work is
// reported, and told to whoever asks: restarting would not mend it.
func (m *models) start(c Config, key string, log hclog.Logger, report func(extensionv1.Readiness_State, string)) {
	m.log, m.report = log, report
	p, err := newProvider(c, key)
	if err != nil {
		m.wrong = failf(Unconfigured, "%v", err)
		report(sdk.Unconfigured, err.Error())
		return
	}
	m.provider.Store(p)
	if p.key == "" {
		report(sdk.Unconfigured, noKey)
	} else {
		report(sdk.Ready, "")
	}
}

// Complete answers one request and keeps the readiness up to date.
func (m *models) Complete(ctx context.Context, r *sdk.CompleteRequest, emit func(*sdk.Delta) error) error {
	p := m.provider.Load()
	switch {
	case p == nil && m.wrong != nil:
		return m.wrong
	case p == nil:
		return failf(Unavailable, "the OpenAI models have not started yet")
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
		m.log.Warn("completion failed", "model", r.GetModel(), "error", err)
	}
	return err
}
