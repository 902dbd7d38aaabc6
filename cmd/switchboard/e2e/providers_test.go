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
