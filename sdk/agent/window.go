package agent

import (
	"cmp"
	"sync"
)

const (
	// defaultTokens is the size of a request if neither the manifest nor the model's
	// context window says one. A large window allows a quarter of it, up to maxTokens:
	// each request costs what it is long.
	defaultTokens = 50_000
	maxTokens     = 2 * defaultTokens
	// bytesPerToken converts a request's limit in tokens to bytes, as an estimate.
	bytesPerToken = 4
	// maxRefusals is how often a request that is too long for the model is made shorter.
	maxRefusals = 4
)

// windows holds the context windows of models, in tokens, by their names in requests. A
// name can stand for several models; the window is that of the first that told one.
type windows struct{ byModel sync.Map }

func (w *windows) of(model string) int {
	n, _ := w.byModel.Load(model)
	tokens, _ := n.(int)
	return tokens
}

func (w *windows) set(model string, tokens int64) {
	const most = 1 << 30
	if n := int(min(tokens, most)); n != w.of(model) {
		w.byModel.Store(model, n)
	}
}

// room returns the size that a request to a model may have, in bytes. It leaves a quarter
// of the model's window for the answer, and for tokens that are shorter than estimated.
func (a *Agent) room(model string) int {
	window := a.windows.of(model)
	tokens := cmp.Or(a.limits.tokens, min(max(defaultTokens, window/4), maxTokens))
	if window > 0 {
		tokens = min(tokens, window*3/4)
	}
	return tokens * bytesPerToken
}

func (t *turn) room() int { return t.a.room(t.modelName()) }

// modelName is the model in the turn's requests.
func (t *turn) modelName() string { return cmp.Or(t.model, t.a.model) }

// inputLimit is how many bytes of an input a request holds.
func (t *turn) inputLimit() int { return t.room() / 4 }

// shorten prepares a shorter request after one that was too long for the model's window,
// which is known now: with a summary, if the turn has just begun.
func (t *turn) shorten() error {
	before := len(t.fresh)
	if err := t.summarize(); err != nil || len(t.fresh) == before {
		return err
	}
	for _, e := range t.fresh {
		if e.GetText() != "" {
			e.Preamble = "" // it lacks what the summarized rows had
		}
	}
	t.addPreamble(t.fresh)
	return nil
}
