// Package agent is the built-in that runs declarative agents: those of which a
// manifest says everything (the orchestrator, echo). Several of them share one
// process; each is an extension of its own with its own configuration, grants
// and texts.
//
// The texts are templates in prompts/, which README.md explains. A file
// of the same name in the folder "prompts" of an agent's data directory takes
// the place of the built-in one, and is read again when it changes.
//
// Promises and limits are those of package sdk/agent, which runs the turns.
package agent

import (
	"github.com/switchboard-run/switchboard/sdk"
	loop "github.com/switchboard-run/switchboard/sdk/agent"
)

// New returns the extension that is the agent with this id. What the agent is,
// its manifest says.
func New(id string) sdk.Extension {
	return loop.Extension(id, loop.Options{Prompts: openPrompts})
}
