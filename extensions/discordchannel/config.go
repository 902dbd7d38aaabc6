package discordchannel

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// DefaultURL is Discord's API.
const DefaultURL = "https://discord.com/api/v10"

// URLVariable names the environment variable that overrides api_url.
const URLVariable = "DISCORD_API_URL"

// Config is the extension's configuration.
type Config struct {
	// APIURL is the address of the API with its version.
	APIURL string `json:"api_url,omitempty"`
	// Pace keeps the bot within Discord's rate for all of its requests. The default is
	// true for Discord itself and false for others. Limits that a response names always
	// hold.
	Pace *bool `json:"pace,omitempty"`
}

// settings is a checked configuration.
type settings struct {
	url           string
	discord       bool // the server is Discord's
	pace          bool
	tokenRetry    time.Duration // between looks at a token that was refused
	identifyPause time.Duration // after a session was lost, at least
	menuInterval  time.Duration // between looks at the commands for the menu
	files         fileTimes
}

const (
	defaultTokenRetry   = 30 * time.Second
	defaultMenuInterval = time.Minute
	// defaultIdentifyPause is the most of what Discord asks for before a new session.
	defaultIdentifyPause = 5 * time.Second
)

// settings checks the configuration; fromEnv is the value of URLVariable.
func (c Config) settings(fromEnv string) (settings, error) {
	s := settings{url: c.APIURL, tokenRetry: defaultTokenRetry, menuInterval: defaultMenuInterval, files: defaultFileTimes}
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
	s.discord = s.url == DefaultURL
	s.pace = s.discord
	if s.discord {
		s.identifyPause = defaultIdentifyPause
	}
	if c.Pace != nil {
		s.pace = *c.Pace
	}
	return s, nil
}
