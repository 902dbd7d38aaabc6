package main

import (
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// heard is the last thing that an agent was told, by whomever.
func heard(r openaitest.Request) string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" && !strings.HasPrefix(m.Content.Text, "[context ") {
			return m.Content.Text
		}
	}
	return ""
}
