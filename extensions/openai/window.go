package openai

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// window asks servers that have an API of their own besides OpenAI's. llama.cpp comes first:
// it answers some of Ollama's requests, too.
func window(ctx context.Context, ask, load modelapi.Ask, model string) (modelapi.Tokens, bool) {
	if n, tells := llamaCPP(ctx, ask, model); tells {
		return n, true
	}
	if n, tells := lmStudio(ctx, ask, model); tells {
		return n, true
	}
	return ollama(ctx, ask, load, model)
}

// llamaCPP returns the context of each slot of a llama-server.
func llamaCPP(ctx context.Context, ask modelapi.Ask, model string) (modelapi.Tokens, bool) {
	var props struct {
		Settings struct {
			Context modelapi.Tokens `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	query := url.Values{"model": {model}, "autoload": {"false"}} // for one that serves several models
	err := ask(ctx, http.MethodGet, "/props?"+query.Encode(), nil, &props)
	return props.Settings.Context, err == nil && props.Settings.Context > 0
}

// lmStudio returns the context that a model of LM Studio was loaded with; 0: it is not
// loaded.
func lmStudio(ctx context.Context, ask modelapi.Ask, model string) (modelapi.Tokens, bool) {
	var found struct {
		State  string
		Most   modelapi.Tokens `json:"max_context_length"`
		Loaded modelapi.Tokens `json:"loaded_context_length"`
	}
	err := ask(ctx, http.MethodGet, "/api/v0/models/"+url.PathEscape(model), nil, &found)
	return found.Loaded, err == nil && (found.State != "" || found.Most > 0)
}

// ollamaDefault is the context of a model in versions of Ollama that don't tell it, unless
// they are configured.
const ollamaDefault = 4096

// fixedContext is the context in the parameters of a model of Ollama.
var fixedContext = regexp.MustCompile(`(?m)^num_ctx\s+(\d+)`)

// ollama returns the context that a model of Ollama is loaded with, which is usually less
// than the model could have; 0: it is not loaded.
func ollama(ctx context.Context, ask, load modelapi.Ask, model string) (modelapi.Tokens, bool) {
	var shown struct {
		Parameters string
		Info       map[string]any `json:"model_info"`
	}
	body := map[string]any{"model": model}
	if ask(ctx, http.MethodPost, "/api/show", body, &shown) != nil || len(shown.Info) == 0 {
		return 0, false
	}
	most := modelapi.Tokens(0) // of the model
	for key, value := range shown.Info {
		if n, ok := value.(float64); ok && strings.HasSuffix(key, ".context_length") && n >= 1 && n < 1<<30 {
			most = modelapi.Tokens(n)
		}
	}
	served := func(n modelapi.Tokens) modelapi.Tokens {
		if most > 0 {
			return min(n, most)
		}
		return n
	}
	if fixed := fixedContext.FindStringSubmatch(shown.Parameters); fixed != nil {
		if n, err := strconv.ParseInt(fixed[1], 10, 31); err == nil && n > 0 {
			return served(modelapi.Tokens(n)), true
		}
	}
	n, loaded := ollamaLoaded(ctx, ask, model)
	if !loaded && load != nil && load(ctx, http.MethodPost, "/api/generate",
		map[string]any{"model": model, "stream": false}, &struct{}{}) == nil { // without a prompt it loads the model
		n, loaded = ollamaLoaded(ctx, ask, model)
	}
	switch {
	case !loaded:
		return 0, true
	case n == 0:
		return served(ollamaDefault), true
	}
	return n, true
}

// ollamaLoaded returns the context of a loaded model; 0: this version does not tell it.
func ollamaLoaded(ctx context.Context, ask modelapi.Ask, model string) (tokens modelapi.Tokens, loaded bool) {
	var running struct {
		Models []struct {
			Name, Model string
			Context     modelapi.Tokens `json:"context_length"`
		}
	}
	if ask(ctx, http.MethodGet, "/api/ps", nil, &running) != nil {
		return 0, false
	}
	for _, m := range running.Models {
		for _, name := range []string{m.Name, m.Model} {
			if name == model || name == model+":latest" {
				return m.Context, true
			}
		}
	}
	return 0, false
}
