package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/switchboard-run/switchboard/contract/near"
	"github.com/switchboard-run/switchboard/extensions/anthropic"
	"github.com/switchboard-run/switchboard/extensions/openai"
	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// kinds are the APIs of servers of models, by the built-in extensions that have them.
var kinds = map[string]func() *modelapi.Kind{"openai": openai.Kind, "anthropic": anthropic.Kind}

// provider is an extension that provides models, as its files and this environment
// describe it.
type provider struct {
	id      string
	kind    *modelapi.Kind // nil: not an API that can be asked from here
	config  modelapi.Config
	key     string
	missing []string // secrets
	named   bool     // in models.providers
	models  []string // without the id; none: the server's
}

// providersOf returns the providers that may start.
func providersOf(seen *home.Inspection) (all []provider) {
	for _, e := range seen.Entries {
		if e.Disabled != nil || e.Manifest == nil || len(e.Manifest.Provides.Models) == 0 || e.Config == nil {
			continue
		}
		p := provider{id: e.ID, missing: e.Missing, named: slices.Contains(seen.Providers, e.ID)}
		for _, pattern := range e.Manifest.Provides.Models {
			if name := strings.TrimPrefix(pattern, e.ID+"/"); name != "*" {
				p.models = append(p.models, name)
			}
		}
		if kind := kinds[e.Manifest.Run.Builtin]; kind != nil {
			p.kind = kind()
			text, err := json.Marshal(e.Config)
			if err == nil {
				err = json.Unmarshal(text, &p.config)
			}
			if err != nil {
				continue // Inspect reports an invalid config
			}
			p.config = p.config.Overridden(p.kind, e.ID, func(name string) string {
				if value, ok := e.Env(name); ok && slices.Contains(e.Manifest.Run.Env, name) {
					return value
				}
				return ""
			})
			p.key = e.Secrets[p.config.Key]
		}
		all = append(all, p)
	}
	return all
}

// standard returns the provider's default model: the configured one, or that of the API's
// own service; empty: the server chooses it.
func (p *provider) standard() string {
	if p.kind == nil {
		return ""
	}
	name := p.config.Model
	if name == "" && p.config.BaseURL == p.kind.BaseURL {
		name = p.kind.Model
	}
	return strings.TrimPrefix(name, p.id+"/")
}

// list asks the server for its models, and for the context windows of the configured ones,
// and of all if they are few.
func (p *provider) list(ctx context.Context, configured []string) ([]modelapi.Model, error) {
	if p.kind == nil {
		return nil, nil
	}
	s, err := p.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	all, err := s.List(ctx)
	for i := range all {
		m := &all[i]
		asked := len(all) <= fewModels ||
			slices.ContainsFunc(configured, func(name string) bool { return sameOfServer(m.ID, name) })
		if own := p.config.Window(m.ID); own > 0 {
			m.Context = own
		} else if asked && m.Context == 0 {
			var tells bool
			if m.Context, tells = s.Window(ctx, m.ID); !tells {
				break
			}
		}
	}
	return all, err
}

// open returns a client of the server that tries each request twice. The caller closes it.
func (p *provider) open() (*modelapi.Server, error) {
	once := 1
	p.config.Retries = &once
	return modelapi.NewServer(p.kind, p.id, p.config, p.key)
}

// checked is the result of the check of one model.
type checked struct {
	Model  string  `json:"model"` // its full name
	OK     bool    `json:"ok"`
	Took   float64 `json:"seconds"`
	Input  int64   `json:"input_tokens,omitempty"`
	Output int64   `json:"output_tokens,omitempty"`
	// Context is the context window, in tokens; 0: not known.
	Context  int64  `json:"context,omitempty"`
	currency string // of the cost that the provider reported; empty: none
	Error    string `json:"error,omitempty"`
	Fix      string `json:"fix,omitempty"`
}

// tight is a context window in which conversations are often summarized: a first request
// takes about 2,000 tokens of it.
const tight = 8000

// tightHint says how to enlarge a small context window; empty: it is not small.
func (c checked) tightHint() string {
	if c.Context == 0 || c.Context >= tight {
		return ""
	}
	return "give it more on the server: OLLAMA_CONTEXT_LENGTH=32768 ollama serve, llama-server -c 32768, " +
		"or LM Studio's context length"
}

// checkTimeout bounds the check of one model.
const checkTimeout = 90 * time.Second

// errNotAsked means that a provider cannot be asked from the command line.
var errNotAsked = errors.New("only the kernel can ask it")

