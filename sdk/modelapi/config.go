package modelapi

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
)

// Config is the configuration of the extension. Zero values mean the defaults.
type Config struct {
	// BaseURL is the address of the API, including its version.
	BaseURL string `json:"base_url"`
	// Key is the name of the secret; empty: the server needs none.
	Key string `json:"key"`
	// Model is the model "default"; empty: the first that the server lists.
	Model string `json:"model"`
	// Context is the context window of the models that Contexts does not have, in tokens;
	// 0: the server is asked.
	Context  int64            `json:"context"`
	Contexts map[string]int64 `json:"contexts"`
	// Timeout bounds a whole completion, retries included.
	Timeout Duration `json:"timeout"`
	// IdleTimeout bounds the time in which the server sends nothing.
	IdleTimeout Duration `json:"idle_timeout"`
	// Retries is the most retries of a request; nil means DefaultRetries.
	Retries *int `json:"retries"`
	// Vision are patterns of the names of the models that can see images, or "none";
	// empty: it is decided by well-known names.
	Vision []string `json:"vision"`
	// MaxCalls is the most calls in one answer.
	MaxCalls int `json:"max_calls"`
}

// Defaults.
const (
	DefaultTimeout     = 5 * time.Minute
	DefaultIdleTimeout = time.Minute
	DefaultRetries     = 4
	DefaultMaxCalls    = 64
)

// Duration is a time.Duration with the JSON form "1m30s".
type Duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

// Overridden overrides fields with the environment variables that are set. They
// are those of the extension for the API's own service: another one in its process must
// not take them.
func (c Config) Overridden(k *Kind, id string, getenv func(string) string) Config {
	if id != k.ID {
		return c
	}
	c.BaseURL = cmp.Or(getenv(k.URLEnv), c.BaseURL)
	c.Model = cmp.Or(getenv(k.ModelEnv), c.Model)
	return c
}

// Window returns the configured context window of a model; 0: none.
func (c Config) Window(model string) int64 { return cmp.Or(c.Contexts[model], c.Context) }

// resolved sets the defaults and checks the values.
func (c Config) resolved(k *Kind, id string) (Config, error) {
	c.BaseURL = strings.TrimRight(cmp.Or(strings.TrimSpace(c.BaseURL), k.BaseURL), "/")
	if c.Model = strings.TrimPrefix(strings.TrimSpace(c.Model), id+"/"); c.BaseURL == k.BaseURL {
		c.Model = cmp.Or(c.Model, k.Model)
	}
	c.Timeout = cmp.Or(c.Timeout, Duration(DefaultTimeout))
	c.IdleTimeout = cmp.Or(c.IdleTimeout, Duration(DefaultIdleTimeout))
	c.MaxCalls = cmp.Or(c.MaxCalls, DefaultMaxCalls)
	if c.Retries == nil {
		n := DefaultRetries
		c.Retries = &n
	}
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil:
		return c, words.Errorf("the address of the model's server is not a URL: correct %v", k.urlSetting(id))
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return c, words.Errorf("the address of the model's server needs http:// or https:// and a host: correct %v",
			k.urlSetting(id))
	case u.Path == "":
		c.BaseURL += k.Version
	}
	if c.Timeout <= 0 || c.IdleTimeout <= 0 || c.MaxCalls <= 0 || *c.Retries < 0 || *c.Retries > 20 {
		return c, words.Errorf("read config of %s: timeout, idle_timeout and max_calls must be positive, "+
			"and retries from 0 to 20", id)
	}
	return c, nil
}

// urlSetting returns where the address of an extension is configured, for people.
func (k *Kind) urlSetting(id string) string {
	if id == k.ID {
		return words.Sprintf("%s or base_url", k.URLEnv)
	}
	return "models.providers." + id + ".base_url"
}

func (s *Server) urlSetting() string { return s.kind.urlSetting(s.id) }

// modelSetting returns where the models of an extension are configured.
func (s *Server) modelSetting() string {
	if s.id == s.kind.ID {
		return s.kind.ModelEnv
	}
	return "models.providers." + s.id + ".models"
}
