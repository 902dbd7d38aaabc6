package tasks_test

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/tasks"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// TestCommandsSayHowTheyAreUsed gives commands that can't be read.
func TestCommandsSayHowTheyAreUsed(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, tasks.New(), sdktest.Options{Manifest: "../../manifests/tasks.yaml"})
	for text, want := range map[string]string{
		"send":                    "Usage: /send TO MESSAGE",
		"send anna":               "Message is missing. Usage: /send TO MESSAGE",
		"push":                    "Usage: /push PROMPT [name=TEXT]",
		"push do it modle=x":      "Unknown option 'modle'. Did you mean model?",
		"push do it deliver=post": "Deliver must be one of inbox, announce, not 'post'. Usage: /push",
		"run many":                "Count must be a whole number, not 'many'. Usage: /run [count=NUMBER]",
		"run 2 count=3":           "Unexpected argument '2'. Usage: /run",
		"run 2 3":                 "Unexpected argument '3'. Usage: /run",
		"run 0":                   "Count: got 0, want at least 1. Usage: /run",
		"queue everything":        "Unexpected argument 'everything'. Usage: /queue [--all]",
	} {
		name, rest, _ := strings.Cut(text, " ")
		if answer := k.Command(name, rest); !strings.Contains(answer, want) {
			t.Errorf("/%s is answered with %q, want %q", text, answer, want)
		}
	}
}