// check asks a model for a tiny completion; an empty one means the default model.
func (p *provider) check(ctx context.Context, h *config.Home, model string) checked {
	c := checked{Model: strings.TrimSuffix(p.id+"/"+cmp.Or(model, p.standard()), "/")}
	if p.kind == nil {
		c.Error = errNotAsked.Error()
		return c
	}
	s, err := p.open()
	if err != nil {
		c.Error = err.Error()
		return c
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	r := s.Check(ctx, model)
	c.Took = r.Took.Seconds()
	if r.Model != "" {
		c.Model = p.id + "/" + r.Model
	}
	if r.Failure == nil {
		c.OK, c.Input, c.Output = true, r.Usage.GetInputTokens(), r.Usage.GetOutputTokens()
		c.Context, c.currency = r.Context, r.Usage.GetCurrency()
		return c
	}
	c.Error, c.Fix = r.Failure.Error(), r.Fix
	switch {
	case c.Fix != "":
	case r.Failure.Kind == modelapi.Unconfigured && len(p.missing) > 0:
		c.Fix = setSecret(h, p.missing[0])
	case r.Failure.Kind == modelapi.KeyRefused && p.config.Key != "":
		c.Fix = fmt.Sprintf("replace the value of %s in %s, or in the kernel's environment", p.config.Key, h.Secrets())
	case len(r.Models) > 0:
		c.Fix = nearest(r.Model, r.Models)
	}
	return c
}

// nearest names the models of a server that are most like the one that it does not have.
func nearest(name string, models []modelapi.Model) string {
	const most = 5
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.ID
	}
	var like []string
	if best := near.Best(name, names); best != "" {
		like = append(like, best)
	}
	stem, _, _ := strings.Cut(strings.ToLower(name), "-")
	for _, n := range names {
		if len(like) < most && !slices.Contains(like, n) && strings.Contains(strings.ToLower(n), stem) {
			like = append(like, n)
		}
	}
	if len(like) == 0 {
		like = names[:min(most, len(names))]
	}
	return "it has: " + strings.Join(like, ", ")
}

// checkAll checks models of providers at the same time, in their order.
func checkAll(ctx context.Context, h *config.Home, all []target) []checked {
	out := make([]checked, len(all))
	var running sync.WaitGroup
	for i, t := range all {
		running.Go(func() { out[i] = t.provider.check(ctx, h, t.model) })
	}
	running.Wait()
	return out
}

// target is a model to check; an empty one is the provider's default.
type target struct {
	provider provider
	model    string
}

// askModels asks the models in use for tiny completions.
func (d *diagnosis) askModels(
	ctx context.Context, h *config.Home, seen *home.Inspection, order []string, running bool,
) {
	if d.offline || seen == nil {
		return
	}
	all := providersOf(seen)
	var ask []target
	for _, full := range order {
		id, model, _ := strings.Cut(full, "/")
		i := slices.IndexFunc(all, func(p provider) bool { return p.id == id })
		switch {
		case i < 0 || all[i].kind == nil:
		case len(all[i].missing) > 0 && running:
			d.add("Model", levelNote, "put it in "+h.Secrets()+" to have it tested", "%s is not tested: only the kernel's "+
				"environment has %s", id, strings.Join(all[i].missing, " and "))
		case len(all[i].missing) == 0:
			ask = append(ask, target{all[i], strings.TrimSuffix(model, "*")})
		}
	}
	if len(ask) > 0 && d.progress != nil {
		d.progress("Asking %s for a few tokens (--offline doesn't) ...", count(len(ask), "language model"))
	}
	for _, r := range checkAll(ctx, h, ask) {
		if r.OK {
			d.add("Model", levelOK, "", "%s answers (%s)", r.Model, r.seconds())
			if hint := r.tightHint(); hint != "" {
				d.add("Model", levelWarning, hint, "%s has a small context of %s tokens: long conversations are often summarized",
					r.Model, humanize.Comma(r.Context))
			}
			price, known := seen.Price(r.Model)
			switch currency := cmp.Or(price.Currency, r.currency); {
			case len(seen.MoneyIn) == 0:
			case !known && r.currency == "":
				d.add("Model", levelWarning, "set its price under models.providers", "the price of %s isn't known, so limits in "+
					"money don't count it", r.Model)
			case !slices.Contains(seen.MoneyIn, currency) && !(known && price.Input == 0 && price.Output == 0):
				d.add("Model", levelWarning, "add a limit with currency: "+currency+" to models.limits",
					"%s is paid in %s, and no limit in money counts that", r.Model, currency)
			}
		} else {
			d.add("Model", levelError, r.Fix, "%s doesn't answer: %s", r.Model, r.Error)
		}
	}
}
