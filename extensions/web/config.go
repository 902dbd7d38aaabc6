package web

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Config is the extension's configuration.
type Config struct {
	// SearXNG is the address of a server of SearXNG.
	SearXNG string `json:"searxng,omitempty"`
	// BraveURL is the address of Brave's API.
	BraveURL string `json:"brave_url,omitempty"`
	// Engines are asked in this order, until one answers; nil: those that are configured.
	Engines []string `json:"engines,omitempty"`
	// AllowPrivate has the hosts, addresses and networks that fetch may read besides public
	// ones: see netguard.Options.
	AllowPrivate []string `json:"allow_private,omitempty"`
	// Ports may be used besides 80 and 443.
	Ports []uint16 `json:"ports,omitempty"`
	// Proxy is used by fetch; empty: none.
	Proxy string `json:"proxy,omitempty"`
	// Timeout is how long a page, or the answer of an engine, may take; IdleTimeout how long a
	// server may send nothing.
	Timeout     string `json:"timeout,omitempty"`
	IdleTimeout string `json:"idle_timeout,omitempty"`
	// MaxMegabytes is the most of a page that is read.
	MaxMegabytes int `json:"max_megabytes,omitempty"`
}

// The engines.
const (
	searxngName = "searxng"
	braveName   = "brave"
)

const (
	braveURL            = "https://api.search.brave.com"
	defaultTimeout      = 30 * time.Second
	defaultIdleTimeout  = 10 * time.Second
	defaultMaxMegabytes = 10
)

// settings is a checked configuration.
type settings struct {
	Config
	searxng, brave, proxy *url.URL // nil: none
	braveKey              string
	engines               []string
	timeout, idle         time.Duration
	maxBytes              int64
}

func (c Config) settings(braveKey string) (s settings, err error) {
	s = settings{Config: c, braveKey: strings.TrimSpace(braveKey), engines: c.Engines,
		maxBytes: int64(c.MaxMegabytes) << 20, timeout: defaultTimeout, idle: defaultIdleTimeout}
	if c.MaxMegabytes == 0 {
		s.maxBytes = defaultMaxMegabytes << 20
	}
	if c.BraveURL == "" {
		c.BraveURL = braveURL
	}
	for _, a := range []struct {
		key, value string
		to         **url.URL
	}{{"searxng", c.SearXNG, &s.searxng}, {"brave_url", c.BraveURL, &s.brave}, {"proxy", c.Proxy, &s.proxy}} {
		if *a.to, err = address(a.value); err != nil {
			return s, fmt.Errorf("extensions.%s.config.%s: %w", ID, a.key, err)
		}
	}
	for _, d := range []struct {
		key, value string
		to         *time.Duration
	}{{"timeout", c.Timeout, &s.timeout}, {"idle_timeout", c.IdleTimeout, &s.idle}} {
		if d.value == "" {
			continue
		}
		if *d.to, err = time.ParseDuration(d.value); err != nil || *d.to <= 0 {
			return s, fmt.Errorf("extensions.%s.config.%s: %q is not a duration, such as 30s", ID, d.key, d.value)
		}
	}
	if s.engines == nil {
		if s.searxng != nil {
			s.engines = append(s.engines, searxngName)
		}
		if s.braveKey != "" {
			s.engines = append(s.engines, braveName)
		}
	}
	return s, nil
}

// address returns the address of a server, without a slash at its end.
func address(value string) (*url.URL, error) {
	if value == "" {
		return nil, nil
	}
	u, err := url.Parse(strings.TrimRight(value, "/"))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("it is not a server's address, such as http://127.0.0.1:8888")
	case u.User != nil:
		return nil, errors.New("it has a user name or a password in it, which are not supported")
	}
	return u, nil
}

// searchEngines returns the engines in the order in which they are asked.
func (s settings) searchEngines(agent string) (all []engine) {
	for _, name := range slices.Compact(slices.Clone(s.engines)) {
		switch name {
		case searxngName:
			all = append(all, searxng{client: newAPI(agent), at: s.searxng})
		case braveName:
			all = append(all, brave{client: newAPI(agent), at: s.brave, key: s.braveKey})
		}
	}
	return all
}
