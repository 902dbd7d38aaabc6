package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/anthropic/anthropictest"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"
)

// keysSeen are the different keys that a server was shown.
func keysSeen(s *openaitest.Server) (all []string) {
	for _, r := range s.Requests() {
		if key := r.Header.Get("Authorization"); !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return all
}

// Several servers at once, one of them without a key: each gets its own key only, and
// an edit switches between them.
func TestSeveralProviders(t *testing.T) {
	t.Parallel()
	const routerKey = "sk-or-0123456789"
	w := newWorld(t, withModel)
	local, router := openaitest.New(t), openaitest.New(t)
	local.NoKey()
	local.OnlyModels("qwen3:8b", "tiny")
	router.RequireKey(routerKey)
	for _, s := range []*openaitest.Server{local, router, w.model} {
		s.Handle(func(r openaitest.Request) openaitest.Answer { return openaitest.Say("Here is " + r.Model + ".") })
	}
	w.write("ROUTER_KEY="+routerKey+"\n", 0o600, "secrets.env")
	order := func(models string) {
		w.config(fmt.Sprintf("models:\n  default: [%s]\n  providers:\n    ollama: {kind: openai, base_url: %q}\n"+
			"    router: {kind: openai, base_url: %q, key: ROUTER_KEY, models: [vendor/large]}\n",
			models, local.BaseURL(), router.BaseURL()))
	}
	order("")
	w.start()
	p := w.attach()
	asks := func(text, want string) {
		t.Helper()
		if got := p.ask(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	asks("one", "Here is qwen3:8b.") // the first that the server lists
	order("router/vendor/large, openai/test-model")
	w.eventually("the new order is in force", func() bool {
		return !strings.Contains(w.must("status"), "ollama/*")
	})
	asks("two", "Here is vendor/large.")
	router.Close()
	asks("three", "Here is test-model.")
	for name, s := range map[string]struct {
		server *openaitest.Server
		keys   []string
	}{"ollama": {local, []string{""}}, "router": {router, []string{"Bearer " + routerKey}},
		"openai": {w.model, []string{"Bearer " + openaiKey}}} {
		if got := keysSeen(s.server); !slices.Equal(got, s.keys) {
			t.Errorf("%s was shown the keys %q, want %q", name, got, s.keys)
		}
	}
	if out, _, _ := w.cli("doctor"); strings.Contains(out, "ROUTER_KEY") {
		t.Errorf("doctor takes the key for one that nothing reads:\n%s", out)
	}
}

// A name that is taken is refused with its place.
func TestProviderWithTheNameOfAnExtension(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config("models:\n  providers:\n    scheduler: {kind: openai, base_url: 'http://localhost:1/v1'}\n")
	out, _, code := w.cli("doctor")
	if code == 0 || !strings.Contains(out, "config.yaml:3:5: models.providers.scheduler: a built-in extension has this name") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// A key in the environment is all that Anthropic needs.
func TestAnthropicByItsKeyAlone(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-0123456789"
	w := newWorld(t)
	s := anthropictest.New(t)
	s.RequireKey(key)
	s.OnlyModels("claude-opus-9", "claude-sonnet-9")
	s.Queue(modelapitest.CallTool("scheduler__list_schedules", "{}"), modelapitest.Say("There are none."))
	w.env["ANTHROPIC_API_KEY"], w.env["ANTHROPIC_BASE_URL"] = key, s.URL
	w.start()
	if got := w.attach().ask("which reminders are there?"); got != "There are none." {
		t.Errorf("got %q", got)
	}
	asked := s.Requests()
	if len(asked) != 2 || asked[1].Model != "claude-sonnet-9" || len(asked[1].Results()) != 1 {
		t.Errorf("asked %+v", s.Asked())
	}
	if points := strings.Join(asked[1].CachePoints(), " "); points != "tools system 0 2" {
		t.Errorf("cached are %s", points)
	}
}

// doctor and `models test` ask the models, and say what to change.
func TestModelsAreTested(t *testing.T) {
	t.Parallel()
	const key = "sk-or-0123456789"
	w := newWorld(t)
	good, bad, picky := openaitest.New(t), openaitest.New(t), openaitest.New(t)
	good.NoKey()
	good.OnlyModels("qwen3:8b", "tiny")
	good.Always(openaitest.Answer{Text: "OK", Input: 9, Output: 1})
	bad.RequireKey("another")
	picky.RequireKey(key)
	picky.OnlyModels("vendor/large", "vendor/small")
	w.write("KEY_A=nonsense\nKEY_B="+key+"\n", 0o600, "secrets.env")
	w.config(fmt.Sprintf("models:\n  default: [local/tiny, bad/x, picky/vendor/lagre, old/x, lost/x]\n  providers:\n"+
		"    local: {kind: openai, base_url: %q}\n    bad: {kind: openai, base_url: %q, key: KEY_A, models: [x]}\n"+
		"    picky: {kind: openai, base_url: %q, key: KEY_B, models: [vendor/lagre]}\n"+
		"    old: {kind: openai, base_url: %q, models: [x]}\n"+
		"    lost: {kind: openai, base_url: http://127.0.0.1:1/v1, models: [x]}\n",
		good.BaseURL(), bad.BaseURL(), picky.BaseURL(), good.URL))
	out, _, code := w.cli("models", "test")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	says := []string{
		"local/qwen3:8b answers", "bad/x: the key in KEY_A was refused", "replace the value of KEY_A",
		"the server of picky has no model vendor/lagre", "it has: vendor/large",
		"the address lacks /v1: set models.providers.old.base_url to " + good.BaseURL(),
		"start the server on 127.0.0.1:1",
	}
	contains(t, "models test", out, says...)
	if out := w.must("models", "test", "local/tiny"); !strings.Contains(out, "local/tiny answers") ||
		!strings.Contains(out, "9 tokens in, 1 out") {
		t.Errorf("one of them: %s", out)
	}
	w.start()
	out, _, code = w.cli("doctor")
	if code != 1 {
		t.Errorf("doctor: exit code %d", code)
	}
	contains(t, "doctor", out, append(says[2:], "local/tiny answers", "bad/x doesn't answer: the key in KEY_A was refused")...)
	asked := len(good.Requests())
	if out, _, _ := w.cli("doctor", "--offline"); strings.Contains(out, "answers") || len(good.Requests()) != asked {
		t.Errorf("--offline asks a model:\n%s", out)
	}
	contains(t, "models list", w.must("models", "list"), "local/tiny (default)", "local/qwen3:8b", "picky/vendor/lagre",
		"the server doesn't list it", "lost/x", "offline", "openai/gpt-4.1-mini", "0.4/0.1/1.6 USD", "free",
		"OPENAI_API_KEY is not set")
	for _, out := range []string{w.must("models", "list", "--json"), out} {
		if strings.Contains(out, key) {
			t.Errorf("the key is shown:\n%s", out)
		}
	}
}

// The default model has its whole name, also where the configuration does not name it.
func TestDefaultModelIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.model.Always(openaitest.Answer{Text: "OK"})
	for _, running := range []bool{false, true} {
		if running {
			w.start()
		}
		for _, args := range [][]string{{"doctor"}, {"doctor", "--offline"}} {
			out, _, _ := w.cli(args...)
			contains(t, strings.Join(args, " "), out, "✓ openai/test-model\n")
			if strings.Contains(out, "openai/*") {
				t.Errorf("%v shows a pattern:\n%s", args, out)
			}
		}
	}
	contains(t, "models list", w.must("models", "list"), "openai/test-model (default)")
}

// /model switches the model of a conversation, until /model default, also over a kill.
func TestModelOfAConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	near, far := openaitest.New(t), openaitest.New(t)
	for _, s := range []*openaitest.Server{near, far} {
		s.NoKey()
		s.Handle(func(r openaitest.Request) openaitest.Answer { return openaitest.Say("Here is " + r.Model + ".") })
	}
	w.config(fmt.Sprintf("models:\n  providers:\n    near: {kind: openai, base_url: %q, models: [small]}\n"+
		"    far: {kind: openai, base_url: %q}\n", near.BaseURL(), far.BaseURL()))
	w.start()
	p := w.attach()
	expect := func(text, want string) {
		t.Helper()
		if got := p.ask(text); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	expect("/model", "Model here: default.")
	expect("one", "Here is small.")
	expect("/model far", "There is no model far. Write /model PROVIDER/MODEL.")
	expect("/model far/vendor/large", "far/vendor/large answers here from now on")
	expect("two", "Here is vendor/large.")
	w.settled()
	w.restart()
	p = w.attach()
	expect("/model", "Model here: far/vendor/large.")
	expect("three", "Here is vendor/large.")
	expect("/model default", "default answers here from now on")
	expect("four", "Here is small.")
}

// A small window of a local model, which the server tells, leads to a summary. Nothing that
// is sent exceeds it, also after the kernel was killed and knows no windows.
func TestSmallWindowLeadsToSummary(t *testing.T) {
	t.Parallel()
	const window = 4096
	w := newWorld(t)
	local := openaitest.New(t)
	local.NoKey()
	local.OnlyModels("qwen3:8b")
	local.AsOllama(openaitest.Ollama{Model: "qwen3:8b", Most: 40960, Served: window})
	local.Handle(func(r openaitest.Request) openaitest.Answer {
		if strings.HasPrefix(r.Messages[0].Content.Text, "You keep the memory") {
			return openaitest.Say("They talk about their garden.")
		}
		return openaitest.Say("OK.")
	})
	w.config(fmt.Sprintf("models:\n  providers:\n    ollama: {kind: openai, base_url: %q, models: ['qwen3:8b']}\n", local.BaseURL()))
	if out := w.must("models", "list"); strings.Contains(out, "4,096") || strings.Contains(out, "doesn't list it") {
		t.Errorf("the model is not loaded yet:\n%s", out)
	}
	w.start()
	p := w.attach()
	say := func(n int) {
		t.Helper()
		for range n {
			if got := p.ask("my garden has " + strings.Repeat("roses and ", 100)); got != "OK." {
				t.Fatalf("got %q", got)
			}
		}
	}
	say(12)
	w.settled()
	w.restart()
	p = w.attach()
	say(3)
	summaries := 0
	for i, r := range local.Requests() {
		if strings.HasPrefix(r.Messages[0].Content.Text, "You keep the memory") {
			summaries++
		}
		if tokens := len(r.Raw) / 4; tokens > window {
			t.Errorf("request %d has about %d tokens", i, tokens)
		}
	}
	if last := local.Requests()[local.Total()-1]; summaries == 0 || !strings.Contains(string(last.Raw), "about their garden") {
		t.Errorf("after %d summaries the last request is %s", summaries, last.Raw)
	}
	contains(t, "models list", w.must("models", "list"), "ollama/qwen3:8b (default)", "4,096")
	out, _, _ := w.cli("doctor")
	contains(t, "doctor", out, "ollama/qwen3:8b has a small context of 4,096 tokens", "OLLAMA_CONTEXT_LENGTH")
	w.config(fmt.Sprintf("models:\n  providers:\n    ollama: {kind: openai, base_url: %q, models: [{name: 'qwen3:8b', context: 32768}]}\n",
		local.BaseURL()))
	contains(t, "models list with a configured window", w.must("models", "list"), "32,768")
}
