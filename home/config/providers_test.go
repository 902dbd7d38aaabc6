package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/home/config"
)

func TestProviders(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("config.yaml", []byte(`models:
  default: [ollama/qwen3:8b, router/a/b]
  providers:
    router: {kind: openai, base_url: https://openrouter.ai/api/v1, key: OPENROUTER_API_KEY, models: [a/b, {name: c, context: 8192}]}
    ollama: {kind: openai, base_url: http://localhost:11434/v1, context: 4096}
    openai: {kind: openai}
`))
	if err != nil {
		t.Fatal(err)
	}
	if names := c.ProviderNames(); !slices.Equal(names, []string{"router", "ollama", "openai"}) {
		t.Errorf("in the order of the file: %q", names)
	}
	p := c.Models.Providers
	if r := p["router"]; len(r.Models) != 2 || r.Models[0].Name != "a/b" || r.Models[1].Name != "c" ||
		r.KeyName() != "OPENROUTER_API_KEY" {
		t.Errorf("got %+v", r)
	}
	if r, o := p["router"], p["ollama"]; r.Context != 0 || r.Models[0].Context != 0 || r.Models[1].Context != 8192 ||
		o.Context != 4096 {
		t.Errorf("the context windows are %+v and %+v", r, o)
	}
	if key := p["ollama"].KeyName(); key != "" {
		t.Errorf("%s would go to another server", key)
	}
	if key := p["openai"].KeyName(); key != "OPENAI_API_KEY" {
		t.Errorf("the key of OpenAI is %q", key)
	}
}

func TestPricesAndLimits(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("config.yaml", []byte(`models:
  limits: [{per: day, money: 2.5}, {per: month, tokens: 5, model: x/a}, {per: day, money: 1, agent: chat, currency: EUR}]
  providers:
    x: {kind: openai, base_url: "http://x/v1", key: X_KEY, models: [a, {name: b, price: {input: 4, output: 9, currency: EUR}}],
        price: {input: 1, cached: 0, output: 2}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if l := c.Models.Limits; len(l) != 3 || l[0].Money != 2.5 || l[1].String() != "{per: month, model: x/a, tokens: 5}" ||
		l[2].String() != "{per: day, agent: chat, money: 1, currency: EUR}" {
		t.Errorf("got %v", l)
	}
	const own = "https://api.openai.com/v1"
	for _, tt := range []struct {
		provider, url, key, model string
		input, cached, output     float64
		known                     bool
	}{
		{"x", "http://x/v1", "X_KEY", "a", 1, 0, 2, true}, {"x", "http://x/v1", "X_KEY", "b", 4, 4, 9, true},
		{"local", "http://localhost/v1", "", "any", 0, 0, 0, true},
		{"other", "https://other/v1", "KEY", "gpt-4.1-mini", 0, 0, 0, false},
		{"openai", own, "OPENAI_API_KEY", "gpt-4.1-mini", 0.4, 0.1, 1.6, true},
		{"openai", own, "OPENAI_API_KEY", "gpt-4.1-mini-2025-04-14", 0.4, 0.1, 1.6, true},
		{"openai", own, "OPENAI_API_KEY", "gpt-4.1-turbo", 0, 0, 0, false},
	} {
		p, known := c.PriceOf(tt.provider, "openai", tt.url, tt.key, tt.model)
		if known != tt.known || known && (p.Input != tt.input || p.CachedInput() != tt.cached || p.Output != tt.output) {
			t.Errorf("%+v: %+v, %v", tt, p, known)
		}
	}
	euro, err := config.Parse("config.yaml", []byte("models: {currency: EUR}"))
	if err != nil {
		t.Fatal(err)
	}
	if p, known := euro.PriceOf("openai", "openai", own, "OPENAI_API_KEY", "gpt-4.1-mini"); !known || p.Currency != "USD" {
		t.Errorf("the list price is %+v", p)
	}
	if p, _ := c.PriceOf("x", "openai", "http://x/v1", "X_KEY", "a"); p.Currency != "USD" {
		t.Errorf("the price of the default currency is %+v", p)
	}
	if p, _ := c.PriceOf("x", "openai", "http://x/v1", "X_KEY", "b"); p.Currency != "EUR" {
		t.Errorf("the price with a currency is %+v", p)
	}
	for text, want := range map[string]string{
		"limits: [{per: week, tokens: 5}]":                      `"week" is not one of day, month`,
		"limits: [{per: day}]":                                  "1:19: models.limits[0]: needs either tokens or money",
		"limits: [{per: day, tokens: 5, money: 1}]":             "needs either tokens or money",
		"limits: [{per: day, money: 0}]":                        "must be at least 0.01",
		"limits: [{per: day, tokens: 1, model: a/b, agent: c}]": "exclude each other",
		"limits: [{per: day, tokens: 5, currency: EUR}]":        "currency belongs to a limit of money",
		"limits: [{per: day, money: 5, currency: euro}]":        "three letters",
		"currency: dollar":                                      "three letters",
		"providers: {x: {kind: openai, price: {input: -1}}}":    "must be at least 0",
	} {
		if _, err := config.Parse("config.yaml", []byte("models: {"+text+"}")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestWrongProviders(t *testing.T) {
	t.Parallel()
	const secret = "sk-Secret0123"
	for text, want := range map[string]string{
		"x: {}":                                          "models.providers.x.kind: is required",
		"x: {kind: opnai}":                               `"opnai" is not one of openai, anthropic (did you mean openai?)`,
		"anthropic: {kind: openai}":                      "must have kind: anthropic",
		"scheduler: {kind: openai}":                      "2:3: models.providers.scheduler: a built-in extension has this name: choose another one",
		"lm-studio: {kind: openai}":                      "did you mean lm_studio?",
		"total: {kind: openai}":                          "reserved",
		"x: {kind: openai, key: " + secret + "}":         "the name of a secret in capitals",
		"x: {kind: openai, base_url: 'localhost:11434'}": "http:// or https://",
		"x: {kind: openai, base_url: 'https://me:" + secret + "@a.test/v1'}":  "must not hold a user or a password",
		"x: {kind: openai, base_url: 'https://a.test/v1?key=" + secret + "'}": "must not have a ?",
		"x: {kind: openai, models: [a, a]}":                                   "already in the list",
		"x: {kind: openai, models: ['a b']}":                                  "is not the name of a model",
		"x: {kind: openai, modles: [a]}":                                      "did you mean models?",
	} {
		_, err := config.Parse("config.yaml", []byte("models: {providers: {\n  "+text+"}}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("a secret is shown: %v", err)
		}
	}
}
