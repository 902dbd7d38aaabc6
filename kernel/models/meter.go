package models

import (
	"context"
	"errors"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/spending"
)

// meter reads off one answer what it costs.
type meter struct {
	began bool
	model string // that answers
	usage *extensionv1.Usage
	bytes int // of the answer
}

func (m *meter) read(d *extensionv1.Delta) {
	m.began = true
	if d.GetModel() != "" {
		m.model = d.GetModel()
	}
	if u := d.GetUsage(); u.GetInputTokens() > 0 || u.GetOutputTokens() > 0 {
		m.usage = u
	}
	m.bytes += len(d.GetText()) + len(d.GetCall().GetName()) + len(d.GetCall().GetArguments())
}

// cost is what a completion took that ended with err; false: nothing. A provider
// that has begun to answer, or was stopped while it might have, was asked to no
// avail only as far as anybody knows: what it does not say is estimated.
func (m *meter) cost(ctx context.Context, fallback bool, request int64, err error) (u contract.ModelUsage, ok bool) {
	u.Model = m.model
	switch {
	case m.usage != nil:
		u.InputTokens, u.OutputTokens = m.usage.GetInputTokens(), m.usage.GetOutputTokens()
		u.CachedTokens = m.usage.GetCachedTokens()
		return u, true
	case fallback, errors.Is(err, ErrNotRunning), !m.began && ctx.Err() == nil:
		return u, false
	}
	u.InputTokens, u.OutputTokens, u.Estimated = request, spending.Tokens(m.bytes), true
	return u, true
}
