package agent

import (
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract/words"
)

// Plain implements Prompts with minimal texts.
type Plain struct{}

// System returns the instructions.
func (Plain) System(s Scene) (string, error) {
	if s.Instructions != "" {
		return strings.TrimSpace(s.Instructions), nil
	}
	return fmt.Sprintf("You are %s, an assistant.", s.Name), nil
}

// Preamble returns the time and the channel.
func (Plain) Preamble(s Scene) (string, error) {
	preamble := "Current time: " + s.Clock()
	if s.Channel.ID != "" {
		preamble += fmt.Sprintf("\nCurrent channel: %s (%s)", s.Channel.ID, s.Channel.Name)
	}
	return preamble, nil
}

// Say returns the reason and what to do.
func (Plain) Say(e Ending) (string, error) {
	switch e.Why {
	case WhyTimeout:
		return words.Sprintf("I stopped because this took longer than %v. My progress is saved: ask me to continue.",
			words.Span(e.Limit)), nil
	case WhyCapped:
		return words.Sprintf("I stopped after %d steps and I'm not done. Ask me to continue, or ask for less at once.",
			e.Steps), nil
	case WhyEmpty:
		return words.Sprintf("The model gave an empty answer twice. Try again or rephrase your message."), nil
	default:
		return words.Sprintf("The model couldn't answer: %v", e.Detail), nil
	}
}
