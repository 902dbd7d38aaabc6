package telegramchannel

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// DefaultURL is Telegram's own Bot API server.
const DefaultURL = "https://api.telegram.org"

// URLEnv names the environment variable that wins over the configured api_url.
const URLEnv = "TELEGRAM_API_URL"

const (
	defaultPollTimeout = 30 * time.Second
	maxPollTimeout     = 50 * time.Second // Telegram's own limit
	defaultRivalPause  = 3 * time.Second
)

// Config is the extension's configuration.
type Config struct {
	// APIURL is the Bot API server: Telegram's, or a self-hosted one.
	APIURL string `json:"api_url"`
	// PollTimeout is how long Telegram holds a poll open, such as "30s".
	PollTimeout string `json:"poll_timeout"`
	// Pace keeps each chat within Telegram's rates before Telegram has to refuse.
	// Without it: true for Telegram's server, false for another.
	Pace *bool `json:"pace"`
}

// settings is a configuration that was checked.
type settings struct {
	url         string
	pollTimeout time.Duration
	pace        bool
	rivalPause  time.Duration // between polls while another program polls
	menuPause   time.Duration // between looks at the commands for the menu
}

// settings checks the configuration; fromEnv is the value of URLEnv.
func (c Config) settings(fromEnv string) (settings, error) {
	s := settings{url: c.APIURL, pollTimeout: defaultPollTimeout, rivalPause: defaultRivalPause, menuPause: defaultMenuPause}
	name := "api_url"
	if fromEnv != "" {
		s.url, name = fromEnv, URLEnv
	}
	if s.url == "" {
		s.url = DefaultURL
	}
	s.url = strings.TrimRight(s.url, "/")
	u, err := url.Parse(s.url)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return s, fmt.Errorf("%s is %q, which is not the address of a server, such as %s", name, s.url, DefaultURL)
	}
	if c.PollTimeout != "" {
		if s.pollTimeout, err = time.ParseDuration(c.PollTimeout); err != nil {
			return s, fmt.Errorf("poll_timeout: %w", err)
		}
		if s.pollTimeout < time.Second || s.pollTimeout > maxPollTimeout {
			return s, fmt.Errorf("poll_timeout is %s, and has to be from 1s to %s", c.PollTimeout, maxPollTimeout)
		}
	}
	s.pace = s.url == DefaultURL
	if c.Pace != nil {
		s.pace = *c.Pace
	}
	return s, nil
}
