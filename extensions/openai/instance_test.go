package openai

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/sdk"
)

// instance returns a provider as home configures a server of models.providers.
func instance(t *testing.T, c Config, key string) *provider {
	t.Helper()
	p, err := newProvider("local", c, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

func TestAServerWithoutAKey(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t)
	s.NoKey()
	s.OnlyModels("qwen3", "zephyr")
	s.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("hi") })
	var r reports
	m := &models{id: "local"}
	m.start(Config{BaseURL: s.BaseURL()}, "", silent(), r.set)
	if got := r.last(); got != "ready" {
		t.Errorf("reported %q", got)
	}
	t.Cleanup(m.provider.Load().close)
	for range 2 {
		h := heard{}
		if err := m.Complete(t.Context(), &sdk.CompleteRequest{Messages: ask("hi").Messages}, h.emit); err != nil {
			t.Fatal(err)
		}
		if h.text != "hi" || h.model != "local/qwen3" {
			t.Errorf("got %+v", h)
		}
	}
	for _, r := range s.Requests() {
		if r.Header.Get("Authorization") != "" || r.Model != "qwen3" {
			t.Errorf("asked %q with %v", r.Model, r.Header)
		}
	}
	if n := s.Lists(); n != 1 {
		t.Errorf("listed the models %d times", n)
	}
	s.RequireKey("some")
	_, err := complete(t, instance(t, Config{BaseURL: s.BaseURL()}, ""), ask("hi"))
	wantFailure(t, err, KeyRefused, "the server of local needs a key", "models.providers.local.key")
}

func TestAServerWithoutModels(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t)
	s.NoKey()
	_, err := complete(t, instance(t, Config{BaseURL: s.BaseURL()}, ""), &sdk.CompleteRequest{})
	wantFailure(t, err, NoModel, "lists no models", "models.providers.local.models")
}

// Neither the key nor the conversation follows a redirect.
func TestRedirectsAreRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 307, 308} {
		asked := make(chan string, 10)
		other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked <- r.Header.Get("Authorization")
		}))
		t.Cleanup(other.Close)
		first := httptest.NewServer(http.RedirectHandler(other.URL, status))
		t.Cleanup(first.Close)
		_, err := complete(t, instance(t, Config{BaseURL: first.URL, Key: "LOCAL_KEY"}, testKey), ask("hi"))
		wantFailure(t, err, BadRequest, "redirects", "models.providers.local.base_url")
		select {
		case key := <-asked:
			t.Errorf("%d: another server was asked, with the key %q", status, key)
		default:
		}
		if strings.Contains(err.Error(), other.URL) {
			t.Errorf("%d: a chat would show the address: %v", status, err)
		}
	}
}
