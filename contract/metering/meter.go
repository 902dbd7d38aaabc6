// Package metering measures what a completion used, from its request and its deltas.
package metering

import (
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

const (
	// bytesPerToken is the estimate where a provider reports no tokens.
	bytesPerToken = 4
	// imageTokens is the estimate for an image: about what providers count for one of
	// contract.MaxImageSide.
	imageTokens = 1600
)

func estimate(bytes int) int64 { return int64(bytes+bytesPerToken-1) / bytesPerToken }

// Request estimates the tokens of a request.
func Request(r *extensionv1.CompleteRequest) int64 {
	size := proto.Size(r)
	for _, m := range r.GetMessages() {
		for _, i := range m.GetImages() {
			size += imageTokens*bytesPerToken - len(i.GetData())
		}
	}
	return estimate(size)
}

// Meter measures one completion.
type Meter struct {
	Began bool               // it has answered something
	Model string             // that answers
	usage *extensionv1.Usage // nil: not reported
	bytes int                // of the answer
}

// Read counts a delta.
func (m *Meter) Read(d *extensionv1.Delta) {
	m.Began = m.Began || d.GetContext() == 0 || d.GetText() != "" || d.GetCall() != nil || d.GetFinish() != ""
	if d.GetModel() != "" {
		m.Model = d.GetModel()
	}
	if u := d.GetUsage(); u.GetInputTokens() > 0 || u.GetOutputTokens() > 0 || u.GetAudioMs() > 0 {
		m.usage = u
	}
	m.bytes += len(d.GetText()) + len(d.GetCall().GetName()) + len(d.GetCall().GetArguments())
}

// Used returns what the completion used; false: nothing. Tokens that the provider did
// not report are estimated if it may charge for them, those of the request as given.
func (m *Meter) Used(request int64, mayCharge bool) (u contract.ModelUsage, ok bool) {
	u.Model = m.Model
	if m.usage == nil {
		u.InputTokens, u.OutputTokens, u.Estimated = request, estimate(m.bytes), true
		return u, mayCharge
	}
	u.InputTokens, u.OutputTokens = plausible(m.usage.GetInputTokens()), plausible(m.usage.GetOutputTokens())
	u.CachedTokens, u.AudioMS = plausible(m.usage.GetCachedTokens()), plausible(m.usage.GetAudioMs())
	if c := m.usage.GetCurrency(); len(c) == 3 {
		u.CostMicros, u.Currency = plausible(m.usage.GetCostMicros()), c
	}
	return u, true
}

// plausible bounds what a provider reports: no completion gives tokens back, or takes
// so many that their sum overflows.
func plausible(tokens int64) int64 { return min(max(0, tokens), 1<<40) }
