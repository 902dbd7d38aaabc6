package main

import (
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// heard returns the last text in an agent's request.
func heard(r openaitest.Request) string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" && !strings.HasPrefix(m.Content.Text, "[context ") {
			return m.Content.Text
		}
	}
	return ""
}
