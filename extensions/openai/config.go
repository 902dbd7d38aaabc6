package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// Config is the configuration as the manifest describes it. The zero value of
// each field stands for its default.
type Config struct {
	// BaseURL is the address of the API, up to and including its version.
	BaseURL string `json:"base_url"`
	// Model is what "default" stands for.
	Model string `json:"model"`
	// Timeout bounds a whole completion, retries included.
	Timeout Duration `json:"timeout"`
	// IdleTimeout bounds the time in which the server sends nothing.
	IdleTimeout Duration `json:"idle_timeout"`
	// Retries is how often a request is repeated; nil: 4.
	Retries *int `json:"retries"`
	// MaxCalls is the number of calls that one answer may make.
	MaxCalls int `json:"max_calls"`
}

// Defaults.
const (
	DefaultBaseURL     = "https://api.openai.com/v1"
	DefaultModel       = "gpt-4.1-mini"
	DefaultTimeout     = 5 * time.Minute
	DefaultIdleTimeout = time.Minute
	DefaultRetries     = 4
	DefaultMaxCalls    = 64
)

// Duration is a time.Duration that is written as "1m30s".
type Duration time.Duration

// UnmarshalJSON reads "1m30s".
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

// withEnvironment lets the environment win.
func (c Config) withEnvironment() Config {
	c.BaseURL = cmp.Or(os.Getenv(URLEnv), c.BaseURL)
	c.Model = cmp.Or(os.Getenv(ModelEnv), c.Model)
	return c
}

// resolved fills in the defaults and checks the rest.
func (c Config) resolved() (Config, error) {
	c.BaseURL = strings.TrimRight(cmp.Or(strings.TrimSpace(c.BaseURL), DefaultBaseURL), "/")
	c.Model = strings.TrimPrefix(cmp.Or(strings.TrimSpace(c.Model), DefaultModel), ID+"/")
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
		return c, fmt.Errorf("the address of the OpenAI API is not a URL: %w: correct %s or base_url", errors.Unwrap(err), URLEnv)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return c, fmt.Errorf("the address of the OpenAI API, %q, has to look like %s: correct %s or base_url", u.Redacted(), DefaultBaseURL, URLEnv)
	case c.Timeout <= 0 || c.IdleTimeout <= 0 || c.MaxCalls <= 0 || *c.Retries < 0 || *c.Retries > 20:
		return c, errors.New("the configuration of openai: timeout, idle_timeout and max_calls have to be positive, retries from 0 to 20")
	}
	return c, nil
}
