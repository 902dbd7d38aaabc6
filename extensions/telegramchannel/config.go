package telegramchannel

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// DefaultURL is Telegram's own Bot API server.
const DefaultURL = "https://api.telegram.org"

// URLVariable names the environment variable that overrides api_url.
const URLVariable = "TELEGRAM_API_URL"

const (
	defaultPollTimeout   = 30 * time.Second
	maxPollTimeout       = 50 * time.Second // Telegram's own limit
	defaultConflictPause = 3 * time.Second
)

// Config is the extension's configuration.
type Config struct {
	// APIURL is the Bot API server: Telegram's, or a self-hosted one.
	APIURL string `json:"api_url,omitempty"`
	// PollTimeout is how long Telegram holds a poll open, such as "30s".
	PollTimeout string `json:"poll_timeout,omitempty"`
	// Pace keeps each chat within Telegram's rate limits. The default is true for
	// Telegram's server and false for others.
	Pace *bool `json:"pace,omitempty"`
}

// settings is a checked configuration.
type settings struct {
	url           string
	pollTimeout   time.Duration
	pace          bool
	conflictPause time.Duration // between polls while another program polls
	menuInterval  time.Duration // between looks at the commands for the menu
	files         fileTimes
}

// settings checks the configuration; fromEnv is the value of URLVariable.
func (c Config) settings(fromEnv string) (settings, error) {
	s := settings{url: c.APIURL, pollTimeout: defaultPollTimeout, conflictPause: defaultConflictPause,
		menuInterval: defaultMenuInterval, files: defaultFileTimes}
	name := "api_url"
	if fromEnv != "" {
		s.url, name = fromEnv, URLVariable
	}
	if s.url == "" {
		s.url = DefaultURL
	}
	s.url = strings.TrimRight(s.url, "/")
	u, err := url.Parse(s.url)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return s, fmt.Errorf("%s is %q, which is not a server URL such as %s", name, s.url, DefaultURL)
	}
	if c.PollTimeout != "" {
		if s.pollTimeout, err = time.ParseDuration(c.PollTimeout); err != nil {
			return s, fmt.Errorf("parse poll_timeout: %w", err)
		}
		if s.pollTimeout < time.Second || s.pollTimeout > maxPollTimeout {
			return s, fmt.Errorf("poll_timeout is %s, but must be from 1s to %s", c.PollTimeout, maxPollTimeout)
		}
	}
	s.pace = s.url == DefaultURL
	if c.Pace != nil {
		s.pace = *c.Pace
	}
	return s, nil
}
