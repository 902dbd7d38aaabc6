// Package agent is the built-in that runs declarative agents: agents that are a
// manifest without a program of their own (the orchestrator, echo). Several of
// them share one process; each is an extension with its own configuration, grants
// and texts.
//
// The texts are templates in prompts/; README.md explains them. A file of the same
// name in the folder "prompts" of an agent's data directory replaces the built-in
// one, and is read again when it changes.
//
// Promises and limits are those of package sdk/agent, which runs the turns.
package agent

import (
	"github.com/switchboard-run/switchboard/sdk"
	loop "github.com/switchboard-run/switchboard/sdk/agent"
	"github.com/switchboard-run/switchboard/sdk/document"
)

// New returns the extension of the agent with this id. Its manifest describes it.
func New(id string) sdk.Extension { return NewReading(id, document.Reader{}) }

// NewReading returns the extension of an agent that reads documents with r.
func NewReading(id string, r document.Reader) sdk.Extension {
	return loop.Extension(id, loop.Options{Prompts: openPrompts, Documents: r})
}
