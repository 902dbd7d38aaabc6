package config

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// Price is what a million tokens cost, and a minute of a recording.
type Price struct {
	Input  float64  `yaml:"input" min:"0"`
	Cached *float64 `yaml:"cached" min:"0"` // input from the provider's cache; absent: as Input
	Output float64  `yaml:"output" min:"0"`
	Minute float64  `yaml:"minute" min:"0"` // a minute of a recording that is transcribed
	// Currency is that of the price; empty: Models.Currency.
	Currency string `yaml:"currency" check:"currency"`
}

// CachedInput returns the price of input from a cache.
func (p Price) CachedInput() float64 {
	if p.Cached != nil {
		return *p.Cached
	}
	return p.Input
}

// PricesDate says when the known prices were checked, PricesCurrency what they are in.
const (
	PricesDate     = "2026-11-20"
	PricesCurrency = "USD"
)

// listPrices are the list prices of two services: input, cached input, output. They are
// from developers.openai.com/api/docs/pricing and platform.claude.com/docs, as others have
// copied them. Writing to Anthropic's cache costs a quarter more than Input, which is not
// counted. A price that depends on the length of the prompt is the lower one.
var listPrices = map[string]map[string][3]float64{
	"openai": {
		"gpt-4.1": {2, 0.5, 8}, "gpt-4.1-mini": {0.4, 0.1, 1.6}, "gpt-4.1-nano": {0.1, 0.025, 0.4},
		"gpt-4o": {2.5, 1.25, 10}, "gpt-4o-mini": {0.15, 0.075, 0.6}, "o3": {2, 0.5, 8}, "o4-mini": {1.1, 0.275, 4.4},
		"gpt-5": {1.25, 0.125, 10}, "gpt-5-mini": {0.25, 0.025, 2}, "gpt-5-nano": {0.05, 0.005, 0.4},
		"gpt-5.1": {1.25, 0.125, 10}, "gpt-5.2": {1.75, 0.175, 14}, "gpt-5.4": {2.5, 0.25, 15},
		"gpt-5.4-mini": {0.75, 0.075, 4.5}, "gpt-5.5": {5, 0.5, 30}, "gpt-5.6-sol": {4, 0.4, 20},
		"gpt-5.6-terra": {2, 0.2, 12}, "gpt-5.6-luna": {0.2, 0.02, 1.2},
	},
	"anthropic": {
		"claude-opus-5-5": {4, 0.2, 20}, "claude-opus-5": {5, 0.5, 25}, "claude-opus-4-8": {5, 0.5, 25},
		"claude-opus-4-7": {5, 0.5, 25}, "claude-opus-4-6": {5, 0.5, 25}, "claude-opus-4-5": {5, 0.5, 25},
		"claude-opus-4-1": {15, 1.5, 75}, "claude-sonnet-5-5": {2, 0.1, 10}, "claude-sonnet-5": {2, 0.2, 10},
		"claude-sonnet-4-6": {3, 0.3, 15}, "claude-sonnet-4-5": {3, 0.3, 15}, "claude-haiku-5-5": {0.1, 0.01, 0.5},
		"claude-haiku-4-5": {1, 0.1, 5}, "claude-3-5-haiku": {0.8, 0.08, 4},
	},
}

// listMinutes are the list prices of a minute of a recording.
var listMinutes = map[string]map[string]float64{"openai": {"whisper-1": 0.006}}

// version is what names of versions of a model end with.
var version = regexp.MustCompile(`-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$`)

// PriceOf returns the price of a model of a server: the configured one, else the list
// price of a well-known service. A server without a key is free. False: not known.
func (c *Config) PriceOf(provider, kind, baseURL, key, model string) (Price, bool) {
	p := c.Models.Providers[provider]
	for _, m := range p.Models {
		if m.Name == model && m.Price != nil {
			return m.Price.in(c.Models.Currency), true
		}
	}
	if p.Price != nil {
		return p.Price.in(c.Models.Currency), true
	}
	if key == "" {
		return Price{Currency: c.Models.Currency}, true
	}
	if baseURL != kindURLs[kind] {
		return Price{}, false
	}
	list, ok := listPrices[kind][model]
	if !ok {
		list, ok = listPrices[kind][strings.TrimSuffix(model, version.FindString(model))]
	}
	if minute, known := listMinutes[kind][model]; known {
		return Price{Minute: minute, Currency: PricesCurrency}, true
	}
	return Price{Input: list[0], Cached: &list[1], Output: list[2], Currency: PricesCurrency}, ok
}

// in returns the price with its currency, or with the default one.
func (p Price) in(currency string) Price {
	p.Currency = cmp.Or(p.Currency, currency)
	return p
}

// kindURLs are the addresses of each kind's own service.
var kindURLs = map[string]string{
	"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com/v1",
}

// Limit bounds what models may use in a day, or in a calendar month.
type Limit struct {
	Per    string  `yaml:"per,required" enum:"day|month"`
	Agent  string  `yaml:"agent" check:"id"`
	Model  string  `yaml:"model" check:"model_name"`
	Tokens int64   `yaml:"tokens" min:"1"` // input and output
	Money  float64 `yaml:"money" min:"0.01"`
	// Currency is that of the money, and of the prices that count; empty: Models.Currency.
	Currency string `yaml:"currency" check:"currency"`
}

// Budget bounds the tokens, input and output, of what models do for a person.
type Budget struct {
	DailyTokens   int64 `yaml:"daily_tokens" min:"1"`
	MonthlyTokens int64 `yaml:"monthly_tokens" min:"1"`
}

// checkLimits checks values of limits against each other.
func (c *Config) checkLimits() {
	folded := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.People)) {
		lower := strings.ToLower(name)
		if other, twice := folded[lower]; twice {
			c.doc.Report(strictyaml.Path("people", name), "%q is the same name: upper and lower case do not count", other)
		}
		folded[lower] = name
	}
	for i, l := range c.Models.Limits {
		at := limitPath(i)
		switch {
		case c.doc.Faulty(at):
		case (l.Tokens > 0) == (l.Money > 0):
			c.doc.Report(at, "needs either tokens or money")
		case l.Currency != "" && l.Money == 0:
			c.doc.Report(at, "currency belongs to a limit of money")
		case l.Agent != "" && l.Model != "":
			c.doc.Report(at, "agent and model exclude each other: write two limits")
		}
	}
}

// String returns the limit as in the file.
func (l Limit) String() string {
	parts := []string{"per: " + l.Per}
	if l.Agent != "" {
		parts = append(parts, "agent: "+l.Agent)
	}
	if l.Model != "" {
		parts = append(parts, "model: "+l.Model)
	}
	if l.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("tokens: %d", l.Tokens))
	} else {
		parts = append(parts, fmt.Sprintf("money: %g", l.Money))
	}
	if l.Currency != "" {
		parts = append(parts, "currency: "+l.Currency)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
