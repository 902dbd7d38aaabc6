package modelapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

const testKey = "sk-test-0123456789abcdefghij"

// plain is an API whose events are texts; the last one is "end".
func plainAPI() *Kind {
	return &Kind{
		ID: "plain", Service: "Plain", BaseURL: "https://plain.test/v1", Model: "house", URLEnv: "PLAIN_URL",
		ModelEnv: "PLAIN_MODEL", API: "the plain API", Completions: "/say", Models: "/models",
		Headers: func(h http.Header, key string) { h.Set("Key", key) },
		Encode:  func(*sdk.CompleteRequest, string, bool) ([]byte, error) { return []byte("{}"), nil },
		Event: func(a *Answer, _ string, data []byte) (bool, error) {
			if string(data) == "end" {
				a.Finish(FinishStop)
				return true, nil
			}
			return false, a.Say(string(data))
		},
	}
}

// reports records readiness.
type reports struct {
	mu     sync.Mutex
	states []string
}

func (r *reports) set(s extensionv1.Readiness_State, detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = append(r.states, strings.TrimSpace(strings.ToLower(strings.TrimPrefix(s.String(), "STATE_"))+" "+detail))
}

func (r *reports) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.states) == 0 {
		return ""
	}
	return r.states[len(r.states)-1]
}

func started(t *testing.T, c Config, key string) (*models, *reports) {
	t.Helper()
	m, r := &models{kind: plainAPI(), id: "plain"}, &reports{}
	m.start(c, key, hclog.NewNullLogger(), r.set)
	t.Cleanup(func() {
		if s := m.server.Load(); s != nil {
			s.Close()
		}
	})
	return m, r
}

func (m *models) say(t *testing.T) error {
	t.Helper()
	return m.Complete(t.Context(), &sdk.CompleteRequest{}, func(*sdk.Delta) error { return nil })
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	accepted, asked := testKey, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.Header.Get("Key") != accepted {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: hi\n\ndata: end\n\n"))
	}))
	t.Cleanup(s.Close)

	m, r := started(t, Config{BaseURL: s.URL, Key: "PLAIN_KEY", Model: "m"}, "")
	if got := r.last(); !strings.HasPrefix(got, "unconfigured") || !strings.Contains(got, "PLAIN_KEY") {
		t.Errorf("without a key: %q", got)
	}
	if err := m.say(t); KindOf(err) != Unconfigured || !strings.Contains(err.Error(), "PLAIN_KEY") || asked > 0 {
		t.Errorf("without a key: %v, asked %d times", err, asked)
	}

	m, r = started(t, Config{BaseURL: s.URL, Key: "PLAIN_KEY", Model: "m"}, testKey)
	if got := r.last(); got != "ready" {
		t.Errorf("with a key: %q", got)
	}
	if err := m.say(t); err != nil {
		t.Fatal(err)
	}
	accepted = "another"
	for range 2 {
		if err := m.say(t); KindOf(err) != KeyRefused {
			t.Errorf("with a refused key: %v", err)
		}
	}
	if got := r.last(); !strings.HasPrefix(got, "degraded the key in PLAIN_KEY was refused") || strings.Contains(got, testKey) {
		t.Errorf("with a refused key: %q", got)
	}
	accepted = testKey
	if err := m.say(t); err != nil {
		t.Fatal(err)
	}
	if got := r.last(); got != "ready" {
		t.Errorf("with a good key again: %q", got)
	}
	if n := len(r.states); n != 3 { // ready, degraded, ready
		t.Errorf("%d reports: %q", n, r.states)
	}
}

func TestWrongConfiguration(t *testing.T) {
	t.Parallel()
	m, r := started(t, Config{BaseURL: "localhost:11434"}, testKey)
	if got := r.last(); !strings.HasPrefix(got, "unconfigured") || !strings.Contains(got, "PLAIN_URL") {
		t.Errorf("reported %q", got)
	}
	f := (*Failure)(nil)
	if err := m.say(t); !errors.As(err, &f) || f.Kind != Unconfigured || !strings.Contains(err.Error(), "PLAIN_URL") {
		t.Errorf("got %v", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	negative := -1
	for _, c := range []Config{
		{BaseURL: "api.openai.com"}, {BaseURL: "ftp://x"}, {BaseURL: "http://"},
		{BaseURL: "http://user:hidden word@x:y/"},
		{Retries: &negative}, {Timeout: -1}, {MaxCalls: -1},
	} {
		if _, err := NewServer(plainAPI(), "plain", c, testKey); err == nil {
			t.Errorf("%+v is accepted", c)
		} else if strings.Contains(err.Error(), "hidden") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
	c, err := Config{BaseURL: " http://localhost:11434/v1/ "}.resolved(plainAPI(), "plain")
	if err != nil || c.BaseURL != "http://localhost:11434/v1" || c.Model != "" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := (Config{}).resolved(plainAPI(), "plain"); err != nil || c.BaseURL != plainAPI().BaseURL || c.Model != "house" {
		t.Errorf("%+v, %v", c, err)
	}
	versioned := plainAPI()
	versioned.Version = "/v1"
	for address, want := range map[string]string{
		"https://a.test": "https://a.test/v1", "https://a.test/": "https://a.test/v1", "https://a.test/x": "https://a.test/x",
	} {
		if c, err := (Config{BaseURL: address}).resolved(versioned, "plain"); err != nil || c.BaseURL != want {
			t.Errorf("%s: %+v, %v", address, c, err)
		}
	}
	s, err := NewServer(plainAPI(), "plain", Config{BaseURL: "https://user:hidden@example.org/v1"}, testKey)
	if err != nil || strings.Contains(s.where, "hidden") {
		t.Errorf("%s, %v", s.where, err)
	}
	var d Duration
	if err := d.UnmarshalJSON([]byte(`"1m30s"`)); err != nil || d != Duration(90*time.Second) {
		t.Errorf("%v, %v", d, err)
	}
	if d.UnmarshalJSON([]byte(`5`)) == nil || d.UnmarshalJSON([]byte(`"soon"`)) == nil {
		t.Error("a duration that is none is accepted")
	}
}

// The environment is for the extension of the API's own service.
func TestEnvironmentWins(t *testing.T) {
	t.Parallel()
	env := map[string]string{"PLAIN_URL": "http://env.test/v1", "PLAIN_MODEL": "env-model"}
	getenv := func(name string) string { return env[name] }
	c := Config{BaseURL: "http://config.test", Model: "m"}
	if got := c.Overridden(plainAPI(), "plain", getenv); got.BaseURL != "http://env.test/v1" || got.Model != "env-model" {
		t.Errorf("%+v", got)
	}
	if got := c.Overridden(plainAPI(), "other", getenv); got.BaseURL != "http://config.test" || got.Model != "m" {
		t.Errorf("another server takes them: %+v", got)
	}
	env["PLAIN_URL"] = ""
	if got := c.Overridden(plainAPI(), "plain", getenv); got.BaseURL != "http://config.test" {
		t.Errorf("%+v", got)
	}
}
