package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/switchboard-run/switchboard/extensions/anthropic/anthropictest"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"
)

// Each recipe of docs/models.md is accepted, and works with a server of its kind at its
// path.
func TestRecipes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes := strings.Split(string(page), "```yaml\n")[1:]
	if len(recipes) < 9 {
		t.Errorf("found %d recipes", len(recipes))
	}
	for i, recipe := range recipes {
		recipe, _, _ = strings.Cut(recipe, "```")
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c, err := config.Parse("config.yaml", []byte(recipe))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range c.ProviderNames() {
				tryRecipe(t, recipe, name, c.Models.Providers[name])
			}
		})
	}
}

func tryRecipe(t *testing.T, recipe, name string, p config.Provider) {
	t.Helper()
	var fake modelapitest.Fake
	key, keyName := "key-of-"+name, p.KeyName()
	official := "https://api.openai.com/v1"
	if p.Kind == "anthropic" {
		fake, official = anthropictest.New(t), "https://api.anthropic.com/v1"
	} else {
		fake = openaitest.New(t)
	}
	if keyName == "" {
		fake.NoKey()
	} else {
		fake.RequireKey(key)
	}
	listed := "listed-first"
	if len(p.Models) > 0 {
		listed = p.Models[0].Name
	}
	fake.OnlyModels(listed)
	fake.Always(modelapitest.Say("Hello from " + name + "."))
	w := newWorld(t)
	all := map[string]any{}
	if err := yaml.Unmarshal([]byte(recipe), &all); err != nil {
		t.Fatal(err)
	}
	models := all["models"].(map[string]any)
	delete(models, "default")
	delete(models, "transcribe") // it is tried with a text
	entry := models["providers"].(map[string]any)[name].(map[string]any)
	models["providers"] = map[string]any{name: entry}
	if p.BaseURL == "" {
		entry["key"], p.BaseURL = keyName, official
	}
	entry["base_url"] = atPath(t, p.BaseURL, fake.BaseURL())
	text, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	w.config(string(text))
	if keyName != "" {
		w.write(keyName+"="+key+"\n", 0o600, "secrets.env")
	}
	w.start()
	if got := w.attach().ask("hi"); got != "Hello from "+name+"." {
		t.Errorf("got %q", got)
	}
	if asked := fake.Asked(); len(asked) == 0 || asked[0].Model != listed {
		t.Errorf("asked %+v, want the model %s", asked, listed)
	}
	w.stop()
}

// atPath serves what is at the address real under the path of address, and returns the
// new address.
func atPath(t *testing.T, address, real string) string {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(real)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, at.Path)
		r.SetURL(to)
	}}
	mux := http.NewServeMux()
	mux.Handle(at.Path+"/", proxy)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL + at.Path
}
