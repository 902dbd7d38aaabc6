package home

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/manifests"
)

func TestProvidersBecomeExtensions(t *testing.T) {
	t.Parallel()
	f, p := planned(t, `models:
  providers:
    zeta: {kind: openai, base_url: "http://localhost:8080/v1", models: [qwen3, {name: gemma, context: 8192}], context: 4096}
    alpha: {kind: openai, base_url: "https://openrouter.ai/api/v1", key: OPENROUTER_API_KEY}
`)
	zeta := specOf(t, f, p, "zeta")
	if want := []string{"zeta/qwen3", "zeta/gemma", "zeta/*"}; !slices.Equal(zeta.Provides.Models, want) {
		t.Errorf("it provides %q, want %q", zeta.Provides.Models, want)
	}
	if zeta.Missing != nil || !zeta.Builtin || zeta.Name != "zeta" ||
		string(zeta.Config) != `{"base_url":"http://localhost:8080/v1","context":4096,"contexts":{"gemma":8192},"key":"","model":"qwen3"}` {
		t.Errorf("got %+v with %s", zeta, zeta.Config)
	}
	for _, variable := range zeta.Process.Env {
		if strings.HasPrefix(variable, "OPENAI_") {
			t.Errorf("it gets %s", variable)
		}
	}
	if c := zeta.Process.Policy.Network.Connect; !slices.Contains(c, 8080) || slices.Contains(c, 443) {
		t.Errorf("it may connect to the ports %v", c)
	}
	if alpha := specOf(t, f, p, "alpha"); !slices.Equal(alpha.Missing, []string{"OPENROUTER_API_KEY"}) ||
		!slices.Contains(alpha.Process.Command, "openai:alpha") || !slices.Contains(alpha.Process.Command, "openai:zeta") {
		t.Errorf("got %+v", alpha)
	}
	if order := f.settings(p).ModelOrder; !slices.Equal(order, []string{"zeta/qwen3"}) {
		t.Errorf("the models to try are %q", order)
	}
}

func TestWhichModelsAreTried(t *testing.T) {
	t.Parallel()
	keys := map[string]string{"OPENAI_API_KEY": "a", "OTHER_KEY": "b"}
	withAnthropic := map[string]string{"OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "c"}
	for lines, want := range map[string][]string{
		"": {"openai/*", "anthropic/*"},
		"extensions: {anthropic: {enabled: false}}":                               nil,
		"models: {providers: {anthropic: {kind: anthropic, models: [claude-x]}}}": {"anthropic/claude-x", "openai/*"},
	} {
		f, _ := planned(t, lines)
		f.options.Env = func(name string) (string, bool) { return withAnthropic[name], withAnthropic[name] != "" }
		f.live = liveOf(t, f)
		if got := f.settings(f.plan(nil)).ModelOrder; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", lines, got, want)
		}
	}
	for lines, want := range map[string][]string{
		"": nil,
		"models: {providers: {zeta: {kind: openai, base_url: 'http://z/v1', key: OTHER_KEY}, " +
			"beta: {kind: openai, base_url: 'http://b/v1'}}}": {"zeta/*", "beta/*", "openai/*"},
		"models: {providers: {beta: {kind: openai, base_url: 'http://b/v1', key: NONE}}}":       nil,
		"models: {default: beta/x, providers: {beta: {kind: openai, base_url: 'http://b/v1'}}}": {"beta/x"},
		"models: {providers: {openai: {kind: openai, models: [gpt-5]}}}":                        {"openai/gpt-5"},
		// A server that transcribes is not for answers.
		"models: {transcribe: beta/w, providers: {beta: {kind: openai, base_url: 'http://b/v1', models: [w]}}}": {"openai/*"},
	} {
		f, _ := planned(t, lines)
		f.options.Env = func(name string) (string, bool) { return keys[name], keys[name] != "" }
		f.live = liveOf(t, f)
		p := f.plan(nil)
		if got := f.settings(p).ModelOrder; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", lines, got, want)
		}
	}
}

// A server that transcribes is not asked for answers where there is no other one either.
func TestTranscriptionAlone(t *testing.T) {
	t.Parallel()
	const server = "providers: {beta: {kind: openai, base_url: 'http://b/v1', models: [w, chat]}}"
	for lines, want := range map[string][]string{
		"models: {transcribe: [beta/w, openai/x], " + server + "}": {"offline/grammar"},
		"models: {transcribe: beta/w2, " + server + "}":            {"beta/w"},
	} {
		f, _ := planned(t, lines)
		f.live = liveOf(t, f)
		s := f.settings(f.plan(nil))
		if !slices.Equal(s.ModelOrder, want) || len(s.ModelNames["transcribe"]) == 0 {
			t.Errorf("%s: %q, want %q; %q", lines, s.ModelOrder, want, s.ModelNames)
		}
	}
}

// A recording is paid by its minutes.
func TestPriceOfARecording(t *testing.T) {
	t.Parallel()
	f, _ := planned(t, "models: {providers: {openai: {kind: openai, models: [{name: w, price: {minute: 0.6}}]}}}")
	f.live = liveOf(t, f)
	p := f.plan(nil)
	for model, want := range map[string]int64{"openai/w": 30_000, "openai/whisper-1": 300} {
		u := contract.ModelUsage{Model: model, AudioMS: 3000}
		if p.charge(&u); u.CostMicros != want || u.Currency != "USD" {
			t.Errorf("3 seconds of %s cost %d %s, want %d", model, u.CostMicros, u.Currency, want)
		}
	}
}

