package modelapi

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
)

// listTimeout bounds the request for the list of models, maxList its size in bytes.
const (
	listTimeout = 15 * time.Second
	maxList     = 16 << 20
)

// Model is a model that a server lists.
type Model struct {
	ID      string
	Context int64  // tokens that a request and its answer may have; 0: the server does not say
	Price   *Price // nil: the server does not say
}

// Price is what a million tokens cost in US dollars now, as the server lists it.
type Price struct{ Input, Cached, Output float64 }

// dollars is an amount of US dollars as servers tell it: a number, or a text with one. What
// is neither becomes -1.
type dollars float64

// UnmarshalJSON implements json.Unmarshaler.
func (d *dollars) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if *d = dollars(n); err != nil || !(n >= 0 && n < 1e6) { // nor NaN
		*d = -1
	}
	return nil
}

// List returns the models of the server. The error is a *Failure.
func (s *Server) List(ctx context.Context) ([]Model, error) {
	if s.keyMissing() {
		return nil, failf(Unconfigured, "%s", s.noKey())
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	all, err := s.list(ctx)
	if err != nil {
		return nil, s.explain(ctx, "its list of models", err)
	}
	return all, nil
}

func (s *Server) list(ctx context.Context) ([]Model, error) {
	resp, err := s.send(ctx, http.MethodGet, s.kind.Models, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var found modelList
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxList)).Decode(&found); err != nil {
		return nil, words.Errorf("%w: the list of models is not JSON", errInvalid)
	}
	return found.models(), nil
}

// modelList is the response with the list of models.
type modelList struct {
	Data []listed `json:"data"`
}

func (l modelList) models() []Model {
	all := make([]Model, 0, len(l.Data))
	for _, m := range l.Data {
		if m.ID != "" {
			all = append(all, Model{ID: m.ID, Context: m.context(), Price: m.Pricing.price()})
		}
	}
	return all
}

// listed is a model as servers list it. Each has its own field for the size of the
// context, most have none.
type listed struct {
	ID            string `json:"id"`
	MaxModelLen   Tokens `json:"max_model_len"`      // vLLM
	ContextLength Tokens `json:"context_length"`     // OpenRouter
	ContextWindow Tokens `json:"context_window"`     // Groq
	MaxContext    Tokens `json:"max_context_length"` // Mistral
	MaxInput      Tokens `json:"max_input_tokens"`   // Anthropic
	Meta          struct {
		Context Tokens `json:"n_ctx"` // llama.cpp
	} `json:"meta"`
	Pricing *pricing `json:"pricing"`
}

// pricing has the prices of a token, as OpenRouter lists them.
type pricing struct {
	Input  *dollars `json:"prompt"`
	Cached *dollars `json:"input_cache_read"`
	Output *dollars `json:"completion"`
}

// UnmarshalJSON implements json.Unmarshaler: what has another form is no price.
func (p *pricing) UnmarshalJSON(b []byte) error {
	type plain pricing
	if json.Unmarshal(b, (*plain)(p)) != nil {
		*p = pricing{}
	}
	return nil
}

func (p *pricing) price() *Price {
	if p == nil || p.Input == nil || p.Output == nil || *p.Input < 0 || *p.Output < 0 {
		return nil
	}
	million := func(d dollars) float64 { return math.Round(float64(d)*1e12) / 1e6 }
	price := Price{Input: million(*p.Input), Cached: million(*p.Input), Output: million(*p.Output)}
	if p.Cached != nil && *p.Cached >= 0 {
		price.Cached = million(*p.Cached)
	}
	return &price
}

func (m listed) context() int64 {
	return int64(cmp.Or(m.MaxModelLen, m.ContextLength, m.ContextWindow, m.MaxContext, m.MaxInput, m.Meta.Context))
}

// defaultModel returns the configured model, else one that the server lists.
func (s *Server) defaultModel(ctx context.Context) (string, error) {
	if s.config.Model != "" {
		return s.config.Model, nil
	}
	if known := s.chosen.Load(); known != nil {
		return *known, nil
	}
	all, err := s.List(ctx)
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", failf(NoModel, "%v lists no models: load one there, or name it in %v", s.who, s.modelSetting())
	}
	i := 0
	if s.kind.Choose != nil {
		i = s.kind.Choose(all)
	}
	s.chosen.Store(&all[i].ID)
	return all[i].ID, nil
}
