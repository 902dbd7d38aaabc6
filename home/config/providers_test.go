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
    router: {kind: openai, base_url: https://openrouter.ai/api/v1, key: OPENROUTER_API_KEY, models: [a/b, {name: c}]}
    ollama: {kind: openai, base_url: http://localhost:11434/v1}
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
	if key := p["ollama"].KeyName(); key != "" {
		t.Errorf("%s would go to another server", key)
	}
	if key := p["openai"].KeyName(); key != "OPENAI_API_KEY" {
		t.Errorf("the key of OpenAI is %q", key)
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
