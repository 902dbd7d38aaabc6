package modelapitest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// check tests that a check says what is wrong, and what to change.
func (s Subject) check(t *testing.T) {
	f := s.start(t)
	f.RequireKey(testKey)
	f.OnlyModels("large", "small")
	f.Always(Answer{Text: "OK", Input: 12, Output: 1})
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>"))
	}))
	t.Cleanup(page.Close)
	bare := strings.TrimSuffix(f.BaseURL(), "/v1")
	for name, tt := range map[string]struct {
		config     modelapi.Config
		key, model string
		kind       modelapi.FailureKind
		fix        string
		models     int
	}{
		"no key":        {withKey(f.BaseURL()), "", "large", modelapi.Unconfigured, "", 0},
		"another's key": {withKey(f.BaseURL()), "gsk_0123456789", "large", modelapi.KeyRefused, "looks like one of Groq", 0},
		"a wrong key":   {withKey(f.BaseURL()), "nonsense", "large", modelapi.KeyRefused, "", 0},
		"unknown model": {withKey(f.BaseURL()), testKey, "larg", modelapi.NoModel, "", 2},
		"without /v1":   {withKey(bare), testKey, "large", modelapi.NoModel, "models.providers.local.base_url to ", 0},
		"a page":        {withKey(page.URL + "/v1"), testKey, "large", modelapi.BadAnswer, "", 0},
		"nothing listens": {withKey("http://127.0.0.1:1" + s.Base), testKey, "large", modelapi.Unavailable,
			"start the server on 127.0.0.1:1", 0},
	} {
		if name == "without /v1" && s.Kind.Version != "" {
			continue // it is added
		}
		none := 0
		tt.config.Retries = &none
		r := s.connect(t, tt.config, tt.key).Check(t.Context(), tt.model)
		if r.Failure == nil || r.Failure.Kind != tt.kind || !strings.Contains(r.Fix, tt.fix) || tt.fix == "" && r.Fix != "" ||
			len(r.Models) != tt.models {
			t.Errorf("%s: %+v, want kind %d and %q", name, r, tt.kind, tt.fix)
		} else if strings.Contains(r.Failure.Error()+r.Fix, testKey) {
			t.Errorf("%s: the report holds the key", name)
		}
	}
	r := s.connect(t, withKey(f.BaseURL()), testKey).Check(t.Context(), "")
	if r.Failure != nil || r.Model != "large" || r.Usage.GetInputTokens() != 12 {
		t.Errorf("got %+v", r)
	}
}