// The variables of the built-in extension are not for a server with its own address.
func TestAProviderThatReplacesTheBuiltinOne(t *testing.T) {
	t.Parallel()
	for lines, env := range map[string]bool{
		"models: {providers: {openai: {kind: openai, models: [gpt-5]}}}":                                   true,
		"models: {providers: {openai: {kind: openai, key: MY_KEY, base_url: 'http://localhost:1234/v1'}}}": false,
	} {
		f, p := planned(t, lines)
		f.options.Env = func(name string) (string, bool) { return "http://other.test:99/v1", name == "OPENAI_BASE_URL" }
		f.live = liveOf(t, f)
		p = f.plan(p)
		n := 0
		for _, e := range p.entries {
			if e.ID == "openai" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: %d extensions are called openai", lines, n)
		}
		s := specOf(t, f, p, "openai")
		if got := slices.Contains(s.Process.Env, "OPENAI_BASE_URL=http://other.test:99/v1"); got != env {
			t.Errorf("%s: its environment is %q", lines, s.Process.Env)
		}
		if got := slices.Contains(s.Process.Policy.Network.Connect, 99); got != env {
			t.Errorf("%s: it may connect to %v", lines, s.Process.Policy.Network.Connect)
		}
	}
}

func TestADroppedInExtensionWithTheNameOfAProvider(t *testing.T) {
	t.Parallel()
	_, p := planned(t, "models: {providers: {a: {kind: openai, base_url: 'http://localhost:1/v1'}}}")
	for file, off := range p.disabled {
		if off.ID == "a" && off.Cause == manifests.Duplicate && strings.Contains(file, "manifest.yaml") &&
			strings.Contains(off.Reason, "models.providers.a") {
			return
		}
	}
	t.Errorf("both run: %+v", p.disabled)
}

func TestLimitsAndPricesForTheKernel(t *testing.T) {
	t.Parallel()
	f, _ := planned(t, `models:
  daily_tokens: {total: 500, x/a: 50}
  limits: [{per: day, agent: b, tokens: 7}, {per: month, money: 20}]
  providers:
    x: {kind: openai, base_url: "http://x/v1", price: {input: 1.5, output: 2}}
`)
	keys := map[string]string{"OPENAI_API_KEY": "a", "OPENAI_BASE_URL": "http://elsewhere/v1"}
	f.options.Env = func(name string) (string, bool) { return keys[name], keys[name] != "" }
	f.live = liveOf(t, f)
	s := f.settings(f.plan(nil))
	var got []string
	for _, l := range s.Limits {
		got = append(got, fmt.Sprint(l.Monthly, " ", l.Currency, " ", l.Agent, l.Model, l.Amount, " ", l.Setting, "; ", l.Name, "; ", l.Then))
	}
	if want := []string{
		"false  500 models.daily_tokens: {total: 500}; today's limit of 500 tokens for all models; " +
			"no model is asked until midnight",
		"true USD 20000000 models.limits: {per: month, money: 20}; this month's limit of 20.00 USD for all models; " +
			"no model is asked until the end of the month",
		"false  b7 models.limits: {per: day, agent: b, tokens: 7}; today's limit of 7 tokens for the agent b; " +
			"it asks no model until midnight",
		"false  x/a50 models.daily_tokens: {x/a: 50}; today's limit of 50 tokens for x/a; it is not asked until midnight",
	}; !slices.Equal(got, want) {
		t.Errorf("the limits are %q, want %q", got, want)
	}
	costs := func(s directory.Settings, model string) string {
		u := contract.ModelUsage{Model: model, InputTokens: 2_000_000, CachedTokens: 1_000_000, OutputTokens: 1_000_000}
		s.Price(&u)
		return fmt.Sprint(u.CostMicros, u.Currency)
	}
	if got := costs(s, "x/a"); got != "5000000USD" {
		t.Errorf("the cost is %s", got)
	}
	for _, model := range []string{"offline/grammar", "openai/gpt-4.1-mini", "none/x"} { // openai is another server
		if got := costs(s, model); got != "0" && (model != "offline/grammar" || got != "0USD") {
			t.Errorf("%s costs %s", model, got)
		}
	}
	delete(keys, "OPENAI_BASE_URL")
	if got := costs(f.settings(f.plan(nil)), "openai/gpt-4.1-mini"); got != "2100000USD" {
		t.Errorf("by OpenAI's own price it costs %s", got)
	}
}

func TestTheSecretOfAHookReachesThePageAlone(t *testing.T) {
	t.Parallel()
	f, p := planned(t, `extensions:
  web: {config: {hooks: {github: {secret: GITHUB_HOOK, signature: X-Hub-Signature-256, to: event}}}}
`)
	page := specOf(t, f, p, "web_channel")
	if !slices.Equal(page.Missing, nil) {
		t.Errorf("missing: %q", page.Missing)
	}
	if names := foreignSecrets(p.entries, p.config); !slices.Contains(names, "GITHUB_HOOK") {
		t.Errorf("the secrets of built-ins are %q", names)
	}
}
