package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// recipe is a server with models that setup knows, or was told of.
type recipe struct {
	name, label, kind string
	baseURL           string // empty: the kind's own service
	key               string // name of the secret; empty: it needs none
	model             string // suggested; empty: the first that the server lists
	where             string // where people get a key
}

// recipes are those of docs/models.md.
var recipes = []recipe{
	{name: "openai", label: "OpenAI", kind: "openai", key: "OPENAI_API_KEY",
		where: "platform.openai.com/api-keys"},
	{name: "anthropic", label: "Anthropic (Claude)", kind: "anthropic", key: "ANTHROPIC_API_KEY",
		where: "console.anthropic.com/settings/keys"},
	{name: "gemini", label: "Google Gemini", kind: "openai", key: "GEMINI_API_KEY", model: "gemini-2.5-flash",
		baseURL: "https://generativelanguage.googleapis.com/v1beta/openai", where: "aistudio.google.com/apikey"},
	{name: "openrouter", label: "OpenRouter", kind: "openai", key: "OPENROUTER_API_KEY", model: "qwen/qwen3-coder",
		baseURL: "https://openrouter.ai/api/v1", where: "openrouter.ai/keys"},
	{name: "ollama", label: "Ollama, on this machine", kind: "openai", baseURL: "http://localhost:11434/v1"},
	{name: "lm_studio", label: "LM Studio, on this machine", kind: "openai", baseURL: "http://localhost:1234/v1"},
	{name: "llama_cpp", label: "llama.cpp, on this machine", kind: "openai", baseURL: "http://localhost:8080/v1"},
	{name: "vllm", label: "vLLM, on this machine", kind: "openai", baseURL: "http://localhost:8000/v1"},
}

func providerNames() (names []string) {
	for _, x := range recipes {
		names = append(names, x.name)
	}
	return names
}

// setModel is the step of the language model.
func (s *setup) setModel(ctx context.Context) error {
	if s.provider == "" && s.ask == nil {
		return nil
	}
	for {
		x, ok, err := s.chooseProvider(ctx)
		if err != nil || !ok {
			return err
		}
		err = s.connectModel(ctx, x)
		if err == nil || errors.Is(err, errLeft) || ctx.Err() != nil {
			return err
		}
		s.fail(err)
		if s.ask == nil {
			return nil
		}
		s.provider, s.baseURL, s.model, s.keyEnv, s.keyFile = "", "", "", "", "" // they did not work
	}
}

// chooseProvider returns the provider that flags name, or asks. ok is false if the step is
// skipped.
func (s *setup) chooseProvider(ctx context.Context) (x recipe, ok bool, err error) {
	name := s.provider
	if name == "" {
		if !s.listed {
			s.p.line("\nWhich model shall answer?")
			for i, known := range recipes {
				s.p.line("  %d  %s", i+1, known.label)
			}
			s.p.line("  %d  another server with OpenAI's API", len(recipes)+1)
		}
		s.listed = true
		none := "the offline model, for reminders only"
		if used := s.inUse(); used != "" {
			none = "as it is: " + used
		}
		answer, err := s.ask.text(ctx, fmt.Sprintf("Number (Enter: %s):", none), "")
		if err != nil || answer == "" {
			return x, false, err
		}
		name = answer
		for i, known := range recipes {
			if answer == fmt.Sprint(i+1) {
				name = known.name
			}
		}
		if answer == fmt.Sprint(len(recipes)+1) {
			return s.otherProvider(ctx)
		}
	}
	for _, known := range recipes {
		if strings.EqualFold(name, known.name) || strings.EqualFold(name, known.label) {
			x = known
			if s.baseURL != "" {
				x.baseURL = s.baseURL
			}
			return x, true, nil
		}
	}
	if s.baseURL != "" {
		return recipe{name: name, label: name, kind: "openai", baseURL: s.baseURL}, true, nil
	}
	if old, known := s.settings.Models.Providers[name]; known {
		return recipe{name: name, label: name, kind: old.Kind, baseURL: old.BaseURL, key: old.KeyName()}, true, nil
	}
	err = fmt.Errorf("there is no provider %q: use one of %s, or add --base-url", name,
		strings.Join(providerNames(), ", "))
	if s.ask == nil || s.provider != "" {
		return x, false, err
	}
	s.fail(errors.New("that isn't one of the numbers")) // and not shown again: it may be a key
	return s.chooseProvider(ctx)
}

