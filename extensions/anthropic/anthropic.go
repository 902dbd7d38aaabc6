// Package anthropic serves the models of Anthropic, and of any server with its Messages
// API, as <id>/<name>. Any name is passed through; "default" is the configured model,
// else the newest Sonnet that the server lists. Package sdk/modelapi has its promises.
//
// A request asks the server to cache its beginning: the tools, the system prompt, and
// the conversation so far. Tokens that are read from the cache are counted apart; those
// that are written to it count as input.
package anthropic

import (
	"net/http"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// ID is the id of the extension for Anthropic itself.
const ID = "anthropic"

// The name of its secret, and of the environment variables that override its
// configuration.
const (
	KeyName  = "ANTHROPIC_API_KEY"
	URLEnv   = "ANTHROPIC_BASE_URL"
	ModelEnv = "ANTHROPIC_MODEL"
)

// apiVersion is the version of the API that this package speaks.
const apiVersion = "2023-06-01"

// Kind returns the Messages API.
func Kind() *modelapi.Kind {
	e := &encoder{}
	return &modelapi.Kind{
		ID: ID, Service: "Anthropic", BaseURL: "https://api.anthropic.com/v1", Version: "/v1",
		URLEnv: URLEnv, ModelEnv: ModelEnv, API: words.Sprintf("Anthropic's Messages API"),
		Completions: "/messages", Models: "/models?limit=1000",
		Headers: func(h http.Header, key string) {
			h.Set("Anthropic-Version", apiVersion)
			if key != "" {
				h.Set("X-Api-Key", key)
			}
		},
		Encode: e.encode, Event: event, Choose: newestSonnet,
	}
}

// New returns the extension of an id.
func New(id string) sdk.Extension { return Kind().Extension(id) }

// newestSonnet returns the index of the default model: neither the most expensive nor the
// weakest. Servers list the newest first.
func newestSonnet(models []modelapi.Model) int {
	return max(0, slices.IndexFunc(models, func(m modelapi.Model) bool { return strings.Contains(m.ID, "sonnet") }))
}
