package slackchannel

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// DefaultURL is Slack's own Web API.
const DefaultURL = "https://slack.com/api/"

// URLVariable names the environment variable that overrides api_url.
const URLVariable = "SLACK_API_URL"

// Config is the extension's configuration.
type Config struct {
	// APIURL is the address of the Web API.
	APIURL string `json:"api_url,omitempty"`
	// Pace keeps to Slack's rate limits. The default is true for Slack's server and false
	// for others.
	Pace *bool `json:"pace,omitempty"`
}

// settings is a checked configuration.
type settings struct {
	url   string
	pace  bool
	times times
}

// times are how long things take.
type times struct {
	silence    time.Duration // after which a connection without a ping is dead
	tolerated  time.Duration // how long nothing may be connected: Slack repeats what it sends
	first      time.Duration // how long what arrives waits for what was missed before the start
	lookUp     time.Duration // how long a message waits for the names in it
	settle     time.Duration // how long Slack may take to show a message that it accepted
	tokenRetry time.Duration // between tries with a token that was refused
	stall      time.Duration // how long a download may make no progress
	giveUp     time.Duration // how long a file is tried
}

var defaultTimes = times{
	silence: time.Minute, tolerated: time.Minute, first: 2 * time.Second, lookUp: time.Second,
	settle: 2 * time.Second, tokenRetry: 30 * time.Second,
	stall: 30 * time.Second, giveUp: 10 * time.Minute,
}

// settings checks the configuration; fromEnv is the value of URLVariable.
func (c Config) settings(fromEnv string) (settings, error) {
	s := settings{url: c.APIURL, times: defaultTimes}
	name := "api_url"
	if fromEnv != "" {
		s.url, name = fromEnv, URLVariable
	}
	if s.url == "" {
		s.url = DefaultURL
	}
	u, err := url.Parse(s.url)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return s, fmt.Errorf("%s is %q, which is not a server URL such as %s", name, s.url, DefaultURL)
	}
	s.url = strings.TrimRight(s.url, "/") + "/"
	s.pace = s.url == DefaultURL
	if c.Pace != nil {
		s.pace = *c.Pace
	}
	return s, nil
}
