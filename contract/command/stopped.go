package command

import (
	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
)

// maxQuoted is how many dropped messages Stopped quotes.
const maxQuoted = 5

// Stopped is the answer to /stop in a language: turns were ended, and inputs that waited
// were dropped.
func Stopped(language string, turns int, dropped []contract.AgentInput) string {
	if turns+len(dropped) == 0 {
		return words.Say(language, "Nothing is running here.")
	}
	var messages []string
	for _, in := range dropped {
		if in.Kind == contract.InputUser {
			messages = append(messages, words.Quote(in.Text))
		}
	}
	text := words.Say(language, "Stopped.")
	if n := len(messages); n > 0 {
		text += " " + words.Count(language, "Dropped %d message that waited: %s.", "Dropped %d messages that waited: %s.",
			n, n, words.List(language, messages, maxQuoted))
	}
	if n := len(dropped) - len(messages); n > 0 {
		text += " " + words.Count(language, "Dropped %d notice that I hadn't read.", "Dropped %d notices that I hadn't read.",
			n, n)
	}
	return text
}