// otherProvider asks for a server.
func (s *setup) otherProvider(ctx context.Context) (x recipe, ok bool, err error) {
	x = recipe{label: "the server", kind: "openai"}
	if x.baseURL, err = s.ask.text(ctx, "Address, such as http://localhost:8000/v1 (Enter skips):", ""); err != nil ||
		x.baseURL == "" {
		return x, false, err
	}
	x.name, err = s.ask.text(ctx, "A name for it:", "server")
	return x, true, err
}

// inUse returns the model that answers now; empty: the offline one.
func (s *setup) inUse() string {
	seen, _ := inspect(s.home) // the files were just read
	models := modelsOf(seen)
	if len(models) == 0 || models[0] == offlineModel {
		return ""
	}
	return strings.TrimSuffix(models[0], "/*")
}

// connectModel tries a provider and saves it.
func (s *setup) connectModel(ctx context.Context, x recipe) error {
	if x.key == "" && x.baseURL != "" && !localRecipe(x) {
		x.key = strings.ToUpper(x.name) + "_API_KEY" // used if there is a key
	}
	key, err := s.keyOf(ctx, x)
	if err != nil {
		return err
	}
	if key == "" {
		x.key = ""
	}
	server, err := s.server(x, key)
	if err != nil {
		return err
	}
	defer server.Close()
	model, err := s.modelOf(ctx, x, server)
	if err != nil {
		return err
	}
	model = strings.TrimPrefix(model, x.name+"/")
	if !s.noCheck {
		s.p.faint("Asking " + model + " …")
		began := time.Now()
		if err := checkModel(ctx, server, model); err != nil {
			return err
		}
		s.done("%s of %s answers (%s).", model, x.label, time.Since(began).Round(10*time.Millisecond))
	}
	var secrets []secret
	if current, _ := s.secrets.Lookup(x.key); key != "" && (current != key || !slices.Contains(s.secrets.Names(), x.key)) {
		secrets = []secret{{x.key, key, "The key of " + x.label}}
	}
	if err := s.save("the model "+x.name+"/"+model, secrets, s.modelSettings(x, model)...); err != nil {
		return err
	}
	s.chosen = x.name + "/" + model
	return nil
}

// localRecipe reports whether a provider is a known one that needs no key.
func localRecipe(x recipe) bool {
	return slices.ContainsFunc(recipes, func(known recipe) bool { return known.name == x.name && known.key == "" })
}

// keyOf returns the key: that of the flags, of the files or the environment, or asks.
func (s *setup) keyOf(ctx context.Context, x recipe) (string, error) {
	key, ok, err := s.given(s.keyEnv, s.keyFile)
	if ok || err != nil {
		return key, err
	}
	if x.key == "" {
		return "", nil
	}
	known, _ := s.secrets.Lookup(x.key)
	if s.ask == nil {
		if known == "" && slices.Contains(providerNames(), x.name) {
			return "", fmt.Errorf("%s needs a key: give --key-env or --key-file", x.label)
		}
		return known, nil
	}
	question := "Key (not shown):"
	switch {
	case known != "":
		question = fmt.Sprintf("Key (not shown; Enter keeps %s):", x.key)
	case x.where == "":
		question = "Key (not shown; Enter: it needs none):"
	default:
		s.p.faint("Get a key at " + x.where)
	}
	typed, err := s.ask.secret(ctx, question)
	if err != nil {
		return "", err
	}
	if typed == "" {
		if known == "" && x.where != "" {
			return "", errors.New("without a key it can't answer")
		}
		return known, nil
	}
	if typed, err = oneWord(typed); err != nil {
		return "", fmt.Errorf("the key can't be used: %w", err)
	}
	return typed, nil
}

