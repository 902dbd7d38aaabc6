// Package openai serves the models of OpenAI, and of any server with its chat
// completions API, as <id>/<name>. Any name is passed through; "default" is the
// configured model, else the first that the server lists. Package sdk/modelapi has its
// promises.
package openai

import (
	"net/http"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// ID is the id of the extension for OpenAI itself.
const ID = "openai"

// The name of its secret, and of the environment variables that override its
// configuration.
const (
	KeyName  = "OPENAI_API_KEY"
	URLEnv   = "OPENAI_BASE_URL"
	ModelEnv = "OPENAI_MODEL"
)

// Kind returns the chat completions API.
func Kind() *modelapi.Kind {
	e := &encoder{}
	return &modelapi.Kind{
		ID: ID, Service: "OpenAI", BaseURL: "https://api.openai.com/v1", Model: "gpt-4.1-mini",
		URLEnv: URLEnv, ModelEnv: ModelEnv, API: words.Sprintf("OpenAI's chat completions API"),
		Completions: "/chat/completions", Models: "/models", Transcriptions: "/audio/transcriptions",
		Headers: func(h http.Header, key string) {
			if key != "" {
				h.Set("Authorization", "Bearer "+key)
			}
		},
		Encode: e.encode, Event: event, Window: window,
	}
}

// New returns the extension of an id.
func New(id string) sdk.Extension { return Kind().Extension(id) }