// server returns the provider's server as its extension would use it.
func (s *setup) server(x recipe, key string) (*modelapi.Server, error) {
	retries := 1
	kind := kinds[x.kind]()
	c := modelapi.Config{BaseURL: x.baseURL, Key: x.key, Retries: &retries, Timeout: modelapi.Duration(2 * time.Minute)}
	if x.name == kind.ID && x.baseURL == "" {
		c.BaseURL, _ = s.secrets.Lookup(kind.URLEnv)
	}
	return modelapi.NewServer(kind, x.name, c, key)
}

// modelOf returns the model of the flags, or asks with a suggestion.
func (s *setup) modelOf(ctx context.Context, x recipe, server *modelapi.Server) (string, error) {
	if s.model != "" {
		return s.model, nil
	}
	suggested, err := s.suggestModel(ctx, x, server)
	if err != nil {
		return "", err // it would not answer either
	}
	model := suggested
	if s.ask != nil {
		if model, err = s.ask.text(ctx, "Model:", suggested); err != nil {
			return "", err
		}
	}
	if model == "" {
		return "", fmt.Errorf("%s lists no models: give the name of one", x.label)
	}
	return model, nil
}

// suggestModel returns a model of the server; empty: there is none to suggest.
func (s *setup) suggestModel(ctx context.Context, x recipe, server *modelapi.Server) (string, error) {
	if old := s.settings.Models.Providers[x.name].Models; len(old) > 0 {
		return old[0].Name, nil
	}
	kind := kinds[x.kind]()
	if x.baseURL == "" {
		x.model = cmp.Or(x.model, kind.Model)
	}
	if x.model != "" || s.noCheck {
		return x.model, nil
	}
	all, err := server.List(ctx)
	if why := modelapi.KindOf(err); err != nil && (why == modelapi.Unavailable || why == modelapi.KeyRefused) {
		return "", err
	}
	if err != nil || len(all) == 0 {
		return "", nil //nolint:nilerr // some servers have no list
	}
	if kind.Choose != nil {
		return all[kind.Choose(all)].ID, nil
	}
	return all[0].ID, nil
}

// checkModel asks for one small completion. The error says what to do.
func checkModel(ctx context.Context, server *modelapi.Server, model string) error {
	r := server.Check(ctx, model)
	switch {
	case r.Failure == nil:
		return nil
	case r.Fix != "":
		return fmt.Errorf("%w\n  %s", r.Failure, r.Fix)
	case len(r.Models) > 0:
		return fmt.Errorf("%w\n  %s", r.Failure, nearest(model, r.Models))
	}
	return r.Failure
}

// modelSettings returns the settings that make a model the first one.
func (s *setup) modelSettings(x recipe, model string) []config.Setting {
	set := func(value any, path ...string) config.Setting {
		return config.Setting{Path: append([]string{"models"}, path...), Value: value,
			Comment: "The language models: docs/models.md has more."}
	}
	old, known := s.settings.Models.Providers[x.name]
	all := []config.Setting{}
	if old.Kind != x.kind {
		all = append(all, set(x.kind, "providers", x.name, "kind"))
	}
	if old.BaseURL != x.baseURL {
		all = append(all, set(x.baseURL, "providers", x.name, "base_url"))
	}
	if now := (config.Provider{Kind: x.kind, BaseURL: x.baseURL, Key: old.Key}); now.KeyName() != x.key {
		all = append(all, set(x.key, "providers", x.name, "key"))
	}
	if len(old.Models) == 0 {
		all = append(all, set([]string{model}, "providers", x.name, "models"))
	}
	first := len(old.Models) == 0 || old.Models[0].Name == model
	others := len(s.settings.Models.Providers) > 1 || len(s.settings.Models.Providers) == 1 && !known
	if full := x.name + "/" + model; len(s.settings.Models.Default) > 0 || !first || others {
		order := slices.DeleteFunc(s.order(), func(m string) bool { return m == full })
		all = append(all, set(append([]string{full}, order...), "default"))
	}
	return all
}

// order returns the models that are tried now, in order.
func (s *setup) order() []string {
	if len(s.settings.Models.Default) > 0 {
		return slices.Clone(s.settings.Models.Default)
	}
	var order []string
	for _, name := range s.settings.ProviderNames() {
		if models := s.settings.Models.Providers[name].Models; len(models) > 0 {
			order = append(order, name+"/"+models[0].Name)
		}
	}
	return order
}
